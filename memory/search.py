"""Search of recall and archival storage: words and meaning blended, one page at a time, with true totals.

The ranking is SQL (`memory/sql/functions/search.sql`, which defines what a match is); this module carries
values in and out. Measured on the development half of LoCoMo, 760 questions of categories 1 to 4 (`bot bench
retrieval`), share of the evidence among the first 10 messages: words alone 0.71 (with `ts_rank` and without
neighbours 0.59), meaning alone 0.50, both 0.73. What brought it: weighing words by how rare they are in the
agent's own storage (+5 points over `ts_rank`), z-scores blended half and half (reciprocal rank fusion lost
points), and half of the score of the messages next to it, a quarter of the next but one (+8).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import date, datetime, time, timedelta, tzinfo
from typing import Any

from memory.db import Connection
from memory.embedding import QueryVector
from memory.places import Visibility
from memory.sanitise import clean

PAGE_SIZE = 10
MAX_PAGE_SIZE = 50
MEANING_SHARE = 0.5
"""How much of the score is meaning; the rest is words."""


@dataclass(frozen=True, slots=True)
class Query:
    """What is looked for. `roles` narrow recall storage, `tags` (any of them) archival storage; `after` <=
    time < `before` (aware).

    A blank `text` lists by date, newest first. `page` counts from 1.
    """

    text: str
    page: int = 1
    page_size: int = PAGE_SIZE
    roles: tuple[str, ...] = ()
    tags: tuple[str, ...] = ()
    before: datetime | None = None
    after: datetime | None = None

    @property
    def limit(self) -> int:
        """Rows of a page."""
        return min(max(self.page_size, 1), MAX_PAGE_SIZE)

    @property
    def offset(self) -> int:
        """Rows before the page; as large as an integer in Postgres may be at the most."""
        return min((max(self.page, 1) - 1) * self.limit, 2**31 - 1)


@dataclass(frozen=True, slots=True)
class Hit:
    """A row that was found. `role` is empty for a passage, `tags` for a message; `score` orders one result
    and means nothing beyond it.
    """

    id: int
    content: str
    author: str
    role: str
    kind: str
    tags: tuple[str, ...]
    visibility: Visibility
    at: datetime
    place_id: int
    place_kind: str
    place_name: str
    platform: str
    workspace: str
    score: float


@dataclass(frozen=True, slots=True)
class Page:
    """One page of a result. `total` is the number of matches on all pages."""

    hits: tuple[Hit, ...]
    total: int
    page: int
    pages: int

    @property
    def headline(self) -> str:
        """The line above the hits, as the model reads it: `Showing 10 of 124 results (page 1/13)`."""
        if not self.total:
            return "No results found."
        if not self.hits:
            return f"There is no page {self.page}: {self.total} results on {self.pages} page{'s' * (self.pages != 1)}."
        return f"Showing {len(self.hits)} of {self.total} results (page {self.page}/{self.pages})"


def pages_of(total: int, size: int) -> int:
    """How many pages a total fills; at least one, so that `page 1/1` can be said of nothing."""
    return max(1, -(-total // size))


def period(after: str, before: str, zone: tzinfo) -> tuple[datetime | None, datetime | None]:
    """The times of two arguments in ISO form (`2023-05-07`, `2023-05-07T18:30`), read in `zone` unless they
    carry an offset; blank is open.

    A day as `before` ends the period where that day begins, except where `after` is the same day: then that
    day is meant. Raises ValueError with what to write instead.
    """
    start, end = _moment("after", after, zone), _moment("before", before, zone)
    if start is not None and start == end and _is_day(before):
        day = date.fromisoformat(before.strip())
        end = datetime.combine(day + timedelta(days=1), time(), zone) if day < date.max else None
    if start is not None and end is not None and end <= start:
        raise ValueError("`after` must be earlier than `before`: nothing lies between them")
    return start, end


def _is_day(text: str) -> bool:
    return len(text.strip()) == len("2023-05-07")


def _moment(name: str, text: str, zone: tzinfo) -> datetime | None:
    text = text.strip()
    if not text:
        return None
    try:
        moment = datetime.combine(date.fromisoformat(text), time()) if _is_day(text) else datetime.fromisoformat(text)
    except ValueError as error:
        raise ValueError(f"`{name}` must be a date like 2023-05-07 or a time like 2023-05-07T18:30") from error
    return moment if moment.tzinfo else moment.replace(tzinfo=zone)


_MESSAGES = """SELECT * FROM search_messages(query => %(text)s, query_embedding => %(vector)s::halfvec, model => %(model)s,
  roles => %(roles)s::text[], before => %(before)s, after => %(after)s, lim => %(limit)s, off => %(offset)s,
  meaning_share => %(share)s, floor => %(floor)s)"""
_PASSAGES = """SELECT * FROM search_passages(query => %(text)s, query_embedding => %(vector)s::halfvec, model => %(model)s,
  tags => %(tags)s::text[], before => %(before)s, after => %(after)s, lim => %(limit)s, off => %(offset)s,
  meaning_share => %(share)s, floor => %(floor)s)"""


async def search_messages(connection: Connection, query: Query, vector: QueryVector | None = None) -> Page:
    """A page of what was said, among the rows of the transaction's agent that are usable in its place.
    Without a vector: words only.
    """
    return await _search(connection, _MESSAGES, query, vector)


async def search_passages(connection: Connection, query: Query, vector: QueryVector | None = None) -> Page:
    """A page of archival storage, bounded as `search_messages`."""
    return await _search(connection, _PASSAGES, query, vector)


async def _search(connection: Connection, statement: str, query: Query, vector: QueryVector | None) -> Page:
    text = clean(query.text)
    parameters = {
        "text": text,
        "vector": vector.literal if vector else None,
        "model": vector.model if vector else None,
        "floor": vector.floor if vector else 0.0,
        "share": MEANING_SHARE,
        "roles": list(query.roles) or None,
        "tags": [clean(tag) for tag in query.tags] or None,
        "before": query.before,
        "after": query.after,
        "limit": query.limit,
        "offset": query.offset,
    }
    rows = await (await connection.execute(statement, parameters)).fetchall()
    return _page(rows, query)


def _page(rows: Sequence[Mapping[str, Any]], query: Query) -> Page:
    total = rows[0]["total"] if rows else 0
    hits = tuple(_hit(row) for row in rows if row["id"] is not None)
    return Page(hits, total, max(query.page, 1), pages_of(total, query.limit))


def _hit(row: Mapping[str, Any]) -> Hit:
    return Hit(
        id=row["id"],
        content=row["content"],
        author=row["author_name"],
        role=row.get("role", ""),
        kind=row.get("kind", ""),
        tags=tuple(row.get("tags_of", ())),
        visibility=row["visibility"],
        at=row["created_at"],
        place_id=row["place_id"],
        place_kind=row["place_kind"],
        place_name=row["place_name"],
        platform=row["platform"],
        workspace=row["workspace"],
        score=row["score"],
    )
