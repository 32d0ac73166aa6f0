"""One dedicated connection that listens for notifications, and comes back when it breaks.

It also says which processes live: each holds a lock of the database under its number as long as one of its listeners is connected. Of a
killed process the connections end with it, on this machine or another. A frozen one and a cut network keep theirs; for those there are
the heartbeat of a worker and the age of what is being sent.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import dataclass

import psycopg

from bot.engine.loops import forever
from bot.engine.queue import KEEPALIVE
from memory.db import RECONNECT_EVERY, Database

Heard = Callable[[str], Awaitable[None]]
"""Takes a notification's payload; the empty text means that anything may have been missed."""

_PROBE = 20.0  # seconds of silence after which the connection is tried, as a half-open one stays silent for ever
_LIVES = 7_202_614
"""The first half of the lock under which a process lives; its number is the second."""
# One process may hold its lock several times, and again before the server has noticed that the first connection is gone.
_HOLD = "SELECT pg_advisory_lock_shared(%s, %s)"
_HERE = """SELECT objid::bigint AS number, extract(epoch FROM clock_timestamp() - backend_start)::float8 AS age
           FROM pg_locks JOIN pg_stat_activity USING (pid) WHERE locktype = 'advisory' AND classid = %s AND objsubid = 2 AND granted
             AND pg_locks.database = (SELECT oid FROM pg_database WHERE datname = current_database())"""


@dataclass(frozen=True, slots=True)
class Living:
    """The processes that live, by number. `steady`: the seconds for which the oldest of their connections has been there."""

    numbers: frozenset[int]
    steady: float


async def living(db: Database) -> Living:
    """Who is there now. After a crash of the server some who live have not come back yet; nobody has been there for long then."""
    rows = await db.once(_HERE, (_LIVES,))
    return Living(frozenset(row["number"] for row in rows), max((row["age"] for row in rows), default=0.0))


async def listen(url: str, channel: str, heard: Heard, *, number: int | None = None) -> None:
    """Pass on what is notified on a channel, until cancelled. After every (re)connection `heard("")` is called once.

    `number`: that of the process, which others then know to live.
    """

    async def once() -> None:
        connection = await psycopg.AsyncConnection.connect(url, autocommit=True, application_name=channel, **KEEPALIVE)  # type: ignore[arg-type]
        async with connection:
            if number is not None:
                await connection.execute(_HOLD, (_LIVES, number))
            await connection.execute(f"LISTEN {channel}")
            await heard("")
            while True:
                async for notification in connection.notifies(timeout=_PROBE):
                    # Empty is what we say ourselves when anything may have been missed.
                    await heard(notification.payload)
                async with asyncio.timeout(_PROBE):
                    await connection.execute("SELECT 1")

    await forever(f"listening on {channel}", once, every=0.0, first=RECONNECT_EVERY, cap=RECONNECT_EVERY)
