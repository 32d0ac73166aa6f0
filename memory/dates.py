"""Dates and times in words, in six languages: English, German, French, Spanish, Italian, Portuguese. Pure.

Days (`next Friday`, `24. Dezember`, `12/03/2026`) are dateparser's, which is imported when the first one is read. What it does not know is
read here: the clock beside a day (`morgen um 8`), lengths of time with halves, and recurrence.
"""

from __future__ import annotations

import re
from calendar import monthrange
from dataclasses import dataclass, field
from datetime import date, datetime, time, timedelta

from memory import date_words as words

LONGEST = 400
"""Characters of a text that are looked at."""
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
    """A text while it is read: what was understood is cut out of it."""

    text: str
    now: datetime
    locale: str = ""
    until: date | None = None
    days: list[date] = field(default_factory=list)

    def take(self, pattern: re.Pattern[str]) -> re.Match[str] | None:
        found = pattern.search(self.text)
        if found:
            self.text = f"{self.text[: found.start()]} {self.text[found.end() :]}"
        return found


def when_in(text: str, now: datetime, locale: str = "") -> When | None:
    """The time that a text names; None: none. `now`: naive, on the person's clock. `locale` decides what 12/03 is."""
    reading = _Reading(text[:LONGEST].replace("’", "'"), now, locale)
    every = _recurrence(reading)
    span = None if every else _span(reading)
    clock = _clock(reading)
    if span is not None and (clock is None or span < timedelta(days=1)):
        return When(span=span, rest=_tidy(reading.text))
    day = _day(reading) if span is None else (now + span).date()
    if clock is None and day is None:
        return When(_first(now, None, USUAL), every=every, rest=_tidy(reading.text)) if every else None
    wall = _first(now, day, clock or USUAL) if not isinstance(clock, int) else _hour(now, day, clock, recurs=bool(every))
    return When(wall, every=every, rest=_tidy(reading.text))


def _first(now: datetime, day: date | None, clock: time) -> datetime:
    """The first time ahead at which a clock says so, on a day where one is named."""
    if day is not None:
        return datetime.combine(day, clock)
    today = datetime.combine(now.date(), clock)
    return today if today > now else today + timedelta(days=1)


def _hour(now: datetime, day: date | None, hour: int, *, recurs: bool) -> datetime:
    """An hour without morning or evening: that of the 24 hours, but today the nearer of both, as people say it."""
    today = day is None or day == now.date()
    if today and not recurs and hour <= 12:
        ahead = [at for at in (_on(now, hour % 24), _on(now, (hour + 12) % 24)) if at > now]
        if ahead:
            return min(ahead)
    return _first(now, day, time(hour % 24))


def _on(now: datetime, hour: int) -> datetime:
    return datetime.combine(now.date(), time(hour))


# The parts, each taking what it understands out of the text --------------------------------------------


def _span(reading: _Reading) -> timedelta | None:
    for pattern, seconds in words.SPANS:
        if reading.take(pattern):
            return timedelta(seconds=seconds)
    found = reading.take(words.SPAN)
    if found is None:
        return None
    unit = words.unit_of(found["unit"])
    half = unit / 2 if found["half"] else 0.0
    return timedelta(seconds=words.number_of(found["n"]) * unit + half)


def _clock(reading: _Reading) -> time | int | None:
    """The time of day: exact, or an hour alone that may be either of two."""
    part = reading.take(words.PART)
    shift = words.part_of(part[0]) if part else None
    for pattern, clock in words.CLOCKS:
        if reading.take(pattern):
            return clock
    for pattern in (words.HALF, words.QUARTER, words.MERIDIEM, words.HOURS, words.TIME, words.HOUR):
        found = pattern.search(reading.text)
        if found and (made := words.clock_of(found, shift)) is not None:
            reading.take(pattern)
            return made
    return shift.usual if shift else None


def _day(reading: _Reading) -> date | None:
    for pattern, days in words.DAYS:
        if reading.take(pattern):
            return reading.now.date() + timedelta(days=days)
    for pattern in words.DATES:
        found = pattern.search(reading.text)
        if found and (day := parsed_day(found["day"], reading.now, reading.locale)) is not None:
            reading.take(pattern)
            return day
    return None


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
    return None if found is None else found.date()


def _recurrence(reading: _Reading) -> str:
    count, until = reading.take(words.TIMES), None
    if (found := words.UNTIL.search(reading.text)) and (until := parsed_day(found["day"], reading.now, reading.locale)):
        reading.take(words.UNTIL)
    rule = _rule(reading)
    if not rule:
        return ""
    if count:
        return f"{_explicit(rule)};COUNT={words.number_of(count['n']):.0f}"
    return f"{_explicit(rule)};UNTIL={until:%Y%m%d}T235959" if until else rule


def _explicit(rule: str) -> str:
    return {"day": "FREQ=DAILY", "week": "FREQ=WEEKLY", "month": "FREQ=MONTHLY", "year": "FREQ=YEARLY"}.get(rule, rule)


def _rule(reading: _Reading) -> str:
    for pattern, rule in words.RULES:
        if reading.take(pattern):
            return rule
    if found := reading.take(words.ORDINAL_DAY):
        return f"FREQ=MONTHLY;BYDAY={words.ordinal_of(found['which'])}{words.weekday_of(found['weekday'])}"
    if found := reading.take(words.EVERY_DAY_OF_WEEK):
        days = [words.weekday_of(name) for name in words.WEEKDAY.findall(found[0])]
        return f"FREQ=WEEKLY;BYDAY={','.join(dict.fromkeys(days))}"
    if found := reading.take(words.EVERY_N):
        frequency = {86_400: "DAILY", 604_800: "WEEKLY", 2_592_000: "MONTHLY", 31_536_000: "YEARLY"}.get(
            round(words.unit_of(found["unit"]))
        )
        return f"FREQ={frequency};INTERVAL={words.number_of(found['n']):.0f}" if frequency else ""
    return ""


def _tidy(text: str) -> str:
    return " ".join(text.split()).strip(" ,.;:!-")


# Looking back ----------------------------------------------------------------------------------------

YEARS = 10
"""Years back that a day without a year may lie."""


def days_meant(text: str, today: date) -> list[tuple[date, date]]:
    """The days that a text about the past may mean, as first and last days: `yesterday`, `on 7 May 2023`, `in May` (of any of the latest years)."""
    text = text[:LONGEST].replace("’", "'")
    for pattern, first, last in words.BACK:
        if pattern.search(text):
            return [(today - timedelta(days=first), today - timedelta(days=last))]
    for pattern in words.NAMED_DAYS:
        if found := pattern.search(text):
            return _named(found.groupdict(), today)
    return []


def _named(found: dict[str, str | None], today: date) -> list[tuple[date, date]]:
    name, number, year_of, day = (found.get(part) or "" for part in ("month", "number", "year", "day"))
    month = words.month_of(name) if name else int(number)
    years = [int(year_of)] if year_of else range(today.year, today.year - YEARS, -1)
    spans = []
    for year in years:
        try:
            first = date(year, month, int(day or 1))
            last = first if day else first.replace(day=monthrange(year, month)[1])
        except ValueError:  # no such day
            continue
        if first <= today:
            spans.append((first, last))
    return spans


def asks_time(text: str) -> bool:
    """Whether a question asks for a time."""
    return words.ASKS_TIME.search(text[:LONGEST]) is not None
