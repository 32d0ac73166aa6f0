"""People's documents: the files that were read, and the passages they became. A document stands in the place where it was given to the bot,
under the same rules as what is said there.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime

from memory.archival_storage import clean_tags
from memory.db import Connection, value
from memory.places import Visibility
from memory.sanitise import clean

NAME = 200
"""Characters of a document's name."""


@dataclass(frozen=True, slots=True)
class Document:
    """A document that may be used here. `waiting`: passages that only words find so far."""

    id: int
    name: str
    pages: int
    size: int
    created_at: datetime
    place_id: int
    place_kind: str
    place_name: str
    passages: int
    waiting: int


@dataclass(frozen=True, slots=True)
class Part:
    """A passage of a document: page (from 1), headings above it, text."""

    id: int
    page: int
    heading: str
    content: str
    visibility: Visibility


def named(name: str) -> str:
    """A file's name as a document has it: one line, without folders, of a length that can be shown."""
    last = " ".join(clean(name).replace("\\", "/").rpartition("/")[2].split())
    stem, dot, ending = last.rpartition(".")
    return last if len(last) <= NAME else f"{stem[: NAME - 20]}{dot}{ending[:15]}"


def source(name: str, page: int) -> str:
    """How a place in a document is cited."""
    return f"{name}, p. {page}"


async def store(
    connection: Connection,
    *,
    agent: int,
    place: int,
    visibility: Visibility,
    name: str,
    media_type: str,
    sha256: bytes,
    size: int,
    pages: int,
    parts: Iterable[tuple[int, str, str]],
    at: datetime,
) -> int:
    """Store a document with its parts (page, heading, text), in their order. Its name is their tag, so that the tag finds it. Returns its id.

    The caller has taken an older one of the same name out, and writes the memory log.
    """
    document: int = await value(
        connection,
        """INSERT INTO documents (agent_id, place_id, visibility, name, media_type, sha256, size, pages, created_at)
           VALUES (%s, %s, %s, %s, %s, %s, %s, %s, %s) RETURNING id""",
        (agent, place, visibility, name, media_type, sha256, size, pages, at),
    )
    rows = [(page, clean(heading), clean(text)) for page, heading, text in parts]
    await connection.execute(
        """INSERT INTO passages (agent_id, place_id, visibility, document_id, page, heading, content, tags, created_at)
           SELECT %s, %s, %s, %s, p.page, p.heading, p.content, %s, %s
           FROM unnest(%s::integer[], %s::text[], %s::text[]) WITH ORDINALITY p (page, heading, content, nth) ORDER BY p.nth""",
        (
            *(agent, place, visibility, document, list(clean_tags([name])), at),
            *([row[column] for row in rows] for column in range(3)),
        ),
    )
    return document


async def usable(connection: Connection, name: str = "") -> list[Document]:
    """The documents that may be used here, the newest first; of one name, whatever its capitals, where one is given."""
    cursor = await connection.execute(
        """SELECT d.id, d.name, d.pages, d.size, d.created_at, d.place_id, p.kind AS place_kind, p.name AS place_name,
             (SELECT count(*) FROM passages x WHERE x.document_id = d.id) AS passages,
             (SELECT count(*) FROM unembedded u JOIN passages x ON x.id = u.passage_id WHERE x.document_id = d.id) AS waiting
           FROM documents d JOIN places p ON p.id = d.place_id WHERE %s = '' OR lower(d.name) = lower(%s) ORDER BY d.id DESC""",
        (name, name),
    )
    return [Document(**row) for row in await cursor.fetchall()]


async def share(connection: Connection, document: int, *, shareable: bool) -> None:
    """Let a document and all its passages be used in other places too, or no longer."""
    for table, column in (("documents", "id"), ("passages", "document_id")):
        statement = f"UPDATE {table} SET shareable = %s WHERE {column} = %s AND shareable <> %s"  # noqa: S608 - names of ours
        await connection.execute(statement.encode(), (shareable, document, shareable))


async def page(connection: Connection, document: int, number: int) -> list[Part]:
    """The parts of a page in their order; none where the document has no such page."""
    cursor = await connection.execute(
        "SELECT id, page, heading, content, visibility FROM passages WHERE document_id = %s AND page = %s ORDER BY id",
        (document, number),
    )
    return [Part(**row) for row in await cursor.fetchall()]
