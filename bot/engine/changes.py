"""What people change afterwards on their platform: an edited message is corrected, a deleted one is erased with what came from it.

A message that waits is corrected or cancelled. A running turn finds its agent's version raised, throws its pass away and builds the
prompt anew; when nothing is left to answer it is stopped. What was answered is remembered as it stands now and not answered again;
but an edit is judged as a message is, and where it speaks of self-harm now the emergency lines are given, by code.
Where the words stand as a quote in other people's agents they are corrected and erased as well, with what repeats them there; what those
people said themselves stays. The operator may have deleted messages marked instead of erased.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from typing import Any

from adapters.base import Changed
from memory import correcting, log
from memory.cache import Cache
from memory.db import Connection, Database, value
from memory.forgetting import Gone, begin, derived, erase_rows
from memory.sanitise import clean

DELETED = "[deleted] "
"""What stands before a message that is kept though it was deleted."""
QUOTED = 2000
"""Characters of a quote."""

Rows = Sequence[Mapping[str, Any]]
"""Where messages stand: agent, place, event, and the message once it was taken into a turn (SQL `locate`)."""
Edited = Callable[[Connection, int, str, str, datetime], Awaitable[None]]
"""Told of a corrected message: its id, the text before and after, and when."""


async def unheard(connection: Connection, message: int, before: str, after: str, at: datetime) -> None:
    """Nobody listens."""


async def follow(db: Database, cache: Cache, changed: Changed, edited: Edited = unheard) -> int:
    """Apply an edit or a deletion wherever the messages stand; returns how many were found. Doing it twice changes nothing more.

    `edited`: told of each corrected message, before and after: a message may have been edited into a crisis.
    """
    channel = clean(changed.channel)
    if changed.message_ids is not None:
        return await _follow(db, cache, changed, channel, [clean(each) for each in changed.message_ids], edited)
    gone = await db.once("SELECT * FROM kept_within(%s, %s, %s)", (changed.platform, changed.realm, channel))
    return sum([await _follow(db, cache, changed, row["channel"], row["ids"], edited) for row in gone])


async def _follow(db: Database, cache: Cache, changed: Changed, channel: str, ids: list[str], edited: Edited) -> int:
    origins = [f"{channel}/{each}" for each in ids]
    found = await db.once("SELECT * FROM locate(%s, %s, %s, %s)", (changed.platform, changed.realm, channel, ids))
    quoted = await db.once("SELECT * FROM locate_quotes(%s, %s, %s)", (changed.platform, changed.realm, origins))
    for agent in sorted({row["agent_id"] for row in [*found, *quoted]}):
        own, quotes = ([row for row in rows if row["agent_id"] == agent] for rows in (found, quoted))
        # All of their places: what was said here may have been looked up elsewhere.
        async with db.agent(agent, [*own, *quotes][0]["place_id"], everything=True) as connection:
            # The lock that every step's commit takes: nothing is derived from the messages while they change.
            await begin(connection)
            if await value(connection, "SELECT id FROM agents FOR NO KEY UPDATE") is None:
                continue
            touched = await _apply(connection, own, quotes, origins, changed, edited)
            await connection.execute("UPDATE agents SET version = version + 1")
            # Before the commit, so that nothing is left in Redis by whatever ends this process in between.
            for each in (*touched, agent):
                await cache.forget_quietly(each)
    return len(found) + len(quoted)


async def _apply(
    connection: Connection, own: Rows, quotes: Rows, origins: list[str], changed: Changed, edited: Edited
) -> list[int]:
    """What happens to an agent's messages, and to what it holds as quotes. Returns the other agents that were touched."""
    touched: list[int] = []
    erased = [*own, *quotes] if changed.text is None and not changed.mark else []
    for row in own:
        if changed.text is not None:
            touched += await _correct(connection, row, clean(changed.text), changed, edited)
        else:
            await _cancel(connection, row, changed)
    for row in quotes:
        if changed.text is not None and not await _quotable(connection, row, origins):
            # New words that may not be taken leave nothing to be quoted: the old ones are no longer said.
            erased.append(row)
        elif row["message_id"] is not None and row not in erased:
            touched += await _requote(connection, row, changed)
        if row["message_id"] is None:
            await _requote_waiting(
                connection, row, origins, replace(changed, text=None, mark=False) if row in erased else changed
            )
    if gone := {row["message_id"] for row in erased} - {None}:
        touched += await erase_rows(connection, await derived(connection, Gone(messages=gone)))
    return touched


async def _quotable(connection: Connection, row: Mapping[str, Any], origins: list[str]) -> bool:
    """Whether new words of whoever is quoted may be taken: not while their memory is paused, nor while they are blocked."""
    return not await value(
        connection,
        """SELECT EXISTS (SELECT FROM not_quoted(ARRAY(
             SELECT author_id FROM messages WHERE id = %s
             UNION SELECT q->>'author_id' FROM events e, jsonb_array_elements(e.payload->'quotes') q
               WHERE e.id = %s AND q->>'origin' = ANY(%s)), '', (SELECT workspace FROM places WHERE id = %s), NULL))""",
        (row["message_id"], row["event_id"], origins, row["place_id"]),
    )


async def _requote(connection: Connection, row: Mapping[str, Any], changed: Changed) -> list[int]:
    """The words as they stand in somebody else's agent, corrected or marked. Returns whom else it touched."""
    if changed.text is None:
        await _mark(connection, row["message_id"])
        return []
    text = clean(changed.text)[:QUOTED]
    before = await value(connection, "SELECT content FROM messages WHERE id = %s", (row["message_id"],))
    if before in (None, text):
        return []
    return await _rewrite(connection, row, before, text or "(no text)", changed.at)


async def _requote_waiting(connection: Connection, row: Mapping[str, Any], origins: list[str], changed: Changed) -> None:
    """The same where they came with an event that waits."""
    text = None if changed.text is None else clean(changed.text)[:QUOTED]
    await connection.execute(
        """UPDATE events SET payload = jsonb_set(payload, '{quotes}', (
             SELECT coalesce(jsonb_agg(CASE WHEN NOT q->>'origin' = ANY(%(origins)s) THEN q
               ELSE jsonb_set(q, '{text}', to_jsonb(coalesce(%(text)s::text, %(mark)s || (q->>'text')))) END), '[]')
             FROM jsonb_array_elements(payload->'quotes') q WHERE %(keep)s OR NOT q->>'origin' = ANY(%(origins)s)))
           WHERE id = %(event)s AND payload ? 'quotes'""",
        {"origins": origins, "text": text, "mark": DELETED, "keep": text is not None or changed.mark, "event": row["event_id"]},
    )


async def _rewrite(connection: Connection, row: Mapping[str, Any], before: str, text: str, at: datetime) -> list[int]:
    touched = await correcting.follow(
        connection, agent=row["agent_id"], message=row["message_id"], before=before, after=text, at=at
    )
    await connection.execute("UPDATE messages SET content = %s WHERE id = %s", (text, row["message_id"]))
    return touched


async def _mark(connection: Connection, message: int) -> None:
    await connection.execute(
        "UPDATE messages SET content = %s || content WHERE id = %s AND NOT starts_with(content, %s)", (DELETED, message, DELETED)
    )


async def _correct(connection: Connection, row: Mapping[str, Any], text: str, changed: Changed, edited: Edited) -> list[int]:
    if row["message_id"] is None:
        # Still waiting: what is answered is the corrected text.
        await connection.execute(
            "UPDATE events SET payload = jsonb_set(payload, '{text}', to_jsonb(%s::text)) WHERE id = %s AND payload ? 'text'",
            (text, row["event_id"]),
        )
        return []
    before = await value(connection, "SELECT content FROM messages WHERE id = %s", (row["message_id"],))
    if before == text:
        return []
    touched = await _rewrite(connection, row, before, text or "(no text)", changed.at)
    await log.record(
        connection,
        agent=row["agent_id"],
        place=row["place_id"],
        at=changed.at,
        actor="person",
        action="edit",
        target="message",
        target_id=row["message_id"],
        before=before,
        after=text,
    )
    await edited(connection, row["message_id"], before, text, changed.at)
    return touched


async def _cancel(connection: Connection, row: Mapping[str, Any], changed: Changed) -> None:
    """A deleted message is answered no more; it is marked where the operator wants it kept."""
    turn = await value(connection, "SELECT turn_id FROM events WHERE id = %s", (row["event_id"],))
    if row["message_id"] is not None:
        if changed.mark:
            await _mark(connection, row["message_id"])
            await connection.execute("UPDATE timers SET due_at = NULL WHERE message_id = %s", (row["message_id"],))
        await log.record(
            connection,
            agent=row["agent_id"],
            place=row["place_id"],
            at=changed.at,
            actor="person",
            action="delete",
            target="message",
            target_id=row["message_id"],
        )
    # What waits is not begun; what runs has lost its question.
    await connection.execute(
        "UPDATE events SET status = 3, done_at = %s WHERE id = %s AND status IN (0, 2)", (changed.at, row["event_id"])
    )
    left = await value(connection, "SELECT count(*) FROM events WHERE turn_id = %s AND status = 0", (turn,))
    if turn is not None and left == 0:
        await connection.execute("UPDATE turns SET cancel_requested = true WHERE id = %s AND state = 'running'", (turn,))
        await connection.execute("UPDATE outbox SET state = 'withdrawn' WHERE turn_id = %s AND state = 'waiting'", (turn,))
        await connection.execute("SELECT pg_notify('keepsake_stop', %s)", (str(row["agent_id"]),))
