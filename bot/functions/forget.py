"""Forgetting, asked for in plain words: the person is shown how, by the bot's own line, and nothing goes before their own yes.

What goes is what the command lists, with a button; the model neither chooses it nor says that it is done. The line names no words but those
asked for: it is no copy of what is to go.
"""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

from bot.functions.context import CallContext, Refused
from memory.working_context import one_line

LINE_STEP = -8
"""The line's place in the outbox among those that no turn's step reaches."""
LONGEST = 80
"""Characters of the words to look for."""
LINE = (
    "Nothing is forgotten yet. This shows what would go, with a button to say yes: /memory forget search {}\n"
    "All that I know of you: /memory forget everything"
)


async def forget(
    context: CallContext, words: Annotated[str, Field(description="Words that all of it contains, as few as possible: `horse`.")]
) -> str:
    """When the person wants something forgotten: shows them the bot's own list of what would go, to say yes to. Nothing else forgets."""
    words = one_line(words).strip()
    if not words or len(words) > LONGEST:
        raise Refused(f"Give the words that it contains, at most {LONGEST} characters.")
    if not context.claim.addressed:
        raise Refused("The person is not talking to you now. Leave it.")
    claim = context.claim
    await context.connection.execute(
        """INSERT INTO outbox (agent_id, place_id, platform, channel, turn_id, step, part, body, created_at)
           VALUES (%s, %s, %s, %s, %s, %s, 0, %s, %s) ON CONFLICT (turn_id, step, part) DO UPDATE SET body = excluded.body""",
        (claim.agent, claim.place, claim.platform, claim.channel, claim.turn, LINE_STEP, LINE.format(words), context.now),
    )
    context.unfinished = True
    return (
        "Nothing is forgotten yet. The person is shown the command that lists what would go and asks for their yes. Do not say that you "
        "forgot it, nor repeat it; say at most that the list is theirs to confirm."
    )
