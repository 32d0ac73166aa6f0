"""Timers: rows in Postgres, claimed when due and turned into events. APScheduler only ticks, in memory, in each process.

A job store shared between schedulers fires twice (measured: 228 of 242 runs); rows locked with SKIP LOCKED fire once.
"""

from __future__ import annotations

import asyncio
import calendar
import logging
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import Any, Literal
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

import psycopg
from apscheduler.schedulers.asyncio import AsyncIOScheduler

from bot.engine.inbox import accept_timed
from bot.engine.loops import named
from bot.engine.queue import Queue
from memory.db import Connection, Database

log = logging.getLogger(__name__)

Every = Literal["day", "week", "month"]
BATCH = 100


def next_due(wall_time: datetime, zone: str, every: Every | None, now: datetime) -> datetime | None:
    """When a timer is due next, strictly after `now` (aware); None: a single one whose time has come.

    `wall_time` is naive and read in the IANA `zone`: the first occurrence, on which all others are counted, so that a monthly timer of
    the 31st comes on the last day of a short month and on the 31st again after it. A wall time that a clock change skips is moved by
    the length of the gap (RFC 5545), one that occurs twice counts the first time.

    Raises ZoneInfoNotFoundError or ValueError for an unknown zone.
    """
    tz = ZoneInfo(zone)
    first = _instant(wall_time, tz)
    if every is None or first > now:
        return first if first > now else None
    local = now.astimezone(tz).replace(tzinfo=None)
    # One period before the estimate, because a clock change may put an occurrence on either side of `now`.
    count = max(_elapsed(wall_time, local, every) - 1, 0)
    while (due := _instant(_occurrence(wall_time, every, count), tz)) <= now:
        count += 1
    return due


def _elapsed(first: datetime, now: datetime, every: Every) -> int:
    if every == "month":
        return (now.year - first.year) * 12 + now.month - first.month
    return (now - first).days // (7 if every == "week" else 1)


def _occurrence(first: datetime, every: Every, count: int) -> datetime:
    if every != "month":
        return first + timedelta(days=count * (7 if every == "week" else 1))
    year, month = divmod(first.year * 12 + first.month - 1 + count, 12)
    return first.replace(year=year, month=month + 1, day=min(first.day, calendar.monthrange(year, month + 1)[1]))


def _instant(wall_time: datetime, tz: ZoneInfo) -> datetime:
    # fold=0 is the first of two, and in a gap the offset before it, which moves the time by the gap.
    return wall_time.replace(tzinfo=tz, fold=0).astimezone(UTC)


async def fire_due(db: Database, queue: Queue, now: datetime) -> int:
    """Make events of all due timers and move them on; returns how many. Any number of processes may do this at once."""
    total = 0
    while True:
        async with db.bare() as connection:
            cursor = await connection.execute("SELECT * FROM due_timers(%s, %s)", (now, BATCH))
            rows = await cursor.fetchall()
            # In the order of agents, as each one's row is locked until the end and another process does the same.
            for row in sorted(rows, key=lambda row: (row["agent_id"], row["due_at"])):
                await _fire(connection, queue, row, now)
        total += len(rows)
        if len(rows) < BATCH:
            return total


async def _fire(connection: Connection, queue: Queue, row: dict[str, Any], now: datetime) -> None:
    timer, agent, place, due = row["timer_id"], row["agent_id"], row["place_id"], row["due_at"]
    await connection.execute("SELECT enter(%s, %s)", (agent, place))
    cursor = await connection.execute("SELECT kind, purpose, zone, wall_time, every FROM timers WHERE id = %s", (timer,))
    found = await cursor.fetchone()
    if found is None:
        return  # erased between the claim and now
    await accept_timed(
        connection, queue, agent=agent, place=place, key=f"timer:{timer}:{int(due.timestamp())}", now=now,
        payload={"timer_id": timer, "timer": found["kind"], "purpose": found["purpose"], "due_at": due.isoformat(), "every": found["every"]},
    )  # fmt: skip
    try:
        following = next_due(found["wall_time"], found["zone"], found["every"], now)
    except (ZoneInfoNotFoundError, ValueError, OverflowError) as error:
        # Its zone is checked when it is set; one that is wrong all the same must not hold up the others for ever.
        log.error("timer %d of agent %d ends: %s", timer, agent, named(error))
        following = None
    await connection.execute("UPDATE timers SET due_at = %s WHERE id = %s", (following, timer))


class Ticker:
    """Looks for due timers every second. `run` goes on until it is cancelled."""

    def __init__(
        self, db: Database, queue: Queue, *, now: Callable[[], datetime] = lambda: datetime.now(UTC), every: float = 1.0
    ) -> None:
        self._db, self._queue, self._now, self._every = db, queue, now, every

    async def run(self) -> None:
        """Tick until cancelled."""
        scheduler = AsyncIOScheduler(timezone="UTC")
        scheduler.add_job(
            self.tick,
            "interval",
            seconds=self._every,
            jitter=0.3 * self._every,
            max_instances=1,
            coalesce=True,
            misfire_grace_time=None,
        )
        scheduler.start()
        try:
            await asyncio.Event().wait()
        finally:
            scheduler.shutdown(wait=False)

    async def tick(self) -> None:
        """One look. A database that is away is tried again with the next one."""
        try:
            await fire_due(self._db, self._queue, self._now())
        except (psycopg.Error, OSError) as error:
            log.warning("timers were not looked at: %s", named(error))
