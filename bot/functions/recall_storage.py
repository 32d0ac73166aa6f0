"""Searching recall storage: every message ever exchanged."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field

from bot.functions.context import CallContext
from bot.functions.results import query_of, show
from memory import recall_storage

Speaker = Literal["person", "you", "others"]
_ROLES = {"person": "user", "you": "assistant", "others": "quote"}


async def recall_storage_search(
    context: CallContext,
    query: Annotated[str, Field(description="Words or a question; empty to browse by time.")] = "",
    page: Annotated[int, Field(ge=1, description="Page of results, from 1.")] = 1,
    said_by: Annotated[list[Speaker] | None, Field(description="Only what these said.")] = None,
    before: Annotated[str | None, Field(description="Earlier than this local date or time: 2026-11-30.")] = None,
    after: Annotated[str | None, Field(description="From this local date or time on.")] = None,
) -> str:
    """Search all earlier messages by meaning, words and time. Page on while the answer may be on a later page; stop when you have it."""
    wanted = query_of(context, query, page, before, after, roles=[_ROLES[each] for each in said_by or ()])
    found = await recall_storage.search(context.connection, wanted, context.vectors.get(query))
    context.seen += [hit.visibility for hit in found.hits]
    return show(found, context.state.tz)
