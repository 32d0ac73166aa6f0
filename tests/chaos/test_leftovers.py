"""What is left over is found in a real database, in Redis and among real processes: each is planted once."""

from __future__ import annotations

import sys
from asyncio import create_subprocess_exec
from contextlib import suppress
from dataclasses import replace
from pathlib import Path

from redis.asyncio import Redis

from bot.embedded import Servers, lease
from memory.db import Database
from tests.bot.dialogue import dialogue
from tests.chaos.stores import LEFT, Stores, left_behind
from tests.conftest import Urls
from tests.servers.model import call, reply
from tests.waiting import until

PLANTS = {
    "jobs": "INSERT INTO procrastinate_jobs (queue_name, task_name, lock) VALUES ('default', 'wake', 'agent:1')",
    "wake flags": "UPDATE agents SET wake = NOT wake",
    "rows without a vector": "INSERT INTO unembedded (agent_id, passage_id) SELECT agent_id, id FROM passages ON CONFLICT DO NOTHING",
    "log of turns that never were": "UPDATE memory_log SET turn_id = 999999",
    "log without its text": "DELETE FROM memory_log_content",
    "results without a call": "UPDATE messages SET calls = NULL WHERE turn_id = (SELECT min(id) FROM turns)",
    "calls without a result": "DELETE FROM messages WHERE call_id IS NOT NULL AND turn_id = (SELECT max(id) FROM turns)",
    "running turns": "UPDATE turns SET state = 'running' WHERE id = (SELECT max(id) FROM turns)",
    "events without a turn": "UPDATE events SET turn_id = NULL",
    "empty turns": "UPDATE turns SET state = 'done'",
}
"""By what is left over: how it comes about. One after another, each on top of those before."""


async def test_every_kind_of_row_that_is_left_over_is_found(db: Database, urls: Urls, cluster: Servers, tmp_path: Path) -> None:
    stores = Stores(tmp_path, replace(cluster, owner_url=urls.owner, bot_url=urls.bot))
    stored = call("archival_storage_insert", content="The dog is called Rex.", tags=["dog"], request_heartbeat=True)
    async with dialogue(db, *(reply(None, stored), reply("A fine name.")) * 2) as talk:
        await talk.hear("The dog is called Rex.")
        await talk.hear("Rex is a dog, and he is called Rex.")
    assert set(PLANTS) == set(LEFT), "a kind that nobody plants"
    left = (await stores.kept()).leftovers
    # Nothing ran here that takes jobs and makes vectors.
    assert not {name for name in LEFT if left[name]} - {"jobs", "wake flags", "rows without a vector"}
    for name, plant in PLANTS.items():
        if name == "rows without a vector":
            await stores.rows("DELETE FROM unembedded RETURNING 1")
        if name == "wake flags":
            await stores.rows("UPDATE agents SET wake = false RETURNING 1")
        before = set((await stores.kept()).leftovers[name])
        await stores.rows(f"{plant} RETURNING 1")
        assert set((await stores.kept()).leftovers[name]) - before, f"{name} was planted and is not found"


async def test_a_key_of_nobody_and_one_that_stays_for_ever_are_found(
    db: Database, urls: Urls, cluster: Servers, tmp_path: Path
) -> None:
    stores = Stores(tmp_path, replace(cluster, owner_url=urls.owner, bot_url=urls.bot))
    async with dialogue(db, reply("Hello!")) as talk:
        await talk.hear("Hello")
    agent = await stores.one("SELECT id FROM agents")
    keys = {f"keepsake:{agent}:planted": None, "keepsake:999999:planted": 60, "somebody else's": 60, f"keepsake:{agent}:well": 60}
    async with Redis.from_url(cluster.redis_url) as redis:
        try:
            for key, seconds in keys.items():
                await redis.set(key, "x", ex=seconds)
            found = (await stores.kept()).leftovers["Redis keys"]
        finally:
            await redis.delete(*keys)
    assert [key for key in keys if key in found] == [key for key in keys if not key.endswith("well")]


async def test_a_lease_and_a_process_are_found(tmp_path: Path) -> None:
    assert left_behind(tmp_path) == {"leases": (), "processes": ()}
    mine = lease.mine("planted")
    lease.keep(tmp_path / "leases.json", [mine])
    process = await create_subprocess_exec(sys.executable, "-c", "input()", cwd=tmp_path, stdin=-1)
    try:
        await until(lambda: left_behind(tmp_path)["processes"])
        left = left_behind(tmp_path)
        assert left["leases"] == (str(mine.pid),)
        assert [int(one.split()[0]) for one in left["processes"]] == [process.pid]
    finally:
        with suppress(ProcessLookupError):
            process.kill()
        await process.wait()
