"""When a timer comes again: every day, week, month or year, or by a rule of RFC 5545. Pure; wall times are naive, read in an IANA zone.

The four plain words are reckoned from the first occurrence with the last day of a short month in place of a missing one, which no plain
rule of the RFC does. All else is python-dateutil's. Clock changes are as in `memory.zones.instant`.
"""

from __future__ import annotations

import calendar
import re
from datetime import datetime, timedelta
from typing import Final
from zoneinfo import ZoneInfo

from dateutil.rrule import rrule, rrulestr

from memory.zones import instant

PLAIN: Final = ("day", "week", "month", "year")
LONGEST = 200
"""Characters of a rule."""
_SAME = {
    **{f"{word}s": word for word in PLAIN},
    **dict.fromkeys(("daily", "FREQ=DAILY"), "day"),
    **dict.fromkeys(("weekly", "FREQ=WEEKLY"), "week"),
    **dict.fromkeys(("monthly", "FREQ=MONTHLY"), "month"),
    **dict.fromkeys(("yearly", "annually", "FREQ=YEARLY"), "year"),
    **dict.fromkeys(("weekday", "weekdays", "workday", "workdays"), "FREQ=WEEKLY;BYDAY=MO,TU,WE,TH,FR"),
}
_PARTS = frozenset({"FREQ", "INTERVAL", "COUNT", "UNTIL", "BYDAY", "BYMONTHDAY", "BYMONTH", "BYSETPOS", "WKST"})
_FREQUENCIES = frozenset({"DAILY", "WEEKLY", "MONTHLY", "YEARLY"})
ADVICE = (
    "Give day, week, month, year, weekdays, or a rule such as FREQ=WEEKLY;INTERVAL=2;BYDAY=MO or FREQ=MONTHLY;BYDAY=-1FR;COUNT=6."
)


def parsed(text: str) -> str:
    """A recurrence in the one form that is stored; empty: none. Raises ValueError, with what to write instead."""
    word = text.strip().removeprefix("every ").strip()
    rule = re.sub(r"\s+", "", word.upper()).removeprefix("RRULE:").rstrip(";")
    if not word or (same := _SAME.get(word.casefold()) or _SAME.get(rule) or (word if word in PLAIN else "")):
        return same if word else ""
    parts = dict(part.partition("=")[::2] for part in rule.split(";"))
    if (
        len(rule) > LONGEST
        or not parts.keys() <= _PARTS
        or parts.get("FREQ") not in _FREQUENCIES
        or {"COUNT", "UNTIL"} <= parts.keys()
    ):
        raise ValueError(f"{text[:60]!r} is no recurrence. {ADVICE}")
    if "UNTIL" in parts:
        parts["UNTIL"] = _last(parts["UNTIL"])
    made = ";".join(f"{name}={value}" for name, value in parts.items())
    try:
        _rule(made, datetime(2026, 1, 1))  # noqa: DTZ001 - a wall time
    except (ValueError, TypeError, KeyError, IndexError):
        raise ValueError(f"{text[:60]!r} is no recurrence. {ADVICE}") from None
    return made


def _last(until: str) -> str:
    """The last moment of a rule as a wall time; a day counts whole. An instant is taken for the clock, which is off by hours at most."""
    day, _, clock = until.rstrip("Z").partition("T")
    return f"{day}T{clock or '235959'}"


def _rule(text: str, first: datetime) -> rrule:
    made = rrulestr(text, dtstart=first)
    if not isinstance(made, rrule):
        raise ValueError("one rule at a time")
    return made


def following(first: datetime, zone: str, every: str | None, now: datetime) -> datetime | None:
    """The first occurrence strictly after `now` (aware), in UTC; None: there is none any more.

    `first`: the wall time from which all are counted, itself one only where the rule says so. A wall time that a clock change skips is
    moved by the gap, one that occurs twice counts the first time. Raises ZoneInfoNotFoundError or ValueError for an unknown zone and
    OverflowError at the ends of the calendar.
    """
    tz = ZoneInfo(zone)
    if not every:
        due = instant(first, tz)
        return due if due > now else None
    if every in PLAIN:
        return _plain(first, tz, every, now)
    # A clock change puts an occurrence on either side of `now`, at most by the day that a change of the date line takes.
    wall = max(now.astimezone(tz).replace(tzinfo=None), first) - timedelta(days=2)
    for found in _rule(every, first).xafter(wall, inc=True):
        if (due := instant(found, tz)) > now:
            return due
    return None


def _plain(first: datetime, tz: ZoneInfo, every: str, now: datetime) -> datetime:
    due = instant(first, tz)
    if due > now:
        return due
    local = now.astimezone(tz).replace(tzinfo=None)
    # One period before the estimate, as above.
    count = max(_elapsed(first, local, every) - 1, 0)
    while (due := instant(_occurrence(first, every, count), tz)) <= now:
        count += 1
    return due


def _elapsed(first: datetime, now: datetime, every: str) -> int:
    if every in ("month", "year"):
        months = (now.year - first.year) * 12 + now.month - first.month
        return months if every == "month" else months // 12
    return (now - first).days // (7 if every == "week" else 1)


def _occurrence(first: datetime, every: str, count: int) -> datetime:
    if every in ("day", "week"):
        return first + timedelta(days=count * (7 if every == "week" else 1))
    year, month = divmod(first.year * 12 + first.month - 1 + count * (12 if every == "year" else 1), 12)
    return first.replace(year=year, month=month + 1, day=min(first.day, calendar.monthrange(year, month + 1)[1]))


def parts_of(every: str) -> dict[str, str]:
    """A recurrence as the parts of a rule, whatever its form."""
    if every in PLAIN:
        return {"FREQ": {"day": "DAILY", "week": "WEEKLY", "month": "MONTHLY", "year": "YEARLY"}[every]}
    return dict(part.partition("=")[::2] for part in every.split(";"))
