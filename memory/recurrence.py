"""When a timer comes again: every day, week, month or year, or by a rule of RFC 5545. Pure; wall times are naive, read in an IANA zone.

The four plain words are reckoned from the first occurrence with the last day of a short month in place of a missing one, which no plain
rule of the RFC does. All else is python-dateutil's. Clock changes are as in `memory.zones.instant`.
"""

from __future__ import annotations

import calendar
import re
from collections.abc import Iterator
from datetime import datetime, timedelta
from itertools import islice
from typing import Final
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from dateutil.rrule import rrulestr

from memory.zones import instant

FREQUENCIES: Final = {"day": "DAILY", "week": "WEEKLY", "month": "MONTHLY", "year": "YEARLY"}
"""The plain words, and what rules call them."""
PLAIN: Final = tuple(FREQUENCIES)
LONGEST = 200
"""Characters of a rule."""
FARTHEST = timedelta(days=5 * 366)
"""How far ahead a reminder may be."""
LOOK_AHEAD = timedelta(days=10 * 366)
"""How far ahead an occurrence is looked for."""
_SAME = {
    **dict.fromkeys(("none", "no", "null", "false", "never", "once"), ""),
    **{f"{word}s": word for word in FREQUENCIES},
    **{f"FREQ={frequency}": word for word, frequency in FREQUENCIES.items()},
    **{frequency.casefold(): word for word, frequency in FREQUENCIES.items()},
    "annually": "year",
    **dict.fromkeys(("weekday", "weekdays", "workday", "workdays"), "FREQ=WEEKLY;BYDAY=MO,TU,WE,TH,FR"),
}
_FARTHEST = {"DAILY": 1830, "WEEKLY": 260, "MONTHLY": 60, "YEARLY": 5}
"""The longest intervals, all of about five years."""
_WORKDAYS = "MO,TU,WE,TH,FR"
_BY_DAY = r"(?:[1-4]|-1)?(?:MO|TU|WE|TH|FR|SA|SU)"
_MONTH_DAY = r"-1|[1-9]|[12]\d|3[01]"
_PARTS = {
    "FREQ": "|".join(_FARTHEST),
    "INTERVAL": r"[1-9]\d{0,3}",
    "COUNT": r"[1-9]\d{0,3}",
    "UNTIL": r"\d{8}(?:T\d{6})?",
    "BYDAY": rf"{_BY_DAY}(?:,{_BY_DAY}){{0,6}}",
    "BYMONTHDAY": rf"(?:{_MONTH_DAY})(?:,(?:{_MONTH_DAY})){{0,30}}",
    "BYMONTH": r"(?:[1-9]|1[0-2])(?:,(?:[1-9]|1[0-2])){0,11}",
    "BYSETPOS": "1|-1",
    "WKST": "MO|SU",
}
"""What a rule may be made of: what can be said back in words (`bot.speaking.saying`)."""
ADVICE = (
    "Give day, week, month, year, weekdays, or a rule such as FREQ=WEEKLY;INTERVAL=2;BYDAY=MO or FREQ=MONTHLY;BYDAY=-1FR;COUNT=6."
)


def parsed(text: str) -> str:
    """A recurrence in the one form that is stored; empty: none. Raises ValueError, with what to write instead."""
    word = text.strip().removeprefix("every ").strip()
    rule = re.sub(r"\s+", "", word.upper()).removeprefix("RRULE:").rstrip(";").replace("+", "")
    for same in (word.casefold(), rule):
        if same in PLAIN or same in _SAME:
            return _SAME.get(same, same)
    if not word:
        return ""
    parts = dict(part.partition("=")[::2] for part in rule.split(";"))
    if "UNTIL" in parts:
        parts["UNTIL"] = _last(parts["UNTIL"])
    if len(rule) > LONGEST or not _can_be_said(parts):
        raise ValueError(f"{text[:60]!r} is no recurrence. {ADVICE}")
    return ";".join(f"{name}={value}" for name, value in parts.items())


def _can_be_said(parts: dict[str, str]) -> bool:
    if not all(name in _PARTS and re.fullmatch(_PARTS[name], value, re.ASCII) for name, value in parts.items()):
        return False
    if "FREQ" not in parts or {"COUNT", "UNTIL"} <= parts.keys() or {"BYDAY", "BYMONTHDAY"} <= parts.keys():
        return False
    if (interval := int(parts.get("INTERVAL", 1))) > _FARTHEST[parts["FREQ"]]:
        return False
    if parts["FREQ"] == "DAILY" and interval > 1 and {"BYDAY", "BYMONTH"} & parts.keys():
        return False
    if "BYSETPOS" in parts and (parts["FREQ"], parts.get("BYDAY")) != ("MONTHLY", _WORKDAYS):
        return False
    monthly = parts["FREQ"] == "MONTHLY" or (parts["FREQ"] == "YEARLY" and "BYMONTH" in parts)
    numbered = any(len(day) > 2 for day in parts.get("BYDAY", "").split(","))
    if (numbered or "BYMONTHDAY" in parts) and not monthly:
        return False
    days, months = ([int(each) for each in parts.get(name, "1").split(",")] for name in ("BYMONTHDAY", "BYMONTH"))
    if parts["FREQ"] == "YEARLY" and "BYMONTHDAY" in parts and len(days) * len(months) > 1:
        return False
    if not any(abs(day) <= calendar.monthrange(2028, month)[1] for day in days for month in months):
        return False  # a 30th of February: dateutil would look for one up to the year 9999
    try:
        datetime.strptime(parts.get("UNTIL", "20260101T000000"), "%Y%m%dT%H%M%S")  # noqa: DTZ007 - a wall time
    except ValueError:
        return False
    return True


def _last(until: str) -> str:
    """The last moment of a rule as a wall time; a day counts whole. An instant is taken for the clock, which is off by hours at most."""
    day, _, clock = until.rstrip("Z").partition("T")
    return f"{day}T{clock or '235959'}"


def _occurrences(every: str, first: datetime, until: datetime) -> Iterator[datetime]:
    """The wall times of a rule up to one, its own end included. COUNT is counted here, as dateutil takes no second end beside it."""
    parts = parts_of(every)
    count = int(parts.pop("COUNT")) if "COUNT" in parts else None
    last = f"{until:%Y%m%dT%H%M%S}"
    parts["UNTIL"] = min(parts.get("UNTIL", last), last)
    return islice(iter(rrulestr(";".join(f"{name}={value}" for name, value in parts.items()), dtstart=first)), count)


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
    wall = max(now.astimezone(tz).replace(tzinfo=None), first)
    for found in _occurrences(every, first, wall + LOOK_AHEAD):
        if found >= wall - timedelta(days=2) and (due := instant(found, tz)) > now:
            return due
    return None


def ahead(first: datetime, zone: str, every: str | None, now: datetime) -> datetime | None:
    """As `following`, for a reminder that is to be set: None also where that is further off than one may be, or cannot be reckoned."""
    try:
        due = following(first, zone or "UTC", every, now)
    except (ZoneInfoNotFoundError, ValueError, OverflowError):
        return None
    return due if due is not None and due <= now + FARTHEST else None


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
        return {"FREQ": FREQUENCIES[every]}
    return dict(part.partition("=")[::2] for part in every.split(";"))
