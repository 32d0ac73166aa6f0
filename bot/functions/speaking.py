"""Leave to speak first, and the time zone it needs, as the person says them in a direct message."""

from __future__ import annotations

import re
from dataclasses import replace
from datetime import time
from typing import Annotated

from pydantic import Field

from bot.engine.timers import known_zone
from bot.functions.context import CallContext, Refused
from bot.keeping.consent import yes_or_no
from memory import log
from memory.db import value


async def set_speaking_leave(
    context: CallContext,
    allowed: bool,
    quiet_from: Annotated[str, Field(description="22:00")] = "",
    quiet_to: str = "",
) -> str:
    """Note whether you may write first, only as the person themselves just said; with the quiet hours they name."""
    _their_own_words(context)
    said = _plain_answer(context)
    if said is not None and said is not allowed:
        raise Refused("The person said the opposite.")
    quiet = _clock(quiet_from), _clock(quiet_to)
    if (quiet[0] is None) != (quiet[1] is None):
        raise Refused("Give both quiet_from and quiet_to, as 22:00 and 08:00, or neither.")
    await context.connection.execute(
        """INSERT INTO speaking (agent_id, openers, decided_at, quiet_from, quiet_to)
           VALUES (%(agent)s, %(leave)s, %(now)s, %(from)s, %(to)s) ON CONFLICT (agent_id) DO UPDATE
           SET openers = excluded.openers, decided_at = excluded.decided_at,
             quiet_from = coalesce(excluded.quiet_from, speaking.quiet_from), quiet_to = coalesce(excluded.quiet_to, speaking.quiet_to)""",
        {"agent": context.claim.agent, "leave": "yes" if allowed else "no", "now": context.now, "from": quiet[0], "to": quiet[1]},
    )
    await _record(context, "leave to write first" if allowed else "no leave to write first")
    if not allowed:
        return "Noted: you do not write first. Do not ask again."
    missing = "" if context.state.zone else " Their time zone is unknown: ask where they live, then call set_time_zone."
    return f"Noted: you may write first now and then.{missing}"


async def set_time_zone(context: CallContext, zone: Annotated[str, Field(description="IANA, such as Europe/Berlin.")]) -> str:
    """Set the person's time zone: once as you infer it, then ask them, and again when they confirmed it."""
    _their_own_words(context)
    zone = zone.strip()
    if "/" not in zone and zone != "UTC" or not known_zone(zone):
        raise Refused(f"{zone[:40]!r} is no IANA time zone. Write one such as Europe/Berlin.")
    agent, turn = context.claim.agent, context.claim.turn
    cursor = await context.connection.execute("SELECT zone_guess, guess_turn FROM speaking WHERE agent_id = %s", (agent,))
    guess = await cursor.fetchone()
    confirmed = guess is not None and guess["zone_guess"] == zone and guess["guess_turn"] != turn
    if not confirmed:
        await context.connection.execute(
            """INSERT INTO speaking (agent_id, zone_guess, guess_turn) VALUES (%s, %s, %s)
               ON CONFLICT (agent_id) DO UPDATE SET zone_guess = excluded.zone_guess, guess_turn = excluded.guess_turn""",
            (agent, zone, turn),
        )
        return f"Not set yet. Ask the person whether {zone} is their time zone, and call this again when they said yes."
    if _plain_answer(context) is False:
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


def _plain_answer(context: CallContext) -> bool | None:
    texts = [str(event.payload.get("text", "")) for event in context.claim.events if event.kind == "message"]
    return yes_or_no(texts[-1]) if texts else None


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
        context.connection, agent=context.claim.agent, place=context.claim.place, at=context.now, actor="person", action=action,
        target="everything", target_id=None, turn=context.claim.turn, reason=context.reason,
    )  # fmt: skip
