"""Operator schedules: when a check-in is due, described by APScheduler's cron triggers in each person's own local time.

A trigger only describes times here; the rows in Postgres fire (`bot/engine/timers.py`).
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from zoneinfo import ZoneInfo

from bot.config.cron import trigger_of
from bot.speaking.decision import SpeakingRules
from memory.zones import instant

LONGEST_GAP = timedelta(hours=3)
"""More than any clock change since 1970 but a change of the date line."""


@dataclass(frozen=True, slots=True)
class Schedule:
    """A check-in by config: five cron fields in local time, what it is for, and how late it may still come."""

    cron: str
    purpose: str
    grace: timedelta


def next_run(cron: str, zone: ZoneInfo, now: datetime) -> datetime | None:
    """When a schedule is due next in a zone, strictly after `now` (aware); None: never again (a 30th of February).

    A time that a clock change skips comes later by the gap, one that occurs twice the first time.
    """
    trigger = trigger_of(cron)
    wall = now.astimezone(zone).replace(tzinfo=UTC) - LONGEST_GAP
    while (found := trigger.get_next_fire_time(None, wall)) is not None:
        due = instant(found.replace(tzinfo=None), zone)
        if due > now:
            return due
        wall = found + timedelta(seconds=1)
    return None


def fingerprint(rules: SpeakingRules, schedules: Mapping[str, Schedule]) -> str:
    """What a plan of timers was made by: another one makes them anew. It is never empty."""
    text = repr((rules.every, rules.promise, sorted((name, schedule.cron) for name, schedule in schedules.items())))
    return hashlib.sha256(text.encode()).hexdigest()[:16]
