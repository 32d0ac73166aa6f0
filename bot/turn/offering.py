"""Which functions a turn offers the model: those that can be of use now.

Found out once, when the turn begins, so that the beginning of the prompt stays the same through its passes. From turn to turn the set
changes seldom: with the first entry, text in archival storage or timer, and where the bot is woken without being addressed.
"""

from __future__ import annotations

from bot.engine.events import Claim
from bot.functions import offered
from bot.functions.registry import Need
from bot.model.calls import FunctionSchema
from bot.words.forgetting import asks_forgetting
from memory.agent_state import AgentState
from memory.db import Connection


async def offering(
    connection: Connection, claim: Claim, state: AgentState, *, leave: bool, small: bool
) -> tuple[FunctionSchema, ...]:
    """What the model may call in this turn. `leave`: the bot may ask for leave to write first; `small`: the chat model is small."""
    cursor = await connection.execute(
        """SELECT EXISTS (SELECT FROM timers WHERE due_at IS NOT NULL AND kind IN ('reminder', 'follow_up')) AS timers,
             EXISTS (SELECT FROM memory_requests) AS request, EXISTS (SELECT FROM documents) AS documents"""
    )
    row = await cursor.fetchone()
    assert row is not None
    own = claim.addressed and state.place.kind == "direct"
    holds: dict[Need, bool] = {
        "leave": own and leave,
        # A small model does not need it once the zone is known; a large one hears of a move.
        "zone": own and not (small and state.zone),
        "entries": bool(state.entries),
        "archive": state.archival_total > 0,
        "documents": bool(row["documents"]),
        "timers": bool(row["timers"]),
        "request": claim.addressed and bool(row["request"]),
        "unaddressed": not claim.addressed,
        "forgetting": claim.addressed and any(map(asks_forgetting, claim.said)),
    }
    return offered([need for need, so in holds.items() if so], small=small)
