"""Taking a document in: read, cut into chunks, stored in place of an older one of its name, and told to its person's agent."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from datetime import datetime

from bot.documents import reading
from bot.documents.blocks import Limits
from bot.documents.chunks import Chunk, chunks, headings
from bot.engine import inbox
from memory import documents, forgetting, log
from memory.db import Connection
from memory.forgetting import Gone
from memory.log import Actor
from memory.places import Visibility

LIMITS = Limits()
HEADINGS = 20
"""Headings that the agent is told of."""


@dataclass(frozen=True, slots=True)
class Prepared:
    """A document that was read and is not stored yet. `pages`: those of its format, or as many as its text would fill."""

    name: str
    size: int
    sha256: bytes
    pages: int
    chunks: tuple[Chunk, ...]
    headings: tuple[str, ...]


async def prepare(name: str, data: bytes, limits: Limits = LIMITS) -> Prepared:
    """Read a file. No connection is held meanwhile. Raises Unreadable."""
    contents = await reading.read(name, data, limits)
    cut = chunks(contents.blocks)
    return Prepared(
        documents.named(name),
        len(data),
        hashlib.sha256(data).digest(),
        contents.pages or max(chunk.page for chunk in cut),
        tuple(cut),
        tuple(headings(contents.blocks, HEADINGS)),
    )


async def store(
    connection: Connection,
    prepared: Prepared,
    *,
    agent: int,
    place: int,
    visibility: Visibility,
    actor: Actor,
    action: str,
    at: datetime,
) -> tuple[int, list[int]]:
    """Store a document, in place of those of its name from the same place, and wake its agent with the event "upload".

    In one transaction that holds the locks of a forgetting and of the agent and sees all of its places. Returns the document's id, and the other
    agents that held something of what it took the place of.
    """
    older = [each.id for each in await documents.usable(connection, prepared.name) if each.place_id == place]
    touched = await remove(connection, older) if older else []
    document = await documents.store(
        connection,
        agent=agent,
        place=place,
        visibility=visibility,
        name=prepared.name,
        media_type="",
        sha256=prepared.sha256,
        size=prepared.size,
        pages=prepared.pages,
        parts=[(each.page, each.heading, each.text) for each in prepared.chunks],
        at=at,
    )
    await log.record(
        connection,
        agent=agent,
        place=place,
        at=at,
        actor=actor,
        action=action,
        target="document",
        target_id=document,
        after=prepared.name,
    )
    payload = {"document_id": str(document), "name": prepared.name, "pages": prepared.pages, "headings": list(prepared.headings)}
    await inbox.accept_upload(connection, agent=agent, place=place, document=document, payload=payload, now=at)
    await connection.execute("UPDATE agents SET version = version + 1")
    return document, touched


async def remove(connection: Connection, ids: list[int]) -> list[int]:
    """Take documents out with everything that was made of what was shown of them. Returns the other agents that held something of it."""
    return await forgetting.erase_rows(connection, await forgetting.derived(connection, Gone(documents=set(ids))))
