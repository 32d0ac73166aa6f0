"""What is lost by the queue is found again."""

from __future__ import annotations

import asyncio
from dataclasses import replace

from bot.engine.upkeep import Upkeep
from tests.bot.engine.world import QUICK, Turns, World, working
from tests.waiting import until


async def test_the_sweeper_wakes_agents_without_a_job_once(engine: World) -> None:
    for number in range(3):
        await engine.say("x", user=f"user{number}")
    await engine.owner.execute("DELETE FROM procrastinate_jobs WHERE lock <> 'agent:1'")
    upkeep = Upkeep(engine.db, engine.queue)
    swept = await asyncio.gather(*(upkeep.sweep() for _ in range(5)))
    assert sum(swept) == 2
    assert sorted(job["lock"] for job in await engine.jobs()) == ["agent:1", "agent:2", "agent:3"]


async def test_a_job_that_ended_for_good_is_no_job(engine: World) -> None:
    await engine.say("x")
    await engine.owner.execute("UPDATE procrastinate_jobs SET status = 'failed'")
    assert await Upkeep(engine.db, engine.queue).sweep() == 1


async def test_the_reaper_frees_jobs_of_dead_workers_only(engine: World) -> None:
    await engine.say("x")
    await engine.say("y", user="bob")
    jobs = engine.queue.jobs
    dead, alive = await jobs.register_worker(), await jobs.register_worker()
    await jobs.fetch_job(None, dead)
    await jobs.fetch_job(None, alive)
    await engine.owner.execute(
        "UPDATE procrastinate_workers SET last_heartbeat = now() - interval '1 minute' WHERE id = %s", (dead,)
    )
    upkeep = Upkeep(engine.db, engine.queue)
    assert sum(await asyncio.gather(*(upkeep.reap() for _ in range(3)))) >= 1
    assert [(job["status"], job["attempts"]) for job in await engine.jobs()] == [("todo", 1), ("doing", 0)]
    assert await upkeep.reap() == 0


async def test_the_loops_repair_a_running_system(engine: World) -> None:
    settings = replace(QUICK, reap_every=0.05, sweep_every=0.05, stalled=0.3, heartbeat=0.1)
    await engine.say("lost")
    await engine.owner.execute("DELETE FROM procrastinate_jobs")
    await engine.say("left", user="bob")
    await engine.queue.jobs.fetch_job(None, await engine.queue.jobs.register_worker())
    turn = Turns(engine)
    upkeep = asyncio.create_task(Upkeep(engine.db, engine.queue, settings).run())
    try:
        async with working(engine, turn):
            await until(engine.at_rest)
    finally:
        upkeep.cancel()
    assert sorted(turn.seen) == [["left"], ["lost"]]


async def test_old_jobs_go(engine: World) -> None:
    await engine.say("old", user="a")
    await engine.say("young", user="b")
    await engine.say("waiting", user="c")
    await engine.owner.execute("UPDATE procrastinate_jobs SET status = 'failed' WHERE lock <> 'agent:3'")
    await engine.owner.execute(
        "UPDATE procrastinate_events SET at = now() - interval '30 days' WHERE job_id IN"
        " (SELECT id FROM procrastinate_jobs WHERE lock <> 'agent:2')"
    )
    await Upkeep(engine.db, engine.queue).clean()
    assert await engine.column("SELECT lock FROM procrastinate_jobs ORDER BY id") == ["agent:2", "agent:3"]
