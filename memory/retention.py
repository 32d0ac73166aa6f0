"""Deleting what has become too old, by kind, in batches that each lock one person's row for an instant.

Paused conversations and unanswered questions have times of their own: a day, and the time that the question gave.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime, timedelta
from typing import Literal

from memory.cache import Cache
from memory.db import Database, value

Kind = Literal[
    "messages",
    "quotes",
    "quotes_waiting",
    "quotes_derived",
    "quotes_stored",
    "archival",
    "documents",
    "timers",
    "deliveries",
    "events",
    "usage",
    "log",
    "erasures",
    "workspaces",
    "passing",
    "requests",
]
PASSING = timedelta(days=1)
"""How long a message said while memory was paused may serve the running conversation."""
AGENTS, ROWS = 100, 2_000
"""People of one transaction, and rows of one person in it."""


async def apply(db: Database, cache: Cache, ages: Mapping[Kind, timedelta], now: datetime) -> dict[str, int]:
    """Delete what is older than `ages`. Returns how many rows (people, for workspaces) of each kind. Raises psycopg.Error."""
    removed: dict[str, int] = {}
    for kind, age in {**ages, "passing": PASSING, "requests": timedelta()}.items():
        match kind:
            case "erasures":
                async with db.bare() as connection:
                    removed[kind] = int(await value(connection, "SELECT retain_erasures(%s)", (now - age,)))
            case "workspaces":
                removed[kind] = await _workspaces(db, cache, now - age)
            case _:
                removed[kind] = await _kind(db, cache, kind, now - age)
    return removed


async def _kind(db: Database, cache: Cache, kind: str, before: datetime) -> int:
    total = 0
    while True:
        async with db.bare() as connection:
            cursor = await connection.execute("SELECT * FROM retain(%s, %s, %s, %s)", (kind, before, AGENTS, ROWS))
            rows = await cursor.fetchall()
            for row in rows:
                total += row["removed"]
                if row["seen"]:
                    await cache.forget_quietly(row["agent_id"])
        if not rows:
            return total


async def _workspaces(db: Database, cache: Cache, before: datetime) -> int:
    total = 0
    while True:
        async with db.bare() as connection:
            cursor = await connection.execute("SELECT retain_workspaces(%s, %s) AS agent", (before, AGENTS))
            agents = [row["agent"] for row in await cursor.fetchall()]
            for agent in agents:
                await cache.forget_quietly(agent)
        total += len(agents)
        if not agents:
            return total
