"""What the bot says itself where a turn ends: about the timers that it set or did not set, about what is not
forgotten yet, and in place of a model that gave nothing."""

from __future__ import annotations

import logging
from collections.abc import Callable
from datetime import datetime

from adapters.catalogue import say
from bot.engine.turns import Step
from bot.functions import forget
from bot.functions.context import CallContext
from bot.speaking import appointments, reminders
from bot.turn.executor import Outcome
from bot.turn.state import RunningTurn
from bot.words.forgetting import asks_forgetting, claims_forgotten
from memory.agent_state import AgentState
from memory.fifo_queue import answering

log = logging.getLogger(__name__)


def unset(turn: RunningTurn, call: CallContext, outcome: Outcome) -> str:
    """What is about a timer in a turn that would end with none set; empty: nothing, or it was seen to."""
    if (
        outcome.ending not in ("yield", "apologise")
        or turn.claim.origin != "person"
        or call.timers
        or call.settled
        or call.asks & {"timer", "zone"}
    ):
        return ""
    return appointments.in_question(turn.claim, call.state, outcome.say)


async def appoint(step: Step, turn: RunningTurn, state: AgentState, about: str, count: Callable[[str], None]) -> None:
    """The bot's own line about what the turn set, or that it set nothing, below its reply."""
    if turn.claim.origin != "person":
        return
    await _deny(step, turn, state)
    if (turn.timers or turn.claim.resumed) and await appointments.show(step, state, turn.timers):
        return
    if about and not turn.asks:
        count("reminder_not_set")
        asked = bool(appointments.in_question(turn.claim, state, ()))
        await appointments.say_nothing_is_set(step, state, about, asked=asked)


async def _deny(step: Step, turn: RunningTurn, state: AgentState) -> None:
    """Where the person asked for something to be forgotten and the reply says that it is: the bot's own line that nothing is yet."""
    if not turn.claim.addressed or not any(map(asks_forgetting, turn.claim.said)):
        return
    begun = min(answering(state.queue), default=len(state.queue))
    replies = [message.content for message in state.queue[begun:] if message.role == "assistant" and message.kind == "message"]
    if any(map(claims_forgotten, replies)):
        await step.say(forget.LINE_STEP, say("forget.how", state.locale))  # unless the list itself is there


def own_words(turn: RunningTurn, outcome: Outcome, now: datetime, count: Callable[[str], None]) -> str:
    """What the bot says itself because the model gave nothing; empty: nothing is owed."""
    if outcome.ending == "remind":
        count("reminder_own_words")
        return reminders.in_own_words(reminders.due_in(turn.claim), now, turn.state.locale)
    if outcome.ending == "apologise" and turn.held:
        return turn.held
    if outcome.ending == "apologise":
        log.warning("turn %d of agent %d ends in the apology: the model gave no reply", turn.claim.turn, turn.claim.agent)
        return say("turn.apology", turn.state.locale)
    return ""
