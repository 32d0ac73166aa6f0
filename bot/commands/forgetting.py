"""/memory forget: one thing with all that was made of it, or everything, and the proof.

One thing takes along: its vectors (cascade), what it was the trigger of, the replies to it, the calls and results of its turn (they repeat its
words), the text of its event and reply, its summary, and the before and after texts in the memory log. The version is raised, so
a running turn builds its prompt anew before it may commit. The log keeps that something was forgotten, not what.
"""

import json
import re
from dataclasses import dataclass
from typing import Any

from redis.exceptions import RedisError

from bot.commands.context import Asking, CommandRefused, counted
from bot.commands.memory import brief
from memory import log
from memory.db import Connection, value

USAGE = (
    "Say what to forget: /memory forget m12 (a message), w3 (working context), a5 (archival storage) or t2 (a timer); "
    "/memory view and /memory search show the numbers. /memory forget everything forgets all of it."
)
SURE = (
    "This erases everything I know about you, in every place: messages, memories, timers, unsent replies. It cannot be undone, "
    "and /memory export keeps a copy for you first. To go ahead: /memory forget everything yes"
)


async def forget(asking: Asking) -> str:
    """Forget by number, or everything after a second, explicit yes."""
    asking.allowed("forget")
    words = asking.argument.casefold().split()
    if words[:1] == ["everything"]:
        return await _everything(asking) if words[1:] == ["yes"] else SURE
    found = re.fullmatch(r"([mwat])(\d{1,18})", words[0]) if len(words) == 1 else None
    if not found:
        return USAGE
    return await _one(asking, found[1], int(found[2]))


REPEATED = 200
"""Characters of a message's beginning by which its repetitions are found."""
SHORTEST = 8
"""Shorter messages (`yes`) stand in too much that has nothing to do with them."""


@dataclass(slots=True)
class Gone:
    """What goes in one forgetting: ids by kind. Things derived from it are added as they are found."""

    messages: set[int]
    entries: set[int]
    passages: set[int]
    summaries: set[int]
    turns: set[int]


async def _one(asking: Asking, kind: str, number: int) -> str:
    agent, place = asking.known()
    verdict = asking.allowed("forget")
    now = asking.parts.now()
    async with asking.parts.db.agent(agent, place, everything=verdict.everything) as connection:
        # The lock that every step's commit takes: nothing is derived from the thing while it goes.
        await connection.execute("SELECT id FROM agents FOR UPDATE")
        table = {"m": "messages", "w": "working_context", "a": "passages", "t": "timers"}[kind]
        row = await _row(connection, table, number)
        if row is None:
            raise CommandRefused(f"There is no {kind}{number} here. /memory view and /memory search show the numbers.")
        if kind == "t":
            await connection.execute("DELETE FROM timers WHERE id = %s", (number,))
            gone, said = Gone(set(), set(), set(), set(), set()), "The timer is gone."
        else:
            gone = await with_derived(connection, kind, number, row["turn_id"])
            await erase_rows(connection, gone)
            said = _account(kind, number, gone)
        target: log.Target = {"m": "message", "w": "working_context", "a": "passage"}.get(kind, "working_context")  # type: ignore[assignment]
        await log.record(
            connection, agent=agent, place=row["place_id"], at=now, actor=verdict.role, action="/memory forget",
            target=target, target_id=None if kind == "t" else number,
        )  # fmt: skip
        await connection.execute("UPDATE agents SET version = version + 1")
    said += await _uncached(asking, agent)
    origin = f" Where it came from stays: /memory search {brief(str(row['content']), 30)}" if kind in "wa" and gone.turns else ""
    return said + origin


async def _row(connection: Connection, table: str, number: int) -> dict[str, Any] | None:
    content = "purpose AS content" if table == "timers" else "content"
    statement = f"SELECT place_id, turn_id, {content} FROM {table} WHERE id = %s"  # noqa: S608 - one of four names
    return await (await connection.execute(statement, (number,))).fetchone()


async def with_derived(connection: Connection, kind: str, number: int, turn: int | None) -> Gone:
    """What goes when a message (m), an entry (w) or a passage (a) is forgotten: it, and what it was the trigger of."""
    gone = Gone(set(), set(), set(), set(), {turn} if turn is not None else set())
    {"m": gone.messages, "w": gone.entries, "a": gone.passages}[kind].add(number)
    if kind == "m":
        rows = await (
            await connection.execute(
                "SELECT entry_id, passage_id, conversation_id FROM sources WHERE message_id = %s AND role = 'trigger'", (number,)
            )
        ).fetchall()
        for row in rows:
            for column, found in (("entry_id", gone.entries), ("passage_id", gone.passages), ("conversation_id", gone.summaries)):
                if row[column] is not None:
                    found.add(row[column])
        # The replies of its turn repeat it; a reply that is forgotten itself leaves the question alone.
        replies = await connection.execute(
            """SELECT id FROM messages WHERE turn_id = %s AND role = 'assistant' AND kind = 'message'
               AND EXISTS (SELECT 1 FROM messages WHERE id = %s AND role = 'user')""",
            (turn, number),
        )
        gone.messages |= {row["id"] for row in await replies.fetchall()}
    derived_turns = await (
        await connection.execute(
            """SELECT turn_id FROM working_context WHERE id = ANY(%s) UNION SELECT turn_id FROM passages WHERE id = ANY(%s)""",
            (list(gone.entries), list(gone.passages)),
        )
    ).fetchall()
    gone.turns |= {row["turn_id"] for row in derived_turns if row["turn_id"] is not None}
    return gone


async def erase_rows(connection: Connection, gone: Gone) -> None:
    """Delete rows with everything that repeats their words, in the caller's transaction."""
    gone.turns |= await _repeating(connection, gone)
    messages, turns, summaries = list(gone.messages), list(gone.turns), list(gone.summaries)
    # What was made in those turns keeps its words in the log even where it is gone already; a timer keeps its purpose.
    await connection.execute(
        """DELETE FROM memory_log_content WHERE log_id IN (SELECT l.id FROM memory_log l WHERE l.turn_id = ANY(%s) OR EXISTS (
             SELECT 1 FROM memory_log made WHERE made.turn_id = ANY(%s) AND made.target = l.target AND made.target_id = l.target_id))""",
        (turns, turns),
    )
    await connection.execute("DELETE FROM timers WHERE turn_id = ANY(%s)", (turns,))
    # Calls and results leave together, so that no call stays without its result.
    await connection.execute("DELETE FROM messages WHERE turn_id = ANY(%s) AND kind IN ('call', 'result', 'monologue')", (turns,))
    await connection.execute("UPDATE messages SET calls = NULL WHERE turn_id = ANY(%s) AND calls IS NOT NULL", (turns,))
    await connection.execute(
        """UPDATE events SET payload = payload - 'text' - 'quotes' || '{"text": "", "quotes": [], "forgotten": true}'
           WHERE id IN (SELECT event_id FROM messages WHERE id = ANY(%s))""",
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
                OR (target = 'message' AND target_id = ANY(%s))
                OR (target IN ('summary', 'conversation') AND target_id = ANY(%s)))""",
        (list(gone.entries), list(gone.passages), messages, summaries),
    )
    await connection.execute(
        """UPDATE conversations SET summary = '', summary_visibility = 'public', summary_from = NULL, summary_to = NULL,
             summary_tail = '', pending_from = NULL WHERE id = ANY(%s)""",
        (summaries,),
    )
    await connection.execute("DELETE FROM sources WHERE conversation_id = ANY(%s)", (summaries,))
    await connection.execute("DELETE FROM working_context WHERE id = ANY(%s)", (list(gone.entries),))
    await connection.execute("DELETE FROM passages WHERE id = ANY(%s)", (list(gone.passages),))
    await connection.execute("DELETE FROM messages WHERE id = ANY(%s)", (messages,))


async def _repeating(connection: Connection, gone: Gone) -> set[int]:
    """The turns whose calls, results or thoughts repeat what is forgotten: what a person said, and what was written of it in its turn."""
    cursor = await connection.execute(
        """SELECT content FROM messages WHERE id = ANY(%s) AND role = 'user' UNION ALL
           SELECT c.after FROM memory_log l JOIN memory_log_content c ON c.log_id = l.id WHERE l.turn_id = ANY(%s) AND c.after IS NOT NULL""",
        (list(gone.messages), list(gone.turns)),
    )
    heads = [row["content"][:REPEATED] for row in await cursor.fetchall() if len(row["content"]) >= SHORTEST]
    # Results hold texts as JSON, calls hold JSON in JSON.
    forms = [form for head in heads for form in (head, _escaped(head), _escaped(_escaped(head)))]
    if not forms:
        return set()
    cursor = await connection.execute(
        """SELECT DISTINCT turn_id FROM messages WHERE turn_id IS NOT NULL AND (kind IN ('call', 'result', 'monologue') OR calls IS NOT NULL)
             AND EXISTS (SELECT 1 FROM unnest(%s::text[]) form WHERE position(form IN content) > 0 OR position(form IN calls::text) > 0)""",
        (forms,),
    )
    return {row["turn_id"] for row in await cursor.fetchall()}


def _escaped(text: str) -> str:
    return json.dumps(text, ensure_ascii=False)[1:-1]


def _account(kind: str, number: int, gone: Gone) -> str:
    entries, passages = (
        len(gone.entries - ({number} if kind == "w" else set())),
        len(gone.passages - ({number} if kind == "a" else set())),
    )
    also = [
        counted(count, one, many)
        for count, one, many in (
            (entries, "entry of the working context", "entries of the working context"),
            (passages, "passage", "passages"),
            (len(gone.summaries), "summary", "summaries"),
            (len(gone.messages - {number}) if kind == "m" else 0, "reply of mine", "replies of mine"),
        )
        if count
    ]
    return f"Forgotten: {kind}{number}" + (f", and what was made of it: {', '.join(also)}." if also else ".")


async def _uncached(asking: Asking, agent: int) -> str:
    try:
        await asking.parts.cache.forget(agent)
    except (RedisError, OSError):
        return " (Redis is away; what it still holds is no longer used and vanishes within an hour.)"
    return ""


async def _everything(asking: Asking) -> str:
    verdict = asking.allowed("forget")
    agent, _ = asking.known()
    if not verdict.everything:
        raise CommandRefused("Ask for that in a direct message to me.")
    return await erase(asking, agent, verdict.role)


async def erase(asking: Asking, agent: int, role: log.Actor) -> str:
    """Erase a person and prove it: rows, vectors, timers, waiting events, unsent replies, quoted words elsewhere, cache keys."""
    parts = asking.parts
    async with parts.db.bare() as connection:
        counts = await value(connection, "SELECT erase_agent(%s, %s, %s, %s)", (agent, role, parts.erasure_key, parts.now()))
    cached = await _uncached(asking, agent)
    async with parts.db.bare() as connection:
        left = await value(connection, "SELECT residue(%s)", (agent,))
    rest = {table: number for table, number in left.items() if number}
    if rest:
        raise CommandRefused(f"The erasure is incomplete: {rest} rows are left. Tell the operator, and ask again.")
    total = sum(counts.values())
    shown = ", ".join(
        counted(counts[table], one, many)
        for table, one, many in (
            ("messages", "message", "messages"),
            ("working_context", "entry of the working context", "entries of the working context"),
            ("passages", "passage", "passages"),
            ("embeddings", "vector", "vectors"),
            ("timers", "timer", "timers"),
            ("quotes", "quote elsewhere", "quotes elsewhere"),
        )
        if counts.get(table)
    )
    return (
        f"Everything is erased: {counted(total, 'row')}{f' ({shown})' if shown else ''}. I looked again in {len(left)} tables and found "
        f"nothing left.{cached}" + ("" if asking.about_another else " If you write to me again, we begin as strangers.")
    )
