"""Waiting: through a short absence of the database, for a channel to settle, and for a terminal's place."""

import asyncio
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import TypeVar

import psycopg
from psycopg_pool import PoolTimeout

from adapters.base import Person
from bot.commands.context import find_agent
from memory.db import Database, value

T = TypeVar("T")


async def patiently(act: Callable[[], Awaitable[T]], seconds: float) -> T:
    """Do something again while the database is away, at most so long."""
    until = time.monotonic() + seconds
    while True:
        try:
            return await act()
        except (psycopg.OperationalError, PoolTimeout):
            if time.monotonic() >= until:
                raise
            await asyncio.sleep(0.3)


_UNSETTLED = """
SELECT EXISTS (SELECT FROM events e JOIN places p ON p.id = e.place_id
               WHERE e.status = 0 AND p.platform = %(platform)s AND p.realm = '' AND p.external_id = %(channel)s)
    OR EXISTS (SELECT FROM outbox WHERE platform = %(platform)s AND channel = %(channel)s AND state IN ('waiting', 'sending'))"""


async def settled(db: Database, person: Person, channel: str, *, seconds: float, every: float = 0.05) -> bool:
    """Wait until nothing of a channel waits for an answer or for sending; a turn that ends in silence is settled too.

    Returns False when that is not so after `seconds` (a model that stays away): what waits is kept and answered later.
    """
    until = time.monotonic() + seconds
    where = {"platform": person.platform, "channel": channel}

    async def waiting() -> bool:
        agent = await find_agent(db, person.platform, person.realm, person.user_id)
        if agent is None:
            return False
        async with db.agent(agent, everything=True) as connection:
            return bool(await value(connection, _UNSETTLED, where))

    while await patiently(waiting, max(0.0, until - time.monotonic())):
        if time.monotonic() >= until:
            return False
        await asyncio.sleep(every)
    return True


@asynccontextmanager
async def slot(url: str, user: str) -> AsyncIterator[int]:
    """The lowest number that no other terminal of this person holds now. Held by a connection, so a killed process frees its own."""
    async with await psycopg.AsyncConnection.connect(url, autocommit=True, application_name="keepsake-console") as connection:
        number = 0
        while not await _taken(connection, user, number):
            number += 1
        yield number


async def _taken(connection: psycopg.AsyncConnection[tuple[bool]], user: str, number: int) -> bool:
    cursor = await connection.execute("SELECT pg_try_advisory_lock(hashtext('keepsake.console:' || %s), %s)", (user, number))
    row = await cursor.fetchone()
    return bool(row and row[0])
