"""Leave to speak first, and the time zone it needs, as the person says them in a direct message.

A yes to either is their own, to the bot's question (`bot.keeping.consent`): the model can bring the question about, not the answer.
"""

from __future__ import annotations

import re
from dataclasses import replace
from datetime import time
from typing import Annotated

from pydantic import Field

from bot.functions.context import CallContext, Refused
from bot.keeping import consent
from bot.words.answers import yes_or_no
from memory import log
from memory.db import value
from memory.zones import known_zone


async def set_speaking_leave(
    context: CallContext, allowed: bool, quiet_from: Annotated[str, Field(description="22:00")] = "", quiet_to: str = ""
) -> str:
    """When the person speaks of whether you may write first, or of quiet hours."""
    _their_own_words(context)
    leave = await value(context.connection, "SELECT openers FROM speaking WHERE agent_id = %s", (context.claim.agent,))
    if allowed and leave == "no":
        raise Refused("They said no once. Only they can change that, by /settings openers on; tell them so if they ask for it.")
    if allowed and leave != "yes" and not context.may_ask:
        raise Refused("The operator has it switched off that you write first.")
    if not allowed and _said(context) is True:
        raise Refused("The person said the opposite.")
    quiet = _clock(quiet_from), _clock(quiet_to)
    if (quiet[0] is None) != (quiet[1] is None):
        raise Refused("Give both quiet_from and quiet_to, as 22:00 and 08:00, or neither.")
    await context.connection.execute(
        """INSERT INTO speaking (agent_id, openers, decided_at, quiet_from, quiet_to)
           VALUES (%(agent)s, %(leave)s, %(decided)s, %(from)s, %(to)s)
           ON CONFLICT (agent_id) DO UPDATE
           SET openers = excluded.openers, decided_at = coalesce(excluded.decided_at, speaking.decided_at),
             quiet_from = coalesce(excluded.quiet_from, speaking.quiet_from), quiet_to = coalesce(excluded.quiet_to, speaking.quiet_to)""",
        {
            "agent": context.claim.agent,
            "leave": (leave or "unasked") if allowed else "no",
            "decided": None if allowed else context.now,
            "from": quiet[0],
            "to": quiet[1],
        },
    )
    if not allowed:
        await _record(context, "no leave to write first")
        return "Noted: you do not write first. Tell them that /settings openers on changes it, and do not ask again."
    if leave != "yes":
        context.asks.add("leave")
        context.unfinished = True
        return "Not noted yet: the question for it is put to them below your reply; do not ask it yourself. Their plain yes is noted then."
    missing = "" if context.state.zone else " Their time zone is unknown: ask where they live, then call set_time_zone."
    return f"Noted: you may write first now and then.{missing}"


async def set_time_zone(context: CallContext, zone: Annotated[str, Field(description="Europe/Berlin")]) -> str:
    """Set the person's time zone: as you infer it (they are asked), and again after their yes."""
    _their_own_words(context)
    context.may_store()
    zone = zone.strip()
    if "/" not in zone and zone != "UTC" or not known_zone(zone):
        raise Refused(f"{zone[:40]!r} is no IANA time zone. Write one such as Europe/Berlin.")
    agent, turn = context.claim.agent, context.claim.turn
    cursor = await context.connection.execute(
        "SELECT guess_turn FROM speaking WHERE agent_id = %s AND zone_guess = %s", (agent, zone)
    )
    guess = await cursor.fetchone()
    answered = await consent.answer(context.connection, context.claim, "zone")
    if guess is None or answered is None or answered.turn != guess["guess_turn"]:
        await context.connection.execute(
            """INSERT INTO speaking (agent_id, zone_guess, guess_turn) VALUES (%s, %s, %s)
               ON CONFLICT (agent_id) DO UPDATE SET zone_guess = excluded.zone_guess, guess_turn = excluded.guess_turn""",
            (agent, zone, turn),
        )
        context.asks.add("zone")
        context.unfinished = True
        return (
            f"Not set yet. The question whether {zone} is their time zone is put to them below your reply; do not ask it yourself. Call this "
            "again when they said yes."
        )
    if not answered.yes:
        raise Refused("The person said no. Ask which it is.")
    await context.connection.execute("UPDATE speaking SET zone_guess = NULL, guess_turn = NULL WHERE agent_id = %s", (agent,))
    before = await value(context.connection, "SELECT timezone FROM agents WHERE id = %s", (agent,))
    await context.connection.execute("UPDATE agents SET timezone = %s WHERE id = %s", (zone, agent))
    context.state = replace(context.state, zone=zone)
    await _record(context, "set_time_zone")
    return f"The time zone is {zone} now{f', no longer {before}' if before else ''}; timers keep their time on the clock."


def _their_own_words(context: CallContext) -> None:
    if not context.claim.addressed or context.state.place.kind != "direct":
        raise Refused("Only when the person says so themselves, in their direct message.")


def _said(context: CallContext) -> bool | None:
    return yes_or_no("\n".join(context.claim.said))


def _clock(text: str) -> time | None:
    if not text.strip():
        return None
    if not re.fullmatch(r"\s*\d{1,2}(:\d{2})?\s*", text):
        raise Refused(f"{text[:20]!r} is no time. Write 22:00.")
    hour, _, minute = text.strip().partition(":")
    try:
        return time(int(hour) % 24, int(minute or 0))
    except ValueError:
        raise Refused(f"{text[:20]!r} is no time. Write 22:00.") from None


async def _record(context: CallContext, action: str) -> None:
    await log.record(
        context.connection,
        agent=context.claim.agent,
        place=context.claim.place,
        at=context.now,
        actor="person",
        action=action,
        target="everything",
        target_id=None,
        turn=context.claim.turn,
        reason=context.why,
    )
