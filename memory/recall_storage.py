"""Recall storage: every message ever exchanged, searched by meaning, words and time."""

from __future__ import annotations

from memory.db import Connection
from memory.embedding import QueryVector
from memory.search import Page, Query, search_messages


async def search(connection: Connection, query: Query, vector: QueryVector | None = None) -> Page:
    """A page of what was said, in any conversation of the agent that may be used here, best first; a blank
    query lists the newest.
    """
    return await search_messages(connection, query, vector)


async def size(connection: Connection) -> int:
    """How many messages can be found from here (the exact number that browsing without a query would
    show).
    """
    return (await search_messages(connection, Query("", page_size=1))).total
