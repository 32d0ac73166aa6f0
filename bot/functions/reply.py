"""Speaking to the person, and staying silent."""

from __future__ import annotations

from bot.functions.context import CallContext, Refused
from bot.model.thoughts import spoken

TIMED = 1500
"""Characters of a timed message, so that it is one message on every platform."""


async def send_message(context: CallContext, text: str) -> str:
    """Send the person a message; needed only in a timed event."""
    text = spoken(text)
    if not text.strip():
        raise Refused("An empty message cannot be sent. Give the text, or call stay_silent if nothing is to be said.")
    if context.claim.origin == "timed":
        if context.said or context.replied:
            return "Not sent: a timed event is one message, and it was sent."
        if len(text) > TIMED:
            raise Refused(f"A message that nobody asked for is short: {TIMED} characters at most.")
    context.said.append(text)
    return "Sent."


async def stay_silent(context: CallContext) -> str:
    """Say nothing."""
    if context.claim.addressed:
        raise Refused("The person spoke to you and waits for an answer. Reply in plain text.")
    context.silent = True
    return "You stay silent."
