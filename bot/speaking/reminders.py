"""Due reminders: what the bot says of them itself, so that each reaches its person whatever the model does.

A reminder that is alone in its turn is the model's to phrase. What the model leaves unsaid, what comes due together with something else,
and what became a dead letter is said here: its purpose in a plain line, several in one message. An event ends in the transaction that
says it, so neither a crash nor a replay says it again.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta
from typing import Any

from adapters.base import Button
from adapters.catalogue import say
from bot.engine.events import Claim, Event
from bot.engine.timers import LATE
from bot.engine.turns import say_after
from bot.speaking import saying
from bot.speaking.decision import may_speak
from bot.speaking.initiative import REMINDER_GRACE, Initiative, wants
from memory.db import Connection, value
from memory.queue_manager import span
from memory.working_context import one_line

log = logging.getLogger(__name__)

AT_ONCE = 1000
"""The most turns whose dead letters are looked at in one tick."""
# The bot's own rows in the outbox stand under steps that no turn reaches; the engine has -1 and -2.
_STEP = -3


def due_in(claim: Claim) -> tuple[Event, ...]:
    """The reminders among the events of a turn."""
    return tuple(event for event in claim.events if wants(event) == "reminder")


def in_own_words(reminders: Sequence[Event], now: datetime, locale: str = "") -> str:
    """One message of the bot's own for all of them, a line each."""
    return "\n".join(_line(event.payload, now, locale) for event in reminders)


def _line(payload: Mapping[str, Any], now: datetime, locale: str) -> str:
    late = now - datetime.fromisoformat(payload["due_at"])
    purpose = one_line(payload["purpose"])
    if late <= LATE:
        return say("remind.due", locale, purpose=purpose)
    return say("remind.due_late", locale, span=span(round(late.total_seconds())), purpose=purpose)


def buttons(reminders: Sequence[Event], locale: str) -> tuple[Button, ...]:
    """What a person can do with reminders at a press: put one off, finish it, end one that recurs; of several, put each off."""
    numbered = [(event.payload, f"t{event.payload['timer_id']}") for event in reminders if event.payload.get("timer_id")]
    if len(numbered) > 1:
        each = [(payload, number) for payload, number in numbered[: saying.MOST]]
        length = saying.span(timedelta(minutes=saying.SNOOZES[0]))
        return tuple(
            Button(
                say("remind.snooze_one", locale, span=length, purpose=one_line(payload["purpose"])[:40]),
                f"/reminders snooze {number} {saying.SNOOZES[0]}",
            )
            for payload, number in each
        )
    made: list[Button] = []
    for payload, number in numbered:
        made += [
            Button(
                say("remind.snooze", locale, span=saying.span(timedelta(minutes=minutes))),
                f"/reminders snooze {number} {minutes}",
            )
            for minutes in saying.SNOOZES
        ]
        made.append(Button(say("remind.done", locale), f"/reminders done {number}", "good"))
        made += [Button(say("remind.never", locale), f"/reminders stop {number}")] if payload.get("every") else []
    return tuple(made)


async def say_dead(initiative: Initiative, now: datetime) -> int:
    """Say the reminders whose turns were given up or stopped, where the person may be spoken to. Returns how many."""
    async with initiative.db.bare() as connection:
        cursor = await connection.execute("SELECT * FROM dead_reminders(%s, %s)", (now - REMINDER_GRACE, AT_ONCE))
        turns = await cursor.fetchall()
    said = 0
    for row in turns:
        async with initiative.db.agent(row["agent_id"], row["place_id"]) as connection:
            standing = await initiative.standing(connection, row["agent_id"], row["place_id"], row["turn_id"])
            if may_speak("reminder", now, standing, initiative.rules).may:
                said += await _say(connection, row["agent_id"], row["turn_id"], now)
    if said:
        initiative.count("reminder_rescued")
        log.warning("%d reminders whose turns came to nothing were said in the bot's own words", said)
    return said


async def _say(connection: Connection, agent: int, turn: int, now: datetime) -> int:
    # The agent before its events, as everywhere; two processes find the same rows, and one of them finds them done.
    await connection.execute("SELECT FROM agents WHERE id = %s FOR NO KEY UPDATE", (agent,))
    cursor = await connection.execute(
        """SELECT id, seq, kind, origin, payload, created_at, visibility FROM events
           WHERE turn_id = %s AND status = 2 AND kind = 'timer' AND payload->>'timer' = 'reminder' ORDER BY seq""",
        (turn,),
    )
    dead = [Event(**row) for row in await cursor.fetchall()]
    if dead:
        locale = await value(connection, "SELECT coalesce(locale, '') FROM agents WHERE id = %s", (agent,))
        said = in_own_words(dead, now, locale)
        await say_after(connection, turn, _STEP, said, now, buttons=buttons(dead, locale), notify=True)
        await connection.execute(
            "UPDATE events SET status = 1, done_at = %s, payload = payload - 'purpose' WHERE id = ANY (%s)",
            (now, [event.id for event in dead]),
        )
    return len(dead)
