"""Dead letters: events that could not be worked on, kept for the operator to see and to put back."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from memory.db import Database, value


@dataclass(frozen=True, slots=True)
class DeadLetter:
    """An event that was given up. `last_error` is a class, never a text of somebody."""

    event_id: int
    agent_id: int
    kind: str
    source: str
    attempts: int
    last_error: str
    created_at: datetime
    done_at: datetime | None


async def dead_letters(db: Database, limit: int = 100) -> list[DeadLetter]:
    """The dead letters of all agents, oldest first."""
    async with db.bare() as connection:
        cursor = await connection.execute("SELECT * FROM dead_letters(%s)", (limit,))
        return [DeadLetter(**row) for row in await cursor.fetchall()]


async def replay(db: Database, event_id: int | None = None) -> int:
    """Put one dead letter, or all, back in the inbox and wake their agents. Returns how many."""
    async with db.bare() as connection:
        return int(await value(connection, "SELECT replay_dead(%s)", (event_id,)))
