"""Archival storage: long-term facts and documents, with tags. What says the same in the same place is kept
once.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime
from difflib import SequenceMatcher

from memory.db import Connection, value
from memory.embedding import QueryVector
from memory.places import Visibility
from memory.sanitise import clean
from memory.search import Page, Query, search_passages

CANDIDATES = 5
"""Rows that share the most words with a new one and are compared with it."""
MAX_TAGS = 20
MAX_TAG = 60
"""Characters of a tag."""

# Words that may come and go without changing what is said; a negation, tense or preposition is never here.
_FILLERS = frozenset({"a", "an", "the", "that", "also", "just", "really", "very", "quite", "please"})
_NUMBERS = re.compile(r"[-+−]?\d+(?:[.,:/-]\d+)*%?")
_WORDS = re.compile(r"[^\W_]+(?:['’][^\W_]+)*")


@dataclass(frozen=True, slots=True)
class Stored:
    """Where a text went. With `merged` it was there already: `id` is the older row, whose tags were
    `tags_before`.
    """

    id: int
    merged: bool
    tags_before: tuple[str, ...] = ()


def same_memory(a: str, b: str) -> bool:
    """Whether two texts say the same, so that one of them is enough.

    They do when they are alike but for case, spacing, punctuation, British or American spelling, an s at the
    end of a lower-case word, and filler words. Everything else keeps them apart: a number, a name, a
    negation, the order of words, a symbol, a question mark.
    """
    a, b = unicodedata.normalize("NFKC", a), unicodedata.normalize("NFKC", b)
    if _NUMBERS.findall(a) != _NUMBERS.findall(b) or _signs(a) != _signs(b):
        return False
    ours, theirs = _WORDS.findall(a.replace("’", "'")), _WORDS.findall(b.replace("’", "'"))
    if not ours or not theirs:
        return a.split() == b.split()
    matcher = SequenceMatcher(None, [_key(word) for word in ours], [_key(word) for word in theirs], autojunk=False)
    changes = matcher.get_opcodes()
    return all(tag == "equal" or _harmless(ours[i:j], theirs[k:m]) for tag, i, j, k, m in changes)


def _signs(text: str) -> list[str]:
    """What is neither word nor plain punctuation and may carry the meaning: currency, `C++`, emoji, a
    question mark.
    """
    return [c for c in text if unicodedata.category(c)[0] == "S" or c in "#%&@?¿؟/"]


def _key(word: str) -> str:
    folded = word.casefold()
    return re.sub(r"([a-z]{2})our(?=s?$|ed$|ite)", r"\1or", folded)  # favourite, colours


def _harmless(ours: Sequence[str], theirs: Sequence[str]) -> bool:
    left = [word for word in ours if word.casefold() not in _FILLERS]
    right = [word for word in theirs if word.casefold() not in _FILLERS]
    return len(left) == len(right) and all(map(_inflected, left, right))


def _inflected(a: str, b: str) -> bool:
    if not (a.islower() and b.islower()):
        return False
    shorter, longer = sorted((_key(a), _key(b)), key=len)
    return shorter == longer or (len(shorter) >= 4 and longer in (shorter + "s", shorter + "es") and not shorter.endswith("s"))


def clean_tags(tags: Iterable[str]) -> tuple[str, ...]:
    """Tags in the form they are stored in: lower case, one line, no doubles, at most 20 of 60 characters."""
    made = (" ".join(clean(tag).casefold().split())[:MAX_TAG].strip() for tag in tags)
    return tuple(dict.fromkeys(tag for tag in made if tag))[:MAX_TAGS]


async def search(connection: Connection, query: Query, vector: QueryVector | None = None) -> Page:
    """A page of the facts and documents that may be used here, best first; a blank query lists the newest."""
    return await search_passages(connection, query, vector)


async def insert(
    connection: Connection,
    *,
    agent: int,
    place: int,
    visibility: Visibility,
    content: str,
    at: datetime,
    tags: Iterable[str] = (),
    author_name: str = "",
    shareable: bool = False,
    turn: int | None = None,
    document: int | None = None,
    merge: bool = True,
    author: str = "",
) -> Stored:
    """Store a text, or merge it into one that says the same in the same place, as visible and as shareable:
    then the row gains the tags.

    Rows of another place are left apart even where they are usable here, so that a merge can neither widen
    nor take away where something may be used. Parts of documents are never merged, nor words of another `author`
    (platform:realm:user; empty: the person's or the agent's own). The caller writes sources
    and the memory log. Raises ValueError for a blank text.
    """
    content = clean(content).strip()
    if not content:
        raise ValueError("there is nothing to store: `content` is empty")
    made = clean_tags(tags)
    if merge and document is None:
        twin = await _twin(connection, content, place, visibility, shareable, author)
        if twin is not None:
            return await _join(connection, twin, made)
    row_id = await value(
        connection,
        """INSERT INTO passages (agent_id, place_id, visibility, shareable, document_id, author_name, content, tags,
             turn_id, created_at, author_id) VALUES (%s, %s, %s, %s, %s, %s, %s, %s, %s, %s, %s) RETURNING id""",
        (agent, place, visibility, shareable, document, clean(author_name), content, list(made), turn, at, author),
    )
    return Stored(int(row_id), merged=False)


async def _twin(
    connection: Connection, content: str, place: int, visibility: Visibility, shareable: bool, author: str
) -> int | None:
    page = await search_passages(connection, Query(content, page_size=CANDIDATES))
    alike = [hit.id for hit in page.hits if same_memory(hit.content, content)]
    twin = await value(
        connection,
        """SELECT id FROM passages WHERE id = ANY (%s) AND place_id = %s AND visibility = %s AND shareable = %s
             AND author_id = %s AND document_id IS NULL ORDER BY id LIMIT 1 FOR UPDATE""",
        (alike, place, visibility, shareable, author),
    )
    return None if twin is None else int(twin)


async def _join(connection: Connection, twin: int, tags: tuple[str, ...]) -> Stored:
    before = tuple(await value(connection, "SELECT tags FROM passages WHERE id = %s", (twin,)))
    joined = clean_tags((*before, *tags))
    if joined != before:
        await connection.execute("UPDATE passages SET tags = %s WHERE id = %s", (list(joined), twin))
    return Stored(twin, merged=True, tags_before=before)
