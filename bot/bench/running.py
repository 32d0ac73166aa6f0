"""The whole bot running in this process, fed and listened to by a minimal adapter: inbox, worker, agent, outbox and everything beside."""

from __future__ import annotations

import asyncio
import itertools
import time
from collections.abc import AsyncIterator
from contextlib import AbstractAsyncContextManager, asynccontextmanager, nullcontext
from datetime import UTC, datetime, timedelta

from adapters.base import Bot, Incoming, Outgoing, Person, PlaceOf
from bot.app.runtime import PARTS, assembled
from bot.app.services import Services
from bot.bench.bulk import Owner
from bot.bench.stage import PLATFORM
from bot.engine.settings import EngineSettings
from memory.db import value

PATIENCE = 600.0


class StopwatchAdapter:
    """The platform: `ask` says something to the bot and returns when its answer was handed over, by the clock."""

    platform = PLATFORM
    channels = None
    limit = 100_000

    def __init__(self) -> None:
        self._bot: asyncio.Future[Bot] = asyncio.get_running_loop().create_future()
        self._waiting: dict[str, asyncio.Future[float]] = {}
        self._numbers = itertools.count(1)

    async def run(self, bot: Bot) -> None:
        """Lets `ask` use the bot, until cancelled."""
        self._bot.set_result(bot)
        await asyncio.Event().wait()

    async def send(self, outgoing: Outgoing) -> str:
        """The clock stops here."""
        at = time.perf_counter()
        answered = self._waiting.pop(outgoing.channel, None)
        if answered is not None and not answered.done():
            answered.set_result(at)
        return str(outgoing.outbox_id)

    async def find(self, outgoing: Outgoing) -> str | None:  # noqa: ARG002
        """Nothing is ever found."""
        return None

    def working(self, channel: str) -> AbstractAsyncContextManager[None]:  # noqa: ARG002
        """Shows nothing."""
        return nullcontext()

    async def say(self, user: str, text: str) -> asyncio.Future[float]:
        """Take a message in; the result comes when its answer is handed over."""
        bot = await self._bot
        answered: asyncio.Future[float] = asyncio.get_running_loop().create_future()
        self._waiting[user] = answered
        key = f"{user}-{next(self._numbers)}"
        await bot.receive(
            Incoming(
                "message",
                Person(PLATFORM, "", user, "Ada", timezone="UTC"),
                PlaceOf(PLATFORM, "", "", user, "direct", "Ada"),
                key,
                datetime.now(UTC),
                text,
                message_id=key,
            )
        )
        return answered

    async def ask(self, user: str, text: str) -> float:
        """Seconds from the message to its answer."""
        began = time.perf_counter()
        async with asyncio.timeout(PATIENCE):
            return await (await self.say(user, text)) - began


@asynccontextmanager
async def running_bot(services: Services, settings: EngineSettings) -> AsyncIterator[StopwatchAdapter]:
    """The bot with all its parts and one adapter, until the block ends."""
    adapter, stop = StopwatchAdapter(), asyncio.Event()
    async with assembled(services, [adapter], settings=settings, burst=timedelta()) as runtime:
        task = asyncio.create_task(runtime.run(PARTS, stop))
        try:
            yield adapter
        finally:
            stop.set()
            await task


async def at_rest(owner: Owner) -> None:
    """Returns when nothing is waiting, running or being sent any more."""
    while await value(  # noqa: ASYNC110  the database is asked, nobody here could set an event
        owner,
        """SELECT (SELECT count(*) FROM procrastinate_jobs WHERE status IN ('todo', 'doing'))
             + (SELECT count(*) FROM outbox WHERE state IN ('waiting', 'sending'))""",
    ):
        await asyncio.sleep(0.002)
