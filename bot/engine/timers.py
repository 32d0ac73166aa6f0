"""Timers: rows in Postgres, claimed when due and turned into events. APScheduler only ticks, in memory, in each process.

A job store shared between schedulers fires twice (measured: 228 of 242 runs); rows locked with SKIP LOCKED fire once. What becomes of a
due timer (an event, a later time, nothing) is decided by a callable that is handed in, in the transaction that moves the timer on. A timer
that cannot be reckoned or fired is put off alone; the others go on.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from functools import partial
from typing import Any
from zoneinfo import ZoneInfoNotFoundError

import psycopg
from apscheduler.schedulers.asyncio import AsyncIOScheduler
from psycopg_pool import PoolTimeout

from bot.engine.inbox import accept_timed
from bot.engine.loops import named
from memory import recurrence
from memory.db import Connection, Database
from memory.zones import known_zone

log = logging.getLogger(__name__)

BATCH = 100
LATE = timedelta(minutes=5)
"""From when on a timer that fires late says so."""
PUT_OFF = timedelta(hours=1)
"""How long a timer that cannot be fired rests at most until it is tried again; at first a minute."""


@dataclass(frozen=True, slots=True)
class Due:
    """A timer whose time has come. `wall_time` is naive, in `zone`; `due_at` when it should have fired (aware); `every` as in
    `memory.recurrence`."""

    id: int
    agent: int
    place: int
    kind: str
    purpose: str
    zone: str
    wall_time: datetime
    every: str | None
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


Count = Callable[[str], None]
Act = Callable[[datetime], Awaitable[object]]
"""Something that is done at each tick."""
Decide = Callable[[Connection, Due, datetime], Awaitable[Move]]
"""Decides about a due timer, within its agent and place."""


def uncounted(_: str) -> None:
    """Nobody counts."""


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
        return recurrence.following(due.wall_time, due.zone, due.every, now)
    except (ZoneInfoNotFoundError, ValueError, OverflowError) as error:
        log.error("timer %d of agent %d ends: %s", due.id, due.agent, named(error))
        return None


async def fire_due(db: Database, now: datetime, decide: Decide = always, *, count: Count = uncounted) -> int:
    """Decide about all due timers and move them on; returns how many. Any number of processes may do this at once.

    `count` is told of each that had to be put off (`timer_fault`).
    """

    async def alone(connection: Connection, row: Mapping[str, Any]) -> None:
        await _alone(connection, row, now, decide, count)

    async def together(connection: Connection, row: Mapping[str, Any]) -> None:
        await _fire(connection, row, now, decide)

    total = 0
    while True:
        try:
            taken = await _batch(db, now, together)
        except Exception as error:
            if away(error):
                raise
            # A savepoint for each timer costs two round trips, so only a batch with a fault in it has them.
            taken = await _batch(db, now, alone)
        total += taken
        if taken < BATCH:
            return total


async def _batch(db: Database, now: datetime, fire: Callable[[Connection, Mapping[str, Any]], Awaitable[None]]) -> int:
    async with db.bare() as connection:
        rows = await _rows(connection, "SELECT * FROM due_timers(%s, %s)", now, BATCH)
        # In the order of agents, as each one's row is locked until the end and another process does the same.
        for row in sorted(rows, key=lambda row: (row["agent_id"], row["due_at"])):
            await fire(connection, row)
    return len(rows)


async def _alone(connection: Connection, row: Mapping[str, Any], now: datetime, decide: Decide, count: Count) -> None:
    """Fire one timer in a savepoint; one that cannot be fired is put off, the longer the oftener."""
    try:
        async with connection.transaction():
            await _fire(connection, row, now, decide)
    except Exception as error:
        if away(error):
            raise
        log.error("timer %d of agent %d is put off: %s", row["timer_id"], row["agent_id"], named(error))
        count("timer_fault")
        await connection.execute("SELECT enter(%s, %s)", (row["agent_id"], row["place_id"]))
        await connection.execute(
            """UPDATE timers SET faults = least(faults + 1, 1000),
                 due_at = %s + least(interval '1 min' * 2 ^ least(faults, 10), make_interval(secs => %s)) WHERE id = %s""",
            (now, PUT_OFF.total_seconds(), row["timer_id"]),
        )


def away(error: Exception) -> bool:
    """Whether the database could not be used, which is no timer's fault."""
    return isinstance(error, psycopg.OperationalError | PoolTimeout | OSError)


_COLUMNS = "id, agent_id AS agent, place_id AS place, kind, purpose, zone, wall_time, every, name, due_at, created_at"


async def timer_of(connection: Connection, number: object) -> dict[str, Any] | None:
    """A timer's row as `Due` takes it, locked; `due_at` is null where it has fired for the last time. None: it is gone."""
    rows = await _rows(connection, f"SELECT {_COLUMNS} FROM timers WHERE id = %s FOR UPDATE", number)  # noqa: S608
    return rows[0] if rows else None


async def _fire(connection: Connection, row: Mapping[str, Any], now: datetime, decide: Decide) -> None:
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
        "UPDATE timers SET due_at = %s, wall_time = coalesce(%s, wall_time), faults = 0 WHERE id = %s",
        (move.due_at, move.wall_time, due.id),
    )


async def rezone(db: Database, now: datetime) -> int:
    """Reckon the timers of people whose zone changed anew: the wall time stays, the moment moves. Returns how many people.

    A single one whose wall time is over in the new zone is due at once, not lost. An instant ("in 20 minutes") stays where it is, and so
    does one that cannot be reckoned.
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
                try:
                    moved = recurrence.following(due.wall_time, due.zone, due.every, now) or (None if due.every else now)
                except (ValueError, OverflowError) as error:
                    log.error("timer %d of agent %d keeps its time: %s", due.id, due.agent, named(error))
                    continue
                await connection.execute("UPDATE timers SET zone = %s, due_at = %s WHERE id = %s", (due.zone, moved, due.id))
            await connection.execute("DELETE FROM rezoned WHERE agent_id = %s", (agent,))
    return len(agents)


async def _rows(connection: Connection, statement: str, *parameters: object) -> list[dict[str, Any]]:
    return await (await connection.execute(statement.encode(), parameters)).fetchall()


async def faulty(db: Database) -> list[int]:
    """The numbers of the timers that wait and could not be fired when they last were due."""
    return [row["timer_id"] for row in await db.once("SELECT timer_id FROM faulty_timers()")]


@dataclass(frozen=True, slots=True)
class Look:
    """How a look for due timers went: the error that some part of it broke off with, and how many timers are put off by a fault."""

    at: datetime
    error: Exception | None
    put_off: int


class Ticker:
    """Looks for due timers every second. `run` goes on until it is cancelled.

    `decide` says what becomes of each; `also` are other things to do at each tick, before it; none of them keeps the others from being done.
    `count` is told of faults, `looked` of how each look went.
    """

    def __init__(
        self,
        db: Database,
        *,
        now: Callable[[], datetime] = lambda: datetime.now(UTC),
        every: float = 1.0,
        decide: Decide = always,
        also: Sequence[Act] = (),
        count: Count = uncounted,
        looked: Callable[[Look], None] = lambda _: None,
    ) -> None:
        self._db, self._now, self._every = db, now, every
        self._decide, self._also, self._count, self._looked = decide, also, count, looked

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
        """One look. What fails is tried again with the next one."""
        now, put_off = self._now(), 0

        async def fire(now: datetime) -> None:
            nonlocal put_off
            await fire_due(self._db, now, self._decide, count=self._count)
            put_off = len(await faulty(self._db))

        acts: list[Act] = [partial(rezone, self._db), *self._also, fire]
        errors = [await self._done(act, now) for act in acts]
        self._looked(Look(now, next((error for error in errors if error is not None), None), put_off))

    async def _done(self, act: Act, now: datetime) -> Exception | None:
        try:
            await act(now)
        except Exception as error:  # noqa: BLE001 - due reminders do not wait for whatever else is wrong
            log.warning("a part of the look for timers failed: %s", named(error))
            self._count("tick_fault")
            return error
        return None
