"""What a turn knows of its agent: the conversation, the FIFO queue, the visible working context and the totals of storage.

Read from the cache under every version it stands on, else from Postgres; kept up by the turn itself and put back at its end.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime, tzinfo
from typing import Any
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from memory import messages, working_context
from memory.cache import Cache
from memory.db import Connection, Database
from memory.messages import Message
from memory.places import Place, Visibility, strictest
from memory.working_context import Entry

FORMAT = 3
"""Raised when the cached form changes, so that an upgraded process never reads an older one's entries."""


@dataclass(frozen=True, slots=True)
class AgentState:
    """One agent in one conversation, at one version."""

    agent: int
    conversation: int
    place: Place
    zone: str
    summary: str
    summary_visibility: Visibility
    summary_tail: str
    pending_from: int | None
    fifo_start: int
    warned: bool
    queue: tuple[Message, ...]
    entries: tuple[Entry, ...]
    recall_total: int
    archival_total: int
    tags: tuple[str, ...]
    since: datetime | None
    paused: bool = False
    """Nothing new is remembered: what is said stays in the running conversation alone."""
    noticed: bool = True
    """The notice of the first contact went out."""
    hosts: str = ""
    """Where the person was last told that their words go."""
    locale: str = ""
    entries_shown: int | None = None
    """The newest entry (its id) that the prompt's beginning shows; the status tells of later ones. None: not said yet."""

    @property
    def later_entries(self) -> tuple[Entry, ...]:
        """The entries that came since the prompt's beginning was last written."""
        return () if self.entries_shown is None else tuple(e for e in self.entries if e.id > self.entries_shown)

    @property
    def unkept(self) -> bool:
        """Nothing said or stored now is kept: memory is paused, or was when this turn began, whose words are still before its eyes."""
        return self.paused or any(message.passing for message in self.queue)

    @property
    def shown(self) -> AgentState:
        """As models see it: without the words that a content filter refuses."""
        return replace(
            self, queue=tuple(m.shown for m in self.queue), entries=tuple(entry for entry in self.entries if not entry.withheld)
        )

    @property
    def tz(self) -> tzinfo:
        """The person's time zone; UTC until it is known or when its name is not."""
        return zone_of(self.zone)

    @property
    def person(self) -> str:
        """What the person is called here, as they wrote last; empty where nothing of theirs is in the queue."""
        own = (message.author_name for message in reversed(self.queue) if message.role == "user" and message.kind == "message")
        return next((name for name in own if name), "")

    @property
    def slot0(self) -> str:
        """What stands in slot 0 of the queue: the recursive summary, and what could not be summarised yet."""
        return "\n".join(part for part in (self.summary, self.summary_tail) if part)

    @property
    def visibility(self) -> Visibility:
        """How widely something made from this context may be used: as the strictest of all it was made from, and of the place now."""
        parts: list[Visibility] = [self.place.kind, *(m.visibility for m in self.queue), *(e.visibility for e in self.entries)]
        return strictest([*parts, self.summary_visibility] if self.slot0 else parts)

    def with_messages(self, added: Sequence[Message]) -> AgentState:
        """The state after messages were appended."""
        said = 0 if self.unkept else sum(message.kind in messages.SEARCHABLE for message in added)
        return replace(self, queue=(*self.queue, *added), recall_total=self.recall_total + said)

    def to_json(self) -> dict[str, Any]:
        """Plain values, for the cache."""
        return {
            "agent": self.agent,
            "conversation": self.conversation,
            "zone": self.zone,
            "summary": self.summary,
            "summary_visibility": self.summary_visibility,
            "summary_tail": self.summary_tail,
            "pending_from": self.pending_from,
            "fifo_start": self.fifo_start,
            "warned": self.warned,
            "recall_total": self.recall_total,
            "archival_total": self.archival_total,
            "tags": list(self.tags),
            "paused": self.paused,
            "noticed": self.noticed,
            "hosts": self.hosts,
            "locale": self.locale,
            "entries_shown": self.entries_shown,
            "since": self.since and self.since.isoformat(),
            "queue": [m.to_json() for m in self.queue],
            "entries": [e.to_json() for e in self.entries],
            "place": {name: getattr(self.place, name) for name in Place.__slots__},
        }

    @staticmethod
    def from_json(values: Mapping[str, Any]) -> AgentState:
        """The inverse of `to_json`."""
        return AgentState(
            **{
                **values,
                "place": Place(**values["place"]),
                "tags": tuple(values["tags"]),
                "since": datetime.fromisoformat(values["since"]) if values["since"] else None,
                "queue": tuple(Message.from_json(m) for m in values["queue"]),
                "entries": tuple(Entry.from_json(e) for e in values["entries"]),
            }
        )


def zone_of(name: str) -> tzinfo:
    """An IANA zone by name, or UTC where the name is empty or unknown."""
    try:
        return ZoneInfo(name) if name else UTC
    except (ZoneInfoNotFoundError, ValueError, OSError):
        return UTC


def key(agent: int, conversation: int) -> str:
    """The cache key: one state a conversation, so that no older one with words that are forgotten stays behind."""
    return f"keepsake:{agent}:{conversation}"


async def load(
    db: Database, cache: Cache, *, agent: int, conversation: int, place: int, version: int, policy_version: int
) -> AgentState:
    """The state at a version; the caller read the versions and refuses to commit when they have moved on."""
    cached = await cache.get(key(agent, conversation))
    if cached is not None and cached.get("stands_on") == [version, policy_version, FORMAT]:
        return AgentState.from_json(cached["state"])
    async with db.agent(agent, place) as connection:
        return await _read(connection, agent, conversation)


async def store(cache: Cache, state: AgentState, version: int, policy_version: int) -> None:
    """Put the state in the cache for the agent's next turn, with every version that it depends on, in the place of the one before."""
    await cache.put(
        key(state.agent, state.conversation), {"stands_on": [version, policy_version, FORMAT], "state": state.to_json()}
    )


async def _read(connection: Connection, agent: int, conversation: int) -> AgentState:
    cursor = await connection.execute(
        """SELECT c.summary, c.summary_visibility, c.summary_tail, c.pending_from, c.fifo_start, c.warned, coalesce(a.timezone, '') AS zone,
             a.paused, a.noticed_at IS NOT NULL AS noticed, a.noticed_hosts AS hosts, coalesce(a.locale, '') AS locale,
             c.entries_shown, p.id, p.platform, p.realm, p.workspace, p.external_id, p.kind, p.name,
             (SELECT count(*) FROM messages WHERE searchable) AS recall_total,
             (SELECT min(created_at) FROM messages WHERE searchable) AS since,
             (SELECT count(*) FROM passages) AS archival_total,
             (SELECT coalesce(array_agg(tag ORDER BY uses DESC, tag), '{}') FROM (
                SELECT tag, count(*) AS uses FROM passages, unnest(tags) AS tag GROUP BY tag ORDER BY uses DESC, tag LIMIT 30) t) AS tags
           FROM conversations c JOIN places p ON p.id = c.place_id JOIN agents a ON a.id = c.agent_id WHERE c.id = %s""",
        (conversation,),
    )
    row = await cursor.fetchone()
    if row is None:
        raise LookupError(f"conversation {conversation} is gone")
    queue = await messages.window(connection, conversation, row["fifo_start"])
    return AgentState(
        agent=agent,
        conversation=conversation,
        place=Place(row["id"], row["platform"], row["realm"], row["workspace"], row["external_id"], row["kind"], row["name"]),
        zone=row["zone"],
        summary=row["summary"],
        summary_visibility=row["summary_visibility"],
        summary_tail=row["summary_tail"],
        pending_from=row["pending_from"],
        fifo_start=row["fifo_start"],
        warned=row["warned"],
        queue=tuple(queue),
        entries=tuple(await working_context.entries(connection)),
        recall_total=row["recall_total"],
        archival_total=row["archival_total"],
        tags=tuple(row["tags"]),
        since=row["since"],
        paused=row["paused"],
        noticed=row["noticed"],
        hosts=row["hosts"],
        locale=row["locale"],
        entries_shown=row["entries_shown"],
    )
