"""The running bot: worker, adapters and scheduler on opened services, put together and taken apart in order."""

import asyncio
import logging
from collections.abc import AsyncIterator, Awaitable, Callable, Collection, Sequence
from contextlib import asynccontextmanager
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from functools import partial
from math import ceil

import psycopg
from psycopg_pool import PoolTimeout

from adapters.base import Adapter, Answer, Changed, Incoming, Newest, Person, PlaceOf
from adapters.discord.settings import LIMIT
from bot import changes, commands, prompts
from bot.agent import Agent
from bot.commands.context import Parts
from bot.engine import deadletters, inbox
from bot.engine.events import Claim
from bot.engine.outbox import OutboxSender
from bot.engine.queue import Queue
from bot.engine.settings import EngineSettings
from bot.engine.signals import Outbound
from bot.engine.timers import Ticker
from bot.engine.upkeep import Upkeep
from bot.engine.worker import Turn, Worker
from bot.executor import Bounds
from bot.findings import StartError
from bot.pressure import Pressure
from bot.running_turn import AgentSettings
from bot.services import Services
from bot.waiting import patiently
from memory import tokens
from memory.embedding_filler import EmbeddingFiller

log = logging.getLogger(__name__)

PARTS = frozenset({"worker", "adapters", "scheduler"})
"""What `bot run --only` may name."""
PAGE_SIZE = 10
PATIENCE = timedelta(seconds=30)
WAITING = "This takes longer than usual; I am still on it."
APOLOGY = "Sorry, I could not answer that. Please try again, perhaps in other words."
REFUSED = "Sorry, my model does not take up what was said here, so I cannot answer it."
SPENT = "That was enough for today: my budget for our talks is used up. I keep what you write and answer again tomorrow (UTC)."
AWAY = "My memory does not answer right now. Please try again in a moment."
LAST_ROUND = 3.0
"""Seconds in which, at the end, the last answers still go out."""
INTAKE_PATIENCE = 60.0


def now() -> datetime:
    """The time; everything else gets it as an argument."""
    return datetime.now(UTC)


def engine_settings(services: Services) -> EngineSettings:
    """The engine's settings. On one machine, where all processes share them, a dead worker is noticed sooner."""
    config = services.loaded.config.engine
    settings = EngineSettings(
        burst=config.debounce, burst_cap=config.debounce_cap, max_attempts=config.attempts, give_up=config.give_up_hours * 3600,
        concurrency=config.concurrency, shutdown_grace=config.shutdown_grace, apology=APOLOGY,
    )  # fmt: skip
    return replace(settings, heartbeat=2.0, stalled=8.0, reap_every=2.0) if services.at.inside else settings


class Runtime:
    """One process of the bot. Made by `assembled`."""

    def __init__(self, services: Services, queue: Queue, adapters: Sequence[Adapter], *, burst: timedelta | None = None) -> None:
        self._services = services
        self._queue = queue
        self._adapters = adapters
        self._settings = queue.settings
        self._burst = timedelta(seconds=self._settings.burst) if burst is None else burst
        self._outbound = Outbound()
        self.parts = parts_for(services, queue, self.accept)

    async def accept(self, incoming: Incoming) -> bool:
        """Take an event in; durable when this returns. True when it was new."""
        accepted = await inbox.accept(
            self._services.db, self._queue, incoming, burst=self._burst, now=now(), erasure_key=self._services.erasure_key
        )
        self._services.health.count("accepted" if accepted.event_id is not None else "duplicate")
        return accepted.event_id is not None

    async def receive(self, incoming: Incoming) -> bool:
        """As `accept`, through a short absence of the database: the key makes it safe to ask again."""
        return await patiently(lambda: self.accept(incoming), INTAKE_PATIENCE)

    async def changed(self, changed: Changed) -> None:
        """Follow an edit or a deletion on a platform, through a short absence of the database."""
        await patiently(lambda: changes.follow(self._services.db, self._services.cache, changed), INTAKE_PATIENCE)

    async def newest(self, platform: str, since: datetime) -> list[Newest]:
        """The newest message taken in of each channel of a platform."""

        async def look() -> list[Newest]:
            async with self._services.db.bare() as connection:
                cursor = await connection.execute("SELECT * FROM newest_messages(%s, %s)", (platform, since))
                return [Newest(row["channel"], row["workspace"], row["message_id"]) for row in await cursor.fetchall()]

        return await patiently(look, INTAKE_PATIENCE)

    async def command(self, person: Person, place: PlaceOf, line: str, *, made_for: str | None = None) -> Answer | None:
        """A command line; None when it is none."""
        try:
            return await commands.run(self.parts, person, place, line, made_for=made_for)
        except (psycopg.OperationalError, PoolTimeout) as error:
            log.warning("a command failed: %s", type(error).__name__)
            return Answer(AWAY)

    async def run(self, only: Collection[str], stop: asyncio.Event) -> None:
        """Run the named parts until `stop` is set or every adapter has ended by itself; then end in order: no new events, the
        running turns within their grace, the last answers."""
        services, settings = self._services, self._settings
        async with asyncio.TaskGroup() as group:
            background: list[asyncio.Task[None]] = []
            workers: list[asyncio.Task[None]] = []
            intake: list[asyncio.Task[None]] = []
            senders: list[OutboxSender] = []
            if "worker" in only:
                worker = Worker(
                    services.db, self._queue, self._shown(self._agent().turn), settings, now=now, outbound=self._outbound
                )
                workers.append(group.create_task(worker.run(), name="worker"))
                background.append(group.create_task(EmbeddingFiller(services.db, services.meaning).run(), name="embeddings"))
            if "scheduler" in only:
                background.append(group.create_task(Ticker(services.db, self._queue, now=now).run(), name="timers"))
            if "scheduler" in only or "worker" in only:
                background.append(group.create_task(Upkeep(services.db, self._queue, settings).run(), name="upkeep"))
            if "adapters" in only:
                for adapter in self._adapters:
                    senders.append(OutboxSender(services.db, adapter, settings, now=now, outbound=self._outbound))
                    background.append(group.create_task(senders[-1].run(), name=f"sender {adapter.platform}"))
                    intake.append(group.create_task(adapter.run(self), name=f"adapter {adapter.platform}"))
            await _until(stop, intake)
            await _ended(intake)
            await _ended(workers)
            for sender in senders:
                await _last_round(sender)
            await _ended(background)

    def _shown(self, turn: Turn) -> Turn:
        """The turn, with a sign on the platform that the agent works at it, where one of this process's adapters serves the place."""
        adapters = {adapter.platform: adapter for adapter in self._adapters}

        async def shown(claim: Claim) -> None:
            platform, channel = await self._target(claim) if adapters and claim.origin == "person" else ("", "")
            adapter = adapters.get(platform)
            if adapter is None or (adapter.channels is not None and channel not in adapter.channels):
                return await turn(claim)
            async with adapter.working(channel):
                return await turn(claim)

        return shown

    async def _target(self, claim: Claim) -> tuple[str, str]:
        async with self._services.db.agent(claim.agent, claim.place) as connection:
            cursor = await connection.execute("SELECT platform, external_id FROM places WHERE id = %s", (claim.place,))
            row = await cursor.fetchone()
        return (row["platform"], row["external_id"]) if row else ("", "")

    def _agent(self) -> Agent:
        services, config = self._services, self._services.loaded.config
        bounds = config.turn
        settings = AgentSettings(
            chat_model=services.names.chat, summary_model=services.names.summary, budget=config.context.budget,
            warning=config.context.warning, flush=config.context.flush, evict=config.context.evict,
            reply_reserve=config.context.reply_reserve, page_size=PAGE_SIZE, patience=PATIENCE,
            bounds=Bounds(bounds.passes, bounds.memory_calls, bounds.memory_writes, bounds.seconds, bounds.tokens),
            waiting_line=WAITING, apology=APOLOGY, refused_line=REFUSED, spent_line=SPENT,
        )  # fmt: skip
        texts = prompts.load(services.names.chat, services.loaded.home / "prompts")
        count = partial(tokens.count, encoding=services.encoding)
        pressure = Pressure(services.db, services.processor, settings, texts, services.loaded.persona, count=count, clock=now)
        share = pressure.fixed_share()
        if share > config.context.fixed_limit:
            context = config.context
            # Rounded up to the next hundred: the window is rounded down, and so is what the model's margin leaves of it.
            least = (
                ceil((share * (context.budget - context.reply_reserve) / context.fixed_limit + context.reply_reserve) / 100) * 100
            )
            raise StartError(
                f"context.budget: instructions, functions and persona take {share:.0%} of it, more than context.fixed_limit "
                f"({config.context.fixed_limit:.0%}). Raise context.budget to {least}, or shorten the persona."
            )
        limits = {"discord": LIMIT, **{adapter.platform: adapter.limit for adapter in self._adapters}}
        return Agent(
            services.db, services.cache, services.processor, services.meaning, settings, pressure,
            clock=now, limits=limits, outbound=self._outbound,
        )  # fmt: skip


def parts_for(services: Services, queue: Queue, accept: Callable[[Incoming], Awaitable[bool]]) -> Parts:
    """What commands need, from opened services."""
    about = {
        "model": services.names.chat + (" (the rehearsal model, no language model)" if services.loaded.rehearsal else ""),
        "embedding": services.meaning.embedder.name if services.meaning.embedder else "none, searching by words only",
    }
    return Parts(
        db=services.db, cache=services.cache, accept=accept, vector=services.meaning.of, health=services.health,
        replay=partial(deadletters.replay, services.db, queue), data=services.loaded.data, erasure_key=services.erasure_key,
        operators=services.loaded.config.access.operators, about=about, now=now,
    )  # fmt: skip


@asynccontextmanager
async def assembled(
    services: Services, adapters: Sequence[Adapter], *, settings: EngineSettings | None = None, burst: timedelta | None = None
) -> AsyncIterator[Runtime]:
    """The runtime on opened services. With the data folder to ourselves, jobs that a killed process left are free at once."""
    chosen = settings or engine_settings(services)
    async with Queue(services.at.database, chosen, now=now) as queue:
        if services.at.alone:
            await Upkeep(services.db, queue, replace(chosen, stalled=0.0)).reap()
        yield Runtime(services, queue, adapters, burst=burst)


async def _until(stop: asyncio.Event, intake: Sequence[asyncio.Task[None]]) -> None:
    """Wait for the order to stop, or (with adapters) for the last of them to end."""
    asked = asyncio.ensure_future(stop.wait())
    ended = asyncio.ensure_future(asyncio.wait(intake)) if intake else None
    try:
        await asyncio.wait([asked, *([ended] if ended else [])], return_when=asyncio.FIRST_COMPLETED)
    finally:
        asked.cancel()
        if ended:
            ended.cancel()


async def _ended(tasks: Sequence[asyncio.Task[None]]) -> None:
    for task in tasks:
        task.cancel()
    if tasks:
        await asyncio.wait(tasks)


async def _last_round(sender: OutboxSender) -> None:
    try:
        async with asyncio.timeout(LAST_ROUND):
            while await sender.flush():  # noqa: ASYNC110 - rows wait in the database, which sets no event
                await asyncio.sleep(0.02)
    except (TimeoutError, psycopg.Error, PoolTimeout):
        return  # it is in the outbox and goes out at the next start
