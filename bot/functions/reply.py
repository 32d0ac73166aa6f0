"""Speaking to the person, and staying silent."""

from __future__ import annotations

from bot.functions.context import CallContext, Refused
from bot.model.thoughts import spoken


async def send_message(context: CallContext, text: str) -> str:
    """Send the person a message; needed only in a timed event."""
    text = spoken(text)
    if not text.strip():
        raise Refused("An empty message cannot be sent. Give the text, or call stay_silent if nothing is to be said.")
    context.said.append(text)
    return "Sent."


async def stay_silent(context: CallContext) -> str:
    """Say nothing."""
    if context.claim.addressed:
        raise Refused("The person spoke to you and waits for an answer. Reply in plain text.")
    context.silent = True
    return "You stay silent."
