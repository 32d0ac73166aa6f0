"""What is lost by the queue is found again."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from datetime import timedelta

from adapters.catalogue import say
from bot.engine import turns
from bot.engine.events import Claim
from bot.engine.queue import Queue
from bot.engine.upkeep import Upkeep
from tests.bot.engine.test_outbox import Platform, sender, sending
from tests.bot.engine.world import NOW, QUICK, Turns, World, working
from tests.waiting import until

STEADY = replace(QUICK, stalled=3600.0, steady_after=0.0)


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


async def test_the_reaper_frees_jobs_of_frozen_workers_only(engine: World) -> None:
    await engine.say("x")
    await engine.say("y", user="bob")
    async with Queue(engine.db.url, QUICK) as other:
        await other.jobs.fetch_job(None, frozen := await other.jobs.register_worker())
        await engine.queue.jobs.fetch_job(None, await engine.queue.jobs.register_worker())
    await engine.owner.execute(
        "UPDATE procrastinate_workers SET last_heartbeat = now() - interval '1 minute' WHERE id = %s", (frozen,)
    )
    upkeep = Upkeep(engine.db, engine.queue)
    assert sum(await asyncio.gather(*(upkeep.reap() for _ in range(3)))) >= 1
    assert [(job["status"], job["attempts"]) for job in await engine.jobs()] == [("todo", 1), ("doing", 0)]
    assert await upkeep.reap() == 0


async def _left_behind(engine: World) -> None:
    """A process took a job and a reply, and died: no connection of it is there."""
    await engine.finish(await engine.claim((await engine.say("said", user="eve")).agent), "a reply")
    await engine.owner.execute("DELETE FROM procrastinate_jobs")
    await engine.say("x")
    async with Queue(engine.db.url, QUICK) as dead:
        await dead.jobs.fetch_job(None, await dead.jobs.register_worker())
        await engine.owner.execute("SELECT * FROM claim_outbox('test', NULL, 10, %s, %s, '', %s)", (NOW, NOW, dead.number))


async def test_a_dead_process_is_known_by_its_connection_and_a_living_one_keeps_what_it_does(engine: World) -> None:
    """Its heartbeat is young: people waited for 8 s until that was old, and for 30 s with a database elsewhere."""
    thinking = asyncio.Event()

    async def think(claim: Claim) -> None:
        await thinking.wait()

    await _left_behind(engine)
    turn = Turns(engine, [think])
    async with working(engine, turn), Queue(engine.db.url, STEADY) as looking:
        await engine.say("y", user="bob")
        await until(lambda: turn.seen)
        after_a_crash = Upkeep(engine.db, looking, replace(STEADY, steady_after=3600.0))
        assert [await after_a_crash.reap() for _ in range(3)] == [0, 0, 0]
        upkeep = Upkeep(engine.db, looking, STEADY, now=lambda: NOW + timedelta(seconds=1))
        assert await upkeep.reap() == 0, "one look is not enough"
        assert await engine.one("SELECT not_before FROM outbox") is None
        assert await upkeep.reap() == 1
        assert await engine.one("SELECT not_before FROM outbox") is not None, "what it was sending is looked up"
        await until(lambda: len(turn.seen) == 2)
        assert turn.seen == [["y"], ["x"]]
        assert await upkeep.reap() == 0
        thinking.set()
        await until(engine.at_rest)
    assert len(turn.seen) == 2


async def test_what_the_dead_were_doing_is_free_as_soon_as_a_process_starts(engine: World) -> None:
    await _left_behind(engine)
    assert await Upkeep(engine.db, engine.queue, STEADY).reap(at_once=True) == 1
    assert await engine.one("SELECT not_before FROM outbox") is None, "the living may be sending just now"


async def test_what_a_living_process_sends_is_not_doubted(engine: World) -> None:
    await engine.finish(await engine.claim((await engine.say("said", user="eve")).agent), "a reply")
    held = asyncio.Event()
    slow = Platform(gate={"dm-eve": held})
    upkeep = Upkeep(engine.db, engine.queue, STEADY, now=lambda: NOW + timedelta(seconds=1))
    async with sending(sender(engine, slow, number=engine.queue.number)):
        await until(lambda: slow.calls)
        for _ in range(3):
            await upkeep.reap()
        assert await engine.one("SELECT not_before FROM outbox") is None
        held.set()


async def test_the_loops_repair_a_running_system(engine: World) -> None:
    settings = replace(QUICK, reap_every=0.05, sweep_every=0.05, stalled=60.0)
    await engine.say("lost")
    await engine.owner.execute("DELETE FROM procrastinate_jobs")
    await engine.say("left", user="bob")
    async with Queue(engine.db.url, QUICK) as frozen:
        await frozen.jobs.fetch_job(None, await frozen.jobs.register_worker())
    await engine.owner.execute("UPDATE procrastinate_workers SET last_heartbeat = now() - interval '1 hour'")
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


async def test_whoever_waits_for_a_turn_to_begin_hears_it_once_in_their_language(engine: World) -> None:
    """Every worker has its hands full, or none runs: nobody has claimed what they said."""
    ada = await engine.say("x")
    await engine.owner.execute("UPDATE agents SET locale = 'de-AT' WHERE id = %s", (ada.agent,))
    carol = await engine.say("its turn runs", user="carol")
    await engine.claim(carol.agent)
    await engine.say("not for the bot", user="dave", addressed=False)
    await engine.say("", user="erin", kind="join")
    engine.at = NOW + timedelta(seconds=QUICK.patience)
    await engine.say("just now", user="bob")
    upkeep = Upkeep(engine.db, engine.queue, now=lambda: engine.at + timedelta(seconds=1))
    told = await asyncio.gather(*(upkeep.tell() for _ in range(3)))
    assert (sum(told), await upkeep.tell()) == (1, 0)
    assert await engine.look("SELECT agent_id, body FROM outbox") == [{"agent_id": ada.agent, "body": say("turn.waiting", "de")}]


async def test_who_was_told_is_answered_in_the_turn_that_was_opened_for_it(engine: World) -> None:
    ada = await engine.say("x")
    engine.at = NOW + timedelta(minutes=1)
    assert await Upkeep(engine.db, engine.queue, now=lambda: engine.at).tell() == 1
    await engine.say("y")

    async def also_late(claim: Claim) -> None:
        await turns.notice(engine.db, claim, say("turn.waiting", ""), now=engine.at)

    turn = Turns(engine, [also_late])
    async with working(engine, turn):
        await until(engine.at_rest)
    assert turn.seen == [["x", "y"]], "one turn, with what came in since"
    assert await engine.column("SELECT body FROM outbox WHERE agent_id = %s ORDER BY id", ada.agent) == [
        say("turn.waiting", ""),
        "re x y",
    ]


async def test_who_takes_it_back_while_nobody_works_is_not_answered(engine: World) -> None:
    ada = await engine.say("x")
    engine.at = NOW + timedelta(minutes=1)
    assert await Upkeep(engine.db, engine.queue, now=lambda: engine.at).tell() == 1
    await engine.owner.execute("SELECT * FROM cancel_work(%s, (SELECT min(id) FROM places), %s)", (ada.agent, engine.at))
    await engine.say("y")
    turn = Turns(engine)
    async with working(engine, turn):
        await until(engine.at_rest)
    assert turn.seen == [["y"]]
