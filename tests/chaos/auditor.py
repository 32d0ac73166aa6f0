"""The auditor: compares what people sent and saw with what the database holds, and says what is wrong, message by message. Pure.

Of every accepted message: it is in the inbox once and done; its words are in recall storage once; it was answered once in its place, or
has the one apology; a person's messages in one place were taken in, kept and answered in the order in which they were sent. Every change
of memory has the turn that made it and the messages that it came from. Nothing is left over.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, TypeVar

from adapters.catalogue import say
from tests.chaos.snapshots import Event, Kept, Reply, Row, Said, Seen, Shown, person_of, tokens

ANSWER = "re: "
"""How every answer of the model begins."""
APOLOGY, WAITING = say("turn.apology", ""), say("turn.waiting", "")
LINES = frozenset(say(f"turn.{name}", "") for name in ("waiting", "away", "limited", "refused"))
"""What the bot may say of its own beside answers and the apology."""
DONE, DEAD = 1, 2
ENDED = frozenset({"sent", "failed", "withdrawn"})
T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Finding:
    """Something wrong. `subject` is a token, or what was left over."""

    kind: str
    subject: str
    detail: str = ""

    def __str__(self) -> str:
        return f"{self.kind}: {self.subject}{f' ({self.detail})' if self.detail else ''}"


def audit(seen: Seen, kept: Kept) -> list[Finding]:
    """Everything that is wrong; empty when all is well."""
    return list(_Audit(seen, kept).findings())


def tally(findings: Iterable[Finding]) -> dict[str, int]:
    """How many of each kind."""
    return dict(Counter(finding.kind for finding in findings))


class _Audit:
    def __init__(self, seen: Seen, kept: Kept) -> None:
        self._seen, self._kept = seen, kept
        self._events = _grouped(kept.events, lambda event: (event.where, event.message_id))
        self._rows = _grouped((row for row in kept.rows if row.role == "user" and row.kind == "message"), lambda row: row.event)
        self._replies = _grouped(kept.replies, lambda reply: reply.turn)
        self._shown = {(shown.where, shown.id): shown for shown in seen.shown}

    def findings(self) -> Iterator[Finding]:
        for said in self._seen.said:
            if person_of(said.token) not in self._seen.erased:
                yield from self._message(said)
        yield from self._order()
        yield from self._surplus()
        yield from self._memory()
        yield from self._erased()
        yield from self._outbox()
        yield from self._calls()
        for where in self._seen.typing:
            yield Finding("typing left", where)
        for name, left in self._kept.leftovers.items():
            yield from (Finding(f"left over: {name}", one) for one in left)

    # A message ---------------------------------------------------------------------------------------

    def _message(self, said: Said) -> Iterator[Finding]:
        events = self._events.get((said.where, said.id), [])
        if not events:
            if said.accepted or self._answers[said.token]:
                yield Finding("lost", said.token, "never in the inbox")
            return
        if len(events) > 1:
            yield Finding("doubled", said.token, "twice in the inbox")
        yield from self._words(said, events[0])
        yield from self._answer(said, events[0])

    def _words(self, said: Said, event: Event) -> Iterator[Finding]:
        rows = self._rows.get(event.id, [])
        if not rows:
            yield Finding("words lost", said.token, f"not in recall storage, event {event.id} is {_named(event.status)}")
        elif len(rows) > 1:
            yield Finding("words doubled", said.token, f"{len(rows)} rows")
        for row in rows:
            if said.token not in tokens(row.content):
                yield Finding("words lost", said.token, f"row {row.id} holds something else")
            elif row.where != said.where:
                yield Finding("wrong place", said.token, f"kept in {row.where} instead of {said.where}")

    def _answer(self, said: Said, event: Event) -> Iterator[Finding]:
        answers, apologies = self._answers[said.token], self._apologies(event)
        if event.status not in (DONE, DEAD):
            yield Finding("unfinished", said.token, f"event {event.id} is {_named(event.status)}")
        if not answers and not apologies:
            yield Finding("lost", said.token, f"no answer, event {event.id} is {_named(event.status)}, turn {event.turn}")
        if len(answers) > 1 or len(apologies) > 1:
            yield Finding("doubled", said.token, f"{len(answers)} answers, {len(apologies)} apologies")
        for shown in answers:
            if shown.where != said.where:
                yield Finding("wrong place", said.token, f"answered in {shown.where} instead of {said.where}")
            elif shown.at < said.at:
                yield Finding("out of order", said.token, "answered before it was sent")

    def _apologies(self, event: Event) -> list[Shown]:
        """The apologies that the event's turn showed."""
        replies = self._replies.get(event.turn, []) if event.turn is not None else []
        said = [self._shown.get((reply.where, reply.platform_id or "")) for reply in replies if reply.body == APOLOGY]
        return [shown for shown in said if shown is not None]

    @cached_property
    def _answers(self) -> defaultdict[str, list[Shown]]:
        """Which messages of the bot answer a token, a message as often as it names it."""
        found: defaultdict[str, list[Shown]] = defaultdict(list)
        for shown in self._seen.shown:
            if shown.text.startswith(ANSWER):
                for token in tokens(shown.text):
                    found[token].append(shown)
        return found

    # Order -------------------------------------------------------------------------------------------

    def _order(self) -> Iterator[Finding]:
        places = _grouped(self._seen.said, lambda said: (person_of(said.token), said.where))
        for said in places.values():
            said.sort(key=lambda one: one.at)
            yield from self._ordered(said, "taken in", self._taken)
            yield from self._ordered(said, "kept", self._position)
            yield from self._ordered(said, "answered", self._answered)

    def _ordered(self, said: Sequence[Said], what: str, of: Callable[[Said], Any]) -> Iterator[Finding]:
        known = [(one, order) for one in said if (order := of(one)) is not None]
        for (earlier, first), (later, second) in zip(known, known[1:], strict=False):
            handed = earlier.handed is None or earlier.handed <= later.at
            if second < first and (handed or (what != "taken in" and self._together(earlier, later))):
                yield Finding("out of order", later.token, f"{what} before {earlier.token}")

    def _together(self, one: Said, other: Said) -> bool:
        """Whether one turn took both: then their order is the platform's, however they came in."""
        first, second = (self._events.get((said.where, said.id), []) for said in (one, other))
        return bool(first and second) and first[0].turn is not None and first[0].turn == second[0].turn

    def _taken(self, said: Said) -> int | None:
        events = self._events.get((said.where, said.id), [])
        return events[0].seq if events else None

    def _position(self, said: Said) -> int | None:
        events = self._events.get((said.where, said.id), [])
        rows = self._rows.get(events[0].id, []) if events else []
        return rows[0].position if rows else None

    def _answered(self, said: Said) -> tuple[float, int] | None:
        """When, and within one message as the how manyth."""
        shown = min(self._answers[said.token], key=lambda one: one.at, default=None)
        return None if shown is None else (shown.at, tokens(shown.text).index(said.token))

    # What nobody asked for ---------------------------------------------------------------------------

    def _surplus(self) -> Iterator[Finding]:
        sent = {said.token for said in self._seen.said}
        recorded = {(reply.where, reply.platform_id) for reply in self._kept.replies if reply.state == "sent"}
        by_place = {said.where: person_of(said.token) for said in self._seen.said}
        for shown in self._seen.shown:
            unknown = [token for token in tokens(shown.text) if token not in sent] if shown.text.startswith(ANSWER) else []
            for token in unknown:
                yield Finding("from nowhere", token, "answered, but never sent")
            if not shown.text.startswith(ANSWER) and shown.text not in LINES | {APOLOGY}:
                yield Finding("surplus", shown.where, shown.text[:60])
            erased = {person_of(token) for token in tokens(shown.text)} | {by_place.get(shown.where, "")}
            if (shown.where, shown.id) not in recorded and not erased & self._seen.erased:
                yield Finding("unrecorded", shown.where, f"{shown.text[:60]} is not in the outbox as sent")

    # Memory ------------------------------------------------------------------------------------------

    def _memory(self) -> Iterator[Finding]:
        log = _grouped(self._kept.changes, lambda change: (change.target, change.target_id))
        for memory in self._kept.memories:
            named = f"{memory.table} {memory.id}"
            changes = log.get((memory.table, memory.id), [])
            if not changes:
                yield Finding("memory unlogged", named, memory.content[:60])
            elif memory.turn is not None and memory.turn not in {change.turn for change in changes}:
                yield Finding("memory unattributed", named, f"turn {memory.turn} is not in its log")
            if memory.turn is not None and not memory.sources:
                yield Finding("memory unsourced", named, memory.content[:60])
        for change in self._kept.changes:
            if change.actor == "agent" and change.turn is None:
                yield Finding("memory unattributed", f"{change.target} {change.target_id}", f"change {change.id} names no turn")
        written = Counter(token for memory in self._kept.memories for token in tokens(memory.content))
        for token, count in written.items():
            if count > 1:
                yield Finding("memory doubled", token, f"{count} memories")

    def _erased(self) -> Iterator[Finding]:
        texts = [
            *((row.content, "recall storage") for row in self._kept.rows),
            *((memory.content, memory.table) for memory in self._kept.memories),
            *((reply.body, "outbox") for reply in self._kept.replies),
        ]
        for text, where in texts:
            for token in tokens(text):
                if person_of(token) in self._seen.erased:
                    yield Finding("not erased", token, where)

    # Rows --------------------------------------------------------------------------------------------

    def _outbox(self) -> Iterator[Finding]:
        for reply in self._kept.replies:
            if reply.state not in ENDED:
                yield Finding("unsent", f"outbox {reply.id}", reply.state)
            elif reply.state == "sent" and (reply.where, reply.platform_id) not in self._shown:
                yield Finding("not shown", f"outbox {reply.id}", f"is sent as {reply.platform_id}, and nobody sees it")

    def _calls(self) -> Iterator[Finding]:
        """No call without its result, no result without its call, no hole in a conversation."""
        for conversation, rows in _grouped(self._kept.rows, lambda row: row.conversation).items():
            positions = sorted(row.position for row in rows)
            if len(set(positions)) < len(positions):
                yield Finding("rows doubled", f"conversation {conversation}", "two rows at one position")
        for agent, events in _grouped(self._kept.events, lambda event: event.agent).items():
            seqs = sorted(event.seq for event in events)
            if seqs != list(range(1, len(seqs) + 1)):
                yield Finding("inbox has a hole", f"agent {agent}", f"{len(seqs)} events, the last one is {seqs[-1]}")


def _grouped(things: Iterable[T], key: Callable[[T], Any]) -> dict[Any, list[T]]:
    groups: defaultdict[Any, list[T]] = defaultdict(list)
    for thing in things:
        groups[key(thing)].append(thing)
    return dict(groups)


def _named(status: int) -> str:
    names: Mapping[int, str] = {0: "waiting", DONE: "done", DEAD: "a dead letter", 3: "cancelled"}
    return names.get(status, str(status))


__all__ = ["Finding", "Reply", "Row", "audit", "tally"]
