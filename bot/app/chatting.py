"""The terminal chat: one person at this terminal, or a pipe, on everything that a bot has."""

import asyncio
import getpass
import os
import re
import sys
import time
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from dataclasses import replace
from datetime import timedelta

import psycopg
import tzlocal

from adapters.base import Person
from adapters.console import PLATFORM, ConsoleAdapter, Lines
from bot.app.modes import stopping
from bot.app.runtime import PARTS, assembled, engine_settings
from bot.app.services import Progress, opened
from bot.config.loading import Loaded
from bot.engine.loops import insist
from bot.operations import endpoint
from memory.db import Database, value
from memory.people import find_agent

CHAT_GRACE = 2.0
"""Seconds a running answer gets when a chat is left; then it is handed back and delivered at the next start."""
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
