"""Forgetting: one walk along where texts came from, in the caller's transaction, and the only place where words go (SQL `forget_rows`).

Whatever is forgotten, for whatever reason, a message, a number, a period, a place, a person, a message deleted on its platform, what is too
old, takes along what names it as a strong source, and what was made with it in view and repeats a rare word, name or number of it, copy after
copy, also in the agents of other people who quoted it. What was made with it in view and repeats nothing is listed for the person. A summary
that covers it goes back to the last one made without it; what came after is summed up again at the next turn.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import Any

from memory import log
from memory.agent_state import AgentState
from memory.db import Connection, value
from memory.things import Thing, thing


@dataclass(slots=True)
class Gone:
    """What goes in one forgetting: ids by kind. `derived` adds what came of it.

    `conversations` go as a whole, with their summary; `summaries`: those that cover some of it. `turns`: those that a message of the person's
    began, with all that they did; `made_in`: those of which only the inner workings go. `rare`: the words by which its copies are known.
    `maybe`: what was made with it in view and repeats nothing of it, which stays.
    """

    messages: set[int] = field(default_factory=set)
    entries: set[int] = field(default_factory=set)
    passages: set[int] = field(default_factory=set)
    summaries: set[int] = field(default_factory=set)
    turns: set[int] = field(default_factory=set)
    timers: set[int] = field(default_factory=set)
    documents: set[int] = field(default_factory=set)
    conversations: set[int] = field(default_factory=set)
    made_in: set[int] = field(default_factory=set)
    rare: set[str] = field(default_factory=set)
    maybe: list[Thing] = field(default_factory=list)

    @staticmethod
    def of(things: Iterable[Thing]) -> Gone:
        """What people named."""
        gone = Gone()
        sets = {"m": gone.messages, "w": gone.entries, "a": gone.passages, "t": gone.timers}
        for each in things:
            sets[each.letter].add(each.number)
        return gone

    def things(self) -> list[Thing]:
        """The rows that have numbers for people."""
        letters = (("m", self.messages), ("w", self.entries), ("a", self.passages), ("t", self.timers))
        return [Thing(letter, number) for letter, numbers in letters for number in sorted(numbers)]  # type: ignore[arg-type]


async def begin(connection: Connection) -> None:
    """The lock of every forgetting, to be taken before the agent's: no two at once, as each may reach into the agent of the other."""
    await connection.execute("SELECT pg_advisory_xact_lock(hashtext('keepsake.erasure'))")


async def widen(connection: Connection, agent: int, place: int | None) -> None:
    """From here on the transaction sees and writes all of the agent's places: what is to go was chosen, and goes wherever it shows."""
    await connection.execute("SELECT enter(%s, %s, true)", (agent, place))


async def derived(connection: Connection, gone: Gone, *, words: Sequence[str] | None = None) -> Gone:
    """Adds everything that goes with what was named. `words`: texts whose words are followed instead of the rows' own."""
    [row] = await _rows(
        connection,
        "SELECT * FROM forget_reach(current_agent(), %s, %s, %s, %s, %s, %s)",
        (*_lists(gone), None if words is None else list(words), list(gone.documents)),
    )
    for column in ("messages", "entries", "passages", "timers", "turns", "made_in", "rare"):
        getattr(gone, column).update(row[column])
    found = {each for word in row["maybe"] if (each := thing(word)) is not None}
    gone.maybe = sorted(found - set(gone.things()))
    covered = await _rows(
        connection,
        """SELECT id FROM conversations c WHERE summary <> '' AND EXISTS (SELECT FROM messages m WHERE m.conversation_id = c.id
             AND m.id = ANY(%s) AND m.position >= coalesce(c.summary_from, 1) AND m.position < c.fifo_start)""",
        (list(gone.messages),),
    )
    gone.summaries |= {row["id"] for row in covered}
    return gone


async def erase_rows(connection: Connection, gone: Gone, *, note: str | None = None) -> list[int]:
    """Take it all out, after `derived`. `note`: what is put where the messages were. Returns the other agents that held something of it."""
    return list(
        await value(
            connection,
            "SELECT forget_rows(current_agent(), %s, %s, %s, %s, %s, %s, %s, %s, %s, %s)",
            (
                *_lists(gone),
                list(gone.documents),
                list(gone.conversations),
                list(gone.turns),
                list(gone.made_in),
                list(gone.rare),
                note,
            ),
        )
    )


async def erase_copies(connection: Connection, messages: Iterable[int]) -> list[int]:
    """Take what others brought along of some messages out of their agents, which are returned; the messages stay."""
    return list(
        await value(
            connection, "SELECT forget_quoted(origins_of(current_agent(), %s), '{}', ARRAY[current_agent()])", (list(messages),)
        )
    )


def _lists(gone: Gone) -> tuple[list[int], list[int], list[int], list[int]]:
    return list(gone.messages), list(gone.entries), list(gone.passages), list(gone.timers)


_WAITING = """status IN (0, 2) AND place_id = ANY(%s) AND created_at >= coalesce(%s, '-infinity'::timestamptz)
                AND created_at < coalesce(%s, 'infinity'::timestamptz)"""


async def waiting(connection: Connection, start: datetime | None, end: datetime | None, places: list[int]) -> int:
    """How much waits to be answered, or died waiting, that came in some places in a time (`start` <= time < `end`)."""
    [row] = await _rows(connection, f"SELECT count(*) AS waiting FROM events WHERE {_WAITING}", (places, start, end))  # noqa: S608
    return int(row["waiting"])


async def stop_waiting(
    connection: Connection, start: datetime | None, end: datetime | None, places: list[int], at: datetime
) -> int:
    """What waits to be answered is taken back and emptied, and a turn running there is asked to end. Returns how much waited."""
    cursor = await connection.execute(f"UPDATE events SET status = 3, done_at = %s WHERE {_WAITING}", (at, places, start, end))  # noqa: S608
    await connection.execute(
        "UPDATE turns SET cancel_requested = true WHERE state = 'running' AND place_id = ANY(%s) AND NOT EXISTS"
        " (SELECT 1 FROM events e WHERE e.turn_id = turns.id AND e.status = 0)",
        (places,),
    )
    return cursor.rowcount


async def of_period(connection: Connection, start: datetime, end: datetime, places: list[int]) -> Gone:
    """Everything that was said, stored or set in a time (`start` <= time < `end`) in some places."""
    gone = Gone()
    for table, found, at, apart in _TABLES:
        column = getattr(gone, found)
        statement = f"SELECT id FROM {table} WHERE {at} >= %s AND {at} < %s AND place_id = ANY(%s){apart}"  # noqa: S608 - names of ours
        column |= {row["id"] for row in await _rows(connection, statement, (start, end, places))}
    return gone


async def of_places(connection: Connection, places: list[int]) -> Gone:
    """Everything that came from some places, with their summaries and turns."""
    gone = Gone()
    for table, found, _, apart in _TABLES:
        rows = await _rows(connection, f"SELECT id FROM {table} WHERE place_id = ANY(%s){apart}", (places,))  # noqa: S608 - names of ours
        getattr(gone, found).update(row["id"] for row in rows)
    rows = await _rows(connection, "SELECT id FROM conversations WHERE place_id = ANY(%s)", (places,))
    gone.conversations = {row["id"] for row in rows}
    rows = await _rows(connection, "SELECT id FROM conversations WHERE place_id = ANY(%s) AND summary <> ''", (places,))
    gone.summaries = {row["id"] for row in rows}
    gone.turns = {row["id"] for row in await _rows(connection, "SELECT id FROM turns WHERE place_id = ANY(%s)", (places,))}
    return gone


_TABLES = (
    ("messages", "messages", "created_at", ""),
    ("working_context", "entries", "updated_at", ""),
    ("passages", "passages", "created_at", " AND document_id IS NULL"),
    ("timers", "timers", "created_at", ""),
    ("documents", "documents", "created_at", ""),
)


async def _rows(connection: Connection, statement: str, parameters: tuple[Any, ...] | Mapping[str, Any]) -> list[dict[str, Any]]:
    return await (await connection.execute(statement.encode(), parameters)).fetchall()


TAKEN_BACK = "(The person took this back: it is not to be remembered.)"


async def redact(
    connection: Connection, state: AgentState, *, messages: Sequence[int], about: str, at: datetime, by: int
) -> AgentState:
    """Take the words of the person's messages back, with what the agent wrote in the turns that they led to, inside a step.

    The calls and results of those turns leave, their replies are blanked where they are kept, and what repeats `about`, which was not to be
    stored, goes. `by` is the turn that does it. The step's own fence stands for the version.
    """
    gone = await derived(connection, Gone(messages=set(messages)), words=[about])
    await erase_rows(connection, gone, note=TAKEN_BACK)
    for id_ in messages:
        await log.record(
            connection,
            agent=state.agent,
            place=state.place.id,
            at=at,
            actor="person",
            action="answer_memory_request",
            target="message",
            target_id=id_,
            turn=by,
        )
    left = {
        row["id"] for row in await _rows(connection, "SELECT id FROM messages WHERE conversation_id = %s", (state.conversation,))
    }
    return replace(
        state,
        queue=tuple(
            replace(message, content=TAKEN_BACK, calls=()) if message.id in gone.messages else message
            for message in state.queue
            if message.id in left
        ),
        entries=tuple(entry for entry in state.entries if entry.id not in gone.entries),
    )
