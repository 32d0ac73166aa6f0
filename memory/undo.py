"""Undoing changes of memory: the row as it was before, kept in the memory log's content, and put back with its number and its sources.

A change without a row before made the row; undoing it removes the row again. An undoing is a change too, so it can be undone as well.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from psycopg import sql
from psycopg.types.json import Jsonb

from memory.db import Connection, value
from memory.log import Target

TABLES: Mapping[Target, str] = {
    "working_context": "working_context",
    "passage": "passages",
    "timer": "timers",
    "message": "messages",
}
"""Where the rows stand that a change can be undone of."""
_SOURCE: Mapping[Target, str] = {"working_context": "entry_id", "passage": "passage_id"}
_PARENTS = {"turn_id": "turns", "document_id": "documents"}
"""What a row hangs on may be gone when it is put back."""
NEWEST = 5000
"""Changes that are looked at; what lies further back is in the export."""
CONTENT: Mapping[Target, str] = {"working_context": "content", "passage": "content", "timer": "purpose", "message": "content"}


@dataclass(frozen=True, slots=True)
class Change:
    """A row of the memory log with its content. `undone`: it was taken back, and that stands."""

    id: int
    at: Any
    actor: str
    action: str
    target: Target
    target_id: int | None
    undoes: int | None
    reason: str
    before: str | None
    after: str | None
    row_before: Mapping[str, Any] | None
    undone: bool


async def snapshot(connection: Connection, target: Target, target_id: int) -> dict[str, Any] | None:
    """The row as it stands, as JSON, with its sources; None when it is not there (or may not be seen here)."""
    table = TABLES[target]
    row = await value(
        connection,
        sql.SQL("SELECT to_jsonb(x) - 'tsv' - 'agent_id' FROM {} x WHERE id = %s").format(sql.Identifier(table)).as_string(),
        (target_id,),
    )
    if row is None:
        return None
    if target == "message":
        return {"shareable": row["shareable"]}  # nothing else of a message is the person's to change
    if target in _SOURCE:
        statement = sql.SQL("SELECT message_id, role FROM sources WHERE {} = %s").format(sql.Identifier(_SOURCE[target]))
        rows = await (await connection.execute(statement, (target_id,))).fetchall()
        row["sources"] = [dict(each) for each in rows]
    return dict(row)


async def restore(connection: Connection, agent: int, target: Target, target_id: int, row: Mapping[str, Any] | None) -> None:
    """Bring a row back to what it was, under its old number; with None it goes."""
    table = sql.Identifier(TABLES[target])
    if row is None:
        await connection.execute(sql.SQL("DELETE FROM {} WHERE id = %s").format(table), (target_id,))
        return
    columns = [column for column in row if column not in ("id", "sources")]
    record = sql.SQL("jsonb_populate_record(NULL::{}, %s) r").format(table)
    values = [
        sql.SQL("(SELECT t.id FROM {} t WHERE t.id = r.{})").format(sql.Identifier(parent), sql.Identifier(column))
        if (parent := _PARENTS.get(column))
        else sql.SQL("r.{}").format(sql.Identifier(column))
        for column in columns
    ]
    names = sql.SQL(", ").join(map(sql.Identifier, columns))
    changed = await connection.execute(
        sql.SQL("UPDATE {} x SET ({}) = ROW({}) FROM {} WHERE x.id = %s").format(
            table, names, sql.SQL(", ").join(values), record
        ),
        (Jsonb(row), target_id),
    )
    if changed.rowcount or target == "message":
        return
    await connection.execute(
        sql.SQL("INSERT INTO {} (id, agent_id, {}) OVERRIDING SYSTEM VALUE SELECT %s, %s, {} FROM {}").format(
            table, names, sql.SQL(", ").join(values), record
        ),
        (target_id, agent, Jsonb(row)),
    )
    await kept(connection, target, target_id, row)
    if target in _SOURCE:
        await connection.execute(
            sql.SQL(
                """INSERT INTO sources (agent_id, message_id, {}, role) SELECT %s, s.message_id, %s, s.role
                   FROM jsonb_to_recordset(%s) AS s(message_id bigint, role text) WHERE EXISTS (SELECT 1 FROM messages m WHERE m.id = s.message_id)"""
            ).format(sql.Identifier(_SOURCE[target])),
            (agent, target_id, Jsonb(row.get("sources", []))),
        )


async def kept(connection: Connection, target: Target, target_id: int, row: Mapping[str, Any]) -> None:
    """Note that a row that was removed is no loss of its words: it is back, or they live on elsewhere."""
    await connection.execute("SELECT note_kept(%s, %s, %s::timestamptz)", (TABLES[target], target_id, row["created_at"]))


async def history(connection: Connection, *, target: Target | None = None, target_id: int | None = None) -> list[Change]:
    """The changes that stand in the log with their content, newest first; of one row where it is named."""
    cursor = await connection.execute(
        """SELECT l.id, l.at, l.actor, l.action, l.target, l.target_id, l.undoes, c.reason, c.before, c.after, c.row_before
           FROM memory_log l JOIN memory_log_content c ON c.log_id = l.id
           WHERE l.target = ANY(%s) AND (%s::text IS NULL OR l.target = %s) AND (%s::bigint IS NULL OR l.target_id = %s)
           ORDER BY l.id DESC LIMIT %s""",
        (list(TABLES), target, target, target_id, target_id, NEWEST),
    )
    rows = await cursor.fetchall()
    taken_back: set[int] = set()
    made = []
    for row in rows:  # newest first: whether an undoing stands is known before what it undid is reached
        undone = row["id"] in taken_back
        if row["undoes"] is not None and not undone:
            taken_back.add(row["undoes"])
        made.append(Change(**row, undone=undone))
    return made


def latest(changes: list[Change], wanted: int | None = None) -> Change | None:
    """The change to undo: the one of that number, else the newest that stands, was no undoing and can be undone."""
    if wanted is not None:
        return next((change for change in changes if change.id == wanted), None)
    return next((c for c in changes if c.undoes is None and not c.undone and reversible(c)), None)


def reversible(change: Change) -> bool:
    """Whether enough was kept to take a change back. Edits on the platform stand there; what was erased is gone."""
    if change.target_id is None:
        return False
    if change.target == "message":
        return change.row_before is not None
    # A forgetting is logged with neither before nor after: it is for good.
    return change.row_before is not None or (change.before is None and change.after is not None)
