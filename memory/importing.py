"""Bringing an export (`memory.export`, its JSON) into an agent of whom nothing is kept yet.

What is remembered and what was said comes in with new numbers, its places, sources, turns and its history of changes; vectors are made
anew. What the engine did (events, deliveries, costs) does not: it is over.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import psycopg
from psycopg import sql
from psycopg.types.json import Jsonb

from memory.db import Connection, Database, value
from memory.export import EXPORTED
from memory.messages import SEARCHABLE

FORMAT = "keepsake-export-1"
TABLES = (
    "turns",
    "documents",
    "messages",
    "working_context",
    "passages",
    "timers",
    "openers",
    "memory_requests",
    "memory_log",
    "memory_log_content",
    "sources",
    "fetched",
    "speaking",
)
"""In this order, so that what a row hangs on is there before it."""
_REFERS = {
    "place_id": "places",
    "conversation_id": "conversations",
    "turn_id": "turns",
    "document_id": "documents",
    "message_id": "messages",
    "entry_id": "working_context",
    "passage_id": "passages",
    "log_id": "memory_log",
    "undoes": "memory_log",
    "replaces": "working_context",
}
_NEEDED = frozenset({"place_id", "conversation_id", "log_id"})
_KINDS = {
    "working_context": "working_context",
    "passage": "passages",
    "message": "messages",
    "timer": "timers",
    "document": "documents",
    "summary": "conversations",
    "conversation": "conversations",
}

Numbers = dict[str, dict[int, int]]
"""By table, the new number of each old one."""


class NotImported(ValueError):
    """The file cannot be brought in; the text says why, for the operator."""


async def load_for(db: Database, platform: str, realm: str, user: str, data: Mapping[str, Any]) -> tuple[int, dict[str, int]]:
    """As `load`, for an account that need not be known yet: where the file is refused, the account is not made either.

    Returns its agent with the rows of each table.
    """
    async with db.bare() as connection:
        agent = await value(connection, "SELECT agent_of(%s, %s, %s, %s, NULL, NULL)", (platform, realm, user, user))
        return agent, await _checked(connection, agent, data)


async def load(db: Database, agent: int, data: Mapping[str, Any]) -> dict[str, int]:
    """Bring an export into an agent, all of it or nothing. Returns how many rows of each table came in. Raises NotImported."""
    async with db.bare() as connection:
        return await _checked(connection, agent, data)


async def _checked(connection: Connection, agent: int, data: Mapping[str, Any]) -> dict[str, int]:
    if data.get("format") != FORMAT:
        raise NotImported(f"this is no export of Keepsake's: its format is not {FORMAT}")
    try:
        return await _load(connection, agent, data)
    except (KeyError, TypeError, AttributeError, ValueError, psycopg.DataError, psycopg.IntegrityError) as error:
        if isinstance(error, NotImported):
            raise
        # The class alone: what the database says quotes the row.
        raise NotImported(f"it does not hold what an export holds ({type(error).__name__})") from None


async def _load(connection: Connection, agent: int, data: Mapping[str, Any]) -> dict[str, int]:
    numbers: Numbers = {table: {} for table in ("places", "conversations", *TABLES)}
    await connection.execute("SELECT enter(%s, NULL, true)", (agent,))
    mine = await (await connection.execute("SELECT platform, realm, user_id FROM identities")).fetchall()
    theirs = [{name: each[name] for name in ("platform", "realm", "user_id")} for each in data.get("identities", ())]
    if theirs and not any(each in theirs for each in mine):
        raise NotImported("it is the export of somebody else; bring it in for one of the accounts that it names")
    for place in data.get("places", ()):
        found = await value(
            connection,
            "SELECT import_place(%s, %s, %s, %s, %s, %s, %s)",
            (*(place[name] for name in ("platform", "realm", "workspace", "external_id", "kind", "name")), agent),
        )
        if found is None:
            raise NotImported("one of its direct messages is somebody else's")
        numbers["places"][place["id"]] = found
    await connection.execute("SELECT enter(%s, NULL, true)", (agent,))
    if await value(connection, "SELECT EXISTS (SELECT 1 FROM messages) OR EXISTS (SELECT 1 FROM working_context)"):
        raise NotImported("something is kept of that person already; an export comes in only where nothing is")
    counts = {"conversations": await _conversations(connection, data, numbers)}
    for table in TABLES:
        counts[table] = await _rows(connection, agent, table, data.get(table, ()), numbers)
    for person in data.get("agents", ())[:1]:
        await connection.execute(
            "UPDATE agents SET timezone = %s, locale = %s, paused = %s, version = version + 1",
            (person["timezone"], person["locale"], person["paused"]),
        )
    return counts


async def _conversations(connection: Connection, data: Mapping[str, Any], numbers: Numbers) -> int:
    last: dict[int, int] = {}
    for row in data.get("messages", ()):
        last[row["conversation_id"]] = max(last.get(row["conversation_id"], 0), row["position"])
    for row in data.get("conversations", ()):
        numbers["conversations"][row["id"]] = await value(
            connection,
            """UPDATE conversations SET summary = %s, summary_tail = %s, summary_visibility = %s, summary_from = %s, summary_to = %s,
                 lost_at = %s, fifo_start = %s, next_position = %s WHERE place_id = %s RETURNING id""",
            (
                *(row[name] for name in ("summary", "summary_tail", "summary_visibility", "summary_from", "summary_to")),
                row.get("lost_at"),
                (row["summary_to"] or 0) + 1,
                last.get(row["id"], 0) + 1,
                numbers["places"].get(row["place_id"]),
            ),
        )
    return len(numbers["conversations"])


async def _rows(connection: Connection, agent: int, table: str, rows: Sequence[Mapping[str, Any]], numbers: Numbers) -> int:
    made = [(row.get("id"), new) for row in rows if (new := _translated(table, row, numbers)) is not None]
    if not made:
        return 0
    numbered = "id" in EXPORTED[table]
    names = list(made[0][1])
    statement = sql.SQL("INSERT INTO {} (agent_id, {}) VALUES (%s, {}) {}").format(
        sql.Identifier(table),
        sql.SQL(", ").join(map(sql.Identifier, names)),
        sql.SQL(", ").join([sql.Placeholder()] * len(names)),
        sql.SQL("RETURNING id" if numbered else ""),
    )
    async with connection.cursor() as cursor:
        await cursor.executemany(statement, [(agent, *(new[name] for name in names)) for _, new in made], returning=numbered)
        for old, _ in made if numbered else ():
            found = await cursor.fetchone()
            assert found is not None
            assert old is not None
            numbers[table][old] = found["id"]
            cursor.nextset()
    return len(made)


def _translated(table: str, row: Mapping[str, Any], numbers: Numbers) -> dict[str, Any] | None:
    """A row as it comes in, under the new numbers; None where what it cannot be without is not there."""
    new: dict[str, Any] = {}
    for name in EXPORTED[table]:
        if name in ("id", "event_id"):
            continue
        old = row.get(name)
        if name in _REFERS:
            new[name] = None if old is None else numbers[_REFERS[name]].get(old)
            if new[name] is None and (name in _NEEDED and not (table == "sources" and old is None)):
                return None
        else:
            new[name] = _value(name, old)
    if new.get("shareable") and (new["kind"] == "quote" if table == "messages" else new.get("author_id")):
        new["shareable"] = False  # nobody shares somebody else's words
    finish = _BY_TABLE.get(table)
    return new if finish is None else finish(new, row, numbers)


def _value(name: str, old: Any) -> Any:
    if name == "sha256":
        return bytes.fromhex(old)
    return Jsonb(old) if name == "calls" and old is not None else old


def _message(new: dict[str, Any], row: Mapping[str, Any], _: Numbers) -> dict[str, Any]:
    return {**new, "searchable": row["kind"] in SEARCHABLE and not row.get("passing")}


def _turn(new: dict[str, Any], row: Mapping[str, Any], _: Numbers) -> dict[str, Any]:
    return {**new, "epoch": 0, "state": "failed" if row["state"] == "running" else row["state"]}


def _log(new: dict[str, Any], row: Mapping[str, Any], numbers: Numbers) -> dict[str, Any]:
    # A thing that is gone has no new number, and must not get somebody else's.
    known = numbers.get(_KINDS.get(row["target"], ""), {})
    return {**new, "target_id": None if row["target_id"] is None else known.get(row["target_id"])}


def _content(new: dict[str, Any], row: Mapping[str, Any], numbers: Numbers) -> dict[str, Any]:
    return {**new, "row_before": None if row.get("row_before") is None else Jsonb(_before(row["row_before"], numbers))}


def _before(row: Mapping[str, Any], numbers: Numbers) -> dict[str, Any]:
    """The row before a change, under the new numbers."""
    new: dict[str, Any] = {
        name: numbers[_REFERS[name]].get(old) if name in _REFERS and old is not None else old for name, old in row.items()
    }
    if "sources" in new:
        new["sources"] = [
            {**source, "message_id": numbers["messages"][source["message_id"]]}
            for source in new["sources"]
            if source["message_id"] in numbers["messages"]
        ]
    return new


def _source(new: dict[str, Any], _row: Mapping[str, Any], _numbers: Numbers) -> dict[str, Any] | None:
    derived = [name for name in ("entry_id", "passage_id", "conversation_id") if new[name] is not None]
    return new if new["message_id"] is not None and len(derived) == 1 else None


def _fetch(new: dict[str, Any], _row: Mapping[str, Any], _numbers: Numbers) -> dict[str, Any] | None:
    return new if new["turn_id"] is not None and (new["message_id"] or new["passage_id"]) else None


def _request(new: dict[str, Any], row: Mapping[str, Any], numbers: Numbers) -> dict[str, Any]:
    return {**new, "messages": [numbers["messages"][each] for each in row["messages"] if each in numbers["messages"]]}


_BY_TABLE: Mapping[str, Callable[[dict[str, Any], Mapping[str, Any], Numbers], dict[str, Any] | None]] = {
    "messages": _message,
    "turns": _turn,
    "memory_log": _log,
    "memory_log_content": _content,
    "sources": _source,
    "fetched": _fetch,
    "memory_requests": _request,
}
