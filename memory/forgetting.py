"""Erasing rows with all that was made of them, in the caller's transaction.

A message takes along its vectors (cascade), what it was the trigger of, the replies to it and the timers set in its turn, the text of its
event and of the replies sent. Whatever goes takes along the calls and results of its turn and of every turn that fetched or repeats it, and its
texts in the memory log. A summary that covers it goes back to the last one made without it; what came after is summed up anew at the
next turn. The caller's transaction sees all of the agent's places, as what was said in one may have been looked up in another.
"""

import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import Any

from memory import log
from memory.agent_state import AgentState
from memory.db import Connection
from memory.things import Letter, Thing

REPEATED = 200
"""Characters of a message's beginning by which its repetitions are found."""
SHORTEST = 8
"""Shorter messages (`yes`) stand in too much that has nothing to do with them."""
MANY = 200
"""From so many messages on no repetitions are looked for one by one: the calls and results of every later turn go."""


@dataclass(slots=True)
class Gone:
    """What goes in one forgetting: ids by kind. Things derived from it are added as they are found.

    `summaries`: those that cover some of it; `conversations`: those that go as a whole, with their summary. `turns`: those that a message
    of the person's began, with all that they did; `made_in`: those of which only the inner workings go.
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

    @staticmethod
    def of(things: Iterable[Thing]) -> "Gone":
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


async def with_derived(connection: Connection, kind: str, number: int, turn: int | None) -> Gone:
    """What goes when a message (m), an entry (w) or a passage (a) is forgotten: it, and what it was the trigger of."""
    gone = Gone(made_in={turn} if turn is not None else set())
    {"m": gone.messages, "w": gone.entries, "a": gone.passages}[kind].add(number)
    return await derived(connection, gone)


async def derived(connection: Connection, gone: Gone) -> Gone:
    """Adds what the messages were the trigger of, the replies to them, the timers of their turns, and the turns in which all of it was made."""
    asked = list(gone.messages)
    for row in await _rows(
        connection,
        "SELECT entry_id, passage_id, conversation_id FROM sources WHERE message_id = ANY(%s) AND role = 'trigger'",
        (asked,),
    ):
        for column, found in (("entry_id", gone.entries), ("passage_id", gone.passages), ("conversation_id", gone.summaries)):
            if row[column] is not None:
                found.add(row[column])
    # The replies of its turn repeat it; a reply that is forgotten itself leaves the question alone.
    replies = await _rows(
        connection,
        """SELECT r.id FROM messages r WHERE r.role = 'assistant' AND r.kind = 'message' AND r.turn_id IN (
             SELECT turn_id FROM messages WHERE id = ANY(%s) AND role = 'user')""",
        (asked,),
    )
    gone.messages |= {row["id"] for row in replies}
    made_in = await _rows(
        connection,
        """SELECT turn_id FROM working_context WHERE id = ANY(%s) UNION SELECT turn_id FROM passages WHERE id = ANY(%s)
           UNION SELECT turn_id FROM messages WHERE id = ANY(%s)""",
        (list(gone.entries), list(gone.passages), asked),
    )
    gone.made_in |= {row["turn_id"] for row in made_in if row["turn_id"] is not None}
    begun = await _rows(connection, "SELECT DISTINCT turn_id FROM messages WHERE id = ANY(%s) AND role = 'user'", (asked,))
    gone.turns |= {row["turn_id"] for row in begun if row["turn_id"] is not None}
    # One whose asking message is known goes with that one alone, whatever else was written in its turn.
    timers = await _rows(
        connection,
        "SELECT id FROM timers WHERE message_id = ANY(%s) OR (message_id IS NULL AND turn_id = ANY(%s))",
        (asked, list(gone.turns)),
    )
    gone.timers |= {row["id"] for row in timers}
    return gone


async def perhaps(connection: Connection, gone: Gone) -> list[Thing]:
    """What else may have come from it: made while one of the messages stood in the visible window or was looked up."""
    rows = await _rows(
        connection,
        """SELECT DISTINCT s.entry_id, s.passage_id, NULL::bigint AS timer_id FROM sources s LEFT JOIN working_context w ON w.id = s.entry_id
             LEFT JOIN passages p ON p.id = s.passage_id
           WHERE s.message_id = ANY(%(m)s) AND s.role = 'window' AND (w.id IS NOT NULL OR p.id IS NOT NULL)
           UNION SELECT w.id, NULL, NULL FROM working_context w JOIN fetched f ON f.turn_id = w.turn_id WHERE f.message_id = ANY(%(m)s)
           UNION SELECT NULL, p.id, NULL FROM passages p JOIN fetched f ON f.turn_id = p.turn_id WHERE f.message_id = ANY(%(m)s)
           UNION SELECT NULL, NULL, t.id FROM timers t JOIN fetched f ON f.turn_id = t.turn_id WHERE f.message_id = ANY(%(m)s)""",
        {"m": list(gone.messages)},
    )
    letters: tuple[tuple[Letter, str], ...] = (("w", "entry_id"), ("a", "passage_id"), ("t", "timer_id"))
    found = {Thing(letter, row[column]) for row in rows for letter, column in letters if row[column] is not None}
    return sorted(found - set(gone.things()))


async def erase_rows(connection: Connection, gone: Gone) -> None:
    """Delete rows with everything that repeats their words, in the caller's transaction."""
    gone = replace(gone, messages=gone.messages | await _fired(connection, list(gone.timers)))
    forms = await _forms(connection, gone)
    messages, turns, whole = list(gone.messages), list(gone.turns), list(gone.conversations)
    inner = list(gone.turns | gone.made_in | await _showing(connection, gone, forms))
    await connection.execute(
        """SELECT unsummarise(conversation_id, positions) FROM (
             SELECT conversation_id, array_agg(position) AS positions FROM messages WHERE id = ANY(%s) GROUP BY 1) covered""",
        (messages,),
    )
    await connection.execute("DELETE FROM memory_requests WHERE messages && %s::bigint[] OR turn_id = ANY(%s)", (messages, turns))
    # What was made in those turns keeps its words in the log even where it is gone already.
    await connection.execute(
        """DELETE FROM memory_log_content WHERE log_id IN (SELECT l.id FROM memory_log l WHERE l.turn_id = ANY(%s) OR EXISTS (
             SELECT 1 FROM memory_log made WHERE made.turn_id = ANY(%s) AND made.target = l.target AND made.target_id = l.target_id))""",
        (turns, turns),
    )
    await connection.execute(
        """DELETE FROM memory_log_content c WHERE EXISTS (SELECT 1 FROM unnest(%s::text[]) form
             WHERE position(form IN concat_ws(' ', c.reason, c.before, c.after, c.row_before::text)) > 0)""",
        (forms,),
    )
    # The bot's own lines about a timer are known by their buttons.
    await connection.execute(
        """UPDATE outbox SET body = '', buttons = NULL, state = CASE state WHEN 'waiting' THEN 'withdrawn' ELSE state END
           WHERE EXISTS (SELECT 1 FROM jsonb_array_elements(buttons) b WHERE split_part(b->>'line', ' ', 3) = ANY(%s))""",
        ([f"t{timer}" for timer in gone.timers],),
    )
    await connection.execute("DELETE FROM timers WHERE id = ANY(%s)", (list(gone.timers),))
    # Calls and results leave together, so that no call stays without its result.
    await connection.execute("DELETE FROM messages WHERE turn_id = ANY(%s) AND kind IN ('call', 'result', 'monologue')", (inner,))
    await connection.execute("UPDATE messages SET calls = NULL WHERE turn_id = ANY(%s) AND calls IS NOT NULL", (inner,))
    await connection.execute(
        """UPDATE events SET payload = wordless(payload), status = CASE status WHEN 2 THEN 3 ELSE status END
           WHERE id IN (SELECT event_id FROM messages WHERE id = ANY(%s) AND kind <> 'quote')""",
        (messages,),
    )
    # A quote came with somebody's own message, which stays.
    await connection.execute(
        """UPDATE events SET payload = payload - 'quotes'
           WHERE payload ? 'quotes' AND id IN (SELECT event_id FROM messages WHERE id = ANY(%s) AND kind = 'quote')""",
        (messages,),
    )
    await connection.execute(
        """UPDATE outbox SET body = '', state = CASE state WHEN 'waiting' THEN 'withdrawn' ELSE state END WHERE turn_id IN
             (SELECT turn_id FROM messages WHERE id = ANY(%s) AND role = 'assistant')""",
        (messages,),
    )
    await connection.execute(
        """DELETE FROM memory_log_content WHERE log_id IN (SELECT id FROM memory_log
             WHERE (target = 'working_context' AND target_id = ANY(%s)) OR (target = 'passage' AND target_id = ANY(%s))
                OR (target = 'message' AND target_id = ANY(%s)) OR (target = 'timer' AND target_id = ANY(%s))
                OR (target IN ('summary', 'conversation') AND target_id = ANY(%s)))""",
        (list(gone.entries), list(gone.passages), messages, list(gone.timers), whole),
    )
    await connection.execute(
        """UPDATE conversations SET summary = '', summary_visibility = 'public', summary_from = NULL, summary_to = NULL,
             summary_tail = '', pending_from = NULL WHERE id = ANY(%s)""",
        (whole,),
    )
    await connection.execute("DELETE FROM sources WHERE conversation_id = ANY(%s)", (whole,))
    await connection.execute("DELETE FROM working_context WHERE id = ANY(%s)", (list(gone.entries),))
    await connection.execute("DELETE FROM passages WHERE id = ANY(%s)", (list(gone.passages),))
    await connection.execute("DELETE FROM documents WHERE id = ANY(%s)", (list(gone.documents),))
    await connection.execute("DELETE FROM messages WHERE id = ANY(%s)", (messages,))


async def _fired(connection: Connection, timers: list[int]) -> set[int]:
    """The lines in which timers that fired say what for. A firing that waits to be acted on ends, and its turn is left without a question."""
    numbers = [str(timer) for timer in timers]
    await connection.execute(
        """WITH ended AS (UPDATE events SET status = 3, done_at = coalesce(done_at, created_at)
             WHERE status IN (0, 2) AND payload->>'timer_id' = ANY(%s) RETURNING id, turn_id)
           UPDATE turns SET cancel_requested = true WHERE state = 'running' AND id IN (SELECT turn_id FROM ended)
             AND NOT EXISTS (SELECT 1 FROM events e WHERE e.turn_id = turns.id AND e.status = 0 AND e.id NOT IN (SELECT id FROM ended))""",
        (numbers,),
    )
    lines = await _rows(
        connection,
        "SELECT id FROM messages WHERE event_id IN (SELECT id FROM events WHERE payload->>'timer_id' = ANY(%s))",
        (numbers,),
    )
    return {row["id"] for row in lines}


async def _forms(connection: Connection, gone: Gone) -> list[str]:
    """The beginnings of what is forgotten, as texts, results (JSON) and calls (JSON in JSON) hold them; none where it is too much."""
    if len(gone.messages) > MANY:
        return []
    said = await _rows(
        connection,
        """SELECT content FROM messages WHERE id = ANY(%s) AND role = 'user'
           UNION ALL SELECT content FROM working_context WHERE id = ANY(%s) UNION ALL SELECT content FROM passages WHERE id = ANY(%s)
           UNION ALL SELECT c.after FROM memory_log l JOIN memory_log_content c ON c.log_id = l.id
             WHERE l.turn_id = ANY(%s) AND c.after IS NOT NULL""",
        (list(gone.messages), list(gone.entries), list(gone.passages), list(gone.turns)),
    )
    heads = [row["content"][:REPEATED] for row in said if len(row["content"]) >= SHORTEST]
    return [form for head in heads for form in (head, _escaped(head), _escaped(_escaped(head)))]


async def _showing(connection: Connection, gone: Gone, forms: list[str]) -> set[int]:
    """The turns whose inner workings show it: their searches fetched it, their calls, results or thoughts hold its words, or (many
    messages) they came later."""
    rows = await _rows(
        connection,
        """SELECT turn_id FROM fetched WHERE message_id = ANY(%(m)s) OR passage_id = ANY(%(a)s)
           UNION SELECT turn_id FROM messages WHERE turn_id IS NOT NULL AND (kind IN ('call', 'result', 'monologue') OR calls IS NOT NULL)
             AND CASE WHEN %(many)s THEN created_at >= (SELECT min(created_at) FROM messages WHERE id = ANY(%(m)s))
               ELSE EXISTS (SELECT 1 FROM unnest(%(forms)s::text[]) form
                 WHERE position(form IN content) > 0 OR position(form IN calls::text) > 0) END""",
        {"m": list(gone.messages), "a": list(gone.passages), "many": len(gone.messages) > MANY, "forms": forms},
    )
    return {row["turn_id"] for row in rows}


def _escaped(text: str) -> str:
    return json.dumps(text, ensure_ascii=False)[1:-1]


async def widen(connection: Connection, agent: int, place: int | None) -> None:
    """From here on the transaction sees and writes all of the agent's places: what is to go was chosen, and goes wherever it shows."""
    await connection.execute("SELECT enter(%s, %s, true)", (agent, place))


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
    for table, found, at in _TABLES:
        column = getattr(gone, found)
        statement = f"SELECT id FROM {table} WHERE {at} >= %s AND {at} < %s AND place_id = ANY(%s)"  # noqa: S608 - names of ours
        column |= {row["id"] for row in await _rows(connection, statement, (start, end, places))}
    return gone


async def of_places(connection: Connection, places: list[int]) -> Gone:
    """Everything that came from some places, with their summaries and turns."""
    gone = Gone()
    for table, found, _ in _TABLES:
        rows = await _rows(connection, f"SELECT id FROM {table} WHERE place_id = ANY(%s)", (places,))  # noqa: S608 - names of ours
        getattr(gone, found).update(row["id"] for row in rows)
    rows = await _rows(connection, "SELECT id FROM conversations WHERE place_id = ANY(%s)", (places,))
    gone.conversations = {row["id"] for row in rows}
    rows = await _rows(connection, "SELECT id FROM conversations WHERE place_id = ANY(%s) AND summary <> ''", (places,))
    gone.summaries = {row["id"] for row in rows}
    gone.turns = {row["id"] for row in await _rows(connection, "SELECT id FROM turns WHERE place_id = ANY(%s)", (places,))}
    return gone


_TABLES = (
    ("messages", "messages", "created_at"),
    ("working_context", "entries", "updated_at"),
    ("passages", "passages", "created_at"),
    ("timers", "timers", "created_at"),
    ("documents", "documents", "created_at"),
)


async def _rows(connection: Connection, statement: str, parameters: tuple[Any, ...] | dict[str, Any]) -> list[dict[str, Any]]:
    return await (await connection.execute(statement, parameters)).fetchall()


TAKEN_BACK = "(The person took this back: it is not to be remembered.)"


async def redact(connection: Connection, state: AgentState, *, messages: Sequence[int], at: datetime, by: int) -> AgentState:
    """Take the words of the person's messages back, with what the agent wrote in the turns that they led to, inside a step.

    The calls and results of those turns leave, their replies are blanked where they are kept. `by` is the turn that does it. Vectors,
    waiting copies and the log's content go too. The step's own fence stands for the version.
    """
    ids = list(messages)
    cursor = await connection.execute("SELECT DISTINCT turn_id FROM messages WHERE id = ANY(%s) AND turn_id IS NOT NULL", (ids,))
    turns = [int(row["turn_id"]) for row in await cursor.fetchall()]
    cursor = await connection.execute(
        "SELECT id FROM messages WHERE turn_id = ANY(%s) AND role = 'assistant' AND kind = 'message'", (turns,)
    )
    replies = [int(row["id"]) for row in await cursor.fetchall()]
    cursor = await connection.execute(
        "DELETE FROM messages WHERE turn_id = ANY(%s) AND kind IN ('call', 'result', 'monologue') RETURNING id", (turns,)
    )
    gone = {int(row["id"]) for row in await cursor.fetchall()}
    await connection.execute(
        """SELECT unsummarise(conversation_id, positions) FROM (
             SELECT conversation_id, array_agg(position) AS positions FROM messages WHERE id = ANY(%s) GROUP BY 1) covered""",
        ([*ids, *replies],),
    )
    await connection.execute(
        "UPDATE messages SET content = %s, calls = NULL, searchable = false WHERE id = ANY(%s)", (TAKEN_BACK, [*ids, *replies])
    )
    for table in ("embeddings", "unembedded"):
        await connection.execute(f"DELETE FROM {table} WHERE message_id = ANY(%s)", ([*ids, *replies],))  # noqa: S608 - one of two
    await connection.execute(
        "UPDATE events SET payload = wordless(payload) WHERE id IN (SELECT event_id FROM messages WHERE id = ANY(%s))", (ids,)
    )
    await connection.execute(
        """UPDATE outbox SET body = '', state = CASE state WHEN 'waiting' THEN 'withdrawn' ELSE state END
           WHERE turn_id = ANY(%s) AND state NOT IN ('sending', 'streaming')""",
        (turns,),
    )
    await connection.execute(
        "DELETE FROM memory_log_content WHERE log_id IN (SELECT id FROM memory_log WHERE turn_id = ANY(%s))", (turns,)
    )
    for id_ in ids:
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
    blanked = {*ids, *replies}
    return replace(
        state,
        queue=tuple(
            replace(message, content=TAKEN_BACK, calls=()) if message.id in blanked else message
            for message in state.queue
            if message.id not in gone
        ),
    )
