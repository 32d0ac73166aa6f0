"""An edited message: what was made of its old words is corrected where the change can be made in it as well, else marked as perhaps outdated.

It is found as forgetting finds it, and forgotten where an edit only took whole lines away, a file above all. A summary that covers the
message is made again of the corrected words; calls, results and thoughts that show the old ones go.
"""

from __future__ import annotations

import re
from dataclasses import replace
from datetime import datetime
from difflib import SequenceMatcher
from typing import Literal

from memory import log, undo
from memory.db import Connection, value
from memory.forgetting import Gone, derived, erase_copies, erase_rows

MARK = " (Perhaps outdated: the message it came from was edited.)"
_WORDS = re.compile(r"\w+(?:['’]\w+)*")
Table = Literal["working_context", "passages", "timers", "messages"]
_TARGETS: dict[Table, log.Target] = {"working_context": "working_context", "passages": "passage", "timers": "timer"}


def changes(before: str, after: str) -> list[tuple[str, str]]:
    """What an edit put in the place of what: spans of words, as they were and as they are. Nothing of what was only added."""
    old, new = list(_WORDS.finditer(before)), list(_WORDS.finditer(after))
    matcher = SequenceMatcher(None, [m[0].casefold() for m in old], [m[0].casefold() for m in new], autojunk=False)
    spans = []
    for tag, i, j, k, m in matcher.get_opcodes():
        if tag in ("replace", "delete"):
            written = after[new[k].start() : new[m - 1].end()] if m > k else ""
            spans.append((before[old[i].start() : old[j - 1].end()], written))
    return spans


def taken_off(before: str, after: str) -> str:
    """The lines that an edit took away where it changed nothing else: a file is some. Empty where it did."""
    old, new = before.splitlines(), after.splitlines()
    return "\n".join(line for line in old if line not in new) if set(new) < set(old) else ""


def corrected(text: str, spans: list[tuple[str, str]]) -> str:
    """A text with the same changes made in it, wherever the old words stand in it as they stood in the message."""
    for old, new in spans:
        if new:
            text = re.sub(rf"(?<!\w){re.escape(old)}(?!\w)", lambda _, new=new: new, text, flags=re.IGNORECASE)  # type: ignore[misc]
    return text


async def follow(connection: Connection, *, agent: int, message: int, before: str, after: str, at: datetime) -> list[int]:
    """Correct or mark what was made of a message, before its own text is changed, in the caller's transaction.

    Replies that were made of it keep their old words on the platform; what others brought along of those goes. Returns whom that touched.
    """
    spans = changes(before, after)
    old: list[str] = await value(
        connection,
        """SELECT ARRAY(SELECT unnest(search_words(%s, false)) EXCEPT SELECT unnest(search_words(%s, false))
             EXCEPT SELECT unnest(common_words()))""",
        (before, after),
    )
    if not old:
        return []
    taken = taken_off(before, after)
    gone = await derived(connection, Gone(messages={message}), words=[taken] if taken else None)
    replies = gone.messages - {message}
    # Summaries that cover any of it, and the inner workings that show the old words; none of the rows themselves.
    await connection.execute(
        """SELECT unsummarise(conversation_id, positions) FROM (
             SELECT conversation_id, array_agg(position) AS positions FROM messages WHERE id = ANY(%s) GROUP BY 1) covered""",
        ([message, *replies],),
    )
    if taken:
        return await erase_rows(connection, replace(gone, messages=replies))
    await erase_rows(connection, Gone(made_in=gone.made_in, rare=set(old) & gone.rare))
    tables: list[tuple[Table, str, set[int]]] = [
        ("working_context", "content", gone.entries),
        ("passages", "content", gone.passages),
        ("timers", "purpose", gone.timers),
        ("messages", "content", replies),
    ]
    await _retag(connection, gone.passages, spans, old)
    # What was sent is on the platform; a copy of the old words here would have to be corrected apart.
    await connection.execute(
        """UPDATE outbox SET body = '' WHERE state IN ('sent', 'failed', 'withdrawn') AND has_rare(%s, body)
             AND turn_id IN (SELECT turn_id FROM messages WHERE id = ANY(%s) AND role = 'assistant'
               UNION SELECT turn_id FROM timers WHERE id = ANY(%s))""",
        (old, list(replies), list(gone.timers)),
    )
    # The person is told of a timer that the message itself asked for, below it (`bot.speaking.appointments`).
    told: list[int] = await value(connection, "SELECT ARRAY(SELECT id FROM timers WHERE message_id = %s)", (message,))
    said = await value(
        connection,
        "SELECT ARRAY(SELECT id FROM messages WHERE id = ANY(%s) AND role = 'assistant' AND has_rare(%s, content))",
        (list(replies), old),
    )
    touched = await erase_copies(connection, said) if said else []
    for table, column, ids in tables:
        cursor = await connection.execute(
            f"SELECT id, place_id, {column} AS text FROM {table} WHERE id = ANY(%s) AND has_rare(%s, {column})".encode(),  # noqa: S608 - names of ours
            (list(ids), old),
        )
        for row in await cursor.fetchall():
            mark = "" if table == "timers" and row["id"] in told else MARK
            await _correct(connection, agent, table, column, row["id"], row["place_id"], row["text"], spans, old, mark, at)
    return touched


async def _retag(connection: Connection, passages: set[int], spans: list[tuple[str, str]], old: list[str]) -> None:
    """Tags that say the old words are corrected; one that cannot be goes, as there is no room in it for a mark."""
    cursor = await connection.execute(
        "SELECT id, tags FROM passages WHERE id = ANY(%s) AND has_rare(%s, array_to_string(tags, ' '))", (list(passages), old)
    )
    for row in await cursor.fetchall():
        new = list(dict.fromkeys(corrected(tag, spans) for tag in row["tags"]))
        await connection.execute(
            """UPDATE passages SET tags = ARRAY(SELECT tag FROM unnest(%s::text[]) WITH ORDINALITY t (tag, nth)
                 WHERE NOT has_rare(%s, tag) ORDER BY nth) WHERE id = %s""",
            (new, old, row["id"]),
        )


async def _correct(
    connection: Connection,
    agent: int,
    table: Table,
    column: str,
    id_: int,
    place: int,
    text: str,
    spans: list[tuple[str, str]],
    old: list[str],
    mark: str,
    at: datetime,
) -> None:
    new = corrected(text, spans)
    if new == text or await value(connection, "SELECT has_rare(%s, %s)", (old, new)):
        new = text if text.endswith(MARK) else text + mark
    if new == text:
        return
    target = _TARGETS.get(table)
    was = None if target is None else await undo.snapshot(connection, target, id_)
    await connection.execute(f"UPDATE {table} SET {column} = %s WHERE id = %s".encode(), (new, id_))  # noqa: S608 - names of ours
    if target is not None:
        await log.record(
            connection,
            agent=agent,
            place=place,
            at=at,
            actor="person",
            action="edit",
            target=target,
            target_id=id_,
            reason="the message it came from was edited",
            before=text,
            after=new,
            row=was,
        )
