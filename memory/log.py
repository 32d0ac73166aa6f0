"""The memory log: who changed what, when and why. The rows hold no content; reason, before and after stand apart, where erasure
reaches them (rule 7 of the design)."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Any, Literal

from psycopg.types.json import Jsonb

from memory.db import Connection

Actor = Literal["agent", "person", "admin", "operator", "system"]
Target = Literal["working_context", "passage", "message", "summary", "conversation", "timer", "document", "everything"]


async def record(
    connection: Connection,
    *,
    agent: int,
    place: int,
    at: datetime,
    actor: Actor,
    action: str,
    target: Target,
    target_id: int | None,
    turn: int | None = None,
    reason: str = "",
    before: str | None = None,
    after: str | None = None,
    row: Mapping[str, Any] | None = None,
    undoes: int | None = None,
    message: int | None = None,
    covers: int | None = None,
) -> int:
    """Write one change into the log, in the transaction that makes it. `action` is the function or command. Returns the log id.

    `row`: what `memory.undo.snapshot` gave before the change, so that it can be undone. `undoes`: the change that this one takes back.
    `message`: what it came from. `covers`: the last position that a summary covers, or a
    conversation that /fresh ended.
    """
    cursor = await connection.execute(
        """WITH l AS (INSERT INTO memory_log (agent_id, place_id, at, actor, action, target, target_id, turn_id, undoes, message_id, covers)
             VALUES (%(agent)s, %(place)s, %(at)s, %(actor)s, %(action)s, %(target)s, %(target_id)s, %(turn)s, %(undoes)s,
               %(message)s, %(covers)s) RETURNING id)
           INSERT INTO memory_log_content (log_id, agent_id, reason, before, after, row_before)
             SELECT id, %(agent)s, %(reason)s, %(before)s, %(after)s, %(row)s FROM l RETURNING log_id""",
        {
            "agent": agent,
            "place": place,
            "at": at,
            "actor": actor,
            "action": action,
            "target": target,
            "target_id": target_id,
            "turn": turn,
            "reason": reason[:500],
            "before": before,
            "after": after,
            "row": None if row is None else Jsonb(row),
            "undoes": undoes,
            "message": message,
            "covers": covers,
        },
    )
    made = await cursor.fetchone()
    assert made is not None
    return int(made["log_id"])
