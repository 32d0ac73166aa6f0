"""Forgetting, asked for in plain words: the person is shown the bot's own list of what would go, and nothing goes before their own yes.

The model neither chooses what goes nor says that it is done.
"""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

from adapters.catalogue import say
from bot.engine.turns import buttons_json
from bot.functions.context import CallContext, Refused
from bot.keeping import to_forget
from memory.working_context import one_line

LINE_STEP = -8
"""The list's place in the outbox among the lines that no turn's step reaches."""
LONGEST = 80
"""Characters of the words to look for."""


async def forget(
    context: CallContext, words: Annotated[str, Field(description="Words that all of it contains, as few as possible: `horse`.")]
) -> str:
    """When the person wants something forgotten: shows them the bot's own list of what would go, to say yes to. Nothing else forgets."""
    wanted = one_line(words).split()
    if not wanted or len(" ".join(wanted)) > LONGEST:
        raise Refused(f"Give the words that it contains, at most {LONGEST} characters.")
    if not context.claim.addressed:
        raise Refused("The person is not talking to you now. Leave it.")
    claim, direct = context.claim, context.state.place.kind == "direct"
    # In their own direct message people see, and forget, what came from anywhere.
    await context.connection.execute("SELECT enter(%s, %s, %s)", (claim.agent, claim.place, direct))
    found = await to_forget.matches(context.connection, wanted)
    await context.connection.execute("SELECT enter(%s, %s)", (claim.agent, claim.place))
    if not found:
        raise Refused("Nothing that is kept has all these words. Give fewer or other ones; if nothing is found, say so.")
    shown = to_forget.listing(found, wanted, context.state.tz, context.state.locale, openly=not direct)
    await context.connection.execute(
        """INSERT INTO outbox (agent_id, place_id, platform, channel, turn_id, step, part, body, buttons, created_at)
           VALUES (%s, %s, %s, %s, %s, %s, 0, %s, %s, %s)
           ON CONFLICT (turn_id, step, part) DO UPDATE SET body = excluded.body, buttons = excluded.buttons""",
        (
            claim.agent,
            claim.place,
            claim.platform,
            claim.channel,
            claim.turn,
            LINE_STEP,
            f"{say('forget.not_yet', context.state.locale)} {shown.text}",
            buttons_json(shown.buttons),
            context.now,
        ),
    )
    context.unfinished = True
    return (
        "Nothing is forgotten yet. The person is shown the list of what would go, with a button to say yes. Do not say that you "
        "forgot it, nor repeat it; say at most that the list is theirs to confirm."
    )
