"""Later, done, not again: said right after a reminder came, they act on it, by code. The agent is told, and confirms."""

from __future__ import annotations

from datetime import datetime, timedelta

from bot.engine.events import Claim
from bot.engine.turns import Step
from bot.speaking import rescheduling
from bot.speaking.saying import SNOOZES
from bot.words.reminding import answer_to_reminder
from memory.dates import when_in
from memory.messages import Draft

SAID = {
    "snooze": "The person put the reminder off, and that is done; the bot shows it. Confirm in a few words.",
    "done": "The person says that the reminder is done, and that is noted. Answer in a few words.",
    "stop": "The person does not want this reminder again, and it is ended. Confirm in a few words.",
}


def length_in(text: str) -> timedelta | None:
    """The length of time that a text names and nothing else."""
    when = when_in(text, datetime(2026, 1, 1))  # noqa: DTZ001 - how long, not when
    return None if when is None or when.rest else when.span


async def act(step: Step, claim: Claim) -> tuple[list[Draft], set[int]]:
    """Act on such an answer where a reminder was the last thing said: what the agent reads of it, and what comes again."""
    found = answer_to_reminder("\n".join(claim.said), length_in)
    if found is None or not claim.addressed:
        return [], set()
    cursor = await step.connection.execute(
        """SELECT DISTINCT (e.payload->>'timer_id')::bigint AS id FROM events e
           WHERE e.kind = 'timer' AND e.payload->>'timer' = 'reminder' AND e.turn_id = (
             SELECT turn_id FROM messages WHERE conversation_id = %s AND kind = 'message' AND turn_id IS DISTINCT FROM %s
             ORDER BY position DESC LIMIT 1)""",
        (claim.conversation, claim.turn),
    )
    numbers: set[int] = set()
    rows = [await rescheduling.found(step.connection, each["id"]) for each in await cursor.fetchall()]
    timers = [row for row in rows if row is not None]
    what, minutes = found
    for row in timers:
        if what == "snooze":
            numbers.add((await rescheduling.snooze(step.connection, row, minutes or SNOOZES[0], step.now, claim.turn)).id)
        else:
            await rescheduling.finish(step.connection, row, what, step.now, claim.turn)
    return ([Draft("user", "alert", SAID[what])] if timers else []), numbers
