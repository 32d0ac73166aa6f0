"""The contract on Slack."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import AbstractAsyncContextManager, asynccontextmanager

from adapters.slack.adapter import SlackAdapter, Slash
from adapters.slack.manifest import manifest
from adapters.slack.settings import Settings, Tokens
from tests.adapters.contract import AdapterContract, Recorder, Stage, running
from tests.servers.slack import Person, SlackServer


class SlackStage(Stage):
    def __init__(self, server: SlackServer, ada: Person, adapter: SlackAdapter) -> None:
        self.server, self.ada, self.adapter = server, ada, adapter

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
