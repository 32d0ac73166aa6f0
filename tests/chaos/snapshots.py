"""What is compared after a run: what people sent and saw, and what the database holds. Plain values, so that tests can make them up.

A token such as `P12-7` stands in every message that somebody sends and in the answer to it; it is all that the auditor reads of a text.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field

TOKEN = re.compile(r"\b[PQE]\d+-\d+\b")
"""People of the load are P, those who speak at a named point Q, those who have themselves erased E."""


def tokens(text: str) -> list[str]:
    """The tokens in a text, in order."""
    return TOKEN.findall(text)


def person_of(token: str) -> str:
    """Whose token it is."""
    return token.partition("-")[0]


@dataclass(frozen=True, slots=True)
class Said:
    """A message that somebody sent; `where` is the place that its answer belongs in, as the bot's `places.external_id` has it.

    `at` is on the monotonic clock. `accepted`: the platform handed it over, or still may; one that it gave up is nobody's fault.
    `handed`: when the platform knew that it was taken, on the same clock. One that was sent before that may be taken before it: two
    connections keep no order. None: the platform keeps the order itself.
    """

    token: str
    where: str
    id: str
    at: float
    accepted: bool = True
    handed: float | None = None


@dataclass(frozen=True, slots=True)
class Shown:
    """A message of the bot as its platform shows it, with the `at` at which it was posted."""

    id: str
    where: str
    text: str
    at: float


@dataclass(frozen=True, slots=True)
class Event:
    """A row of the inbox. `message_id` is the platform's."""

    id: int
    agent: int
    seq: int
    where: str
    status: int
    message_id: str
    turn: int | None


@dataclass(frozen=True, slots=True)
class Row:
    """A row of recall storage."""

    id: int
    agent: int
    where: str
    conversation: int
    position: int
    role: str
    kind: str
    content: str
    event: int | None
    turn: int | None


@dataclass(frozen=True, slots=True)
class Reply:
    """A row of the outbox."""

    id: int
    turn: int
    where: str
    state: str
    body: str
    platform_id: str | None


@dataclass(frozen=True, slots=True)
class Memory:
    """An entry of the working context or a passage of archival storage (`table`). `sources`: how many messages it is traced to."""

    table: str
    id: int
    agent: int
    content: str
    turn: int | None
    sources: int


@dataclass(frozen=True, slots=True)
class Change:
    """A row of the memory log."""

    id: int
    agent: int
    actor: str
    action: str
    target: str
    target_id: int | None
    turn: int | None


@dataclass(frozen=True, slots=True)
class Kept:
    """What the database and Redis hold once all is at rest, and what is left of the processes after their end.

    `leftovers` is whatever should not be there by its name, with a line for each: jobs, flags, turns that run, leases, processes ...
    """

    events: tuple[Event, ...] = ()
    rows: tuple[Row, ...] = ()
    replies: tuple[Reply, ...] = ()
    memories: tuple[Memory, ...] = ()
    changes: tuple[Change, ...] = ()
    leftovers: Mapping[str, tuple[str, ...]] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Seen:
    """What people sent and what they were shown; `typing`: where a sign that the bot is at work still stands."""

    said: tuple[Said, ...] = ()
    shown: tuple[Shown, ...] = ()
    typing: tuple[str, ...] = ()
    erased: frozenset[str] = frozenset()
