"""Three scheduler processes over the same timers, each killed with -9 again and again: every timer fires once, and none is lost."""

from __future__ import annotations

import asyncio
import random
import sys
from asyncio.subprocess import Process
from datetime import UTC, datetime, timedelta
from pathlib import Path

from tests.bot.engine.world import World, world
from tests.conftest import Urls
from tests.waiting import until

ROOT = Path(__file__).parents[2]
PEOPLE, TIMERS, SECONDS, KILLS = 30, 3000, 6.0, 6


async def start(url: str) -> Process:
    return await asyncio.create_subprocess_exec(sys.executable, "-m", "tests.chaos.scheduler_main", url, cwd=ROOT)


async def fired(engine: World) -> int:
    count: int = await engine.one("SELECT count(*) FROM events WHERE source = 'timer'")
    return count


async def test_nothing_fires_twice_and_nothing_is_lost(urls: Urls) -> None:
    chance = random.Random(7)
    async with world(urls.bot, urls.owner) as engine:
        places = []
        for number in range(PEOPLE):
            accepted = await engine.say("hello", user=f"user{number}")
            await engine.finish(await engine.claim(accepted.agent))
            places.append((accepted.agent, accepted.place_id))
        await engine.owner.execute("DELETE FROM procrastinate_jobs")
        begin = datetime.now(UTC)
        rows = [(*chance.choice(places), begin + timedelta(seconds=chance.uniform(-1, SECONDS))) for _ in range(TIMERS)]
        async with engine.owner.cursor() as cursor:
            await cursor.executemany(
                """INSERT INTO timers (agent_id, place_id, visibility, kind, purpose, zone, wall_time, due_at, created_at)
                   VALUES (%s, %s, 'direct', 'reminder', 'x', 'UTC', %s, %s, now())""",
                [(agent, place, due.replace(tzinfo=None), due) for agent, place, due in rows],
            )
        processes = [await start(urls.bot) for _ in range(3)]
        try:
            for kill in range(KILLS):
                least = TIMERS * (kill + 1) // (KILLS + 2)
                await until(lambda least=least: _reached(engine, least), timeout=40, every=0.01)  # type: ignore[misc]
                victim = processes.pop(0)
                assert victim.returncode is None, "a scheduler died by itself"
                victim.kill()
                await victim.wait()
                processes.append(await start(urls.bot))
            await until(lambda: _reached(engine, TIMERS), timeout=60, every=0.1)
            await until(lambda: _none_due(engine), timeout=20, every=0.1)
        finally:
            for process in processes:
                process.kill()
                await process.wait()
        assert await fired(engine) == TIMERS
        twice = await engine.column(
            "SELECT payload->>'timer_id' FROM events WHERE source = 'timer' GROUP BY 1 HAVING count(*) > 1"
        )
        assert twice == []
        for agent, _ in places:
            seqs = await engine.column("SELECT seq FROM events WHERE agent_id = %s ORDER BY seq", agent)
            assert seqs == list(range(1, len(seqs) + 1))
        assert await engine.one("SELECT count(*) FROM agents WHERE wake") == len(await engine.jobs()), "a wake-up without a job"


async def _reached(engine: World, count: int) -> bool:
    return await fired(engine) >= count


async def _none_due(engine: World) -> bool:
    return not await engine.one("SELECT count(*) FROM timers WHERE due_at IS NOT NULL")
