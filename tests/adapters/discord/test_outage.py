"""An hour without Discord's API, in seconds: the real adapter and outbox against the local server, on a clock that runs fast."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import replace
from datetime import datetime, timedelta
from typing import Any

import pytest

from adapters.base import Newest
from adapters.discord.adapter import DiscordAdapter
from adapters.discord.settings import Settings
from bot.engine.outbox import OutboxSender
from bot.engine.settings import EngineSettings
from tests.bot.engine.conftest import engine
from tests.bot.engine.world import QUICK, World, place
from tests.servers.discord import ALWAYS, DiscordServer
from tests.waiting import until

__all__ = ["engine"]

FASTER = 900
"""How many seconds of the outbox's clock pass in one of ours: an hour is four seconds."""
POST = "POST /channels/{channel_id}/messages"
HISTORY = "GET /channels/{channel_id}/messages"


class Nobody:
    """The bot's other side, which is not the subject here."""

    async def heard(self, platform: str) -> str | None:
        return None

    async def hear(self, platform: str, message_id: str) -> None:
        pass

    async def newest(self, platform: str) -> Sequence[Newest]:
        return ()

    async def receive(self, incoming: Any) -> bool:
        return False

    async def kept(self, place: Any, limit: int) -> Sequence[str]:
        return ()


def patience(trouble: str) -> EngineSettings:
    """The library tries a 500 again itself, for half a minute in real time: here an attempt is cut off before."""
    if trouble == "500":
        return replace(QUICK, doubtful_after=450, send_timeout=0.3)
    return replace(QUICK, doubtful_after=60, send_timeout=30)


@pytest.mark.parametrize("trouble", ["500", "503", "cut"])
async def test_an_hour_of_errors_costs_no_message_no_order_and_few_requests(engine: World, trouble: str) -> None:
    began = time.monotonic()

    def now() -> datetime:
        return engine.at + timedelta(seconds=(time.monotonic() - began) * FASTER)

    async with DiscordServer() as server:
        ada, ben = server.person("Ada"), server.person("Ben")
        adapter = DiscordAdapter(Settings(server.token, api_base=server.api_base, gateway=server.gateway), ())
        running = asyncio.create_task(adapter.run(Nobody()))  # type: ignore[arg-type]
        await server.wait_connected()
        sender = OutboxSender(engine.db, adapter, patience(trouble), now=now)
        sending = asyncio.create_task(sender.run())
        try:
            where = place(str(ada.dm.id), platform="discord")
            for route in (POST, HISTORY):
                if trouble != "cut":
                    server.faults.status(
                        route, int(trouble), ALWAYS, where=lambda request: request.params["channel_id"] == str(ada.dm.id)
                    )
                else:
                    server.faults.cut(route, ALWAYS, where=lambda request: request.params["channel_id"] == str(ada.dm.id))
            for number in range(3):
                await engine.finish(await engine.claim((await engine.say("x", "ada", where=where)).agent), f"answer {number}")
            # Somebody else is served all the while.
            other = place(str(ben.dm.id), platform="discord")
            await engine.finish(await engine.claim((await engine.say("x", "ben", where=other)).agent), "for Ben")
            assert (await server.wait_for_message(ben.dm)).content == "for Ben"
            began = time.monotonic()
            await until(lambda: time.monotonic() - began > 3600 / FASTER, timeout=20)
            assert not server.messages(ada.dm, server.bot)
            tries = len([one for one in server.requests if one.params.get("channel_id") == str(ada.dm.id)])
            assert 4 <= tries < 150, "tried again, more and more seldom; the library repeats a request itself"
            server.faults.clear()
            await until(lambda: len(server.messages(ada.dm, server.bot)) == 3, timeout=20)
            assert [one.content for one in server.messages(ada.dm, server.bot)] == [f"answer {number}" for number in range(3)]
        finally:
            for task in (sending, running):
                task.cancel()
                with suppress(asyncio.CancelledError):
                    await task
