"""The running bot: worker, adapters and scheduler on opened services, put together and taken apart in order."""

import asyncio
import logging
from collections.abc import AsyncIterator, Awaitable, Callable, Collection, Sequence
from contextlib import asynccontextmanager
from dataclasses import replace
from datetime import timedelta
from functools import partial
from math import ceil
from typing import Any

import psycopg
from psycopg_pool import PoolTimeout

from adapters.base import Adapter, Answer, Changed, Incoming, Person, PlaceOf, Streams
from adapters.catalogue import in_every_language, say
from bot import commands
from bot.app import platforms, trials
from bot.app.agents import PATIENCE, agent_settings, prompts_of
from bot.app.services import Services
from bot.app.speaking_wiring import initiative_for, listening_for
from bot.commands.context import Parts
from bot.config.findings import StartError
from bot.config.sections import RESERVE, EngineSection
from bot.engine import changes, deadletters, inbox
from bot.engine.events import Claim
from bot.engine.loops import ended, forever
from bot.engine.outbox import OutboxSender
from bot.engine.queue import Queue
from bot.engine.reception import Reception
from bot.engine.settings import EngineSettings
from bot.engine.signals import Senders
from bot.engine.timers import Ticker
from bot.engine.upkeep import Upkeep
from bot.engine.worker import STOPPED_WITHIN, Turn, Worker
from bot.keeping.keeper import Keeper
from bot.keeping.notice import Notice, hosts_of
from bot.keeping.retention import Retention
from bot.speaking.reminders import say_dead
from bot.speaking.welcome import Welcome
from bot.turn.agent import Agent
from bot.turn.pressure import Pressure
from memory import tokens
from memory.embedding_filler import EmbeddingFiller
from memory.spending import Price

log = logging.getLogger(__name__)

PARTS = frozenset({"worker", "adapters", "scheduler"})
"""What `bot run --only` may name."""
LAST_ROUND = 3.0
"""Seconds in which, at the end, the last answers still go out."""
CLOCK_EVERY = 2.0
"""Seconds between two looks at the database's clock: after a machine was asleep, the time is wrong for so long."""


def engine_settings(chosen: EngineSection, *, inside: bool = False) -> EngineSettings:
    """The engine's settings. `inside`: on one machine, where all processes share the servers, a dead worker is noticed sooner."""
    settings = EngineSettings(
        burst=chosen.debounce,
        burst_cap=chosen.debounce_cap,
        patience=PATIENCE.total_seconds(),
        max_attempts=chosen.attempts,
        give_up=chosen.give_up_hours * 3600,
        concurrency=chosen.concurrency,
        shutdown_grace=chosen.shutdown_grace,
    )
    return replace(settings, heartbeat=2.0, stalled=8.0, reap_every=1.0) if inside else settings


class Runtime:
    """One process of the bot. Made by `assembled`."""

    def __init__(
        self,
        services: Services,
        queue: Queue,
        adapters: Sequence[Adapter],
        *,
        burst: timedelta | None = None,
        say: Callable[[str], None] = log.info,
    ) -> None:
        self._say = say
        self._services = services
        self._queue = queue
        self._adapters = adapters
        self._settings = queue.settings
        self._burst = timedelta(seconds=self._settings.burst) if burst is None else burst
        self._outbound = Senders()
        self._initiative = initiative_for(services, adapters)
        self._listening = listening_for(services, len)
        self._welcome = Welcome(
            services.db, services.loaded.config.welcome.text.strip(), services.erasure_key, adapters, services.health.count
        )
        self._filler = EmbeddingFiller(services.db, services.meaning)
        self.parts = parts_for(services, queue, self.accept)
        self.reception = Reception(services.db, accept=self.accept, follow=self.follow, command=self.command, now=services.db.now)

    async def accept(self, incoming: Incoming) -> bool:
        """Take an event in; durable when this returns. True when it was new.

        Of who joins nothing is kept, and a login is an event only where the bot may speak first.
        """
        if incoming.kind == "join":
            return await self._welcome.give(incoming, self._services.db.now())
        if incoming.kind == "login":
            person, place = incoming.person, incoming.place
            if not await self._initiative.wanted(
                person.platform, person.realm, person.user_id, place.external_id, self._services.db.now()
            ):
                return False
        accepted = await inbox.accept(
            self._services.db, incoming, burst=self._burst, now=self._services.db.now(), erasure_key=self._services.erasure_key
        )
        self._services.health.count("accepted" if accepted.event_id is not None else "duplicate")
        return accepted.event_id is not None

    async def follow(self, changed: Changed) -> None:
        """Follow an edit or a deletion on a platform."""
        await changes.follow(self._services.db, self._services.cache, changed, self._listening.edited)
        self._filler.wake()

    async def command(self, person: Person, place: PlaceOf, line: str, *, made_for: str | None = None) -> Answer | None:
        """A command line; None when it is none."""
        try:
            answer = await commands.run(self.parts, person, place, line, made_for=made_for)
        except (psycopg.OperationalError, PoolTimeout) as error:
            log.warning("a command failed: %s", type(error).__name__)
            return Answer(say("platform.memory_away", person.locale))
        self._filler.wake()
        return answer

    async def run(self, only: Collection[str], stop: asyncio.Event) -> None:
        """Run the named parts until `stop` is set or every adapter has ended by itself; then end in order: no new events, the
        running turns within their grace, the last answers."""
        services, settings = self._services, self._settings
        small = await self._small(stop) if "worker" in only else False
        async with asyncio.TaskGroup() as group:
            background: list[asyncio.Task[None]] = []
            workers: list[asyncio.Task[None]] = []
            intake: list[asyncio.Task[None]] = []
            senders: list[OutboxSender] = []
            if "worker" in only:
                worker = Worker(
                    services.db,
                    self._queue,
                    self._shown(self._agent(small).turn),
                    settings,
                    now=services.db.now,
                    outbound=self._outbound,
                )
                workers.append(group.create_task(worker.run(), name="worker"))
                filling = forever("embeddings", self._filler.run, every=60.0)
                background.append(group.create_task(filling, name="embeddings"))
            if "scheduler" in only:
                initiative = self._initiative
                ticker = Ticker(
                    services.db,
                    now=services.db.now,
                    decide=initiative.on_due,
                    also=(initiative.plan, partial(say_dead, initiative)),
                    count=services.health.count,
                    looked=lambda look: services.health.timers(look.at, look.error, look.put_off),
                )
                background.append(group.create_task(ticker.run(), name="timers"))
            if "scheduler" in only or "worker" in only:
                background.append(
                    group.create_task(Upkeep(services.db, self._queue, settings, now=services.db.now).run(), name="upkeep")
                )
                kept = Retention(
                    services.db,
                    services.cache,
                    services.loaded.config.retention,
                    services.loaded.data,
                    services.erasure_key,
                    now=services.db.now,
                )
                background.append(group.create_task(kept.run(), name="retention"))
            if "adapters" in only:
                for adapter in self._adapters:
                    senders.append(self._sender(adapter))
                    background.append(group.create_task(senders[-1].run(), name=f"sender {adapter.platform}"))
                    intake.append(group.create_task(adapter.run(self.reception), name=f"adapter {adapter.platform}"))
            clock = forever("reading the clock", services.db.read_clock, every=CLOCK_EVERY)
            background.append(group.create_task(clock, name="clock"))
            await _until(stop, intake)
            await _cancelled(intake)
            await _cancelled(workers, settings.shutdown_grace + 2 * STOPPED_WITHIN)
            for sender in senders:
                await _last_round(sender)
            await _cancelled(background)

    def _sender(self, adapter: Adapter) -> OutboxSender:
        number = self._queue.number
        return OutboxSender(
            self._services.db, adapter, self._settings, now=self._services.db.now, outbound=self._outbound, number=number
        )

    async def _small(self, stop: asyncio.Event) -> bool:
        """Whether the chat model is small; at its first start it is tried, until told to stop."""
        services = self._services
        look = asyncio.create_task(trials.small(services.loaded, services.model, services.names, self._say), name="model size")
        await _until(stop, [look])
        if look.done():
            return look.result()
        await _cancelled([look])
        return False

    def _shown(self, turn: Turn) -> Turn:
        """The turn, with a sign on the platform that the agent works at it, where one of this process's adapters serves the place."""
        adapters = {adapter.platform: adapter for adapter in self._adapters}

        async def shown(claim: Claim) -> None:
            adapter = adapters.get(claim.platform) if claim.origin == "person" else None
            if adapter is None or (adapter.channels is not None and claim.channel not in adapter.channels):
                return await turn(claim)
            async with adapter.working(claim.channel):
                return await turn(claim)

        return shown

    def _agent(self, small: bool) -> Agent:
        services, config = self._services, self._services.loaded.config
        settings = agent_settings(services.loaded, services.names, small=small)
        growing = {
            adapter.platform: adapter for adapter in self._adapters if isinstance(adapter, Streams) and adapter.pace is not None
        }
        texts = prompts_of(services.loaded, services.names, growing=bool(growing), small=small)
        count = partial(tokens.count, encoding=services.encoding)
        pressure = Pressure(
            services.db, services.processor, settings, texts, services.loaded.persona, count=count, clock=services.db.now
        )
        share = pressure.fixed_share()
        if share > config.context.fixed_limit:
            context = config.context
            # Rounded up to the next hundred: the window is rounded down, and so is what the model's margin leaves of it. The reserve
            # grows with the budget unless it is set.
            window = share * (context.budget - context.reply_reserve) / context.fixed_limit
            least = ceil((window + max(context.reply_reserve, min(RESERVE, window / 7))) / 100) * 100
            raise StartError(
                f"context.budget: instructions, functions and persona take {share:.0%} of it, more than context.fixed_limit "
                f"({config.context.fixed_limit:.0%}). Raise context.budget to {least}, or shorten the persona."
            )
        limits = {**platforms.limits(), **{adapter.platform: adapter.limit for adapter in self._adapters}}
        return Agent(
            services.db,
            services.cache,
            services.processor,
            services.meaning,
            settings,
            pressure,
            clock=services.db.now,
            limits=limits,
            outbound=self._outbound,
            growing=growing,
            initiative=self._initiative,
            listening=listening_for(services, count),
            notice=Notice(
                config.consent.notice if config.consent.notice is not None else in_every_language("notice.first"),
                config.consent.workspaces,
                hosts_of(config.model, rehearsal=services.loaded.rehearsal),
            ),
            keeper=Keeper(services.processor, count) if config.keeping.judge == "model" else None,
            stored=self._filler.wake,
        )


def parts_for(services: Services, queue: Queue, accept: Callable[[Incoming], Awaitable[bool]]) -> Parts:
    """What commands need, from opened services."""
    openers = services.loaded.config.openers
    return Parts(
        db=services.db,
        cache=services.cache,
        accept=accept,
        vector=services.meaning.of,
        health=services.health,
        replay=partial(deadletters.replay, services.db),
        data=services.loaded.data,
        erasure_key=services.erasure_key,
        operators=services.loaded.config.access.operators,
        model=services.names.chat,
        rehearsal=services.loaded.rehearsal,
        embedding=services.meaning.embedder.name if services.meaning.embedder else "",
        hosts=hosts_of(services.loaded.config.model, rehearsal=services.loaded.rehearsal),
        now=services.db.now,
        admins=services.loaded.config.access.admins,
        admins_see_direct=services.loaded.config.access.admins_see_direct,
        wake=queue.defer_wake,
        quiet=f"{openers.quiet_from:%H:%M}-{openers.quiet_to:%H:%M}",
        openers=openers.enabled,
        prices={
            name: Price(one.prompt, one.cached, one.completion) for name, one in services.loaded.config.budget.prices.items()
        },
    )


@asynccontextmanager
async def assembled(
    services: Services,
    adapters: Sequence[Adapter],
    *,
    settings: EngineSettings | None = None,
    burst: timedelta | None = None,
    say: Callable[[str], None] = log.info,
) -> AsyncIterator[Runtime]:
    """The runtime on opened services. Jobs that killed processes left are free at once; with the data folder to ourselves, what they were
    sending is looked up at once too."""
    chosen = settings or engine_settings(services.loaded.config.engine, inside=services.at.inside)
    async with Queue(services.at.database, chosen, now=services.db.now) as queue:
        await Upkeep(services.db, queue, now=services.db.now).reap(at_once=True)
        if services.at.alone:
            async with services.db.bare() as connection:
                await connection.execute("SELECT doubt_sending(%s)", (services.db.now(),))
        yield Runtime(services, queue, adapters, burst=burst, say=say)


async def _until(stop: asyncio.Event, intake: Sequence[asyncio.Task[Any]]) -> None:
    """Wait for the order to stop, or (with adapters) for the last of them to end."""
    asked = asyncio.ensure_future(stop.wait())
    ended = asyncio.ensure_future(asyncio.wait(intake)) if intake else None
    try:
        await asyncio.wait([asked, *([ended] if ended else [])], return_when=asyncio.FIRST_COMPLETED)
    finally:
        asked.cancel()
        if ended:
            ended.cancel()


async def _cancelled(tasks: Sequence[asyncio.Task[Any]], patience: float = STOPPED_WITHIN) -> None:
    for task in tasks:
        task.cancel()
    await ended(tasks, patience=patience)


async def _last_round(sender: OutboxSender) -> None:
    try:
        async with asyncio.timeout(LAST_ROUND):
            while await sender.flush():  # noqa: ASYNC110 - rows wait in the database, which sets no event
                await asyncio.sleep(0.02)
    except (TimeoutError, psycopg.Error, PoolTimeout):
        return  # it is in the outbox and goes out at the next start
