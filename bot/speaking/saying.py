"""What the bot itself says about reminders, in the person's language: what is set, when, how it repeats, and that nothing is set. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import yaml

from memory.recurrence import parts_of
from memory.working_context import one_line
from memory.zones import zone_named

_WORDS: Mapping[str, Any] = yaml.safe_load(Path(__file__).with_name("saying.yaml").read_text(encoding="utf-8"))
SHOWN = 300
"""Characters of a purpose that are shown."""
MOST = 5
"""Reminders of one message that have buttons."""
SNOOZES = (10, 60)
"""Minutes for which a reminder can be put off with a press."""
_WEEKDAYS = ("MO", "TU", "WE", "TH", "FR", "SA", "SU")


@dataclass(frozen=True, slots=True)
class Set:
    """A reminder as it is shown. `due_at` is aware; `wall_time` naive, in the person's zone; `every` as in `memory.recurrence`."""

    id: int
    purpose: str
    due_at: datetime
    wall_time: datetime
    every: str = ""


def words(locale: str) -> Mapping[str, Any]:
    """The words of a person's language, in English where there are none."""
    found: Mapping[str, Any] = _WORDS.get(locale.replace("_", "-").casefold().split("-")[0], _WORDS["en"])
    return found


def text(key: str, locale: str) -> str:
    """One of the fixed texts."""
    return str(words(locale)[key])


def line(timer: Set, now: datetime, zone: str, locale: str) -> str:
    """`laundry, today 17:00`, or with its recurrence `pills, every day at 08:00, next tomorrow`."""
    purpose = one_line(timer.purpose)
    shown = purpose if len(purpose) <= SHOWN else f"{purpose[:SHOWN]} …"
    if not timer.every:
        return f"{shown}, {when(timer.due_at, now, zone, locale)}"
    following = words(locale)["next"].format(when(timer.due_at, now, zone, locale, clock=False))
    return f"{shown}, {repeats(timer.every, timer.wall_time, locale)}, {following}"


def is_set(timer: Set, now: datetime, zone: str, locale: str) -> str:
    """The bot's own line about a reminder that was set or moved."""
    return f"{text('reminder', locale)}: {line(timer, now, zone, locale)}"


def when(at: datetime, now: datetime, zone: str, locale: str, *, clock: bool = True) -> str:
    """A time ahead as the person says it: `today 17:00`; without a known zone in how long it comes."""
    said, tz = words(locale), zone_named(zone)
    if tz is None:
        return str(said["in"].format(span(at - now)))
    local, days = at.astimezone(tz), (at.astimezone(tz).date() - now.astimezone(tz).date()).days
    day = said["today"] if days == 0 else said["tomorrow"] if days == 1 else _day(local, now.astimezone(tz), said)
    return f"{day} {local:%H:%M}" if clock else str(day)


def _day(at: datetime, now: datetime, said: Mapping[str, Any]) -> str:
    day = _date(at, said)
    return day if at - now < timedelta(days=300) else str(said.get("year", "{} {}")).format(day, at.year)


def _date(day: datetime, said: Mapping[str, Any]) -> str:
    return str(said["date"].format(day=said["days"][day.weekday()], d=day.day, month=said["months"][day.month - 1]))


def span(length: timedelta) -> str:
    """A length of time in one unit that everybody reads: `20 s`, `20 min`, `3 h`, `2 d`."""
    seconds = max(0, round(length.total_seconds()))
    for unit, size, most in (("s", 1, 120), ("min", 60, 7200), ("h", 3600, 172_800)):
        if seconds < most:
            return f"{round(seconds / size)} {unit}"
    return f"{round(seconds / 86_400)} d"


def repeats(every: str, wall: datetime, locale: str) -> str:
    """A recurrence in words: `every weekday at 08:00`, `on the last Friday of the month at 17:00, until 24 December`."""
    said, parts = words(locale), parts_of(every)
    every_words: Mapping[str, Any] = said["every"]
    ends = []
    if "UNTIL" in parts:
        until = datetime.strptime(parts["UNTIL"][:8], "%Y%m%d")  # noqa: DTZ007 - a day on their calendar
        ends.append(every_words["until"].format(_day(until, wall, said)))
    if "COUNT" in parts:
        ends.append(every_words["count"].format(parts["COUNT"]))
    base = _rule(parts, wall, said)
    if "BYMONTH" in parts and (parts["FREQ"] != "YEARLY" or "BYDAY" in parts or "," in parts["BYMONTH"]):
        months = _joined([said["months"][int(month) - 1] for month in parts["BYMONTH"].split(",")], every_words["and"])
        base = f"{base} ({months})"
    return ", ".join([f"{base} {every_words['at'].format(f'{wall:%H:%M}')}", *ends])


def _rule(parts: Mapping[str, str], wall: datetime, said: Mapping[str, Any]) -> str:
    every: Mapping[str, Any] = said["every"]
    frequency, interval = parts["FREQ"], int(parts.get("INTERVAL", "1"))
    one, many = every[frequency]
    base = one if interval == 1 else many.format(interval)
    days = [day for day in parts.get("BYDAY", "").split(",") if day]
    if frequency == "WEEKLY" and not days:
        days = [_WEEKDAYS[wall.weekday()]]
    if frequency in ("DAILY", "WEEKLY"):
        if days == list(_WEEKDAYS[:5]) and interval == 1:
            return str(every["weekdays"])
        named = _joined([said["days"][_WEEKDAYS.index(day)] for day in days], every["and"]) if days else ""
        return (
            base if not days else str(every["each"].format(named)) if interval == 1 else f"{base} {every['also'].format(named)}"
        )
    if days:
        position = parts.get("BYSETPOS")
        of = (
            every["workday"][0 if position == "1" else 1]
            if position
            else _joined([_nth(day, said) for day in days], every["and"])
        )
        return str(of) if interval == 1 and frequency == "MONTHLY" else f"{base} {of}"
    if frequency == "YEARLY":
        month, day = int(parts.get("BYMONTH", str(wall.month)).split(",")[0]), parts.get("BYMONTHDAY", str(wall.day))
        return f"{base} {every['yearday'].format(d=day, month=said['months'][month - 1])}"
    numbers = parts.get("BYMONTHDAY", str(wall.day)).split(",")
    dates = [every["lastday"] if number == "-1" else every["dates"].format(number) for number in numbers]
    return f"{base} {_joined(dates, every['and'])}"


def _nth(day: str, said: Mapping[str, Any]) -> str:
    """`-1FR` in words: the last Friday of the month; without a number every one of them."""
    every: Mapping[str, Any] = said["every"]
    name = said["days"][_WEEKDAYS.index(day[-2:])]
    if len(day) == 2:
        return str(every["each"].format(name))
    number = int(day[:-2])
    ordinals = every.get("others", {}).get(name, every["ordinals"])
    return str(every["of"].format(ordinals[number if number < 0 else number - 1], name))


def _joined(names: Sequence[str], conjunction: str) -> str:
    return names[0] if len(names) == 1 else f"{', '.join(names[:-1])} {conjunction} {names[-1]}"
