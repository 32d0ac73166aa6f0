"""A person's yes or no: what counts as one, and which question it answers. All that needs a yes in words asks here.

The bot itself asks, in fixed words, as the last message of a turn (`Draft.asks`). A yes or no counts only when all that the person writes
back is one, and only for the question that was the last thing said: whatever the bot says or asks later takes its place.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from adapters.catalogue import say
from bot.engine.events import Claim
from bot.words.answers import yes_or_no
from memory.db import Connection
from memory.messages import Asks

SHOWN = 500
"""Characters of something to be remembered that are shown in the question about it."""


@dataclass(frozen=True, slots=True)
class Answer:
    """A plain yes or no to a question of the bot's; `turn`: the turn that asked it."""

    turn: int
    yes: bool


async def answer(connection: Connection, claim: Claim, asks: Asks) -> Answer | None:
    """What the person's messages of this turn, taken together, say to a question of this kind; None: none was open, or nothing plain."""
    if not claim.addressed:
        return None
    # The last that was said before this turn, by either: what the person wrote about something else meanwhile closes a question too.
    cursor = await connection.execute(
        """SELECT asks, turn_id, created_at FROM messages
           WHERE conversation_id = %s AND kind = 'message' AND turn_id IS DISTINCT FROM %s ORDER BY position DESC LIMIT 1""",
        (claim.conversation, claim.turn),
    )
    last = await cursor.fetchone()
    if last is None or last["asks"] != asks or last["turn_id"] is None:
        return None
    since = [event for event in claim.events if event.kind == "message" and event.created_at > last["created_at"]]
    yes = yes_or_no("\n".join(str(event.payload.get("text", "")) for event in since))
    return None if yes is None else Answer(last["turn_id"], yes)


def question(asks: Asks, what: Sequence[str], locale: str) -> str:
    """The bot's own question about something, in the person's language where it is among those that there are words for."""
    shown = "; ".join(f"“{one[:SHOWN]}{'…' if len(one) > SHOWN else ''}”" for one in what)
    return say(f"question.{asks}", locale, what=shown)
