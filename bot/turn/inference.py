"""One inference pass as a turn needs it: the person hears when it takes longer and why, and a model that is away puts the turn off."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from datetime import datetime, timedelta

import psycopg

from adapters.catalogue import say
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

PROBE = 16
"""Tokens of an answer that nobody reads; fewer are refused by some endpoints."""


@dataclass(frozen=True, slots=True)
class Inference:
    """Asks the model on behalf of a turn. `clock` gives the time (aware)."""

    db: Database
    processor: Processor
    pressure: Pressure
    settings: AgentSettings
    clock: Callable[[], datetime]

    async def ask(self, turn: RunningTurn, context: MainContext, tool_choice: ToolChoice) -> Reply:
        """One model call; a model that is away puts the turn off, and the person hears why where that takes longer.

        Raises ContextOverflow, ContentRefused and OverBudget, and any ModelError where a reminder cannot wait for the model.
        """
        failure: ModelError
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
        except (ContextOverflow, ContentRefused):
            raise
        except ModelError as error:
            failure = error
        else:
            if not turn.images:  # what a picture costs says nothing about the counting of text
                self.pressure.margin.learn(context.tokens, reply.prompt_seen or reply.usage.prompt_tokens)
            return reply
        finally:
            await turn.stream.settle()
        wait = failure.retry_after if isinstance(failure, ModelUnavailable) else None
        # A refusal (a wrong key) needs the operator: that takes longer, surely.
        if isinstance(failure, ModelRejected) or self._too_late(turn, wait):
            if turn.reminds:
                raise failure
            await self._say_waiting(turn, reason(failure))
        raise TryAgainLater(type(failure).__name__, wait)

    @asynccontextmanager
    async def patience(self, turn: RunningTurn) -> AsyncIterator[None]:
        """While the context is open, the person hears once that it takes longer, whatever the turn waits for."""
        task = asyncio.create_task(self._ask_for_patience(turn), name="patience")
        try:
            yield
        finally:
            task.cancel()
            await asyncio.wait({task})

    async def refuses(self, turn: RunningTurn, context: MainContext) -> bool:
        """Whether the content filter refuses a prompt; what the model would say to it is not wanted. Raises TryAgainLater."""
        try:
            await self.processor.think(
                turn.claim.agent,
                "chat",
                context.messages,
                turn.offered,
                tool_choice="none",
                counted=context.tokens,
                max_tokens=PROBE,
            )
        except ContentRefused as refused:
            return not refused.answer
        except (ModelError, OverBudget) as failure:
            raise TryAgainLater(type(failure).__name__) from None
        return False

    def _overdue(self, turn: RunningTurn) -> timedelta:
        """How much of the person's patience is left."""
        first = min(event.created_at for event in turn.claim.events)
        return first + self.settings.patience - self.clock()

    def _too_late(self, turn: RunningTurn, wait: float | None) -> bool:
        """Whether the next try would come when the person's patience is over. The queue's pauses double, so the next is as long as all before."""
        left = self._overdue(turn)
        waited = self.settings.patience - left
        return left < (waited if wait is None else timedelta(seconds=wait))

    async def _ask_for_patience(self, turn: RunningTurn) -> None:
        await asyncio.sleep(max(0.0, self._overdue(turn).total_seconds()))
        try:
            await self._say_waiting(turn)
        except psycopg.Error as error:
            # The answer is worth more than the line about it; the step will find out what is wrong with the database.
            log.warning("turn %d: the line about waiting was not sent: %s", turn.claim.turn, type(error).__name__)

    async def _say_waiting(self, turn: RunningTurn, why: str = "waiting") -> None:
        if turn.claim.addressed and not turn.replied and not turn.stream.shown:
            await turns.notice(self.db, turn.claim, say(f"turn.{why}", turn.state.locale), now=self.clock())


def reason(failure: ModelError) -> str:
    """Why an answer takes longer, as far as the person is concerned: the name of a line under `turn`."""
    if isinstance(failure, ModelRejected):
        return "refused"
    return "limited" if isinstance(failure, ModelUnavailable) and failure.limited else "away"
