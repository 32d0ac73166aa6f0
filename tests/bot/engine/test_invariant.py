"""Random interleavings of accept, claim, finish, crash, release and stop: what must hold whatever happens.

Seeded and bounded; a failure names its seed.
"""

from __future__ import annotations

import asyncio
import random

import pytest

from bot.engine import turns
from bot.engine.events import Claim, StaleTurn, TurnCancelled
from bot.engine.upkeep import Upkeep
from bot.engine.worker import Worker
from tests.bot.engine.world import World, place
from tests.waiting import until

PEOPLE = ("ada", "bob")
PLACES = (place("one", "public"), place("two", "public"))


async def check(engine: World, *, at_rest: bool) -> None:
    """The invariants of engine.md, section 8."""
    for agent in await engine.column("SELECT id FROM agents"):
        seqs = await engine.column("SELECT seq FROM events WHERE agent_id = %s ORDER BY seq", agent)
        assert seqs == list(range(1, len(seqs) + 1)), "numbers have a gap"
    flagged = await engine.look(
        """SELECT id, wake, (SELECT count(*) FROM procrastinate_jobs j
               WHERE j.lock = 'agent:' || a.id AND j.status IN ('todo', 'doing')) AS jobs,
             EXISTS (SELECT 1 FROM events WHERE agent_id = a.id AND status = 0) AS waits FROM agents a"""
    )
    for row in flagged:
        assert row["jobs"] >= row["wake"], f"an agent without a wake-up: {row}"
        assert row["wake"] or not row["waits"], f"an event that nobody knows of: {row}"
        if at_rest:
            assert row["jobs"] == row["wake"] == row["waits"] == 0, f"not at rest: {row}"
    assert await engine.one("SELECT count(*) FROM (SELECT 1 FROM outbox GROUP BY turn_id, step, part HAVING count(*) > 1) d") == 0


@pytest.mark.parametrize("seed", range(8))
async def test_by_hand(engine: World, seed: int) -> None:
    """One actor at a time, each doing one thing, with the job rows handled as the worker does: exactly one job per raised flag."""
    chance = random.Random(seed)
    claims: dict[int, Claim] = {}
    agents: dict[str, int] = {}
    for _ in range(60):
        person = chance.choice(PEOPLE)
        action = chance.choice(["say", "say", "say", "claim", "step", "finish", "crash", "release", "stop"])
        claim = claims.get(agents.get(person, 0))
        if action == "say":
            agents[person] = (await engine.say("x", user=person, where=chance.choice(PLACES))).agent
        elif action == "claim" and person in agents:
            found = await turns.claim(engine.db, agents[person], engine.at, engine.settings)
            if isinstance(found, Claim):
                claims[agents[person]] = found
            else:
                await engine.owner.execute("DELETE FROM procrastinate_jobs WHERE lock = %s", (f"agent:{agents[person]}",))
        elif action == "stop" and person in agents:
            await engine.look(
                "SELECT cancel_work(%s, (SELECT id FROM places WHERE external_id = %s), now())",
                agents[person],
                chance.choice(("one", "two")),
            )
        elif claim is not None and claim.fence.more is None:
            try:
                if action == "step":
                    async with turns.step(engine.db, claim, now=engine.at) as step:
                        await step.reply("part")
                elif action == "finish":
                    await engine.finish(claim, "end")
                    if not claim.fence.more:
                        await engine.owner.execute("DELETE FROM procrastinate_jobs WHERE lock = %s", (f"agent:{claim.agent}",))
                elif action == "release":
                    await turns.release(engine.db, claim, "Away")
                elif action == "crash":
                    del claims[claim.agent]
            except (StaleTurn, TurnCancelled):
                del claims[claim.agent]
        await check(engine, at_rest=False)
        surplus = await engine.look("SELECT lock FROM procrastinate_jobs GROUP BY lock HAVING count(*) > 1")
        assert surplus == [], "two jobs for one agent"
    seen = await engine.column("SELECT seq FROM events WHERE status = 1 ORDER BY agent_id, done_at, seq")
    assert len(seen) == len(await engine.column("SELECT 1 FROM events WHERE status = 1"))


@pytest.mark.parametrize("seed", range(3))
async def test_with_two_workers(engine: World, seed: int) -> None:
    """Two workers, random failures, thieves and stops beside them; at the end nothing waits and nothing is left over."""
    chance = random.Random(seed)
    done: dict[int, list[int]] = {}

    async def turn(claim: Claim) -> None:
        if chance.random() < 0.2:
            await engine.look("SELECT 1")  # it takes longer
        if chance.random() < 0.15:
            raise RuntimeError
        if chance.random() < 0.1:
            await turns.claim(engine.db, claim.agent, engine.at, engine.settings)
        async with turns.step(engine.db, claim, now=engine.at) as step:
            await step.reply("thinking")
        await engine.finish(claim, "answer")
        done.setdefault(claim.agent, []).extend(event.seq for event in claim.events)

    workers = [asyncio.create_task(Worker(engine.db, engine.queue, turn, engine.settings).run()) for _ in range(2)]
    try:
        for _ in range(60):
            person = f"user{chance.randrange(6)}"
            accepted = await engine.say("x", user=person, where=chance.choice(PLACES))
            if chance.random() < 0.05:
                await engine.look("SELECT cancel_work(%s, %s, now())", accepted.agent, accepted.place_id)
            if chance.random() < 0.3:
                await check(engine, at_rest=False)
        await until(engine.at_rest, timeout=30)
    finally:
        for worker in workers:
            worker.cancel()
        await asyncio.gather(*workers, return_exceptions=True)
    await check(engine, at_rest=True)
    assert await Upkeep(engine.db, engine.queue).sweep() == 0
    for seqs in done.values():
        assert seqs == sorted(set(seqs)), "out of order or twice"
    assert await engine.one("SELECT count(*) FROM events WHERE status IN (1, 2, 3)") == 60
    assert await engine.one("SELECT count(*) FROM turns WHERE state = 'running'") == 0
