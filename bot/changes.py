"""What people change afterwards on their platform: an edited message is corrected, a deleted one is erased with what came from it.

A message that waits is corrected or cancelled. A running turn finds its agent's version raised, throws its pass away and builds the
prompt anew; when nothing is left to answer it is stopped. What was answered is remembered as it stands now and not answered again.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from adapters.base import Changed
from bot.commands.forgetting import erase_rows, with_derived
from memory import log
from memory.cache import Cache
from memory.db import Connection, Database, value
from memory.sanitise import clean


async def follow(db: Database, cache: Cache, changed: Changed) -> int:
    """Apply an edit or a deletion wherever the messages stand; returns how many were found. Doing it twice changes nothing more."""
    ids = [clean(each) for each in changed.message_ids]
    async with db.bare() as connection:
        cursor = await connection.execute(
            "SELECT * FROM locate(%s, %s, %s, %s)", (changed.platform, changed.realm, clean(changed.channel), ids)
        )
        found = await cursor.fetchall()
    for row in found:
        async with db.agent(row["agent_id"], row["place_id"]) as connection:
            # The lock that every step's commit takes: nothing is derived from the message while it changes.
            if await value(connection, "SELECT id FROM agents FOR NO KEY UPDATE") is None:
                continue
            if changed.text is None:
                await _erase(connection, row, changed)
            else:
                await _correct(connection, row, clean(changed.text), changed)
            await connection.execute("UPDATE agents SET version = version + 1")
        if changed.text is None:
            await cache.forget_quietly(row["agent_id"])
    return len(found)


async def _correct(connection: Connection, row: Mapping[str, Any], text: str, changed: Changed) -> None:
    if row["message_id"] is None:
        # Still waiting: what is answered is the corrected text.
        await connection.execute(
            "UPDATE events SET payload = jsonb_set(payload, '{text}', to_jsonb(%s::text)) WHERE id = %s AND status IN (0, 2)",
            (text, row["event_id"]),
        )
        return
    before = await value(connection, "SELECT content FROM messages WHERE id = %s", (row["message_id"],))
    if before == text:
        return
    await connection.execute("UPDATE messages SET content = %s WHERE id = %s", (text or "(no text)", row["message_id"]))
    await log.record(
        connection, agent=row["agent_id"], place=row["place_id"], at=changed.at, actor="person", action="edit", target="message",
        target_id=row["message_id"], before=before, after=text,
    )  # fmt: skip


async def _erase(connection: Connection, row: Mapping[str, Any], changed: Changed) -> None:
    turn = await value(connection, "SELECT turn_id FROM events WHERE id = %s", (row["event_id"],))
    if row["message_id"] is not None:
        made_in = await value(connection, "SELECT turn_id FROM messages WHERE id = %s", (row["message_id"],))
        await erase_rows(connection, await with_derived(connection, "m", row["message_id"], made_in))
        await log.record(
            connection, agent=row["agent_id"], place=row["place_id"], at=changed.at, actor="person", action="delete", target="message",
            target_id=row["message_id"],
        )  # fmt: skip
    # What waits is not begun; what runs has lost its question.
    await connection.execute(
        "UPDATE events SET status = 3, payload = payload - 'text' - 'quotes', done_at = %s WHERE id = %s AND status IN (0, 2)",
        (changed.at, row["event_id"]),
    )
    left = await value(connection, "SELECT count(*) FROM events WHERE turn_id = %s AND status = 0", (turn,))
    if turn is not None and left == 0:
        await connection.execute("UPDATE turns SET cancel_requested = true WHERE id = %s AND state = 'running'", (turn,))
        await connection.execute("UPDATE outbox SET state = 'withdrawn' WHERE turn_id = %s AND state = 'waiting'", (turn,))
        await connection.execute("SELECT pg_notify('keepsake_stop', %s)", (str(row["agent_id"]),))
