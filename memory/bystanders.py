"""Words of people that stand in other people's memory: to be counted, shown to their author, and erased. By name, so that no agent is needed."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Literal

from memory.cache import Cache
from memory.db import Database, value


@dataclass(frozen=True, slots=True)
class Total:
    """How many quotes there are, notes made of them, and messages that wait with one."""

    quotes: int
    noted: int
    waiting: int

    @property
    def any(self) -> bool:
        """Whether anything stands at all."""
        return bool(self.quotes or self.noted or self.waiting)


@dataclass(frozen=True, slots=True)
class Quoted:
    """Somebody's words, when they were quoted, and the kind and name of the place (no name of a direct message)."""

    at: datetime
    content: str
    kind: str
    name: str


@dataclass(frozen=True, slots=True)
class Erased:
    """How many rows went, and what was found when it was looked again."""

    removed: int
    left: Total


async def authors_of(db: Database, agent: int) -> list[str]:
    """The names (platform:realm:user) that an agent's person is quoted under."""
    async with db.bare() as connection:
        return list(await value(connection, "SELECT authors_of(%s)", (agent,)))


async def total(db: Database, authors: Sequence[str], own: int | None) -> Total:
    """How much stands of these names outside the agent `own`."""
    [row] = await db.once("SELECT * FROM quoted_total(%s, %s)", (list(authors), own))
    return Total(row["quotes"], row["noted"], row["waiting"])


async def quotes(db: Database, authors: Sequence[str], own: int | None) -> list[Quoted]:
    """The quotes, newest first."""
    rows = await db.once("SELECT * FROM quoted_words(%s, %s)", (list(authors), own))
    return [Quoted(row["at"], row["content"], row["kind"], row["name"]) for row in rows]


async def erase(
    db: Database,
    cache: Cache,
    authors: Sequence[str],
    own: int | None,
    *,
    actor: Literal["agent", "person", "admin", "operator", "system"],
    key: bytes,
    now: datetime,
) -> Erased:
    """Erase what stands of these names outside the agent `own`, and look again. Raises psycopg.Error; then nothing is erased."""
    [row] = await db.once("SELECT * FROM erase_quotes(%s, %s, %s, %s, %s)", (list(authors), own, actor, key, now))
    for agent in row["touched"] or ():
        await cache.forget_quietly(agent)
    return Erased(row["total"], await total(db, authors, own))
