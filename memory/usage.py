"""Usage: what each model call cost in tokens, per person."""

from __future__ import annotations

from datetime import datetime


def entry(
    *,
    agent: int,
    turn: int | None,
    purpose: str,
    model: str,
    prompt: int,
    cached: int,
    completion: int,
    at: datetime,
) -> tuple[str, tuple[object, ...]]:
    """The statement that notes one model call (tokens as the endpoint reported them), for the transaction of the step it belongs to."""
    return (
        """INSERT INTO usage (agent_id, turn_id, purpose, model, prompt_tokens, cached_tokens, completion_tokens, at)
           VALUES (%s, %s, %s, %s, %s, %s, %s, %s)""",
        (agent, turn, purpose, model, prompt, cached, completion, at),
    )
