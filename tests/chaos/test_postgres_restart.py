"""Postgres is killed in the middle of a turn and comes back: the turn is answered once, and what is said afterwards too."""

from __future__ import annotations

import asyncio
import os
import signal
from collections.abc import Iterator
from pathlib import Path

import pytest

from bot.embedded import Servers, attach
from bot.engine.events import Claim
from memory.migrations import migrate
from tests.bot.engine.world import Turns, working, world
from tests.folders import data_folder
from tests.waiting import until


@pytest.fixture
def folder() -> Iterator[Path]:
    with data_folder("restart") as data:
        yield data


def postmaster(folder: Path) -> int:
    return int(next(folder.rglob("postmaster.pid")).read_text().split("\n", 1)[0])


async def test_a_turn_survives_its_database(folder: Path) -> None:
    first = await asyncio.to_thread(attach, folder)
    servers: Servers = first.servers
    try:
        await asyncio.to_thread(migrate, servers.owner_url)
        again = asyncio.Event()

        async def think(claim: Claim) -> None:
            await again.wait()

        async with world(servers.bot_url, servers.owner_url) as engine:
            turn = Turns(engine, [think])
            async with working(engine, turn):
                await engine.say("before")
                await until(lambda: turn.seen)
                os.kill(postmaster(folder), signal.SIGKILL)
                second = await asyncio.to_thread(attach, folder)
                try:
                    again.set()
                    await engine.say_until_taken("after")
                    async with world(servers.bot_url, servers.owner_url) as fresh:
                        await until(fresh.at_rest, timeout=40)
                        bodies = await fresh.column("SELECT body FROM outbox ORDER BY id")
                        # One that could not be handed back, as nobody was there to take it, is counted.
                        assert max(await fresh.column("SELECT attempts FROM events")) <= 2
                finally:
                    second.release()
        # The claim is not flushed to disk: taken back by the crash, both may have become one turn.
        assert [word for body in bodies for word in body.split() if word != "re"] == ["before", "after"]
    finally:
        first.release()
