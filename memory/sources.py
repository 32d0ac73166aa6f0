"""Sources: which messages a derived row (entry, passage, summary) came from, and how: its trigger, or only in the visible window."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

from memory.db import Connection

Derived = Literal["entry_id", "passage_id", "conversation_id"]
Fetched = Literal["message_id", "passage_id"]


async def add(
    connection: Connection, agent: int, derived: Derived, derived_id: int, *, trigger: Sequence[int], window: Sequence[int]
) -> None:
    """Note that a derived row came from messages; `trigger` and `window` are message ids."""
    seen = set(trigger)
    ids = [*trigger, *(each for each in window if each not in seen)]
    roles = ["trigger"] * len(trigger) + ["window"] * (len(ids) - len(trigger))
    await connection.execute(
        f"INSERT INTO sources (agent_id, message_id, {derived}, role) SELECT %s, m, %s, r FROM unnest(%s::bigint[], %s::text[]) AS s(m, r)",  # noqa: S608
        (agent, derived_id, ids, roles),
    )


async def take_over(connection: Connection, *, entry: int, passage: int) -> None:
    """A passage made of an entry of the working context came from what the entry came from."""
    await connection.execute(
        """INSERT INTO sources (agent_id, message_id, passage_id, role)
           SELECT agent_id, message_id, %s, role FROM sources WHERE entry_id = %s""",
        (passage, entry),
    )


async def fetched(connection: Connection, agent: int, turn: int, found: Fetched, ids: Sequence[int]) -> None:
    """Note which rows a turn's search brought into its prompt."""
    if ids:
        await connection.execute(
            f"INSERT INTO fetched (agent_id, turn_id, {found}) SELECT %s, %s, unnest(%s::bigint[])", (agent, turn, list(ids))
        )
