"""What the bot itself says about reminders, in the person's language: what is set, when, how it repeats, and that nothing is set. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from adapters.catalogue import say, words
from memory.day_words import WEEKDAYS
from memory.recurrence import parts_of
from memory.working_context import one_line
from memory.zones import zone_named

SHOWN = 300
"""Characters of a purpose that are shown."""
MOST = 5
"""Reminders of one message that have buttons."""
SNOOZES = (10, 60)
"""Minutes for which a reminder can be put off with a press."""


@dataclass(frozen=True, slots=True)
class Set:
    """A reminder as it is shown. `due_at` is aware; `wall_time` naive, in the person's zone; `every` as in `memory.recurrence`."""

    id: int
    purpose: str
    due_at: datetime
    wall_time: datetime
    every: str = ""


def set_of(row: Mapping[str, Any]) -> Set:
    """A reminder by its row."""
    return Set(row["id"], row["purpose"], row["due_at"], row["wall_time"], row["every"] or "")


def line(timer: Set, now: datetime, zone: str, locale: str) -> str:
    """`laundry, today 17:00`, or with its recurrence `pills, every day at 08:00, next tomorrow`."""
    purpose = one_line(timer.purpose)
    shown = purpose if len(purpose) <= SHOWN else f"{purpose[:SHOWN]} …"
    if not timer.every:
        return f"{shown}, {when(timer.due_at, now, zone, locale)}"
    following = say("time.next", locale, when=when(timer.due_at, now, zone, locale, clock=False))
    return f"{shown}, {repeats(timer.every, timer.wall_time, locale)}, {following}"


def is_set(timer: Set, now: datetime, zone: str, locale: str) -> str:
    """The bot's own line about a reminder that was set or moved."""
    return say("remind.set", locale, reminder=line(timer, now, zone, locale))


def when(at: datetime, now: datetime, zone: str, locale: str, *, clock: bool = True) -> str:
    """A time ahead as the person says it: `today 17:00`; without a known zone in how long it comes."""
    tz = zone_named(zone)
    if tz is None:
        return say("time.in", locale, span=span(at - now))
    local, days = at.astimezone(tz), (at.astimezone(tz).date() - now.astimezone(tz).date()).days
    near = ("time.today", "time.tomorrow")
    day = say(near[days], locale) if days in (0, 1) else _day(local, now.astimezone(tz), locale)
    return f"{day} {local:%H:%M}" if clock else day


def _day(at: datetime, now: datetime, locale: str) -> str:
    day = _date(at, locale)
    return day if at - now < timedelta(days=300) else say("time.dated_year", locale, date=day, year=at.year)


def _date(day: datetime, locale: str) -> str:
    weekday, month = words("time.days", locale)[day.weekday()], words("time.dated_months", locale)[day.month - 1]
    return say("time.date", locale, day=weekday, d=day.day, month=month)


def span(length: timedelta) -> str:
    """A length of time in one unit that everybody reads: `20 s`, `20 min`, `3 h`, `2 d`."""
    seconds = max(0, round(length.total_seconds()))
    for unit, size, most in (("s", 1, 120), ("min", 60, 7200), ("h", 3600, 172_800)):
        if seconds < most:
            return f"{round(seconds / size)} {unit}"
    return f"{round(seconds / 86_400)} d"


def repeats(every: str, wall: datetime, locale: str) -> str:
    """A recurrence in words: `every weekday at 08:00`, `on the last Friday of the month at 17:00, until 24 December`."""
    parts, ends = parts_of(every), []
    if "UNTIL" in parts:
        until = datetime.strptime(parts["UNTIL"][:8], "%Y%m%d")  # noqa: DTZ007 - a day on their calendar
        ends.append(say("every.until", locale, date=_day(until, wall, locale)))
    if "COUNT" in parts:
        ends.append(say("every.count", locale, n=int(parts["COUNT"])))
    base = _rule(parts, wall, locale)
    if "BYMONTH" in parts and (parts["FREQ"] != "YEARLY" or "BYDAY" in parts or "," in parts["BYMONTH"]):
        named = words("time.dated_months", locale)
        months = [named[int(month) - 1] for month in parts["BYMONTH"].split(",")]
        base = f"{base} ({_joined(months, say('every.and', locale))})"
    return ", ".join([f"{base} {say('every.at', locale, clock=f'{wall:%H:%M}')}", *ends])


def _rule(parts: Mapping[str, str], wall: datetime, locale: str) -> str:
    frequency, interval, conjunction = parts["FREQ"], int(parts.get("INTERVAL", "1")), say("every.and", locale)
    base = say(f"every.{frequency.casefold()}", locale, n=interval)
    days = [day for day in parts.get("BYDAY", "").split(",") if day]
    if frequency == "WEEKLY" and not days:
        days = [WEEKDAYS[wall.weekday()]]
    if frequency in ("DAILY", "WEEKLY"):
        if days == list(WEEKDAYS[:5]) and interval == 1:
            return say("every.weekdays", locale)
        named = _joined([words("time.days", locale)[WEEKDAYS.index(day)] for day in days], conjunction) if days else ""
        if not days:
            return base
        return say("every.each", locale, days=named) if interval == 1 else f"{base} {say('every.also', locale, days=named)}"
    if days:
        position = parts.get("BYSETPOS")
        nth = [words("every.workday", locale)[0 if position == "1" else 1]] if position else [_nth(day, locale) for day in days]
        of = _joined(nth, conjunction)
        return of if interval == 1 and frequency == "MONTHLY" else f"{base} {of}"
    if frequency == "YEARLY":
        month, day = int(parts.get("BYMONTH", str(wall.month)).split(",")[0]), parts.get("BYMONTHDAY", str(wall.day))
        return f"{base} {say('every.yearday', locale, d=day, month=words('time.dated_months', locale)[month - 1])}"
    numbers = parts.get("BYMONTHDAY", str(wall.day)).split(",")
    dates = [say("every.lastday", locale) if number == "-1" else say("every.dates", locale, day=number) for number in numbers]
    return f"{base} {_joined(dates, conjunction)}"


def _nth(day: str, locale: str) -> str:
    """`-1FR` in words: the last Friday of the month; without a number every one of them."""
    name = words("time.days", locale)[WEEKDAYS.index(day[-2:])]
    if len(day) == 2:
        return say("every.each", locale, days=name)
    number = int(day[:-2])
    ordinals = words({"SA": "every.ordinals_saturday", "SU": "every.ordinals_sunday"}.get(day[-2:], "every.ordinals"), locale)
    return say("every.of", locale, which=ordinals[number if number < 0 else number - 1], day=name)


def _joined(names: Sequence[str], conjunction: str) -> str:
    return names[0] if len(names) == 1 else f"{', '.join(names[:-1])} {conjunction} {names[-1]}"
