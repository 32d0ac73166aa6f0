"""The contract on Discord."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import AbstractAsyncContextManager, asynccontextmanager

from adapters.discord.adapter import DiscordAdapter
from adapters.discord.settings import Settings
from tests.adapters.contract import AdapterContract, Recorder, Stage, running
from tests.servers.discord import DiscordServer, Person


class DiscordStage(Stage):
    def __init__(self, server: DiscordServer, ada: Person, adapter: DiscordAdapter) -> None:
        self.server, self.ada, self.adapter = server, ada, adapter

    @property
    def channel(self) -> str:
        return str(self.ada.dm.id)

    async def say(self, text: str) -> None:
        self.ada.say(text=text)

    def heard(self) -> list[str]:
        return [one.content for one in self.server.messages(self.ada.dm, self.server.bot)]


@asynccontextmanager
async def on_discord(bot: Recorder) -> AsyncIterator[Stage]:
    async with DiscordServer() as server:
        server.guild("Home", channels=("general",))
        settings = Settings(token=server.token, api_base=server.api_base, gateway=server.gateway, restart_cap=1)
        adapter = DiscordAdapter(settings, [])
        async with running(adapter, bot):
            await server.wait_connected()
            yield DiscordStage(server, server.person("Ada"), adapter)


class TestDiscord(AdapterContract):
    def stage(self, bot: Recorder) -> AbstractAsyncContextManager[Stage]:
        return on_discord(bot)
