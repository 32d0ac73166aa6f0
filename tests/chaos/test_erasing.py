"""People are erased while their turns run on several workers: nothing of them is left anywhere, and nothing is written back."""

from __future__ import annotations

import asyncio
import itertools
import json
import os
import random
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager, suppress
from dataclasses import replace
from datetime import UTC, datetime, timedelta

import psycopg
from psycopg import sql
from redis.asyncio import Redis

from adapters.base import Incoming, Person, PlaceOf, Quote
from bot.app.runtime import engine_settings
from bot.config.sections import EngineSection
from bot.embedded import Servers
from bot.engine import inbox
from bot.engine.queue import Queue
from bot.engine.worker import Worker
from memory import erasure
from memory.cache import Cache
from memory.db import Database, value
from tests.bot.dialogue import Dialogue, dialogue, packages, seen
from tests.conftest import Urls
from tests.servers.model import Delay, Request, call, reply
from tests.waiting import until

PEOPLE = int(os.environ.get("ERASED_PEOPLE", "10"))
WORKERS = 3
SEED = int(os.environ.get("SEED", "6"))
KEY = b"k" * 32
SETTINGS = replace(
    engine_settings(EngineSection(debounce=0, shutdown_grace=2, concurrency=20)),
    retry_first=0.02,
    retry_cap=0.2,
    poll=0.05,
    heartbeat=0.5,
    stalled=3.0,
)


def answers(request: Request) -> object:
    """Saves, searches and answers, each word beside the canary of whoever speaks: two words that several people's texts have in common would
    count as left of the one who is erased."""
    said = [str(each["message"]) for each in packages(request) if "type" not in each and "message" in each]
    if not said:
        return reply("Yes?")  # their message was forgotten meanwhile
    canary = said[-1][said[-1].rindex("CANARY") :][:10]
    if "answer now" not in seen(request).lower() and request.number % 2:
        steps = (
            call(
                "working_context_append",
                section="key_facts",
                content=f"{canary} likes {canary}n{request.number}.",
                request_heartbeat=True,
            ),
            call("archival_storage_insert", content=f"{canary} story {canary}n{request.number} sea {canary}", tags=[canary]),
            call("set_timer", purpose=f"{canary} again {canary}", in_minutes=600),
            call("recall_storage_search", query=canary),
        )
        return Delay(0.01, reply(None, *steps))
    return Delay(0.01, reply(f"{canary} said {canary}."))


@asynccontextmanager
async def workers(talk: Dialogue, urls: Urls, cache: Cache) -> AsyncIterator[None]:
    """Several workers, each with a pool and a queue of its own, as several processes have them."""
    async with AsyncExitStack() as stack:
        tasks = []
        for _ in range(WORKERS):
            db = await stack.enter_async_context(Database(urls.bot, size=6))
            queue = await stack.enter_async_context(Queue(urls.bot, SETTINGS))
            mine = Dialogue(db, talk.model, talk.client, queue, talk.settings, cache=cache, clock=[datetime.now(UTC)])
            tasks.append(asyncio.create_task(Worker(db, queue, mine.agent.turn, SETTINGS).run()))
        try:
            yield
        finally:
            for task in tasks:
                task.cancel()
            await asyncio.wait(tasks)


def incoming(user: str, number: int, others: list[str]) -> Incoming:
    """A message in the person's direct message or in the room that all share, there with somebody else's words."""
    person = Person("console", "", user, user.title())
    canary = canary_of(user)
    room = number % 2 and others
    place = PlaceOf("console", "", "w", "room", "public") if room else PlaceOf("console", "", "", f"dm-{user}", "direct")
    quotes = (
        tuple(Quote(f"console::{other}", other, f"I am {canary_of(other)} and I was here", "context") for other in others[:2])
        if room
        else ()
    )
    return Incoming(
        "message", person, place, f"{user}-{number}", datetime.now(UTC), f"I am {canary}, line {number}", quotes=quotes
    )


def canary_of(user: str) -> str:
    return f"CANARY{int(user.removeprefix('p')):04d}"


async def test_nothing_is_left_of_people_erased_while_their_turns_run(cluster: Servers, db: Database, urls: Urls) -> None:
    chance = random.Random(SEED)
    users = [f"p{number}" for number in range(PEOPLE)]
    gone = set(chance.sample(users, PEOPLE * 2 // 3))
    cache = Cache(cluster.redis_url)
    agents: dict[str, int] = {}
    stop = asyncio.Event()

    async with dialogue(db, policy=answers) as talk, workers(talk, urls, cache):

        async def talks(user: str) -> None:
            for number in itertools.count():
                if stop.is_set() or user in erased:
                    return
                # Nobody quotes who was erased: their platform shows it no more.
                near = [other for other in chance.sample(users, 3) if other != user and other not in erased]
                accepted = await inbox.accept(
                    db, incoming(user, number, near), burst=timedelta(), now=datetime.now(UTC), erasure_key=KEY
                )
                agents.setdefault(user, accepted.agent)
                with suppress(TimeoutError):
                    await asyncio.wait_for(stop.wait(), chance.uniform(0.2, 0.5))

        erased: set[str] = set()
        async with asyncio.TaskGroup() as group:
            talking = {user: group.create_task(talks(user)) for user in users}
            await until(lambda: _turns(urls, PEOPLE), timeout=60)
            for user in sorted(gone):
                asked = len(talk.model.requests) + chance.randrange(4)
                await until(lambda asked=asked: len(talk.model.requests) >= asked, timeout=60)  # type: ignore[misc]
                erased.add(user)
                await talking[user]  # what they are just sending is in, or refused
                found = await erasure.erase(db, cache, agents[user], actor="person", key=KEY, now=datetime.now(UTC))
                assert found.complete, replace(
                    found, removed={}, left={table: count for table, count in found.left.items() if count}
                )
            stop.set()
        await until(lambda: _at_rest(urls), timeout=60)

        for user in gone:
            async with db.bare() as connection:
                left = await value(connection, "SELECT residue(%s)", (agents[user],))
            assert not any(left.values()), (user, left)
            assert await cache.left(agents[user]) == 0
        texts = await _everything(urls, cluster)
        found_again = {user for user in gone if canary_of(user) in texts}
        where = [line[:1500] for line in texts.splitlines() if any(canary_of(user) in line for user in gone)]
        assert not found_again, f"words of {found_again} are still somewhere: {where[:3]}"
        assert all(canary_of(user) in texts for user in set(users) - gone), "the others are all there"
        assert " likes CANARY" in texts, "nobody had anything stored, so nothing was there to be erased but messages"
    await cache.close()
    async with Redis.from_url(cluster.redis_url) as redis:
        await redis.flushall()  # agents of other tests' databases have the same numbers


async def _turns(urls: Urls, count: int) -> bool:
    return int(str(await _ask(urls, "SELECT count(*) FROM keepsake.turns WHERE state = 'done'"))) >= count


async def _at_rest(urls: Urls) -> bool:
    return not await _ask(
        urls,
        "SELECT (SELECT count(*) FROM keepsake.events WHERE status = 0)"
        " + (SELECT count(*) FROM procrastinate.procrastinate_jobs WHERE status IN ('todo', 'doing'))",
    )


async def _ask(urls: Urls, statement: str) -> object:
    async with await psycopg.AsyncConnection.connect(urls.owner) as owner:
        row = await (await owner.execute(statement.encode())).fetchone()
    assert row is not None
    return row[0]


async def _everything(urls: Urls, cluster: Servers) -> str:
    """Every row of every table of both schemas, and everything in Redis, as one text. What quotes repeat in other people's replies is theirs."""
    parts: list[str] = []
    async with await psycopg.AsyncConnection.connect(urls.owner) as owner:
        names = await (
            await owner.execute("SELECT schemaname, tablename FROM pg_tables WHERE schemaname IN ('keepsake', 'procrastinate')")
        ).fetchall()
        for schema, table in names:
            rows = await (
                await owner.execute(sql.SQL("SELECT t::text FROM {} t").format(sql.Identifier(schema, table)))
            ).fetchall()
            parts += [f"{table}: {row[0]}" for row in rows]
    redis = Redis.from_url(cluster.redis_url)
    async for key in redis.scan_iter():
        parts += [str(key), json.dumps((await redis.get(key) or b"").decode(errors="replace"))]
    await redis.aclose()
    return "\n".join(parts)
