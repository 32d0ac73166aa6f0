"""Taking a message's words back although the message stays: where a person said no to having them remembered."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime

from memory import log
from memory.agent_state import AgentState
from memory.db import Connection

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
            connection, agent=state.agent, place=state.place.id, at=at, actor="person", action="answer_memory_request", target="message",
            target_id=id_, turn=by,
        )  # fmt: skip
    blanked = {*ids, *replies}
    return replace(
        state,
        queue=tuple(
            replace(message, content=TAKEN_BACK, calls=()) if message.id in blanked else message
            for message in state.queue
            if message.id not in gone
        ),
    )
