"""Redis stopped, emptied or restarted changes no answer."""

from __future__ import annotations

import subprocess
import tempfile
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from pathlib import Path

import pytest
from redis.asyncio import Redis

from bot.embedded import Servers
from bot.embedded.programs import find
from memory.cache import Cache
from memory.db import Database
from tests.bot.dialogue import dialogue, seen
from tests.servers.model import call, reply
from tests.waiting import until


@pytest.fixture
async def cache(cluster: Servers) -> AsyncIterator[Cache]:
    opened = Cache(cluster.redis_url)
    yield opened
    await opened.close()


async def test_a_turn_from_the_cache_and_one_from_postgres_see_the_same(db: Database, cache: Cache, cluster: Servers) -> None:
    write = call("working_context_append", section="goals", content="Sail.")
    async with dialogue(db, reply("Noted.", write), reply("a"), reply("b")) as d:
        d.cache = cache
        await d.hear("I want to sail")
        async with Redis.from_url(cluster.redis_url) as redis:
            assert [key async for key in redis.scan_iter(match="keepsake:*")], "the state is cached"
        await d.hear("again")
        async with Redis.from_url(cluster.redis_url) as redis:
            await redis.flushall()
        await d.hear("and again")
        cached, fresh = d.model.requests[1].messages, d.model.requests[2].messages
        assert fresh[: len(cached) - 1] == cached[:-1]
        assert "Sail." in seen(d.model.requests[1])


async def test_a_cached_state_is_never_used_after_a_change_from_outside(db: Database, cache: Cache, cluster: Servers) -> None:
    write = call("working_context_append", section="goals", content="Sail.")
    async with dialogue(db, reply("Noted.", write), reply("ok")) as d:
        d.cache = cache
        await d.hear("I want to sail")
        [agent] = await d.rows("SELECT id FROM agents")
        async with db.agent(int(str(agent["id"])), everything=True) as connection:
            await connection.execute("DELETE FROM working_context")
            await connection.execute("UPDATE agents SET version = version + 1")
        await d.hear("What do I want?")
        assert "## goals" not in d.model.requests[-1].contents("system")[0]


async def test_the_cache_is_used(db: Database, cache: Cache, cluster: Servers) -> None:
    async with dialogue(db, reply("one"), reply("two")) as d:
        d.cache = cache
        await d.hear("first")
        # What the next turn would read from Postgres is changed behind its back, without a new version: only a cache hit hides it.
        [agent] = await d.rows("SELECT id FROM agents")
        async with db.agent(int(str(agent["id"])), everything=True) as connection:
            await connection.execute("UPDATE messages SET content = 'tampered'")
        await d.hear("second")
        assert "tampered" not in seen(d.model.requests[-1])


async def test_a_dead_redis_is_a_miss_and_is_found_again() -> None:
    folder = Path(tempfile.mkdtemp())
    cache = Cache(f"unix://{folder}/s.sock")
    async with _closing(cache):
        assert await cache.get("k") is None
        assert not cache.healthy
        await cache.put("k", {"a": 1})
        with _valkey(folder):
            await until(lambda: (folder / "s.sock").exists())
            cache._resume_at = 0.0
            await cache.put("k", {"a": 1})
            assert await cache.get("k") == {"a": 1}
            assert cache.healthy
        assert await cache.get("k") is None


async def test_forgetting_deletes_every_key_of_one_agent(cache: Cache) -> None:
    await cache.put("keepsake:7771:1:1:1:1", {"a": 1})
    await cache.put("keepsake:7771:2:1:1:1", {"a": 1})
    await cache.put("keepsake:77711:2:1:1:1", {"a": 1})
    assert await cache.forget(7771) == 2
    assert await cache.get("keepsake:7771:1:1:1:1") is None
    assert await cache.get("keepsake:77711:2:1:1:1") == {"a": 1}


@contextmanager
def _valkey(folder: Path) -> Iterator[None]:
    server = subprocess.Popen(
        [str(find().redis), "--port", "0", "--unixsocket", f"{folder}/s.sock", "--save", "", "--dir", str(folder)],
        stdout=subprocess.DEVNULL,
    )
    try:
        yield
    finally:
        server.kill()
        server.wait()


@asynccontextmanager
async def _closing(cache: Cache) -> AsyncIterator[None]:
    try:
        yield
    finally:
        await cache.close()
