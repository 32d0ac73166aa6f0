"""Archival storage: long-term facts and documents."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

from bot.functions import requests, storing
from bot.functions.context import CallContext, Refused
from bot.functions.results import query_of, show
from memory import archival_storage
from memory.archival_storage import clean_tags

PASSAGE_LIMIT = 8000
"""Characters of one inserted text."""


async def archival_storage_insert(
    context: CallContext,
    content: Annotated[str, Field(description="Self-contained text: who, what, when.")],
    tags: list[str] = [],  # noqa: B006  never changed
) -> str:
    """Store what is too long for the working context."""
    content = content.strip()
    if not content:
        raise Refused("The text is empty.")
    if len(content) > PASSAGE_LIMIT:
        raise Refused(f"One text may have {PASSAGE_LIMIT} characters; this has {len(content)}. Split it into several inserts.")
    decision = context.weigh(content, tags=clean_tags(tags))
    if decision.ask:
        return await requests.ask(context, decision, layer="archival_storage", content=content, tags=clean_tags(tags))
    return await storing.store(context, content, clean_tags(tags), action="archival_storage_insert", author=decision.author_id)


async def archival_storage_search(
    context: CallContext,
    query: str = "",
    page: Annotated[int, Field(ge=1)] = 1,
    tags: list[str] = [],  # noqa: B006  never changed
    after: str = "",
    before: str = "",
) -> str:
    """Search stored facts and documents, by meaning and words."""
    wanted = query_of(context, query, page, before, after, tags=clean_tags(tags))
    found = await archival_storage.search(context.connection, wanted, context.vectors.get(query))
    context.seen += [hit.visibility for hit in found.hits]
    await context.fetched("passage_id", [hit.id for hit in found.hits])
    return show(found, context.state.tz)
