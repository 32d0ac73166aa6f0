"""PostgreSQL crashes while many people write: nothing that was taken is lost, nobody stays mute, and no number is given out twice."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import replace

import pytest

from bot.engine.events import Claim
from bot.engine.outbox import OutboxSender
from bot.engine.queue import Queue
from bot.engine.signals import Senders
from bot.engine.upkeep import Upkeep
from bot.engine.worker import Worker
from bot.model.client import ModelClient
from memory.cache import Cache
from memory.db import Database
from tests.bot.dialogue import Dialogue
from tests.bot.engine.crashing import Crash, Crowd, Fragile, Platform, fragile
from tests.bot.engine.world import QUICK
from tests.servers.model import Answer, Request, ScriptedModel, reply
from tests.waiting import until

SETTINGS = replace(QUICK, reap_every=0.5, sweep_every=1.0, restart_cap=0.5, max_attempts=20)


@pytest.fixture
def servers() -> Iterator[Fragile]:
    with fragile() as made:
        yield made


async def _crowd(servers: Fragile, how: Crash, crowd: Crowd, *, asked: set[int], shown: set[int]) -> list[str]:
    """Crashes at some of the model's calls (claims and first steps are made) and of the sent messages; returns what is wrong at the end."""
    crashing = asyncio.Lock()
    claims: list[tuple[int, int]] = []
    turn_of: set[tuple[int, int]] = set()

    async def crash(number: int, points: set[int]) -> None:
        if number in points:
            async with crashing:
                await servers.crash(how)

    async def think(request: Request) -> Answer:
        await crash(request.number, asked)
        return reply(crowd.answer(request))

    platform = Platform(lambda number: crash(number, shown))
    url = servers.servers.bot_url
    async with (
        ScriptedModel(policy=think, latency=0.05) as model,
        ModelClient(model.base_url, "key", attempts=1) as client,
        Database(url, size=10) as db,
        Queue(url, SETTINGS) as queue,
    ):
        d = Dialogue(db, model, client, queue, cache=Cache(servers.servers.redis_url))
        agent, outbound = d.agent, Senders()

        async def turn(claim: Claim) -> None:
            claims.append((claim.agent, claim.epoch))
            turn_of.add((claim.turn, claim.agent))
            await agent.turn(claim)

        parts = [
            asyncio.create_task(run)
            for run in (
                Worker(db, queue, turn, SETTINGS, outbound=outbound).run(),
                OutboxSender(db, platform, SETTINGS, outbound=outbound).run(),
                Upkeep(db, queue, SETTINGS).run(),
            )
        ]
        wrong: list[str] = []

        async def all_is_well() -> bool:
            nonlocal wrong
            with suppress(Exception):
                wrong = crowd.audit(servers, platform)
                return not wrong
            return False

        try:
            await asyncio.wait_for(crowd.write(db), 60)
            with suppress(TimeoutError):
                await until(all_is_well, timeout=40, every=0.2)
        finally:
            for part in parts:
                part.cancel()
            await asyncio.wait(parts)
        await d.cache.close()
    wrong += ["an epoch was given out twice"] if max(Counter(claims).values()) > 1 else []
    return wrong + (["a turn's number was given out twice"] if len(turn_of) > len(dict(turn_of)) else [])


@pytest.mark.parametrize("how", ["backend", "quit", "kill"])
async def test_nothing_that_was_taken_is_lost(servers: Fragile, how: Crash) -> None:
    wrong = await _crowd(servers, how, Crowd(people=30, messages=2), asked={5, 40}, shown={15})
    assert wrong == []
