"""What a person does with a reminder of theirs: put it off, move it, end it. For buttons, commands and plain words alike.

The caller's transaction holds the agent's row; every change is logged as the person's own and can be undone.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime, timedelta
from typing import Any, Literal

from bot.speaking.saying import Set
from memory import log as memory_log
from memory import undo
from memory.db import Connection, value
from memory.zones import zone_named

Act = Literal["snooze", "move", "cancel", "done", "stop"]
KINDS = ("reminder", "follow_up")
_COLUMNS = "id, agent_id, place_id, kind, purpose, zone, wall_time, every, due_at, turn_id, message_id"


async def found(connection: Connection, number: int) -> dict[str, Any] | None:
    """A reminder or follow-up, waiting or over; None: there is none that may be seen here."""
    cursor = await connection.execute(
        f"SELECT {_COLUMNS} FROM timers WHERE id = %s AND kind = ANY (%s)",  # noqa: S608 - names of ours
        (number, list(KINDS)),
    )
    return await cursor.fetchone()


async def snooze(connection: Connection, row: Mapping[str, Any], minutes: int, now: datetime, turn: int | None = None) -> Set:
    """Let it come again in some minutes: a single one itself, of a recurring one a copy, so that its rhythm stays; one copy, however often."""
    due = now + timedelta(minutes=minutes)
    wall = due.astimezone(zone_named(row["zone"])).replace(tzinfo=None)
    [number, *_] = [row["id"]] if row["every"] is None else [*await _copies(connection, row), None]
    was = None
    if number is not None:
        was = await undo.snapshot(connection, "timer", number)
        await connection.execute(
            "UPDATE timers SET due_at = %s, wall_time = %s, floating = false, faults = 0 WHERE id = %s", (due, wall, number)
        )
    else:
        number = await value(
            connection,
            """INSERT INTO timers (agent_id, place_id, visibility, shareable, kind, floating, purpose, zone, wall_time, due_at, turn_id,
                 message_id, created_at)
               SELECT agent_id, place_id, visibility, shareable, kind, false, purpose, zone, %s, %s, turn_id, message_id, %s
               FROM timers WHERE id = %s RETURNING id""",
            (wall, due, now, row["id"]),
        )
    await _log(connection, row, "snooze", number, now, turn, was)
    return Set(number, row["purpose"], due, wall)


async def _copies(connection: Connection, row: Mapping[str, Any]) -> list[int]:
    """The numbers of what waits because a recurring one was put off."""
    cursor = await connection.execute(
        """SELECT id FROM timers WHERE id > %(id)s AND due_at IS NOT NULL AND every IS NULL AND NOT floating AND kind = %(kind)s
             AND place_id = %(place_id)s AND purpose = %(purpose)s AND turn_id IS NOT DISTINCT FROM %(turn_id)s
             AND message_id IS NOT DISTINCT FROM %(message_id)s ORDER BY id""",
        row,
    )
    return [each["id"] for each in await cursor.fetchall()]


async def move(
    connection: Connection, row: Mapping[str, Any], wall: datetime, due: datetime, every: str, zone: str, now: datetime
) -> Set:
    """Give it another time, and a recurrence where one was named; else it keeps its own."""
    every = every or row["every"] or ""
    was = await undo.snapshot(connection, "timer", row["id"])
    await connection.execute(
        "UPDATE timers SET due_at = %s, wall_time = %s, every = %s, zone = %s, floating = true, faults = 0 WHERE id = %s",
        (due, wall, every or None, zone or "UTC", row["id"]),
    )
    await _log(connection, row, "move", row["id"], now, None, was)
    return Set(row["id"], row["purpose"], due, wall, every)


async def finish(
    connection: Connection, row: Mapping[str, Any], act: Literal["done", "stop"], now: datetime, turn: int | None = None
) -> None:
    """It is done, or shall not come again: what of it was put off ends, and it itself where it does not recur or is not wanted any more."""
    for number in await _copies(connection, row) if row["every"] else ():
        await end(connection, {**row, "id": number}, act, now, turn)
    if row["due_at"] is not None and (act == "stop" or row["every"] is None):
        await end(connection, row, act, now, turn)


async def end(connection: Connection, row: Mapping[str, Any], act: Act, now: datetime, turn: int | None = None) -> None:
    """Let it come no more."""
    was = await undo.snapshot(connection, "timer", row["id"])
    await connection.execute("UPDATE timers SET due_at = NULL WHERE id = %s", (row["id"],))
    await _log(connection, row, act, row["id"], now, turn, was)


async def _log(
    connection: Connection,
    row: Mapping[str, Any],
    act: Act,
    number: int,
    now: datetime,
    turn: int | None,
    was: Mapping[str, Any] | None,
) -> None:
    await memory_log.record(
        connection,
        agent=row["agent_id"],
        place=row["place_id"],
        at=now,
        actor="person",
        action=f"/reminders {act}",
        target="timer",
        target_id=number,
        turn=turn,
        before=row["purpose"] if was else None,
        after=None if act in ("cancel", "done", "stop") else row["purpose"],
        row=was,
    )
