"""The composition root: what the command line asks for, on everything opened and closed in order.

services   servers inside, database, Redis, embedder, model client
runtime    the running parts: worker, adapters, scheduler
chatting   the terminal chat
here       serve, examine (doctor), and the parts for an operator's commands
"""

import asyncio
import os
import signal
import time
from collections.abc import AsyncIterator, Callable, Iterator, Sequence
from contextlib import asynccontextmanager, contextmanager, nullcontext

import psycopg

from adapters.base import Incoming, Served
from bot import health
from bot.app import platforms
from bot.app.examination import Examination
from bot.app.runtime import assembled, engine_settings, parts_for
from bot.app.services import Progress, Services, addresses, embedder_for, model_client, opened
from bot.commands.context import Parts
from bot.config import writing
from bot.config.findings import Away, Finding, StartError, wrong
from bot.config.loading import Loaded
from bot.embedded import EmbeddedError
from bot.engine.queue import Queue
from bot.health import Health
from bot.operations import doctor, endpoint
from memory import tokens
from memory.db import Database

AWAY_FOR = 60.0
"""Seconds for which a server process that starts waits for a database or Redis that does not answer."""
LOOK_AGAIN = 1.0
"""Seconds between two tries of it."""


async def serve(loaded: Loaded, *, parts: frozenset[str], progress: Progress) -> int:
    """The server process: the named parts until it is told to stop. Returns the exit code.

    A database or Redis that goes away while it starts is waited for: after a restart of the machine it may be the later one.
    """
    until = 0.0
    while True:
        began = time.monotonic()
        try:
            return await _opened_and_served(loaded, parts=parts, progress=progress)
        except (Away, psycopg.OperationalError, ExceptionGroup) as error:
            if not _away(error):
                raise
            now = time.monotonic()
            if not until or now - began > AWAY_FOR:  # a new trouble
                until = now + AWAY_FOR
                progress(f"The database or Redis does not answer; looking again for {AWAY_FOR:.0f} s ...")
            elif now > until:
                raise
        await asyncio.sleep(LOOK_AGAIN)


def _away(error: Exception) -> bool:
    """Whether nothing but the database or Redis that does not answer is told by an error, or by all of a group."""
    if isinstance(error, ExceptionGroup):
        return all(map(_away, error.exceptions))
    return isinstance(error, Away | psycopg.OperationalError)


async def _opened_and_served(loaded: Loaded, *, parts: frozenset[str], progress: Progress) -> int:
    async with opened(loaded, progress) as services:
        chosen = platforms.adapters(loaded, services.health, say=progress, db=services.db) if "adapters" in parts else []
        await _serve(loaded, services, chosen, parts=parts, progress=progress)
    return 2 if any(adapter.refused for adapter in chosen) else 0


async def _serve(
    loaded: Loaded, services: Services, chosen: Sequence[Served], *, parts: frozenset[str], progress: Progress
) -> None:
    bind = loaded.config.health.bind
    async with endpoint.looked_at(loaded, progress), assembled(services, chosen, say=progress) as runtime:
        try:
            async with health.serving(services.health, bind, lambda: _ready(services, chosen)) if bind else nullcontext():
                progress(f"Running: {', '.join(sorted(parts))}. SIGTERM or Ctrl-C ends it.")
                with stopping() as stop:
                    await runtime.run(parts, stop)
        except OSError as error:
            if bind and error.errno and "bind" in str(error):
                raise StartError(f"health.bind: {bind} cannot be used ({error.strerror}). Name a free address.") from error
            raise


async def _ready(services: Services, chosen: Sequence[Served]) -> bool:
    """The database answers, every platform is heard, and due timers are looked at."""

    async def database() -> None:
        async with services.db.bare() as connection:
            await connection.execute("SELECT 1")

    now = services.db.now
    state = await services.health.check("database", database, now())
    await services.health.check("redis", services.cache.ping, now())
    heard = [await services.health.check(adapter.platform, adapter.check, now()) for adapter in chosen]
    return state.well and all(one.well for one in heard) and services.health.timely(now())


@asynccontextmanager
async def operating(loaded: Loaded, *, progress: Progress) -> AsyncIterator[Parts]:
    """What an operator's commands need, without a running bot."""
    settings = engine_settings(loaded.config.engine)
    async with opened(loaded, progress) as services, Queue(services.at.database, settings, now=services.db.now) as queue:

        async def accept(_: Incoming) -> bool:
            raise StartError("this needs a running bot")

        yield parts_for(services, queue, accept)


async def examine(loaded: Loaded, *, fix: bool = False, progress: Progress) -> int:
    """`bot doctor`: a line for each finding. Returns 1 when something is wrong. `fix`: write the settings that mend it."""
    wrongs: list[Finding] = []

    def show(finding: Finding) -> None:
        wrongs.extend([finding] if not finding.well else [])
        print(f"{'✓' if finding.well else '✗'} {finding.what}" + (f"\n    → {finding.remedy}" if finding.remedy else ""))  # noqa: T201

    show(doctor.configuration(loaded))
    show(doctor.data_folder(loaded))
    try:
        async with addresses(loaded, progress) as at:
            found = await doctor.database(at.database, inside=at.inside)
            for finding in [*found, await doctor.redis(at.redis, inside=at.redis_inside)]:
                show(finding)
            await asyncio.to_thread(tokens.seed, loaded.data / "tokens")
            async with model_client(loaded, Health()) as (client, names):
                answers = True
                async for finding in Examination(loaded, client, names).findings():
                    answers &= finding.well or not finding.fatal
                    show(finding)
                if all(finding.well for finding in found):
                    async with Database(at.database, size=1) as db:
                        show(await doctor.timers(db))
                # An embedding model of an endpoint that does not answer is the same fault, told above.
                if all(finding.well for finding in found) and (answers or not loaded.config.model.embedding):
                    async with Database(at.database, size=4) as db:
                        show(await doctor.embedding(await embedder_for(loaded, db, client), db))
    except (EmbeddedError, StartError) as error:
        show(wrong(str(error), ""))
    return _told(loaded, wrongs, fix=fix)


def _told(loaded: Loaded, wrongs: Sequence[Finding], *, fix: bool) -> int:
    """The last lines of `bot doctor`, with what it wrote. Returns the exit code."""
    fixes = {key: value for finding in wrongs for key, value in finding.fixes.items()}
    if not wrongs:
        print("All is well.")  # noqa: T201
        return 0
    if fix and fixes:
        writing.write(loaded.file, fixes)
        for key, value in fixes.items():
            variable = f"KEEPSAKE__{key.replace('.', '__').upper()}"
            over = f" (but {variable} in the environment overrides it)" if variable in os.environ else ""
            print(f"{loaded.file.name}: {key} is {str(value).lower()} now{over}")  # noqa: T201
        print("Run `bot doctor` again.")  # noqa: T201
    else:
        could = " `bot doctor --fix` writes the settings for it into the configuration." if fixes else ""
        print(f"{len(wrongs)} of these need{'s' if len(wrongs) == 1 else ''} you.{could}")  # noqa: T201
    return 1


@contextmanager
def stopping(interrupt: Callable[[], None] | None = None) -> Iterator[asyncio.Event]:
    """An event that SIGTERM sets, a closed terminal's SIGHUP (unless it is ignored, as under nohup), and SIGINT unless `interrupt`
    is to be called for it."""
    loop, stop = asyncio.get_running_loop(), asyncio.Event()
    hangup = signal.getsignal(signal.SIGHUP) is not signal.SIG_IGN
    loop.add_signal_handler(signal.SIGTERM, stop.set)
    loop.add_signal_handler(signal.SIGINT, interrupt or stop.set)
    if hangup:
        loop.add_signal_handler(signal.SIGHUP, stop.set)
    try:
        yield stop
    finally:
        for number in (signal.SIGTERM, signal.SIGINT):
            loop.remove_signal_handler(number)
        if hangup:
            # Kernel and shell may each send one: the second must not break off the stopping of the servers.
            loop.remove_signal_handler(signal.SIGHUP)
            signal.signal(signal.SIGHUP, signal.SIG_IGN)
