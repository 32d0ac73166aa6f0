"""The contract on Slack."""

from __future__ import annotations

import time
from collections.abc import AsyncIterator
from contextlib import AbstractAsyncContextManager, asynccontextmanager

from adapters.base import Outgoing, Person, Quiets
from adapters.slack.adapter import SlackAdapter
from adapters.slack.lines import Slash
from adapters.slack.manifest import manifest
from adapters.slack.settings import Settings, Tokens
from tests.adapters.contract import AdapterContract, Recorder, Stage, running, sent
from tests.servers.slack import Person as Somebody
from tests.servers.slack import SlackServer


class SlackStage(Stage):
    def __init__(self, server: SlackServer, ada: Somebody, adapter: SlackAdapter) -> None:
        self.server, self.ada = server, ada
        self.adapter: SlackAdapter = adapter

    @property
    def channel(self) -> str:
        return self.ada.dm.id

    async def say(self, text: str) -> None:
        self.ada.say(None, text)

    def heard(self) -> list[str]:
        return [one.shown for one in self.server.messages(self.ada.dm, bot=True)]

    async def again(self) -> None:
        self.server.redeliver(self.server.delivered("message")[-1])


@asynccontextmanager
async def on_slack(bot: Recorder) -> AsyncIterator[Stage]:
    async with SlackServer(manifest=manifest("Keepsake")) as server:
        acme = server.team("Acme")
        settings = Settings(tokens=(Tokens(acme.bot_token, server.app_token),), api_base=server.api_base, silence=6)
        adapter = SlackAdapter(settings, [Slash("help", "this list")])
        async with running(adapter, bot):
            await server.wait_connected()
            yield SlackStage(server, server.person("Ada", acme), adapter)


class TestSlack(AdapterContract):
    def stage(self, bot: Recorder) -> AbstractAsyncContextManager[Stage]:
        return on_slack(bot)

    async def test_do_not_disturb_is_told(self) -> None:
        bot = Recorder()
        async with on_slack(bot) as stage:
            assert isinstance(stage, SlackStage)
            adapter, ada, now = stage.adapter, stage.ada, time.time()
            assert isinstance(adapter, Quiets)
            person = Person("slack", ada.team.id, ada.id, "Ada")
            await sent(adapter, Outgoing(1, stage.channel, "here"))
            assert await adapter.quiet(person) is None
            ada.set_dnd(now - 60, now + 600)
            until = await adapter.quiet(person)
            assert until is not None
            assert abs(until.timestamp() - now - 600) < 2
            ada.set_dnd(0, 0, enabled=False, snooze_until=now + 60)
            assert await adapter.quiet(person) is not None
            stage.server.faults.error("dnd.info", "internal_error")
            assert await adapter.quiet(person) is None
            assert await adapter.quiet(Person("slack", "T0NOBODY", "U1", "x")) is None
