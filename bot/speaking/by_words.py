"""Later, done, not again: said right after a reminder came, they act on it, by code. The agent is told, and confirms."""

from __future__ import annotations

import re
from datetime import datetime
from typing import Literal

from bot.engine.events import Claim
from bot.engine.turns import Step
from bot.speaking import rescheduling
from bot.speaking.saying import SNOOZES
from bot.words.level import level
from memory.dates import when_in
from memory.messages import Draft

LONGEST = 60
"""Characters of an answer that is nothing else."""
_LATER = re.compile(
    r"(?:please |bitte )?(?:snooze|later|not now|again|remind me (?:again )?(?:later)?|spater|nachher|nochmal|noch mal"
    r"|plus tard|rappelle[- ]moi plus tard"
    r"|mas tarde|luego|mas adelante|piu tardi|dopo|mais tarde|depois)\b(?P<rest>.*)"
)
_DONE = re.compile(
    r"(?:it's |its |ist |c'est |ya esta |e |esta )?(?:all )?(?:done|did it|finished|erledigt|gemacht|fertig|fait|hecho|listo|fatto|feito|pronto)"
)
_STOP = re.compile(
    r"(?:please |bitte )?(?:not again|never again|no more|stop(?: reminding me| it| that)?|nicht mehr|nie wieder|nie mehr|plus jamais|jamais plus"
    r"|nunca mas|no mas|mai piu|basta|nunca mais|nao mais)(?: please| bitte)?"
)
SAID = {
    "snooze": "The person put the reminder off, and that is done; the bot shows it. Confirm in a few words.",
    "done": "The person says that the reminder is done, and that is noted. Answer in a few words.",
    "stop": "The person does not want this reminder again, and it is ended. Confirm in a few words.",
}


def meant(text: str, now: datetime) -> tuple[Literal["snooze", "done", "stop"], int] | None:
    """What a short answer to a reminder says, with the minutes of a snooze; None: something else. `now`: naive."""
    said = level(text).strip(" .!…👍🙏")
    if len(said) > LONGEST or "?" in said:
        return None
    if _DONE.fullmatch(said):
        return "done", 0
    if _STOP.fullmatch(said):
        return "stop", 0
    later = _LATER.fullmatch(said)
    if later is None:
        return None
    rest = re.sub(r"^\s*(?:for|um|por|per|de|di)?\s*", "", later["rest"]).strip(" ,")
    if not rest:
        return "snooze", SNOOZES[0]
    when = when_in(f"in {rest}", now) or when_in(rest, now)
    return ("snooze", max(1, round(when.span.total_seconds() / 60))) if when and when.span and not when.rest else None


async def act(step: Step, claim: Claim) -> tuple[list[Draft], set[int]]:
    """Act on such an answer where a reminder was the last thing said: what the agent reads of it, and what comes again."""
    found = meant("\n".join(claim.said), step.now.replace(tzinfo=None))
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
            numbers.add((await rescheduling.snooze(step.connection, row, minutes, step.now, claim.turn)).id)
        else:
            await rescheduling.finish(step.connection, row, what, step.now, claim.turn)
    return ([Draft("user", "alert", SAID[what])] if timers else []), numbers
