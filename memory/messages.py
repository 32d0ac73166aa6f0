"""Messages: the rows of recall storage, of which the FIFO queue is a window."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from datetime import datetime
from typing import Any, Literal

from memory.db import Connection
from memory.places import Visibility

Role = Literal["user", "assistant", "tool"]
Kind = Literal["message", "quote", "event", "monologue", "call", "result", "alert"]
# What was said, by or to the person; functions' results and the agent's own notes would only find themselves again.
SEARCHABLE: frozenset[Kind] = frozenset({"message", "quote"})
WITHHELD = "(withheld: a content filter refuses these words)"
Asks = Literal["leave", "zone", "memory", "timer"]
"""What a question of the bot's own is about: leave to write first, the time zone, something sensitive, a reminder that the agent thought of."""


@dataclass(frozen=True, slots=True)
class Draft:
    """A message that is not stored yet."""

    role: Role
    kind: Kind
    content: str
    author_id: str = ""
    author_name: str = ""
    calls: tuple[Mapping[str, Any], ...] = ()
    call_id: str | None = None
    platform_id: str | None = None
    event_id: int | None = None
    asks: Asks | None = None
    said_to: str = ""
    """Of a quote of the bot's own words: to whom (platform:realm:user) it said them."""


@dataclass(frozen=True, slots=True)
class Message:
    """A stored message. `calls` are `{"id", "name", "arguments"}` as the model gave them; `position` orders a conversation.

    A call also has `vendor`, what its endpoint wants back with it, as long as the message is in the queue.
    """

    id: int
    position: int
    role: Role
    kind: Kind
    content: str
    author_id: str
    author_name: str
    calls: tuple[Mapping[str, Any], ...]
    call_id: str | None
    visibility: Visibility
    created_at: datetime
    place: str = field(default="")
    passing: bool = False
    """Said while memory was paused: for the running conversation alone."""
    withheld: bool = False
    """An endpoint's content filter refuses it: no model is shown it any more."""

    @property
    def shown(self) -> Message:
        """As models see it: of what is withheld only that it is."""
        if not self.withheld:
            return self
        calls = tuple({**call, "arguments": "{}"} for call in self.calls)
        return replace(self, content=WITHHELD if self.content else "", calls=calls)

    def to_json(self) -> dict[str, Any]:
        """Plain values, for the cache."""
        # Not `asdict`, which copies deeply: for a long queue that keeps the loop from sending the answer for many milliseconds.
        return {**{name: getattr(self, name) for name in _FIELDS}, "created_at": self.created_at.isoformat()}

    @staticmethod
    def from_json(values: Mapping[str, Any]) -> Message:
        """The inverse of `to_json`."""
        return Message(**{**values, "created_at": datetime.fromisoformat(values["created_at"]), "calls": tuple(values["calls"])})


_FIELDS = tuple(Message.__dataclass_fields__)
COLUMNS = (
    "id, position, role, kind, content, author_id, author_name, coalesce(calls, '[]') AS calls, call_id, visibility, created_at, passing,"
    " withheld"
)

_APPEND = f"""
WITH c AS (
  UPDATE conversations SET next_position = next_position + %(n)s WHERE id = %(conversation)s
  RETURNING id, agent_id, place_id, next_position - %(n)s AS first)
INSERT INTO messages (agent_id, conversation_id, place_id, visibility, position, role, kind, author_id, author_name, content, calls,
                      call_id, platform_id, event_id, asks, said_to, turn_id, searchable, passing, created_at)
SELECT c.agent_id, c.id, c.place_id, %(visibility)s, c.first + d.ord, d.role, d.kind, d.author_id, d.author_name, d.content, d.calls,
       d.call_id, d.platform_id, d.event_id, d.asks, d.said_to, %(turn)s, d.searchable, %(passing)s, %(at)s
FROM c, jsonb_to_recordset(%(drafts)s) AS d(ord bigint, role text, kind text, author_id text, author_name text, content text, calls jsonb,
                                            call_id text, platform_id text, event_id bigint, asks text, said_to text, searchable boolean)
ORDER BY d.ord
RETURNING {COLUMNS}
"""  # noqa: S608


def from_row(row: Mapping[str, Any], place: str = "") -> Message:
    """A message from a row with `COLUMNS`."""
    return Message(**{**row, "calls": tuple(row["calls"]), "place": place})


async def append(
    connection: Connection,
    conversation: int,
    drafts: Sequence[Draft],
    *,
    visibility: Visibility,
    at: datetime,
    turn: int | None,
    passing: bool = False,
) -> list[Message]:
    """Store messages at the end of a conversation, in order; called by the queue manager and the importers of benchmarks.

    `at` is when they happened (aware). `passing`: memory is paused; they are neither searched nor embedded, and go when it
    resumes. Raises psycopg.Error where a text was not cleaned before (`memory.sanitise`).
    """
    if not drafts:
        return []
    rows = [
        {
            **asdict(draft),
            "ord": number,
            "calls": list(draft.calls) or None,
            "searchable": draft.kind in SEARCHABLE and not passing,
        }
        for number, draft in enumerate(drafts)
    ]
    cursor = await connection.execute(
        _APPEND,
        {
            "n": len(rows),
            "conversation": conversation,
            "visibility": visibility,
            "turn": turn,
            "passing": passing,
            "at": at,
            "drafts": json.dumps(rows),
        },
    )
    return sorted((from_row(row) for row in await cursor.fetchall()), key=lambda message: message.position)


async def window(connection: Connection, conversation: int, start: int) -> list[Message]:
    """The FIFO queue: every message of a conversation from position `start` on, oldest first."""
    cursor = await connection.execute(
        f"SELECT {COLUMNS} FROM messages WHERE conversation_id = %s AND position >= %s ORDER BY position",  # noqa: S608
        (conversation, start),
    )
    return [from_row(row) for row in await cursor.fetchall()]


async def drop_vendor_fields(connection: Connection, conversation: int, start: int) -> None:
    """Drop what endpoints wanted back with their calls before position `start`: these messages are sent to no model any more."""
    await connection.execute(
        """UPDATE messages SET calls = (SELECT jsonb_agg(c - 'vendor' ORDER BY n) FROM jsonb_array_elements(calls) WITH ORDINALITY AS e(c, n))
           WHERE conversation_id = %s AND position < %s AND calls @? '$[*].vendor'""",
        (conversation, start),
    )
