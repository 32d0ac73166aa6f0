"""Usage: what each model call cost in tokens, per person."""

from __future__ import annotations

from datetime import datetime

from memory.db import Connection


async def record(
    connection: Connection,
    *,
    agent: int,
    turn: int | None,
    purpose: str,
    model: str,
    prompt: int,
    cached: int,
    completion: int,
    at: datetime,
) -> None:
    """Note one model call (tokens as the endpoint reported them), in the transaction of the step it belongs to."""
    await connection.execute(
        """INSERT INTO usage (agent_id, turn_id, purpose, model, prompt_tokens, cached_tokens, completion_tokens, at)
           VALUES (%s, %s, %s, %s, %s, %s, %s, %s)""",
        (agent, turn, purpose, model, prompt, cached, completion, at),
    )
