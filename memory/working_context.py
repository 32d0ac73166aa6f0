"""Working context: the small store the model always sees, entries in sections with limits.

Deciding is pure (`find`, `room`, `render`); the functions that act are thin. Everything sees only the entries usable in the place of
the turn, so a full section, a refused duplicate or a list of candidates tells nothing of another place.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Literal, get_args

from memory.db import Connection
from memory.places import Visibility

Section = Literal["persona", "profile", "preferences", "key_facts", "goals", "task_notes"]
SECTIONS: tuple[Section, ...] = get_args(Section)
ENTRY_LIMIT = 500
"""Characters of one entry; longer things belong in archival storage."""
SECTION_LIMITS: Mapping[Section, int] = {
    "persona": 1000,
    "profile": 2000,
    "preferences": 2000,
    "key_facts": 3000,
    "goals": 1500,
    "task_notes": 2000,
}
"""Characters of all entries of a section together."""
TASK_NOTES = 10
"""The most task notes; the oldest moves to archival storage."""


@dataclass(frozen=True, slots=True)
class Entry:
    """One entry as the turn's place may see it; `visibility` is how widely its origin could be read when it was written."""

    id: int
    section: Section
    content: str
    visibility: Visibility
    updated_at: datetime
    withheld: bool = False
    """An endpoint's content filter refuses it: no model is shown it any more, until it is corrected."""

    def to_json(self) -> dict[str, Any]:
        """Plain values, for the cache."""
        return {**{name: getattr(self, name) for name in self.__dataclass_fields__}, "updated_at": self.updated_at.isoformat()}

    @staticmethod
    def from_json(values: Mapping[str, Any]) -> Entry:
        """The inverse of `to_json`."""
        return Entry(**{**values, "updated_at": datetime.fromisoformat(values["updated_at"])})


_COLUMNS = "id, section, content, CASE WHEN shareable THEN 'public' ELSE visibility END AS visibility, updated_at, withheld"


async def entries(connection: Connection) -> list[Entry]:
    """All entries usable in the place of the transaction, oldest first."""
    cursor = await connection.execute(f"SELECT {_COLUMNS} FROM working_context ORDER BY id")  # noqa: S608
    return [Entry(**row) for row in await cursor.fetchall()]


def find(existing: Sequence[Entry], text: str) -> list[Entry]:
    """The entries that a model means by `text`: the one equal to it, else all that contain it (case and spaces do not count)."""
    wanted = plain(text)
    equal = [entry for entry in existing if plain(entry.content) == wanted]
    return equal or [entry for entry in existing if wanted and wanted in plain(entry.content)]


def plain(text: str) -> str:
    """Text for comparing: casefolded, one space between words, no full stop at the end."""
    return " ".join(text.casefold().split()).rstrip(".")


def room(existing: Sequence[Entry], section: Section, *, without: int | None = None) -> int:
    """How many characters a section can still take, leaving out the entry `without` (one that is being replaced)."""
    used = sum(len(entry.content) for entry in existing if entry.section == section and entry.id != without)
    return SECTION_LIMITS[section] - used


def render(existing: Sequence[Entry], persona: str, person: str, count: Callable[[str], int], limit: int) -> str:
    """Who the bot is, and the working context as the prompt shows it: what it knows about `person`.

    At most `limit` tokens (the newest entries of each section stay, in order).

    The direct message sees the entries of every place, each of which kept the sections' limits for itself only; so the limit binds here too.
    """
    kept = list(existing)
    while kept and count(text := _render(kept, persona, person, len(existing) - len(kept))) > limit:
        longest = max(SECTIONS, key=lambda section: sum(len(e.content) for e in kept if e.section == section))
        oldest = min((e for e in kept if e.section == longest), key=lambda e: (e.updated_at, e.id))
        # Many at once: a context far over its limit must not cost a count per entry.
        surplus = max(1, len(kept) // 20)
        drop = {e.id for e in sorted((e for e in kept if e.section == longest), key=lambda e: (e.updated_at, e.id))[:surplus]} | {
            oldest.id
        }
        kept = [e for e in kept if e.id not in drop]
    return text if kept else _render([], persona, person, len(existing))


_IN_NAMES = re.compile(r"[^\w .'’-]+")
NAME_LIMIT = 40
"""Characters of a person's name in a heading."""


def called(person: str) -> str:
    """A name for a heading of the prompt: nothing in it can be markup or a sentence."""
    name = one_line(_IN_NAMES.sub(" ", person))[:NAME_LIMIT].strip()
    return name if name and name.casefold() != "you" else "the person"


def _render(kept: Sequence[Entry], persona: str, person: str, hidden: int) -> str:
    name = called(person)
    lines = [
        "# Who you are (set by the operator; you cannot change it)",
        persona.strip(),
        "",
        f"# Working context: what you know about {name}",
    ]
    for section in SECTIONS:
        own = [entry.content for entry in kept if entry.section == section]
        # Under a heading of their own: what came of a conversation must not read as if the operator had set it.
        heading = f"## persona (how you adjust to {name})" if section == "persona" else f"## {section}"
        lines += [heading, *(f"- {one_line(content)}" for content in own)] if own else []
    if not kept:
        lines.append("Nothing yet.")
    if hidden:
        lines.append(f"({hidden} older entries are not shown for lack of room.)")
    return "\n".join(lines)


_TURNING = re.compile("[\u202a-\u202e\u2066-\u2069]")
"""The marks that turn the direction of what follows them, also behind the end of the text."""


def one_line(text: str) -> str:
    """Text that cannot pretend to be a line of its own, nor turn the rest of its line round."""
    return " ".join(_TURNING.sub("", text).split())


async def insert(
    connection: Connection,
    *,
    agent: int,
    place: int,
    visibility: Visibility,
    section: Section,
    content: str,
    turn: int | None,
    at: datetime,
    author: str = "",
) -> Entry:
    """Store a new entry. `author`: whose words it repeats, where they are somebody else's (platform:realm:user)."""
    cursor = await connection.execute(
        f"""INSERT INTO working_context (agent_id, place_id, visibility, section, content, turn_id, created_at, updated_at, author_id)
            VALUES (%s, %s, %s, %s, %s, %s, %s, %s, %s) RETURNING {_COLUMNS}""",  # noqa: S608
        (agent, place, visibility, section, content, turn, at, at, author),
    )
    row = await cursor.fetchone()
    assert row is not None
    return Entry(**row)


async def update(
    connection: Connection,
    entry: int,
    *,
    place: int,
    visibility: Visibility,
    content: str,
    turn: int | None,
    at: datetime,
    author: str = "",
) -> Entry:
    """Rewrite an entry; it now has the place of the turn that rewrote it, and is no longer marked shareable."""
    cursor = await connection.execute(
        f"""UPDATE working_context SET content = %s, place_id = %s, visibility = %s, shareable = false, turn_id = %s, updated_at = %s, author_id = %s
            WHERE id = %s RETURNING {_COLUMNS}""",  # noqa: S608
        (content, place, visibility, turn, at, author, entry),
    )
    row = await cursor.fetchone()
    assert row is not None
    return Entry(**row)


async def delete(connection: Connection, entry: int) -> None:
    """Remove an entry."""
    await connection.execute("DELETE FROM working_context WHERE id = %s", (entry,))
