"""Timers the agent sets: reminders that the person asked for, and ideas of its own, which need leave or their yes.

What makes a reminder is the words that asked for it, compared by code (`bot.functions.timing`). Whatever is set the bot itself shows below
the reply (`bot.speaking.appointments`).
"""

from __future__ import annotations

from datetime import datetime, tzinfo
from typing import Annotated, Any

from pydantic import Field

from bot.functions.context import CallContext, Refused
from bot.functions.requests import WORDS
from bot.functions.timing import Asked, Moment, asked_by, moment
from bot.keeping.decision import sensitive_kind
from bot.speaking.saying import repeats
from bot.words.secrets import secrets
from memory import undo
from memory.db import value
from memory.working_context import one_line
from memory.zones import local

PURPOSE_LIMIT = 500
WAITING_LIMIT = 50
"""The most timers of one agent that wait at once."""
_WAITING = "due_at IS NOT NULL AND kind IN ('reminder', 'follow_up')"


async def set_timer(
    context: CallContext,
    purpose: str,
    asked: Annotated[str, Field(description="Their words that ask for it, verbatim. Your idea: none.")] = "",
    at: Annotated[str, Field(description="Local: 2026-11-30T08:00.")] = "",
    in_minutes: Annotated[float, Field(ge=0)] = 0.0,
    every: Annotated[str, Field(description="day, weekdays, month, or RRULE: FREQ=MONTHLY;BYDAY=-1FR;COUNT=6.")] = "",
) -> str:
    """Set a reminder."""
    context.may_store()
    if found := secrets(purpose):
        raise Refused(f"The purpose holds a secret ({found[0].kind}), and such things are never stored. Leave it out.")
    if kind_of := sensitive_kind(purpose, context.rules.sensitive):
        raise Refused(
            f"The purpose tells of {WORDS[kind_of]}, which is not stored without the person's yes. Set the timer with a purpose that they "
            "will understand without it, such as “take the tablets” or “your appointment”."
        )
    purpose = one_line(purpose)[:PURPOSE_LIMIT]
    if not purpose:
        raise Refused("Say what the timer is for.")
    asking = await asked_by(context, asked)
    found_moment = moment(context, at, in_minutes, every, asking)
    number = await _there(context, purpose, found_moment)
    if number is not None:
        context.timers.add(number)
        return f"Timer {number} is set for that already; nothing was set twice."
    if asking is None and await _needs_yes(context):
        return await _propose(context, purpose, found_moment)
    number = await _again(context, purpose, found_moment, asking) if asking is not None and asking.again else None
    if number is None:
        # Without words a turn cannot make an appointment that a person asked for.
        number = await _insert(context, "reminder" if asking else "follow_up", purpose, found_moment, asking)
        await context.log("set_timer", "timer", number, after=purpose)
    context.timers.add(number)
    again = f", {repeats(found_moment.every, found_moment.wall, 'en')}" if found_moment.every else ""
    return f"Timer {number} is set for {local(found_moment.due, context.state.tz)}{again}. The bot shows it to them below your reply."


async def _there(context: CallContext, purpose: str, found: Moment) -> int | None:
    """A timer that waits for the same at the same time."""
    rows = await context.rows(
        f"""SELECT id, purpose FROM timers WHERE {_WAITING} AND coalesce(every, '') = %s
            AND due_at BETWEEN %s::timestamptz - interval '1 min' AND %s::timestamptz + interval '1 min'""",  # noqa: S608
        found.every,
        found.due,
        found.due,
    )
    return next((row["id"] for row in rows if _level(row["purpose"]) == _level(purpose)), None)


async def _again(context: CallContext, purpose: str, found: Moment, asked: Asked) -> int | None:
    """Where a message is answered once more, what it set the first time takes the new form, so that nothing rings twice."""
    rows = await context.rows(
        f"SELECT id, purpose FROM timers WHERE {_WAITING} AND message_id = %s AND turn_id IS DISTINCT FROM %s ORDER BY id",  # noqa: S608
        asked.message,
        context.claim.turn,
    )
    if not rows:
        return None
    number: int = next((row for row in rows if _level(row["purpose"]) == _level(purpose)), rows[0])["id"]
    was = await undo.snapshot(context.connection, "timer", number)
    await context.connection.execute(
        """UPDATE timers SET purpose = %s, zone = %s, wall_time = %s, every = %s, due_at = %s, floating = %s, turn_id = %s, faults = 0
           WHERE id = %s""",
        (
            purpose,
            context.state.zone or "UTC",
            found.wall,
            found.every or None,
            found.due,
            found.floating,
            context.claim.turn,
            number,
        ),
    )
    await context.log("set_timer", "timer", number, before=was["purpose"] if was else None, after=purpose, row=was)
    return number


async def _needs_yes(context: CallContext) -> bool:
    """Whether an idea of the agent's own needs the person's yes: they gave no leave to be written to first."""
    leave = await value(context.connection, "SELECT openers FROM speaking WHERE agent_id = %s", (context.claim.agent,))
    if leave == "yes":
        return False
    if not context.claim.addressed:
        raise Refused("They did not ask for it and gave no leave to be written to first. Leave it.")
    return True


async def _propose(context: CallContext, purpose: str, found: Moment) -> str:
    """Keep an idea until the person has answered the bot's own question; one at a time."""
    await context.connection.execute("DELETE FROM timers WHERE kind = 'proposal'")
    await _insert(context, "proposal", purpose, found, None)
    context.asks.add("timer")
    context.unfinished = True
    return (
        "Not set: it is your own idea. Whether they want to be reminded is asked below your reply; do not ask it yourself, and promise nothing. "
        "Their plain yes sets it."
    )


async def _insert(context: CallContext, kind: str, purpose: str, found: Moment, asked: Asked | None) -> int:
    if kind != "proposal" and await value(context.connection, f"SELECT count(*) FROM timers WHERE {_WAITING}") >= WAITING_LIMIT:  # noqa: S608
        raise Refused(f"There are {WAITING_LIMIT} timers already. Cancel one that matters less.")
    number: int = await value(
        context.connection,
        """INSERT INTO timers (agent_id, place_id, visibility, kind, floating, purpose, zone, wall_time, every, due_at, turn_id, message_id,
             created_at) VALUES (%s, %s, %s, %s, %s, %s, %s, %s, %s, %s, %s, %s, %s) RETURNING id""",
        (
            context.claim.agent,
            context.claim.place,
            context.visibility,
            kind,
            found.floating,
            purpose,
            context.state.zone or "UTC",
            found.wall,
            found.every or None,
            None if kind == "proposal" else found.due,
            context.claim.turn,
            asked.message if asked else None,
            context.now,
        ),
    )
    return number


def _level(purpose: str) -> str:
    return one_line(purpose).casefold().strip(" .!")


async def cancel_timer(context: CallContext, timer: int) -> str:
    """Cancel a timer."""
    was = await undo.snapshot(context.connection, "timer", timer)
    cursor = await context.connection.execute(f"UPDATE timers SET due_at = NULL WHERE id = %s AND {_WAITING}", (timer,))  # noqa: S608
    if cursor.rowcount == 0:
        raise Refused("No waiting timer has that number. Use list_timers.")
    context.timers.discard(timer)
    context.settled = True
    await context.log("cancel_timer", "timer", timer, before=was["purpose"] if was else None, row=was)
    return "Cancelled."


async def list_timers(context: CallContext) -> str:
    """The timers that wait, with their numbers."""
    rows = await context.rows(
        f"SELECT id, due_at, wall_time, every, purpose FROM timers WHERE {_WAITING} ORDER BY due_at LIMIT 50"  # noqa: S608
    )
    context.settled = True
    return "\n".join(_line(row, context.state.tz) for row in rows) or "No timer is set."


def _line(row: dict[str, Any], zone: tzinfo) -> str:
    due: datetime = row["due_at"]
    again = f", {repeats(row['every'], row['wall_time'], 'en')}" if row["every"] else ""
    return f"{row['id']}: {local(due, zone)}{again}: {row['purpose']}"
