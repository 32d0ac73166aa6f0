"""Sources: the messages that a derived row (entry, passage, summary) names as what it came from, its trigger or a quote that it repeats.

What was merely in view when a turn made something is in the turn's own row (`queue_manager.note_view`), what its searches found in `fetched`.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

from memory.db import Connection

Derived = Literal["entry_id", "passage_id", "conversation_id"]
Fetched = Literal["message_id", "passage_id"]


async def add(
    connection: Connection, agent: int, derived: Derived, derived_id: int, *, trigger: Sequence[int], quotes: Sequence[int] = ()
) -> None:
    """Note that a derived row came from messages: ids of those that brought it about, and of the quotes that it repeats."""
    ids, roles = [*trigger, *quotes], ["trigger"] * len(trigger) + ["quote"] * len(quotes)
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
