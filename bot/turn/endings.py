"""What the bot says itself where a turn ends: about the timers that it set or did not set, and in place of a model that gave nothing."""

from __future__ import annotations

import logging
from collections.abc import Callable
from datetime import datetime

from adapters.catalogue import say
from bot.engine.turns import Step
from bot.functions.context import CallContext
from bot.speaking import appointments, reminders
from bot.turn.executor import Outcome
from bot.turn.state import RunningTurn
from memory.agent_state import AgentState

log = logging.getLogger(__name__)


def unset(turn: RunningTurn, call: CallContext, outcome: Outcome) -> str:
    """What is about a timer in a turn that would end with none set; empty: nothing, or it was seen to."""
    if outcome.ending != "yield" or turn.claim.origin != "person" or call.timers or call.settled or call.asks & {"timer", "zone"}:
        return ""
    return appointments.in_question(turn.claim, call.state, outcome.say)


async def appoint(step: Step, turn: RunningTurn, state: AgentState, about: str, count: Callable[[str], None]) -> None:
    """The bot's own line about what the turn set, or that it set nothing, below its reply."""
    if turn.claim.origin != "person":
        return
    if (turn.timers or turn.claim.resumed) and await appointments.show(step, state, turn.timers):
        return
    if about and not turn.asks:
        count("reminder_not_set")
        asked = bool(appointments.in_question(turn.claim, state, ()))
        await appointments.say_nothing_is_set(step, state, about, asked=asked)


def own_words(turn: RunningTurn, outcome: Outcome, now: datetime, count: Callable[[str], None]) -> str:
    """What the bot says itself because the model gave nothing; empty: nothing is owed."""
    if outcome.ending == "remind":
        count("reminder_own_words")
        return reminders.in_own_words(reminders.due_in(turn.claim), now, turn.state.locale)
    if outcome.ending == "apologise":
        log.warning("turn %d of agent %d ends in the apology: the model gave no reply", turn.claim.turn, turn.claim.agent)
        return say("turn.apology", turn.state.locale)
    return ""
