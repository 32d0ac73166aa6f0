"""The queue manager: the only writer of the FIFO queue and of recall storage. It appends, warns, flushes and summarises.

Events come in once: an event that has its messages already (a crashed turn that goes on) is not appended again.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from typing import Any, Protocol

from memory import log, messages, sources
from memory.agent_state import AgentState
from memory.db import Connection
from memory.messages import Draft, Message
from memory.places import Visibility, strictest

PRESSURE = "Memory pressure: the oldest messages are about to leave. Save what is not stored yet. Do not mention this alert."


LATER = 2000
"""Characters of entries that the status tells of; with more, the prompt's beginning is written again to show them."""
RESUMMARISED = 400
"""The most earlier messages that a summary is made of anew; what was said before them stays in recall storage."""

_EVENTS = {
    "retry": "The person asks you to answer their last message once more, in another way.",
    "join": "The person joined this place.",
    "login": "The person came online.",
}


class QueuedEvent(Protocol):
    """What the queue manager needs of an event (the engine's `Event`)."""

    @property
    def id(self) -> int: ...
    @property
    def kind(self) -> str: ...
    @property
    def payload(self) -> Mapping[str, Any]: ...
    @property
    def created_at(self) -> datetime: ...
    @property
    def visibility(self) -> Visibility: ...


def drafts_of(event: QueuedEvent) -> list[Draft]:
    """The messages an event becomes: others' quoted words each under their author, then the person's own, or a line about what happened."""
    payload = event.payload
    made = [
        Draft(
            "user",
            "quote",
            quote["text"],
            quote["author_id"],
            quote["author_name"],
            platform_id=quote.get("origin") or None,
            event_id=event.id,
            said_to=quote.get("said_to", ""),
        )
        for quote in payload.get("quotes", ())
        if quote["text"].strip()
    ]
    if event.kind == "message":
        text = payload.get("text", "")
        own = Draft(
            "user",
            "message",
            text if text.strip() else "(no text)",
            payload.get("author_id", ""),
            payload.get("author_name", ""),
            platform_id=payload.get("message_id"),
            event_id=event.id,
        )
        return [*made, own]
    return [*made, Draft("user", "event", _happened(event), event_id=event.id)]


def _happened(event: QueuedEvent) -> str:
    """What an event is in words, for the model."""
    payload = event.payload
    if event.kind == "timer":
        again = f", every {payload['every']}" if payload.get("every") else ""
        late = f", {span(payload['late'])} late because the bot was away, say so" if payload.get("late") else ""
        what = payload.get("worth") or payload.get("purpose", "")
        return f"Timer is due ({payload.get('timer', 'reminder')}{again}{late}): {what}"
    if event.kind == "upload":
        # The first line stays in the queue; the headings, which are data, have served when the exchange is over.
        named = " ".join(str(payload.get("name", "a document")).split())
        pages = f"{payload.get('pages', 1)} page{'s' * (payload.get('pages', 1) != 1)}"
        told = f"Upload finished: {named} ({pages}), now in archival storage. Say in one line what you can be asked about it."
        return "\n".join([told, *(f"Heading: {each}" for each in payload.get("headings", ()))])
    if payload.get("worth"):
        return f"{_EVENTS.get(event.kind, event.kind)} {payload['worth']}"
    return _EVENTS.get(event.kind, f"Event: {event.kind}.")


def span(seconds: int) -> str:
    """A length of time in one unit: minutes, hours or days."""
    minutes = seconds // 60
    return f"{minutes} min" if minutes < 120 else f"{minutes // 60} h" if minutes < 2880 else f"{minutes // 1440} days"


async def append_events(
    connection: Connection, state: AgentState, events: Sequence[QueuedEvent], *, turn: int, resumed: bool
) -> AgentState:
    """Append a turn's events to the queue, each with the time it happened; in a resumed turn those that are not there yet."""
    known: set[int] = set()
    if resumed:
        statement = "SELECT DISTINCT event_id FROM messages WHERE event_id = ANY(%s)"
        cursor = await connection.execute(statement, ([event.id for event in events],))
        known = {row["event_id"] for row in await cursor.fetchall()}
    for event in events:
        if event.id not in known:
            seen = strictest([event.visibility, state.place.kind])
            state = await append(connection, state, drafts_of(event), at=event.created_at, turn=turn, visibility=seen)
    if state.entries_shown is None or sum(len(entry.content) for entry in state.later_entries) > LATER:
        newest = newest_entry(state)
        statement = "UPDATE conversations SET entries_shown = %s WHERE id = %s"
        await connection.execute(statement, (newest, state.conversation))
        state = replace(state, entries_shown=newest)
    return state


def newest_entry(state: AgentState) -> int:
    """The id of the newest entry, 0 where there is none; entries of one agent are numbered in their order."""
    return max((entry.id for entry in state.entries), default=0)


async def note_view(connection: Connection, state: AgentState, turn: int) -> None:
    """Note in the turn's own row what stands in its prompt: the queue, what the summary covers, the entries of the working context."""
    await connection.execute(
        """UPDATE turns t SET entries_in_view = ARRAY(SELECT unnest(t.entries_in_view) UNION SELECT unnest(%s::bigint[])),
             in_view = coalesce(t.in_view, '{}') + int8multirange(int8range(
               CASE WHEN c.summary || c.summary_tail <> '' THEN least(c.summary_from, c.fifo_start) ELSE c.fifo_start END, c.next_position))
           FROM conversations c WHERE t.id = %s AND c.id = t.conversation_id""",
        ([entry.id for entry in state.entries], turn),
    )


async def append(
    connection: Connection,
    state: AgentState,
    drafts: Sequence[Draft],
    *,
    at: datetime,
    turn: int | None,
    visibility: Visibility | None = None,
) -> AgentState:
    """Append messages at the end of the queue; what the agent made itself has the visibility of what it was made from."""
    added = await messages.append(
        connection, state.conversation, drafts, visibility=visibility or state.place.kind, at=at, turn=turn, passing=state.unkept
    )
    return state.with_messages(added)


async def warn(connection: Connection, state: AgentState, *, at: datetime, turn: int) -> AgentState:
    """Announce memory pressure, once until the next flush."""
    state = await append(connection, state, [Draft("user", "alert", PRESSURE)], at=at, turn=turn)
    await connection.execute("UPDATE conversations SET warned = true WHERE id = %s", (state.conversation,))
    return replace(state, warned=True)


async def leaving(connection: Connection, state: AgentState, evicted: int) -> list[Message]:
    """The messages that the next summary is made from: the evicted ones, after those that an earlier one could not be made from.

    None of what was said while memory was paused. Of a long past, as a summary that is made anew after a forgetting has it, the newest.
    """
    pending: list[Message] = []
    if state.pending_from is not None:
        earlier = await messages.window(connection, state.conversation, state.pending_from)
        pending = [message for message in earlier if message.position < state.fifo_start]
    return [
        message for message in (*pending[-RESUMMARISED:], *state.queue[:evicted]) if not (message.passing or message.withheld)
    ]


async def flush(
    connection: Connection, state: AgentState, evicted: int, summary: str, *, tail: str = "", at: datetime, turn: int | None
) -> AgentState:
    """Move the queue's start past its `evicted` oldest messages and put the new summary in slot 0.

    `tail`: a truncation, where the summary could not be made; then `summary` is the old one and a later flush tries again.
    The evicted messages stay in recall storage.
    """
    gone, kept = state.queue[:evicted], state.queue[evicted:]
    start = kept[0].position if kept else (gone[-1].position + 1 if gone else state.fifo_start)
    visibility = strictest(
        [state.place.kind, *(m.visibility for m in gone), *([state.summary_visibility] if state.slot0 else [])]
    )
    first = gone[0].position if gone else state.fifo_start
    pending = (first if state.pending_from is None else state.pending_from) if tail else None
    await connection.execute(
        """UPDATE conversations SET summary = %s, summary_tail = %s, pending_from = %s, summary_visibility = %s,
             summary_from = coalesce(summary_from, %s), summary_to = %s, fifo_start = %s, warned = false, entries_shown = %s
           WHERE id = %s""",
        (summary, tail, pending, visibility, first, start - 1, start, newest_entry(state), state.conversation),
    )
    await messages.drop_vendor_fields(connection, state.conversation, start)
    await _note_summary(
        connection,
        state,
        [m for m in gone if not m.passing],
        summary,
        tail,
        covers=start - 1,
        action="flush",
        reason="the main context was full",
        at=at,
        turn=turn,
    )
    return replace(
        state,
        summary=summary,
        summary_tail=tail,
        pending_from=pending,
        summary_visibility=visibility,
        fifo_start=start,
        warned=False,
        queue=kept,
        entries_shown=newest_entry(state),
    )


async def resummarise(
    connection: Connection,
    state: AgentState,
    made_from: Sequence[Message],
    summary: str,
    *,
    tail: str = "",
    at: datetime,
    turn: int | None,
) -> AgentState:
    """Put the summary in slot 0 that was made anew, of `made_from` and the one that stood, after something was forgotten that it covered."""
    visibility = strictest([state.place.kind, state.summary_visibility, *(m.visibility for m in made_from)])
    pending = state.pending_from if tail else None
    await connection.execute(
        "UPDATE conversations SET summary = %s, summary_tail = %s, pending_from = %s, summary_visibility = %s WHERE id = %s",
        (summary, tail, pending, visibility, state.conversation),
    )
    await _note_summary(
        connection,
        state,
        made_from,
        summary,
        tail,
        covers=state.fifo_start - 1,
        action="resummarise",
        reason="something was forgotten that it covered",
        at=at,
        turn=turn,
    )
    return replace(state, summary=summary, summary_tail=tail, pending_from=pending, summary_visibility=visibility)


async def _note_summary(
    connection: Connection,
    state: AgentState,
    made_from: Sequence[Message],
    summary: str,
    tail: str,
    *,
    covers: int,
    action: str,
    reason: str,
    at: datetime,
    turn: int | None,
) -> None:
    await sources.add(connection, state.agent, "conversation_id", state.conversation, trigger=[m.id for m in made_from])
    await log.record(
        connection,
        agent=state.agent,
        place=state.place.id,
        at=at,
        actor="system",
        action=action,
        target="summary",
        target_id=state.conversation,
        turn=turn,
        reason=reason,
        before=state.slot0,
        after="\n".join(part for part in (summary, tail) if part),
        covers=None if tail else covers,
    )


async def fresh(connection: Connection, conversation: int, *, agent: int, place: int, at: datetime) -> None:
    """Begin a new conversation without forgetting: an empty queue and no summary; recall storage keeps everything."""
    statement = "SELECT summary, next_position - 1 AS last FROM conversations WHERE id = %s FOR UPDATE"
    [ended] = await (await connection.execute(statement, (conversation,))).fetchall()
    await connection.execute(
        """UPDATE conversations SET fifo_start = next_position, summary = '', summary_visibility = 'public', summary_from = NULL,
             summary_to = NULL, summary_tail = '', pending_from = NULL, warned = false, entries_shown = NULL WHERE id = %s""",
        (conversation,),
    )
    await messages.drop_vendor_fields(connection, conversation, ended["last"] + 1)
    await connection.execute("DELETE FROM sources WHERE conversation_id = %s", (conversation,))
    await connection.execute("UPDATE agents SET version = version + 1 WHERE id = %s", (agent,))
    await log.record(
        connection,
        agent=agent,
        place=place,
        at=at,
        actor="person",
        action="/fresh",
        target="conversation",
        target_id=conversation,
        reason="asked for a new conversation",
        before=ended["summary"] or None,
        covers=ended["last"],
    )
