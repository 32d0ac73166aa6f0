"""One inference pass as a turn needs it: the person hears when it takes longer, and a model that is away puts the turn off."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime, timedelta

import psycopg

from bot.engine import turns
from bot.engine.events import TryAgainLater
from bot.model.errors import ContentRefused, ContextOverflow, ModelError, ModelRejected, ModelUnavailable
from bot.model.messages import ToolChoice
from bot.model.processor import Processor
from bot.model.replies import Reply
from bot.turn.pressure import Pressure
from bot.turn.state import AgentSettings, RunningTurn
from memory.db import Database
from memory.main_context import MainContext
from memory.spending import OverBudget

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Inference:
    """Asks the model on behalf of a turn. `clock` gives the time (aware)."""

    db: Database
    processor: Processor
    pressure: Pressure
    settings: AgentSettings
    clock: Callable[[], datetime]

    async def ask(self, turn: RunningTurn, context: MainContext, tool_choice: ToolChoice) -> Reply:
        """One model call. The person hears once that it takes longer; a model that is away puts the turn off.

        Raises ContextOverflow, ContentRefused and OverBudget, and any ModelError where a reminder cannot wait for the model.
        """
        reply: Reply | None = None
        failure: ModelError | OverBudget | None = None
        async with asyncio.TaskGroup() as group:
            patience = group.create_task(self._ask_for_patience(turn))
            try:
                # A reminder has its time: a model that is too slow for it does not speak it.
                async with asyncio.timeout(self.settings.patience.total_seconds() if turn.reminds else None):
                    reply = await self.processor.think(
                        turn.claim.agent,
                        "chat",
                        context.messages,
                        turn.offered,
                        tool_choice=tool_choice,
                        counted=context.tokens,
                        max_tokens=self.settings.reply_reserve,
                        watch=turn.stream.watch(plain=tool_choice == "none" and not turn.replied),
                    )
            except TimeoutError:
                failure = ModelUnavailable("too slow for a reminder")
            except (ModelError, OverBudget) as error:
                failure = error
            finally:
                patience.cancel()
                await turn.stream.settle()
        if reply is not None:
            if not turn.images:  # what a picture costs says nothing about the counting of text
                self.pressure.margin.learn(context.tokens, reply.prompt_seen or reply.usage.prompt_tokens)
            return reply
        assert failure is not None
        if isinstance(failure, ContextOverflow | ContentRefused | OverBudget):
            raise failure
        # A refusal (a wrong key) needs the operator: that takes longer, surely.
        if isinstance(failure, ModelRejected) or self._overdue(turn) <= timedelta():
            if turn.reminds:
                raise failure
            await self._say_waiting(turn)
        raise TryAgainLater(type(failure).__name__, failure.retry_after if isinstance(failure, ModelUnavailable) else None)

    def _overdue(self, turn: RunningTurn) -> timedelta:
        """How much of the person's patience is left."""
        first = min(event.created_at for event in turn.claim.events)
        return first + self.settings.patience - self.clock()

    async def _ask_for_patience(self, turn: RunningTurn) -> None:
        await asyncio.sleep(max(0.0, self._overdue(turn).total_seconds()))
        try:
            await self._say_waiting(turn)
        except psycopg.Error as error:
            # The answer is worth more than the line about it; the step will find out what is wrong with the database.
            log.warning("turn %d: the line about waiting was not sent: %s", turn.claim.turn, type(error).__name__)

    async def _say_waiting(self, turn: RunningTurn) -> None:
        if turn.claim.addressed and not turn.replied and not turn.stream.shown:
            await turns.notice(self.db, turn.claim, self.settings.waiting_line, now=self.clock())
