"""Archival storage: long-term facts and documents."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

from bot.functions import requests, storing
from bot.functions.context import CallContext, Refused
from bot.functions.results import query_of, show, show_page
from memory import archival_storage, documents
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


async def archival_storage_read(context: CallContext, document: str, page: Annotated[int, Field(ge=1)] = 1) -> str:
    """Read a page of a document. Cite documents as results name their source."""
    found = await documents.usable(context.connection, documents.named(document))
    if not found:
        names = ", ".join(each.name for each in (await documents.usable(context.connection))[:20])
        raise Refused(f"There is no document of that name here. There are: {names or 'none'}.")
    parts = await documents.page(context.connection, found[0].id, page)
    if not parts:
        raise Refused(f"{found[0].name} has no text on page {page}; it has {found[0].pages} pages.")
    context.seen += [part.visibility for part in parts]
    await context.fetched("passage_id", [part.id for part in parts])
    return show_page(found[0], parts)
