"""Timers: rows in Postgres, claimed when due and turned into events. APScheduler only ticks, in memory, in each process.

A job store shared between schedulers fires twice (measured: 228 of 242 runs); rows locked with SKIP LOCKED fire once. What becomes of a
due timer (an event, a later time, nothing) is decided by a callable that is handed in, in the transaction that moves the timer on.
"""

from __future__ import annotations

import asyncio
import calendar
import logging
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any, Literal
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

import psycopg
from apscheduler.schedulers.asyncio import AsyncIOScheduler

from bot.engine.inbox import accept_timed
from bot.engine.loops import named
from memory.db import Connection, Database
from memory.zones import known_zone

log = logging.getLogger(__name__)

Every = Literal["day", "week", "month"]
BATCH = 100
LATE = timedelta(minutes=5)
"""From when on a timer that fires late says so."""


@dataclass(frozen=True, slots=True)
class Due:
    """A timer whose time has come. `wall_time` is naive, in `zone`; `due_at` when it should have fired (aware)."""

    id: int
    agent: int
    place: int
    kind: str
    purpose: str
    zone: str
    wall_time: datetime
    every: Every | None
    name: str
    due_at: datetime
    created_at: datetime


@dataclass(frozen=True, slots=True)
class Move:
    """What becomes of a due timer: the payload of its event (None: no event), and when it is due next (None: never again).

    `wall_time`: its new first occurrence, where that changes.
    """

    payload: Mapping[str, Any] | None
    due_at: datetime | None
    wall_time: datetime | None = None


Decide = Callable[[Connection, Due, datetime], Awaitable[Move]]
"""Decides about a due timer, within its agent and place."""


def payload_of(due: Due, now: datetime) -> dict[str, Any]:
    """The event of a timer that fires now; `late` are the seconds that it comes late, where that is worth a word."""
    late = now - due.due_at
    return {
        "timer_id": due.id,
        "timer": due.kind,
        "purpose": due.purpose,
        "due_at": due.due_at.isoformat(),
        "every": due.every,
        **({"late": round(late.total_seconds())} if late > LATE else {}),
    }


async def always(_: Connection, due: Due, now: datetime) -> Move:
    """Every timer fires, however late, and goes on with its next time ahead: what was missed comes once."""
    return Move(payload_of(due, now), following(due, now))


def following(due: Due, now: datetime) -> datetime | None:
    """The next time of a timer after `now`; one whose zone is unknown ends, so that it cannot hold up the others."""
    try:
        return next_due(due.wall_time, due.zone, due.every, now)
    except (ZoneInfoNotFoundError, ValueError, OverflowError) as error:
        log.error("timer %d of agent %d ends: %s", due.id, due.agent, named(error))
        return None


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


async def fire_due(db: Database, now: datetime, decide: Decide = always) -> int:
    """Decide about all due timers and move them on; returns how many. Any number of processes may do this at once."""
    total = 0
    while True:
        async with db.bare() as connection:
            cursor = await connection.execute("SELECT * FROM due_timers(%s, %s)", (now, BATCH))
            rows = await cursor.fetchall()
            # In the order of agents, as each one's row is locked until the end and another process does the same.
            for row in sorted(rows, key=lambda row: (row["agent_id"], row["due_at"])):
                await _fire(connection, row, now, decide)
        total += len(rows)
        if len(rows) < BATCH:
            return total


_COLUMNS = "id, agent_id AS agent, place_id AS place, kind, purpose, zone, wall_time, every, name, due_at, created_at"


async def timer_of(connection: Connection, number: object) -> dict[str, Any] | None:
    """A timer's row as `Due` takes it, locked; `due_at` is null where it has fired for the last time. None: it is gone."""
    rows = await _rows(connection, f"SELECT {_COLUMNS} FROM timers WHERE id = %s FOR UPDATE", number)  # noqa: S608
    return rows[0] if rows else None


async def _fire(connection: Connection, row: dict[str, Any], now: datetime, decide: Decide) -> None:
    agent, place = row["agent_id"], row["place_id"]
    async with connection.pipeline():
        await connection.execute("SELECT enter(%s, %s)", (agent, place))
        cursor = await connection.execute(f"SELECT {_COLUMNS} FROM timers WHERE id = %s", (row["timer_id"],))  # noqa: S608
    found = await cursor.fetchone()
    if found is None:
        return  # erased between the claim and now
    due = Due(**found)
    move = await decide(connection, due, now)
    if move.payload is not None:
        key = f"timer:{due.id}:{int(due.due_at.timestamp())}"
        await accept_timed(connection, agent=agent, place=place, key=key, now=now, payload=move.payload)
    await connection.execute(
        "UPDATE timers SET due_at = %s, wall_time = coalesce(%s, wall_time) WHERE id = %s", (move.due_at, move.wall_time, due.id)
    )


async def rezone(db: Database, now: datetime) -> int:
    """Reckon the timers of people whose zone changed anew: the wall time stays, the moment moves. Returns how many people.

    A single one whose wall time is over in the new zone is due at once, not lost. An instant ("in 20 minutes") stays where it is.
    """
    async with db.bare() as connection:
        agents = [
            row["agent"] for row in await _rows(connection, "SELECT rezoned_agents AS agent FROM rezoned_agents(%s)", BATCH)
        ]
        for agent in agents:
            await connection.execute("SELECT enter(%s, NULL, true)", (agent,))
            statement = f"SELECT {_COLUMNS} FROM timers WHERE floating AND due_at IS NOT NULL ORDER BY id FOR UPDATE"  # noqa: S608
            (zone,) = await _rows(connection, "SELECT coalesce(timezone, 'UTC') AS name FROM agents WHERE id = %s", agent)
            for row in await _rows(connection, statement) if known_zone(zone["name"]) else ():
                due = Due(**{**row, "zone": zone["name"]})
                moved = following(due, now) or (now if due.every is None else None)
                await connection.execute("UPDATE timers SET zone = %s, due_at = %s WHERE id = %s", (due.zone, moved, due.id))
            await connection.execute("DELETE FROM rezoned WHERE agent_id = %s", (agent,))
    return len(agents)


async def _rows(connection: Connection, statement: str, *parameters: object) -> list[dict[str, Any]]:
    return await (await connection.execute(statement.encode(), parameters)).fetchall()


class Ticker:
    """Looks for due timers every second. `run` goes on until it is cancelled.

    `decide` says what becomes of each; `also` are other things to do at each tick, before it.
    """

    def __init__(
        self,
        db: Database,
        *,
        now: Callable[[], datetime] = lambda: datetime.now(UTC),
        every: float = 1.0,
        decide: Decide = always,
        also: Sequence[Callable[[datetime], Awaitable[object]]] = (),
    ) -> None:
        self._db, self._now, self._every = db, now, every
        self._decide, self._also = decide, also

    async def run(self) -> None:
        """Tick until cancelled."""
        # A tick that takes longer than a second (a herd) leaves the next ones out, which is no news each time.
        logging.getLogger("apscheduler").setLevel(logging.ERROR)
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
            now = self._now()
            await rezone(self._db, now)
            for act in self._also:
                await act(now)
            await fire_due(self._db, now, self._decide)
        except (psycopg.Error, OSError) as error:
            log.warning("timers were not looked at: %s", named(error))
