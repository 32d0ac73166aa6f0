"""The way in from Slack, where what happens at once decides."""

from __future__ import annotations

import asyncio
import time
from dataclasses import dataclass, field

import pytest

from adapters.base import Incoming
from adapters.slack.inbound import Inbound
from adapters.slack.manifest import manifest
from adapters.slack.names import Scope
from adapters.slack.people import People
from adapters.slack.rooms import Rooms
from adapters.slack.settings import Settings, Tokens
from adapters.slack.workspaces import Clients, Workspaces
from adapters.slack.written import Written
from tests.adapters.contract import Recorder
from tests.servers.slack import SlackServer


@dataclass
class Taking(Recorder):
    """Tells when it is about to have a message."""

    taken_in: asyncio.Event = field(default_factory=asyncio.Event)

    async def receive(self, incoming: Incoming) -> bool:
        self.taken_in.set()
        return await super().receive(incoming)


async def nothing(written: Written, text: str) -> None:
    """Nobody is told anything."""


@pytest.mark.timeout(20)
async def test_a_message_that_comes_again_just_as_it_is_taken_keeps_nobody_waiting() -> None:
    """The whole process stood still for ever when its second form was looked at between the end of the first one and what follows an end."""
    bot, reasons = Taking(), list[str]()
    async with SlackServer(manifest=manifest("Keepsake")) as server:
        acme = server.team("Acme")
        ada = server.person("Ada", acme)
        settings = Settings(tokens=(Tokens(acme.bot_token, server.app_token),), api_base=server.api_base)
        clients = Clients(server.api_base)
        async with clients.opened():
            workspaces = Workspaces(settings, clients, reasons.append)
            await workspaces.sign_in()
            (workspace,) = workspaces.all
            assert clients.session is not None
            inbound = Inbound(settings, bot, People(), Rooms(), clients.session, reasons.append, nothing, lambda *_: False)
            event = {
                "type": "message",
                "channel": ada.dm.id,
                "channel_type": "im",
                "user": ada.id,
                "text": "Hi",
                "ts": "1.000100",
            }
            written = Written(workspace, Scope(acme.id), event, workspace.bot_user, time.monotonic())

            async def again() -> None:
                await bot.taken_in.wait()
                await inbound.message(written)

            await asyncio.gather(inbound.message(written), again())
    assert [one.text for one in bot.incoming] == ["Hi"]
    assert reasons.count("slack_again") == 1
