"""Search of recall and archival storage: words and meaning blended, one page at a time, with true totals.

The ranking is SQL (`memory/sql/functions/search.sql`, which defines what a match is and has all weights); this module reads
times out of the query and carries values in and out. Share of the evidence among the first 10 messages, 760 questions of categories 1 to 4 of
LoCoMo's development half (`bot bench retrieval`): words alone 0.768, both 0.802, of which 0.798 on the three conversations
that weights were learned on and 0.810 on the two others. What each part brings, measured by leaving it out (weights learned without the
conversation that is asked about, 0.812 with all): the speaker whom the query names 0.012, that a message is a question 0.018, the
day that the query names 0.018, words of time 0.007, the words of a question for the message after it 0.008, neighbours' words
0.018, neighbours' closeness 0.010. Tried and left out, as they brought nothing: BM25, RM3, length, sessions, vectors without the author.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import date, datetime, time, timedelta, tzinfo
from typing import Any

from psycopg.types.multirange import Multirange
from psycopg.types.range import Range

from memory.db import Connection
from memory.embedding import QueryVector
from memory.past_days import TIME_WORDS, asks_time, days_meant
from memory.places import Visibility
from memory.sanitise import clean

PAGE_SIZE = 10
MAX_PAGE_SIZE = 50
QUEUE_WHOLE = 2_000
"""Characters of a message that the prompt shows whole, whatever the model: a longer one is found although it is in the queue."""
DAYS_BEFORE, DAYS_AFTER = 1, 2
"""Days around a named one whose messages may be about it, its own counted among those after."""
COUNTED = 1_000
"""Up to how many matches a total is exact; beyond, it says "more than"."""


@dataclass(frozen=True, slots=True)
class Query:
    """What is looked for. `roles` narrow recall storage, `tags` (any of them) archival storage; `after` <=
    time < `before` (aware).

    A blank `text` lists by date, newest first. `page` counts from 1. `asked_at`, on the clock of the person who asks, is what days
    named in the text are reckoned from. `queue` leaves out what is visible anyway: the messages of a conversation from a position on.
    """

    text: str
    page: int = 1
    page_size: int = PAGE_SIZE
    roles: tuple[str, ...] = ()
    tags: tuple[str, ...] = ()
    before: datetime | None = None
    after: datetime | None = None
    asked_at: datetime | None = None
    queue: tuple[int, int] | None = None

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
    document: str = ""
    page: int = 0
    heading: str = ""
    """Of a document: its name, the page (from 1) and the headings above the text."""


@dataclass(frozen=True, slots=True)
class Page:
    """One page of a result. `total` is the number of matches on all pages, one more than `COUNTED` if there are more."""

    hits: tuple[Hit, ...]
    total: int
    page: int
    pages: int

    @property
    def headline(self) -> str:
        """The line above the hits, as the model reads it: `Showing 10 of 124 results (page 1/13)`."""
        if not self.total:
            return "No results found."
        many = f"more than {COUNTED:,}" if self.total > COUNTED else str(self.total)
        if not self.hits:
            return f"There is no page {self.page}: {many} results on {self.pages} page{'s' * (self.pages != 1)}."
        of = f"page {self.page}" if self.total > COUNTED else f"page {self.page}/{self.pages}"
        return f"Showing {len(self.hits)} of {many} results ({of})"


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
  roles => %(roles)s::text[], before => %(before)s, after => %(after)s, lim => %(limit)s, off => %(offset)s, floor => %(floor)s,
  about => %(about)s, time_words => %(time_words)s, queue => %(queue)s, queue_from => %(queue_from)s, queue_whole => %(queue_whole)s)"""
_PASSAGES = """SELECT * FROM search_passages(query => %(text)s, query_embedding => %(vector)s::halfvec, model => %(model)s,
  tags => %(tags)s::text[], before => %(before)s, after => %(after)s, lim => %(limit)s, off => %(offset)s, floor => %(floor)s)"""


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
        "roles": list(query.roles) or None,
        "tags": [clean(tag) for tag in query.tags] or None,
        "before": query.before,
        "after": query.after,
        "limit": query.limit,
        "offset": query.offset,
        "about": _about(text, query.asked_at),
        "time_words": TIME_WORDS if asks_time(text) else None,
        "queue": query.queue[0] if query.queue else None,
        "queue_from": query.queue[1] if query.queue else None,
        "queue_whole": QUEUE_WHOLE,
    }
    rows = await (await connection.execute(statement, parameters)).fetchall()
    return _page(rows, query)


def _about(text: str, asked_at: datetime | None) -> Multirange[datetime] | None:
    """The times that a text means by the days it names; of a single day also those after it, when it was still talked of."""
    if asked_at is None:
        return None
    spans = days_meant(text, asked_at.date())
    first, last = timedelta(days=DAYS_BEFORE), timedelta(days=DAYS_AFTER)
    times = [
        Range(datetime.combine(start, time(), asked_at.tzinfo) - first, datetime.combine(end, time(), asked_at.tzinfo) + last)
        for start, end in spans
    ]
    return Multirange(times) if times else None


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
        document=row.get("document") or "",
        page=row.get("page") or 0,
        heading=row.get("heading") or "",
    )
