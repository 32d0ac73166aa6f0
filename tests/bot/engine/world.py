"""What the engine's tests look at and drive: people who write, the owner's view of all rows, a turn callable, a running worker."""

from __future__ import annotations

import asyncio
import itertools
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from typing import Any

import psycopg
from psycopg.rows import dict_row

from adapters.base import Incoming, Person, PlaceOf
from bot.app.runtime import engine_settings
from bot.bench.stage import keep_words
from bot.config.sections import EngineSection
from bot.engine import turns
from bot.engine.events import Claim
from bot.engine.inbox import Accepted, accept
from bot.engine.queue import Queue
from bot.engine.reception import Reception
from bot.engine.settings import EngineSettings
from bot.engine.worker import Worker
from memory.db import Database

NOW = datetime(2026, 11, 30, 12, 0, tzinfo=UTC)
QUICK = replace(
    engine_settings(EngineSection(debounce=0, shutdown_grace=0.3)),
    retry_first=0.02,
    retry_cap=0.1,
    poll=0.05,
    heartbeat=0.5,
    stalled=2.0,
    restart_first=0.05,
    outbox_poll=0.1,
)
_KEYS = itertools.count(1)


def place(external: str = "dm", kind: str = "direct", platform: str = "test") -> PlaceOf:
    return PlaceOf(platform, "", "" if kind == "direct" else "guild", external, kind)  # type: ignore[arg-type]


def message(text: str, user: str = "ada", where: PlaceOf | None = None, **changes: Any) -> Incoming:
    """A message that was never seen before, unless `key` says otherwise."""
    where = where or place(f"dm-{user}")
    values: dict[str, Any] = {"kind": "message", "key": f"m{next(_KEYS)}", "at": NOW, "text": text, **changes}
    return Incoming(person=Person(where.platform, "", user, user.title()), place=where, **values)


@dataclass
class World:
    """One database with its queue; `look` sees every row, as the owner does."""

    db: Database
    queue: Queue
    owner: psycopg.AsyncConnection[dict[str, Any]]
    settings: EngineSettings = QUICK
    at: datetime = NOW

    async def say(self, text: str, user: str = "ada", *, burst: float = 0.0, **changes: Any) -> Accepted:
        return await accept(self.db, message(text, user, **changes), burst=timedelta(seconds=burst), now=self.at)

    async def say_until_taken(self, text: str) -> None:
        """As a platform does that is not acknowledged: the same event again until it is taken."""
        event = message(text)
        for _ in range(20):
            with suppress(psycopg.OperationalError):
                await accept(self.db, event, burst=timedelta(), now=self.at)
                return
        raise AssertionError("never taken")

    async def claim(self, agent: int) -> Claim:
        found = await turns.claim(self.db, agent, self.at, self.settings)
        assert isinstance(found, Claim), found
        return found

    async def finish(self, claim: Claim, reply: str | None = None) -> None:
        async with turns.step(self.db, claim, now=self.at, finish="done") as step:
            await keep_words(step)
            if reply is not None:
                await step.reply(reply)

    async def look(self, statement: str, *arguments: Any) -> list[dict[str, Any]]:
        return await (await self.owner.execute(statement.encode(), arguments)).fetchall()

    async def column(self, statement: str, *arguments: Any) -> list[Any]:
        return [next(iter(row.values())) for row in await self.look(statement, *arguments)]

    async def one(self, statement: str, *arguments: Any) -> Any:
        (value,) = await self.column(statement, *arguments)
        return value

    async def jobs(self) -> list[dict[str, Any]]:
        return await self.look("SELECT * FROM procrastinate_jobs WHERE status IN ('todo', 'doing') ORDER BY id")

    async def at_rest(self) -> bool:
        """No event waits, no flag is up, no job is left."""
        return not await self.one(
            "SELECT (SELECT count(*) FROM events WHERE status = 0) + (SELECT count(*) FROM agents WHERE wake)"
            " + (SELECT count(*) FROM procrastinate_jobs WHERE status IN ('todo', 'doing'))"
        )


@asynccontextmanager
async def world(bot_url: str, owner_url: str, settings: EngineSettings = QUICK) -> AsyncIterator[World]:
    async with (
        Database(bot_url, size=10) as db,
        Queue(bot_url, settings, random=lambda: 0.0) as queue,
        await psycopg.AsyncConnection.connect(
            owner_url, autocommit=True, row_factory=dict_row, options="-c search_path=keepsake,procrastinate,public"
        ) as owner,
    ):
        yield World(db, queue, owner, settings)


@dataclass
class Turns:
    """A turn callable that notes what it was given, does what `acts` says (per turn, in order), and answers."""

    world: World
    acts: list[Callable[[Claim], Awaitable[None]]] = field(default_factory=list)
    seen: list[list[str]] = field(default_factory=list)
    claims: list[Claim] = field(default_factory=list)

    async def __call__(self, claim: Claim) -> None:
        self.seen.append([event.payload.get("text", event.kind) for event in claim.events])
        self.claims.append(claim)
        if self.acts:
            await self.acts.pop(0)(claim)
        if claim.fence.more is None:
            await self.world.finish(claim, "re " + " ".join(self.seen[-1]))


@asynccontextmanager
async def working(world: World, turn: Callable[[Claim], Awaitable[None]], **options: Any) -> AsyncIterator[Worker]:
    """A worker that runs while the block is open."""
    worker = Worker(world.db, world.queue, turn, world.settings, **options)
    task = asyncio.create_task(worker.run())
    try:
        yield worker
    finally:
        task.cancel()
        with suppress(asyncio.CancelledError):
            await task


def reception_of(db: Database, at: datetime = NOW) -> Reception:
    """The reception of a process that takes nothing in itself."""

    async def nothing(_: object) -> bool:
        return False

    async def no_command(*_: object, **__: object) -> None:
        return None

    async def unfollowed(_: object) -> None:
        return None

    return Reception(db, accept=nothing, follow=unfollowed, command=no_command, now=lambda: at)
