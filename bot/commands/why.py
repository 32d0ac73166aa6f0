"""/memory why: what stood before the agent's eyes when it gave its last answer here.

Which of it the model leaned on nobody can say; what it could lean on is all here: the working context of that moment, what its searches
fetched, and the part of the conversation that was in its prompt.
"""

from typing import Any

from adapters.base import Answer
from bot.commands.context import Asking, CommandRefused
from bot.commands.paging import page_of, paged
from memory.db import Connection
from memory.things import brief


async def why(asking: Asking) -> Answer:
    """The memories of the last answer here, by their numbers."""
    asking.allowed("view")
    agent, place = asking.known()
    zone, (_, page) = await asking.zone(), paged(asking.argument)
    # As the turn saw it: what may be used in this place, not all that is the person's.
    async with asking.parts.db.agent(agent, place) as connection:
        answer = await _first(
            connection,
            """SELECT m.turn_id, m.created_at, m.position, m.content, c.summary <> '' OR c.summary_tail <> '' AS summary, c.fifo_start
               FROM messages m JOIN conversations c ON c.id = m.conversation_id
               WHERE m.place_id = %s AND m.role = 'assistant' AND m.kind = 'message' ORDER BY m.position DESC LIMIT 1""",
            (place,),
        )
        if answer is None:
            raise CommandRefused("why.nothing")
        turn, at = answer["turn_id"], answer["created_at"]
        asked = await _all(
            connection,
            "SELECT id, content FROM messages WHERE turn_id = %s AND role = 'user' AND kind IN ('message', 'quote') ORDER BY position",
            (turn,),
        )
        entries = await _all(
            connection,
            "SELECT id, content, updated_at > %s AS changed FROM working_context WHERE created_at <= %s AND turn_id IS DISTINCT FROM %s ORDER BY id",
            (at, at, turn),
        )
        found = await _all(
            connection,
            """SELECT 'm' AS letter, m.id, m.content, m.created_at FROM fetched f JOIN messages m ON m.id = f.message_id WHERE f.turn_id = %(turn)s
               UNION SELECT 'a', p.id, p.content, p.created_at FROM fetched f JOIN passages p ON p.id = f.passage_id WHERE f.turn_id = %(turn)s
               ORDER BY created_at""",
            {"turn": turn},
        )
        queue = await _first(
            connection,
            """SELECT count(*) AS n, min(id) AS first, max(id) AS last FROM messages
               WHERE place_id = %s AND kind IN ('message', 'quote') AND position >= %s AND position < %s AND turn_id IS DISTINCT FROM %s""",
            (place, answer["fifo_start"], answer["position"], turn),
        )
    lines = [asking.say("why.answer", at=asking.when(at, zone), text=brief(answer["content"], 120))]
    lines += ["  " + asking.say("why.to", number=row["id"], text=brief(row["content"], 120)) for row in asked]
    lines += [asking.say("why.entries" if entries else "why.no_entries")]
    changed = f" ({asking.say('why.changed')})"
    lines += [f"  w{row['id']}  {brief(row['content'], 150)}{changed if row['changed'] else ''}" for row in entries]
    lines += [asking.say("why.found" if found else "why.not_found")]
    lines += [
        f"  {row['letter']}{row['id']}  {asking.when(row['created_at'], zone)}  {brief(row['content'], 150)}" for row in found
    ]
    if queue and queue["n"]:
        messages = asking.counted("message", queue["n"])
        lines.append(asking.say("why.queue", messages=messages, first=queue["first"], last=queue["last"]))
    if answer["summary"]:
        lines.append(asking.say("why.summary"))
    return page_of(asking, lines, page, "/memory why")


async def _all(connection: Connection, statement: str, parameters: Any) -> list[dict[str, Any]]:
    return await (await connection.execute(statement, parameters)).fetchall()


async def _first(connection: Connection, statement: str, parameters: Any) -> dict[str, Any] | None:
    return await (await connection.execute(statement, parameters)).fetchone()
