"""The composition root: what the command line asks for, on everything opened and closed in order.

services   servers inside, database, Redis, embedder, model client
runtime    the running parts: worker, adapters, scheduler
here       chat, serve, examine (doctor), and the parts for an operator's commands
"""

import asyncio
import getpass
import os
import re
import signal
import sys
import time
from collections.abc import AsyncIterator, Callable, Iterator, Mapping, Sequence
from contextlib import asynccontextmanager, contextmanager, nullcontext
from dataclasses import replace
from datetime import timedelta

import psycopg
import tzlocal

from adapters.base import Incoming, Person, Served
from adapters.console import PLATFORM, ConsoleAdapter, Lines
from bot import health
from bot.app import platforms
from bot.app.examination import Examination
from bot.app.runtime import PARTS, assembled, engine_settings, parts_for
from bot.app.services import Progress, Services, addresses, embedder_for, model_client, opened
from bot.commands.context import Parts
from bot.config import writing
from bot.config.findings import Away, Finding, StartError, wrong
from bot.config.loading import Loaded
from bot.embedded import EmbeddedError
from bot.engine.loops import insist
from bot.engine.queue import Queue
from bot.health import Health
from bot.operations import doctor, endpoint
from memory import tokens
from memory.db import Database, value
from memory.people import find_agent

CHAT_GRACE = 2.0
"""Seconds a running answer gets when a chat is left; then it is handed back and delivered at the next start."""
AWAY_FOR = 60.0
"""Seconds for which a server process that starts waits for a database or Redis that does not answer."""
LOOK_AGAIN = 1.0
"""Seconds between two tries of it."""
LONGEST_WAIT = 600.0
"""Seconds a pipe waits for one answer at the least."""


async def chat(loaded: Loaded, *, progress: Progress, log: Callable[[Loaded], None]) -> int:
    """The terminal chat. Returns the exit code."""
    interactive = sys.stdin.isatty()
    async with opened(loaded, progress, after_attach=lambda: log(loaded)) as services:
        user = loaded.config.console.user or _system_user()
        person = Person(PLATFORM, "", user, user, locale=locale_of(os.environ), timezone=_zone())
        async with slot(services.at.database, user) as number:
            channel = user if number == 0 else f"{user}:{number}"
            patience = max(LONGEST_WAIT, loaded.config.turn.seconds + loaded.config.model.timeout)

            async def wait() -> None:
                if not await settled(services.db, person, channel, seconds=patience):
                    progress("No answer yet; it comes when the model answers, at the latest at your next visit.")

            console = ConsoleAdapter(
                person, channel, name=loaded.persona.name, settled=wait, lines=None if interactive else Lines(sys.stdin.fileno())
            )
            if loaded.rehearsal:
                progress("No model is connected: the rehearsal model answers, a set of rules and no language model (see README).")
            usual = engine_settings(loaded.config.engine, inside=services.at.inside)
            grace = min(CHAT_GRACE, usual.shutdown_grace)
            settings = replace(usual, shutdown_grace=grace, doubtful_after=5.0, send_timeout=4.0)
            burst = None if interactive else timedelta()
            async with (
                endpoint.looked_at(loaded, progress),
                assembled(services, [console], settings=settings, burst=burst, say=progress) as runtime,
            ):
                with stopping(console.interrupt if interactive else None) as stop:
                    await runtime.run(PARTS, stop)
    return 0


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


def _system_user() -> str:
    try:
        name = getpass.getuser()
    except (KeyError, OSError):  # an account without a name, as in a container
        name = "you"
    return re.sub(r"[:\s]", "_", name)[:64]


def _zone() -> str | None:
    try:
        return str(tzlocal.get_localzone_name() or "") or None
    except Exception as error:
        if type(error).__name__ not in ("ZoneInfoNotFoundError", "UnknownTimeZoneError", "ValueError"):
            raise
        return None


_UNSETTLED = """
SELECT EXISTS (SELECT FROM events e JOIN places p ON p.id = e.place_id
               WHERE e.status = 0 AND p.platform = %(platform)s AND p.realm = '' AND p.external_id = %(channel)s)
    OR EXISTS (SELECT FROM outbox WHERE platform = %(platform)s AND channel = %(channel)s AND state IN ('waiting', 'sending'))"""


def locale_of(environment: Mapping[str, str]) -> str | None:
    """The terminal's language and country, `de-DE` where LANG is de_DE.UTF-8; None where it has none."""
    said = next((environment[name] for name in ("LC_ALL", "LC_MESSAGES", "LANG") if environment.get(name)), "")
    name = said.partition(".")[0].replace("_", "-")
    return None if name in ("", "C", "POSIX") else name


async def settled(db: Database, person: Person, channel: str, *, seconds: float, every: float = 0.05) -> bool:
    """Wait until nothing of a channel waits for an answer or for sending; a turn that ends in silence is settled too.

    Returns False when that is not so after `seconds` (a model that stays away): what waits is kept and answered later.
    """
    until = time.monotonic() + seconds
    where = {"platform": person.platform, "channel": channel}

    async def waiting() -> bool:
        agent = await find_agent(db, person.platform, person.realm, person.user_id)
        if agent is None:
            return False
        async with db.agent(agent, everything=True) as connection:
            return bool(await value(connection, _UNSETTLED, where))

    while await insist("waiting for an answer", waiting, within=max(0.0, until - time.monotonic())):
        if time.monotonic() >= until:
            return False
        await asyncio.sleep(every)
    return True


@asynccontextmanager
async def slot(url: str, user: str) -> AsyncIterator[int]:
    """The lowest number that no other terminal of this person holds now. Held by a connection, so a killed process frees its own."""
    async with await psycopg.AsyncConnection.connect(url, autocommit=True, application_name="keepsake-console") as connection:
        number = 0
        while not await _taken(connection, user, number):
            number += 1
        yield number


async def _taken(connection: psycopg.AsyncConnection[tuple[bool]], user: str, number: int) -> bool:
    cursor = await connection.execute("SELECT pg_try_advisory_lock(hashtext('keepsake.console:' || %s), %s)", (user, number))
    row = await cursor.fetchone()
    return bool(row and row[0])
