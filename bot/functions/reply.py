"""Speaking to the person, and staying silent."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

from bot.functions.context import CallContext, Refused


async def send_message(context: CallContext, text: Annotated[str, Field(description="What the person reads; Markdown.")]) -> str:
    """Send the person a message. In a timed event this is the only way to speak. Otherwise your plain text is the reply."""
    if not text.strip():
        raise Refused("An empty message cannot be sent. Give the text, or call stay_silent if nothing is to be said.")
    context.said.append(text)
    return "Sent."


async def stay_silent(context: CallContext) -> str:
    """Say nothing. Only when you were not addressed, or when a timed event needs no message."""
    if context.claim.addressed:
        raise Refused("The person spoke to you and waits for an answer. Reply in plain text.")
    context.silent = True
    return "You stay silent."
