"""Erasing a person, and the proof: every row, vector, job, and cache key, and their words in other agents' memory.

The database does it in one transaction (`erase_agent`), which a step of a running turn holds back and which no later step of that turn
gets past. Then Redis is emptied of the agent and takes nothing of it any more, and every table and Redis are looked through again: for rows of
the agent, and for the person's names in anybody's rows, wherever an author or JSON stands.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Literal

from psycopg.errors import DeadlockDetected, LockNotAvailable
from redis.exceptions import RedisError

from memory.cache import LIFETIME, Cache
from memory.db import Database, value

TRIES = 5
"""How often an erasure is tried that meets others' locks."""


@dataclass(frozen=True, slots=True)
class Erased:
    """What an erasure removed and what it found left, by table (`jobs` are wake-ups, `redis` cache keys, `quotes` words in other agents).

    `redis_away`: Redis did not answer; what it holds is never asked for again and vanishes within an hour.
    """

    removed: Mapping[str, int]
    left: Mapping[str, int]
    redis_away: bool = False

    @property
    def complete(self) -> bool:
        """Nothing is left."""
        return not any(self.left.values())


async def erase(
    db: Database, cache: Cache, agent: int, *, actor: Literal["person", "admin", "operator", "system"], key: bytes, now: datetime
) -> Erased:
    """Erase an agent with its person. `key` keys the hashes that stay. Raises psycopg.Error; then nothing is erased."""
    removed, touched, authors = await _rows(db, agent, actor, key, now)
    away, keys, left_keys = False, 0, 0
    try:
        keys = await cache.forget(agent, hold=LIFETIME)
        for other in touched:
            await cache.forget(other)
        left_keys = await cache.left(agent)
    except (RedisError, OSError):
        away = True
    async with db.bare() as connection:
        left = await value(connection, "SELECT residue(%s, %s)", (agent, authors))
    return Erased({**removed, "redis": keys}, {**left, "redis": left_keys}, away)


async def _rows(db: Database, agent: int, actor: str, key: bytes, now: datetime) -> tuple[dict[str, int], list[int], list[str]]:
    """What was removed by table, the other agents that something was removed of, and the names that the person was quoted under."""
    for attempt in range(TRIES):
        try:
            async with db.bare() as connection:
                authors: list[str] = await value(connection, "SELECT authors_of(%s)", (agent,))
                counts = await value(connection, "SELECT erase_agent(%s, %s, %s, %s)", (agent, actor, key, now))
            touched: list[int] = counts.pop("touched")
            return counts, touched, authors
        except (DeadlockDetected, LockNotAvailable):
            if attempt == TRIES - 1:
                raise
            await asyncio.sleep(0.1 * 2**attempt)
    raise AssertionError("unreachable")
