"""Dates and times in words, in six languages: English, German, French, Spanish, Italian, Portuguese. Pure.

Days (`24. Dezember`, `12/03/2026`) are dateparser's, which is imported when the first one is read. What it does not know, or reads into words
that are none, is read here: days of the week, the clock beside a day (`morgen um 8`), lengths of time, and recurrence. What cannot be read
for certain is no time at all: a wrong hour is worse than a question.
"""

from __future__ import annotations

import calendar
import re
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import date, datetime, time, timedelta

from memory import date_words as words
from memory import day_words
from memory.recurrence import FREQUENCIES

LONGEST = 400
"""Characters of a text that are looked at."""
FARTHEST = timedelta(days=36_600)
"""The longest length of time that is told apart; longer ones are this long."""
USUAL = time(9)
"""When on a day that is named without a time."""


@dataclass(frozen=True, slots=True)
class When:
    """What a text says of a time: either `wall`, a naive time on the person's clock, or `span`, a length from now on, which needs no zone.

    `every`: the recurrence (`memory.recurrence` reads it), empty: once. `rest`: the text without the words of time.
    """

    wall: datetime | None = None
    span: timedelta | None = None
    every: str = ""
    rest: str = ""


@dataclass(slots=True)
class _Reading:
    """A text while it is read: what was understood is cut out of it.

    `day` and `part` are what a recurrence names beside itself. `unread`: there is a time in it that cannot be read, so none is given.
    """

    text: str
    now: datetime
    locale: str = ""
    day: date | None = None
    part: words.Part | None = None
    unread: bool = False

    def take(self, pattern: re.Pattern[str]) -> re.Match[str] | None:
        found = pattern.search(self.text)
        if found:
            self.text = f"{self.text[: found.start()]} {self.text[found.end() :]}"
        return found


def when_in(text: str, now: datetime, locale: str = "") -> When | None:
    """The time that a text names; None: none, or none that can be read for certain. `now`: naive, on the person's clock.

    `locale` decides what 12/03 is.
    """
    plain = re.sub(r"(\d{4}-\d{2}-\d{2})T(?=\d)", r"\1 ", text[:LONGEST].replace("’", "'"))
    reading = _Reading(day_words.BARE_HOUR.sub(r"\g<day> at \g<h>", plain), now, locale)
    if day_words.SEVERAL.search(reading.text):
        return None
    every = _recurrence(reading)
    span = None if every else _span(reading)
    clock = _clock(reading)
    if span is not None and (clock is None or span < timedelta(days=1)):
        return When(span=span, rest=_tidy(reading.text))
    day = (now + span).date() if span is not None else reading.day or _day(reading)
    if reading.unread or (day is None and day_words.PAST.search(plain)):
        return None
    if clock is None and day is None:
        return When(_first(now, None, USUAL), every=every, rest=_tidy(reading.text)) if every else None
    wall = _at_minute(now, day, clock, recurs=bool(every)) if isinstance(clock, int) else _first(now, day, clock or USUAL)
    return When(wall, every=every, rest=_tidy(reading.text))


def _first(now: datetime, day: date | None, clock: time) -> datetime:
    """The first time ahead at which a clock says so, on a day where one is named; midnight of today is the one ahead."""
    if day is not None and (day != now.date() or clock != time()):
        return datetime.combine(day, clock)
    today = datetime.combine(now.date(), clock)
    return today if today > now else today + timedelta(days=1)


def _at_minute(now: datetime, day: date | None, minute: int, *, recurs: bool) -> datetime:
    """A time without morning or evening: that of the 24 hours, but today the nearer of both, as people say it."""
    today = day is None or day == now.date()
    midnight = datetime.combine(now.date(), time())
    if today and not recurs:
        both = [midnight + timedelta(minutes=either % 1440) for either in (minute, minute + 720)]
        if ahead := [at for at in both if at > now]:
            return min(ahead)
    return _first(now, day, time(*divmod(minute, 60)))


# The parts, each taking what it understands out of the text --------------------------------------------


def _span(reading: _Reading) -> timedelta | None:
    for pattern, length in words.SPANS:
        if reading.take(pattern):
            return timedelta(seconds=length)
    if found := reading.take(words.HOURS_MINUTES):
        return timedelta(hours=int(found["h"]), minutes=int(found["m"]))
    halves = reading.take(words.HALVES)
    found = halves or reading.take(words.SPAN) or reading.take(words.FROM_NOW)
    if found is None:
        return None
    unit = words.unit_of(found["unit"])
    seconds = words.number_of(found["n"]) * unit + (unit / 2 if halves or found["half"] else 0.0)
    seconds += sum(words.number_of(more["n"]) * words.unit_of(more["unit"]) for more in words.MORE.finditer(found["more"]))
    return min(timedelta(seconds=seconds), FARTHEST)


def _clock(reading: _Reading) -> time | int | None:
    """The time of day: exact, or one that may be in either half of the day as minutes since midnight."""
    before = words.BEFORE_PART.search(reading.text)
    if before:
        reading.text = f"{reading.text[: before.start()]}at {before['h']}{reading.text[before.end() :]}"
    part = reading.take(words.PART)
    shift = words.part_of(part[0]) if part else reading.part
    for pattern, clock in words.CLOCKS:
        if reading.take(pattern):
            return clock
    for pattern in (words.HALF, words.QUARTER, words.MINUTES, words.MERIDIEM, words.HOURS, words.TIME, words.HOUR):
        found = pattern.search(reading.text)
        if found and (made := words.clock_of(found, shift)) is not None:
            reading.take(pattern)
            return _with_fraction(reading, made)
        reading.unread |= found is not None and pattern is words.TIME and ":" in found[0]  # 25:00
    return shift.usual if shift else None


def _with_fraction(reading: _Reading, clock: time | int) -> time | int:
    """With the quarter or half that follows the hour in some languages (`à 8 heures et quart`)."""
    for pattern, minutes in words.FRACTIONS:
        if reading.take(pattern):
            if isinstance(clock, int):
                return (clock + minutes) % 1440
            return time(*divmod((clock.hour * 60 + clock.minute + minutes) % 1440, 60))
    return clock


def _day(reading: _Reading) -> date | None:
    today = reading.now.date()
    for pattern, days in day_words.DAYS:
        if reading.take(pattern):
            return today + timedelta(days=days)
    for pattern in day_words.DATES:
        found = pattern.search(reading.text)
        if found and (day := parsed_day(found["day"], reading.now, reading.locale)) is not None:
            reading.take(pattern)
            return day
        # A 31st of June; a fraction is written like 1/20, too.
        reading.unread |= found is not None and pattern is not day_words.SLASHED
    if found := reading.take(day_words.DAY_OF_MONTH):
        return _next_day_of_month(today, int(found["n"]))
    return _day_of_week(reading, today)


def _day_of_week(reading: _Reading, today: date) -> date | None:
    weeks = next((weeks for pattern, weeks in day_words.WEEKS if reading.take(pattern)), None)
    found = reading.take(day_words.OF_THE_WEEK)
    monday = today - timedelta(days=today.weekday())
    if found is None:
        return None if weeks is None else monday + timedelta(days=7 * weeks)
    weekday = day_words.WEEKDAYS.index(day_words.weekday_of(found["weekday"]))
    if weeks is None:
        return today + timedelta(days=(weekday - today.weekday() - 1) % 7 + 1)
    return monday + timedelta(days=7 * weeks + weekday)


def _next_day_of_month(today: date, number: int) -> date | None:
    """The next day of this number, in a month that has it; None: no month has."""
    year, month = today.year, today.month
    for _ in range(3):
        if 0 < number <= calendar.monthrange(year, month)[1] and date(year, month, number) >= today:
            return date(year, month, number)
        year, month = (year, month + 1) if month < 12 else (year + 1, 1)
    return None


def days_in(text: str, today: date) -> Iterator[date]:
    """All days that a text names with their month. Without a year the nearest one; an impossible day is none."""
    for found in day_words.ALL_DATES.finditer(text):
        part = {name[0]: value for name, value in found.groupdict().items() if value}
        month = int(part["m"]) if "m" in part else day_words.month_of(part["n"])
        days = []
        for year in [int(part["y"])] if "y" in part else [today.year - 1, today.year, today.year + 1]:
            try:
                days.append(date(year, month, int(part["d"])))
            except ValueError:
                continue  # the 29th of February of another year, or no date at all
        if days:
            yield min(days, key=lambda day: abs(day - today))


def parsed_day(text: str, now: datetime, locale: str = "") -> date | None:
    """A day in words, ahead of `now`, as dateparser reads it; None: it is none."""
    import dateparser

    spoken = locale.replace("_", "-").casefold().split("-")[0]
    languages = sorted(words.LANGUAGES, key=lambda language: language != spoken)
    settings = {
        "PREFER_DATES_FROM": "future",
        "RELATIVE_BASE": now,
        "RETURN_AS_TIMEZONE_AWARE": False,
        "PARSERS": ["absolute-time"],
    }
    if locale.replace("_", "-").casefold() == "en-us":
        settings["DATE_ORDER"] = "MDY"
    elif re.match(r"\d{1,2}[./-]\d{1,2}[./-]\d", text):
        settings["DATE_ORDER"] = "DMY"
    found = dateparser.parse(text, languages=languages, settings=settings)
    # It takes a number it cannot place for a month, and puts today's day beside it.
    numbers = {int(number) for number in re.findall(r"\d+", text)}
    return None if found is None or (numbers and found.day not in numbers) else found.date()


def _recurrence(reading: _Reading) -> str:
    rule = _rule(reading)
    if not rule:
        return ""
    if count := reading.take(day_words.TIMES):
        return f"{_explicit(rule)};COUNT={words.number_of(count['n']):.0f}"
    until: date | None = None
    if length := reading.take(day_words.FOR):
        seconds = words.number_of(length["n"]) * words.unit_of(length["unit"])
        until = (reading.now + min(timedelta(seconds=seconds), FARTHEST)).date()
    elif (found := day_words.UNTIL.search(reading.text)) and (until := parsed_day(found["day"], reading.now, reading.locale)):
        reading.take(day_words.UNTIL)
    return f"{_explicit(rule)};UNTIL={until:%Y%m%d}T235959" if until else rule


def _explicit(rule: str) -> str:
    return f"FREQ={FREQUENCIES[rule]}" if rule in FREQUENCIES else rule


def _rule(reading: _Reading) -> str:
    if found := reading.take(day_words.MONTHLY_ON):
        reading.day = _next_day_of_month(reading.now.date(), int(next(number for number in found.groups() if number)))
        reading.unread |= reading.day is None
        return "month"
    if found := reading.take(day_words.EVERY_PART):
        reading.part = words.each_part_of(found["part"])
        return "day"
    if found := reading.take(day_words.ORDINAL_DAY) or reading.take(day_words.ORDINAL_AFTER):
        return f"FREQ=MONTHLY;BYDAY={day_words.ordinal_of(found['which'])}{day_words.weekday_of(found['weekday'])}"
    for pattern, rule in day_words.RULES:
        if reading.take(pattern):
            reading.unread |= rule == "month" and day_words.WEEKDAY.search(reading.text) is not None  # which of them?
            return rule
    if found := reading.take(day_words.EVERY_OTHER):
        return f"FREQ=WEEKLY;INTERVAL=2;BYDAY={day_words.weekday_of(found['weekday'])}"
    return _every_n(reading) or _weekdays(reading)


def _every_n(reading: _Reading) -> str:
    found = reading.take(day_words.EVERY_N)
    if found is None:
        return ""
    count, unit = round(words.number_of(found["n"])), round(words.unit_of(found["unit"]))
    frequency = {86_400: "DAILY", 604_800: "WEEKLY", 2_592_000: "MONTHLY", 31_536_000: "YEARLY"}.get(unit)
    reading.unread |= frequency is None or count < 1  # every 2 hours, every 0 days
    return f"FREQ={frequency};INTERVAL={count}"


def _weekdays(reading: _Reading) -> str:
    found = reading.take(day_words.EVERY_DAY_OF_WEEK)
    if found is None:
        reading.unread |= day_words.OFTENER.search(reading.text) is not None
        return ""
    days = [day_words.weekday_of(name) for name in day_words.WEEKDAY.findall(found[0])]
    return f"FREQ=WEEKLY;BYDAY={','.join(dict.fromkeys(days))}"


def _tidy(text: str) -> str:
    return " ".join(text.split()).strip(" ,.;:!-")
