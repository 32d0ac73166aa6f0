"""Timers the agent sets: reminders and follow-ups, in the person's local time."""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta, tzinfo
from typing import Annotated, Literal

from pydantic import Field

from bot.functions.context import CallContext, Refused
from bot.functions.requests import WORDS
from bot.keeping.decision import sensitive_kind
from bot.words.secrets import secrets
from memory import undo
from memory.working_context import one_line
from memory.zones import local

PURPOSE_LIMIT = 500
WAITING_LIMIT = 50
"""The most timers of one agent that wait at once."""
SAME = timedelta(minutes=2)
"""How far two ways of saying one time may be apart: the model wrote the one by the clock, the other in whole minutes."""
FARTHEST = timedelta(days=5 * 366)


async def set_timer(
    context: CallContext,
    purpose: str,
    at: Annotated[str, Field(description="Local, 2026-11-30T08:00.")] = "",
    in_minutes: Annotated[int, Field(ge=0)] = 0,
    every: Literal["", "day", "week", "month"] = "",
    own_idea: Annotated[bool, Field(description="They did not ask for it.")] = False,
) -> str:
    """Set a reminder, at a local time or in some minutes."""
    context.may_store()
    if found := secrets(purpose):
        raise Refused(f"The purpose holds a secret ({found[0].kind}), and such things are never stored. Leave it out.")
    if kind_of := sensitive_kind(purpose, context.rules.sensitive):
        raise Refused(
            f"The purpose tells of {WORDS[kind_of]}, which is not stored without the person's yes. Set the timer with a purpose that they "
            "will understand without it, such as “take the tablets” or “your appointment”."
        )
    zone = context.state.tz
    if at and in_minutes and _same(at, in_minutes, context.now, zone):
        in_minutes = 0
    if bool(at) == bool(in_minutes):
        raise Refused("Give either at or in_minutes.")
    try:
        due = context.now + timedelta(minutes=in_minutes) if in_minutes else _moment(at, zone)
    except OverflowError:
        due = None
    if due is None or not context.now < due <= context.now + FARTHEST:
        raise Refused(f"The time must lie ahead, at most five years. It is now {local(context.now, zone)}.")
    purpose = one_line(purpose)[:PURPOSE_LIMIT]
    if not purpose:
        raise Refused("Say what the timer is for.")
    cursor = await context.connection.execute(
        "SELECT count(*) AS n FROM timers WHERE due_at IS NOT NULL AND kind IN ('reminder', 'follow_up')"
    )
    row = await cursor.fetchone()
    if row and row["n"] >= WAITING_LIMIT:
        raise Refused(f"There are {WAITING_LIMIT} timers already. Cancel one that matters less.")
    # A turn that nobody asked for cannot make an appointment that a person asked for.
    kind = "follow_up" if own_idea or context.claim.origin != "person" else "reminder"
    floating = bool(every) or (not in_minutes and _on_their_clock(at, zone))
    wall = due.astimezone(zone).replace(tzinfo=None)
    cursor = await context.connection.execute(
        """INSERT INTO timers (agent_id, place_id, visibility, kind, floating, purpose, zone, wall_time, every, due_at, turn_id, created_at)
           VALUES (%s, %s, %s, %s, %s, %s, %s, %s, %s, %s, %s, %s) RETURNING id""",
        (
            context.claim.agent,
            context.claim.place,
            context.visibility,
            kind,
            floating,
            purpose,
            context.state.zone or "UTC",
            wall,
            every or None,
            due.astimezone(UTC),
            context.claim.turn,
            context.now,
        ),
    )
    row = await cursor.fetchone()
    assert row is not None
    await context.log("set_timer", "timer", row["id"], after=purpose)
    return f"Timer {row['id']} is set for {local(due, zone)}{f', every {every}' if every else ''}."


async def cancel_timer(context: CallContext, timer: int) -> str:
    """Cancel a timer."""
    was = await undo.snapshot(context.connection, "timer", timer)
    cursor = await context.connection.execute(
        "UPDATE timers SET due_at = NULL WHERE id = %s AND due_at IS NOT NULL AND kind IN ('reminder', 'follow_up')", (timer,)
    )
    if cursor.rowcount == 0:
        raise Refused("No waiting timer has that number. Use list_timers.")
    await context.log("cancel_timer", "timer", timer, before=was["purpose"] if was else None, row=was)
    return "Cancelled."


async def list_timers(context: CallContext) -> str:
    """The timers that wait, with their numbers."""
    cursor = await context.connection.execute(
        "SELECT id, due_at, every, purpose FROM timers WHERE due_at IS NOT NULL AND kind IN ('reminder', 'follow_up') ORDER BY due_at LIMIT 50"
    )
    rows = await cursor.fetchall()
    zone = context.state.tz
    return "\n".join(_line(row["id"], row["due_at"], zone, row["every"], row["purpose"]) for row in rows) or "No timer is set."


def _line(number: int, due: datetime, zone: tzinfo, every: str | None, purpose: str) -> str:
    return f"{number}: {local(due, zone)}{f', every {every}' if every else ''}: {purpose}"


def _moment(text: str, zone: tzinfo) -> datetime:
    try:
        found = _read(text)
    except ValueError:
        raise Refused(f"{text[:40]!r} is no time. Write 2026-11-30T08:00.") from None
    return found if found.tzinfo else found.replace(tzinfo=zone)


_AS_SHOWN = re.compile(r"(?:[A-Za-z]{3},? )?(\d{4}-\d\d-\d\d)[T ](\d\d:\d\d(?::\d\d)?) ?(Z|[+-]\d\d:\d\d)?")
"""A time as the status shows it, which models copy."""


def _read(text: str) -> datetime:
    if shown := _AS_SHOWN.fullmatch(text.strip()):
        text = f"{shown[1]}T{shown[2]}{shown[3] or ''}"
    return datetime.fromisoformat(text.strip().replace("Z", "+00:00"))


def _same(at: str, in_minutes: int, now: datetime, zone: tzinfo) -> bool:
    """Whether a model said the same time twice."""
    try:
        return abs(_moment(at, zone) - now - timedelta(minutes=in_minutes)) <= SAME
    except OverflowError:
        return False


def _on_their_clock(text: str, zone: tzinfo) -> bool:
    """Whether a time was given as the person reads it, so that it stays that time when their zone changes; else it is an instant."""
    found = _read(text)
    return found.tzinfo is None or found.utcoffset() == found.replace(tzinfo=None).replace(tzinfo=zone).utcoffset()
