"""Erasing a person, and the proof: every row, vector, job, and cache key, and their words in other agents' memory.

The database does it in one transaction (`erase_agent`), which a step of a running turn holds back and which no later step of that turn
gets past. Before it commits, Redis is emptied of the agent and takes nothing of it any more. Then everything is looked through again: for
rows of the agent, for the person's names in anybody's rows, and for the rarest words of what went (`memory.proof`).
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from pathlib import Path
from typing import Literal

from psycopg.errors import DeadlockDetected, LockNotAvailable
from redis.exceptions import RedisError

from memory import proof
from memory.cache import LIFETIME, Cache
from memory.db import Database, value

TRIES = 5
"""How often an erasure is tried that meets others' locks."""


@dataclass(frozen=True, slots=True)
class Erased:
    """What an erasure removed and what it found left, by table (`jobs` are wake-ups, `redis` cache keys, `quotes` words in other agents).

    `words`: rows (and cache keys) that hold any of the rarest word sequences of what was erased, by table. `files`: exports of other people
    that hold them; `exports`: the person's own copies. Both stay. `redis_away`: Redis did not answer; what it holds is
    never asked for again and vanishes within an hour, or with the next start.
    """

    removed: Mapping[str, int]
    left: Mapping[str, int]
    redis_away: bool = False
    words: Mapping[str, int] = field(default_factory=dict)
    files: tuple[str, ...] = ()
    exports: tuple[str, ...] = ()

    @property
    def complete(self) -> bool:
        """Nothing is left."""
        return not any(self.left.values()) and not any(self.words.values())


async def erase(
    db: Database,
    cache: Cache,
    agent: int,
    *,
    actor: Literal["person", "admin", "operator", "system"],
    key: bytes,
    now: datetime,
    exports: Path | None = None,
) -> Erased:
    """Erase an agent with its person. `key` keys the hashes that stay; `exports` is the folder of exports. Raises psycopg.Error; then nothing
    is erased."""
    async with db.bare() as connection:
        sought = await proof.traces(connection, agent, await value(connection, "SELECT authors_of(%s)", (agent,)))
    removed, _, authors, keys = await _rows(db, cache, agent, actor, key, now)
    return await _proven(
        db, cache, agent, replace(sought, authors=tuple(authors)), {**removed, "redis": keys or 0}, keys is None, exports
    )


async def erase_author(
    db: Database,
    cache: Cache,
    author: str,
    *,
    actor: Literal["person", "admin", "operator"],
    key: bytes,
    now: datetime,
    exports: Path,
) -> Erased:
    """Erase what anybody keeps of an author (platform:realm:user) who never had an agent. As `erase` otherwise."""
    async with db.bare() as connection:
        sought = await proof.traces(connection, 0, [author])
        counts = await value(connection, "SELECT erase_author(%s, %s, %s, %s)", (author, actor, key, now))
        away = await _uncache(cache, 0, counts.pop("touched")) is None
    return await _proven(db, cache, 0, sought, counts, away, exports)


async def _proven(
    db: Database, cache: Cache, agent: int, sought: proof.Traces, removed: dict[str, int], away: bool, exports: Path | None
) -> Erased:
    async with db.bare() as connection:
        left = await value(connection, "SELECT residue(%s, %s)", (agent, list(sought.authors)))
        try:
            left["redis"] = await cache.left(agent)
            found = await proof.search(connection, cache, sought, exports)
        except (RedisError, OSError):
            away, found = True, await proof.search(connection, Cache(None), sought, exports)
    return Erased(removed, left, away, found.tables, found.files, found.own)


async def _rows(
    db: Database, cache: Cache, agent: int, actor: str, key: bytes, now: datetime
) -> tuple[dict[str, int], list[int], list[str], int | None]:
    """What was removed by table, the other agents that something was removed of, the names that the person was quoted under, and how many
    cache keys there were (None: Redis is away)."""
    for attempt in range(TRIES):
        try:
            async with db.bare() as connection:
                authors: list[str] = await value(connection, "SELECT authors_of(%s)", (agent,))
                counts = await value(connection, "SELECT erase_agent(%s, %s, %s, %s)", (agent, actor, key, now))
                touched: list[int] = counts.pop("touched")
                # Before the commit: a process that is killed after it leaves nothing in Redis, and nothing is stored meanwhile.
                keys = await _uncache(cache, agent, touched)
            return counts, touched, authors, keys
        except (DeadlockDetected, LockNotAvailable):
            if attempt == TRIES - 1:
                raise
            await asyncio.sleep(0.1 * 2**attempt)
    raise AssertionError("unreachable")


async def _uncache(cache: Cache, agent: int, touched: Sequence[int]) -> int | None:
    try:
        keys = await cache.forget(agent, hold=LIFETIME)
        for other in touched:
            await cache.forget(other)
    except (RedisError, OSError):
        return None
    return keys
