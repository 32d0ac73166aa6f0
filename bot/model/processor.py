"""The processor: the language model as the agent uses it, with the models that stand in for it and the day's budgets.

Endpoints are tried in order. One that is away or refuses is left alone for a while, so that not every turn waits for it again.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Literal

from bot.model.calls import FunctionSchema
from bot.model.client import ModelClient
from bot.model.errors import ModelError, ModelRejected, ModelUnavailable
from bot.model.messages import ToolChoice
from bot.model.replies import Reply
from bot.model.stream import Watch
from memory.spending import Budgets

log = logging.getLogger(__name__)

Purpose = Literal["chat", "summary", "filter"]
REST = 30.0
"""Seconds that a failed endpoint is left alone while another one answers."""
_OF_THE_REQUEST = (400, 422)
"""Refusals of one request, which say nothing of the next: what one person writes must not send everybody to another model."""


@dataclass(frozen=True, slots=True)
class Endpoint:
    """A model at an endpoint."""

    client: ModelClient
    model: str


class Processor:
    """Makes model calls of a purpose, within the budgets of the person and the bot."""

    def __init__(
        self,
        endpoints: Mapping[Purpose, Sequence[Endpoint]],
        budgets: Budgets,
        *,
        clock: Callable[[], datetime],
        temperature: float | None = None,
    ) -> None:
        """`endpoints`: the model of each purpose first, then what stands in for it. `temperature` is for chat alone."""
        self._endpoints = endpoints
        self._budgets = budgets
        self._clock = clock
        self._temperature = temperature
        self._rests_until: dict[Endpoint, float] = {}

    async def think(
        self,
        agent: int,
        purpose: Purpose,
        messages: Sequence[Mapping[str, Any]],
        functions: Sequence[FunctionSchema] = (),
        *,
        tool_choice: ToolChoice = "auto",
        counted: int,
        max_tokens: int,
        watch: Watch | None = None,
    ) -> Reply:
        """One inference pass. `counted` are the prompt's tokens by our count, which the budgets are asked for together with `max_tokens`.

        `watch` is told of what the model has written so far; when another one stands in, from its beginning.

        Raises OverBudget, or the ModelError of the first endpoint when none answers.
        """
        failure: ModelError | None = None
        for endpoint in self._awake(self._endpoints[purpose]):
            taken = await self._budgets.reserve(agent, endpoint.model, prompt=counted, completion=max_tokens, now=self._clock())
            prompt = cached = completion = 0
            try:
                reply = await endpoint.client.complete(
                    endpoint.model,
                    messages,
                    functions,
                    tool_choice=tool_choice,
                    max_tokens=max_tokens,
                    temperature=self._temperature if purpose == "chat" else None,
                    watch=watch,
                )
                # An endpoint that reports nothing is charged by our own count.
                prompt, cached = reply.usage.prompt_tokens or counted, reply.usage.cached_tokens
                completion = reply.usage.completion_tokens
            except (ModelUnavailable, ModelRejected) as error:
                if isinstance(error, ModelRejected):
                    log.error("the endpoint of %s refuses: %s", endpoint.model, error)
                if not (isinstance(error, ModelRejected) and error.status in _OF_THE_REQUEST):
                    self._rests_until[endpoint] = asyncio.get_running_loop().time() + REST
                failure = failure or error
                continue
            finally:
                # Also when the call was cut off: what did not answer is not charged.
                await asyncio.shield(
                    self._budgets.settle(taken, endpoint.model, prompt=prompt, cached=cached, completion=completion)
                )
            self._rests_until.pop(endpoint, None)
            return reply
        assert failure is not None, "no endpoint for this purpose"
        raise failure

    def _awake(self, endpoints: Sequence[Endpoint]) -> list[Endpoint]:
        """The endpoints to try: those that do not rest; when all do, all."""
        now = asyncio.get_running_loop().time()
        awake = [endpoint for endpoint in endpoints if self._rests_until.get(endpoint, 0.0) <= now]
        return awake or list(endpoints)
