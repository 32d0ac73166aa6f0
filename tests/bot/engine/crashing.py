"""A PostgreSQL of a test's own that crashes, and comes back: many people write meanwhile, and everything they were told was taken is looked for.

Its log is written out only when a commit asks for it, so whatever is not on disk when it should be is lost for certain.
"""

from __future__ import annotations

import asyncio
import itertools
import json
import os
import re
import shutil
import signal
import tempfile
from collections import defaultdict
from collections.abc import Awaitable, Callable, Iterator
from contextlib import AbstractAsyncContextManager, contextmanager, nullcontext, suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Literal

import psycopg
from psycopg.rows import dict_row

from adapters.base import Bot, Incoming, Outgoing
from bot.embedded import Lease, Servers, attach
from bot.engine.inbox import accept
from memory.db import Database
from memory.migrations import migrate
from tests.bot.engine.world import message, place
from tests.servers.model import Request
from tests.waiting import until

Crash = Literal["backend", "quit", "kill"]
"""kill -9 of one backend (all others are ended with it), SIGQUIT to the postmaster, or kill -9 of it."""
TOKEN = re.compile(r"\b[a-z]+\d+w\d+\b")


@dataclass
class Fragile:
    """The servers, and how to crash the one that counts."""

    folder: Path
    leases: list[Lease]

    @property
    def servers(self) -> Servers:
        return self.leases[0].servers

    def owner(self) -> psycopg.Connection[dict[str, object]]:
        options = "-c search_path=keepsake,procrastinate,public"
        return psycopg.connect(self.servers.owner_url, autocommit=True, row_factory=dict_row, options=options)

    async def crash(self, how: Crash) -> None:
        """Returns when the database takes connections again."""
        await asyncio.to_thread(self._crash, how)

    def _crash(self, how: Crash) -> None:
        postmaster = int(next(self.folder.rglob("postmaster.pid")).read_text().split("\n", 1)[0])
        if how == "backend":
            with psycopg.connect(self.servers.admin_url, autocommit=True) as admin:
                [(victim,)] = admin.execute("SELECT pg_backend_pid()").fetchall()
                os.kill(victim, signal.SIGKILL)
        else:
            os.kill(postmaster, signal.SIGQUIT if how == "quit" else signal.SIGKILL)
        self.leases.append(attach(self.folder))


@contextmanager
def fragile() -> Iterator[Fragile]:
    """A migrated PostgreSQL for the time of the block."""
    top = Path(tempfile.mkdtemp(prefix="ks-crash-"))
    top.chmod(0o711)
    leases = [attach(top / "data")]
    try:
        migrate(leases[0].servers.owner_url)
        with psycopg.connect(leases[0].servers.admin_url, autocommit=True) as admin:
            for setting in ("fsync = off", "full_page_writes = off", "wal_writer_delay = '10s'"):
                admin.execute(f"ALTER SYSTEM SET {setting}".encode())
            admin.execute("SELECT pg_reload_conf()")
        yield Fragile(top / "data", leases)
    finally:
        for lease in leases:
            lease.release()
        shutil.rmtree(top, ignore_errors=True)


@dataclass
class Platform:
    """Shows what it is sent, and crashes the database at some of the messages: they have arrived, and nobody can write that down."""

    crash_at: Callable[[int], Awaitable[None]]
    channels: None = None
    platform: str = "test"
    limit: int = 2000
    shown: dict[str, list[str]] = field(default_factory=lambda: defaultdict(list))
    ids: dict[int, str] = field(default_factory=dict)
    numbers: Iterator[int] = field(default_factory=lambda: itertools.count(1))

    async def run(self, bot: Bot) -> None:
        raise NotImplementedError

    async def send(self, outgoing: Outgoing) -> str:
        assert outgoing.outbox_id not in self.ids, "sent twice, or a number given to two messages"
        self.shown[outgoing.channel].append(outgoing.text)
        self.ids[outgoing.outbox_id] = f"id-{outgoing.outbox_id}"
        await self.crash_at(next(self.numbers))
        return self.ids[outgoing.outbox_id]

    async def find(self, outgoing: Outgoing) -> str | None:
        return self.ids.get(outgoing.outbox_id)

    def working(self, channel: str) -> AbstractAsyncContextManager[None]:
        return nullcontext()


@dataclass
class Crowd:
    """Many people who write at once; a message that is not taken is delivered again, as platforms do."""

    people: int
    messages: int
    read: dict[str, asyncio.Event] = field(default_factory=lambda: defaultdict(asyncio.Event))

    def said(self, person: int) -> list[str]:
        return [f"person{person}w{number}" for number in range(self.messages)]

    async def write(self, db: Database) -> None:
        """Everybody writes on as soon as the model has read what they wrote before, which is long before they are answered."""
        async with asyncio.TaskGroup() as group:
            for person in range(self.people):
                group.create_task(self._person(db, person))

    async def _person(self, db: Database, person: int) -> None:
        for word in self.said(person):
            await _deliver(db, message(f"Please remember {word}", f"person{person}", place(f"dm-{person}"), at=datetime.now(UTC)))
            await self.read[word].wait()

    def answer(self, request: Request) -> str:
        """The model: repeats what was said to it last."""
        words: list[str] = []
        for each in itertools.takewhile(lambda said: said["role"] == "user", reversed(request.messages)):
            words = [*TOKEN.findall(json.dumps(each["content"])), *words]
        for word in words:
            self.read[word].set()
        return " ".join(words)

    def audit(self, fragile: Fragile, platform: Platform) -> list[str]:
        """What is wrong: everything taken must be answered and stand in recall storage, once and in order."""
        wrong: list[str] = []
        with fragile.owner() as owner:
            stored: dict[str, list[str]] = defaultdict(list)
            for row in owner.execute(
                """SELECT p.external_id AS channel, m.content FROM messages m JOIN places p ON p.id = m.place_id
                   WHERE m.role = 'user' AND m.kind = 'message' ORDER BY m.conversation_id, m.position"""
            ):
                stored[str(row["channel"])] += TOKEN.findall(str(row["content"]))
            undone = owner.execute("SELECT id, status, last_error FROM events WHERE status <> 1").fetchall()
            wrong += [f"event {row}" for row in undone]
            unsent = owner.execute("SELECT id, state FROM outbox WHERE state <> 'sent'").fetchall()
            wrong += [f"outbox {row}" for row in unsent]
        for person in range(self.people):
            said, channel = self.said(person), f"dm-{person}"
            if stored[channel] != said:
                wrong.append(f"{channel}: recall storage has {stored[channel]}")
            answered = [word for text in platform.shown[channel] for word in TOKEN.findall(text)]
            if answered != said:
                wrong.append(f"{channel}: answered was {answered}")
        return wrong


async def _deliver(db: Database, event: Incoming) -> None:
    async def taken() -> bool:
        with suppress(psycopg.OperationalError):
            await accept(db, event, burst=timedelta(), now=datetime.now(UTC))
            return True
        return False

    await until(taken, timeout=120, every=0.05)  # a platform delivers again
