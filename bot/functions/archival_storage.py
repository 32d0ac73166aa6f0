"""Archival storage: long-term facts and documents."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Annotated

from pydantic import Field

from bot.functions import requests
from bot.functions.context import CallContext, Refused
from bot.functions.results import query_of, show
from memory import archival_storage, sources, undo
from memory.archival_storage import clean_tags

PASSAGE_LIMIT = 8000
"""Characters of one inserted text."""


async def archival_storage_insert(
    context: CallContext,
    content: Annotated[str, Field(description="Self-contained text: who, what, when.")],
    tags: list[str] = [],  # noqa: B006  never changed
) -> str:
    """Store what is too long or too rarely needed for the working context."""
    content = content.strip()
    if not content:
        raise Refused("The text is empty.")
    if len(content) > PASSAGE_LIMIT:
        raise Refused(f"One text may have {PASSAGE_LIMIT} characters; this has {len(content)}. Split it into several inserts.")
    decision = context.weigh(content)
    if decision.ask:
        return await requests.ask(context, decision, layer="archival_storage", content=content, tags=clean_tags(tags))
    return await store(context, content, clean_tags(tags), action="archival_storage_insert", author=decision.author_id)


async def store(
    context: CallContext, content: str, tags: Sequence[str], *, action: str, came_from: int | None = None, author: str = ""
) -> str:
    """Insert or merge a text with its log entry and its sources; those of the entry `came_from` where it was one."""
    stored = await archival_storage.insert(
        context.connection, agent=context.claim.agent, place=context.claim.place, visibility=context.visibility, content=content, tags=tags,
        turn=context.claim.turn, at=context.now, author=author,
    )  # fmt: skip
    tags_before = f"tags: {', '.join(stored.tags_before)}" if stored.merged else None
    was = await undo.snapshot(context.connection, "passage", stored.id) if stored.merged else None
    if was is not None:
        was["tags"] = list(stored.tags_before)
    await context.log(action, "passage", stored.id, before=tags_before, after=content, row=was)
    if came_from is None:
        await context.derive("passage_id", stored.id)
    else:
        await sources.take_over(context.connection, entry=came_from, passage=stored.id)
    state = context.state
    added = 0 if stored.merged else 1
    context.state = replace(state, archival_total=state.archival_total + added, tags=tuple(dict.fromkeys([*state.tags, *tags])))
    return "Merged with a nearly identical text that was there." if stored.merged else "Stored."


async def archival_storage_search(
    context: CallContext,
    query: str = "",
    page: Annotated[int, Field(ge=1)] = 1,
    tags: list[str] = [],  # noqa: B006  never changed
    after: str = "",
    before: str = "",
) -> str:
    """Search stored facts and documents by meaning, words, tags (any of them) and dates."""
    wanted = query_of(context, query, page, before, after, tags=clean_tags(tags))
    found = await archival_storage.search(context.connection, wanted, context.vectors.get(query))
    context.seen += [hit.visibility for hit in found.hits]
    await context.fetched("passage_id", [hit.id for hit in found.hits])
    return show(found, context.state.tz)
