"""Searching recall storage: every message ever exchanged."""

from __future__ import annotations

from dataclasses import replace
from typing import Annotated, Literal

from pydantic import Field

from bot.functions.context import CallContext
from bot.functions.results import query_of, show
from memory.search import search_messages

Speaker = Literal["person", "you", "others"]
_ROLES = {"person": "user", "you": "assistant", "others": "quote"}


async def recall_storage_search(
    context: CallContext,
    query: str = "",
    page: Annotated[int, Field(ge=1)] = 1,
    said_by: list[Speaker] = [],  # noqa: B006  never changed
    after: str = "",
    before: str = "",
) -> str:
    """Search all earlier messages, by meaning and words; without a query the newest. Dates: 2026-11-30."""
    wanted = query_of(context, query, page, before, after, roles=[_ROLES[each] for each in said_by])
    if wanted.before is None:
        # What is being answered would only find itself.
        wanted = replace(wanted, before=min(event.created_at for event in context.claim.events))
    if query:  # Without words it lists what was last said, wherever it is visible.
        wanted = replace(wanted, queue=(context.claim.conversation, context.state.fifo_start))
    found = await search_messages(context.connection, wanted, context.vectors.get(query))
    context.seen += [hit.visibility for hit in found.hits]
    await context.fetched("message_id", [hit.id for hit in found.hits])
    return show(found, context.state.tz)
