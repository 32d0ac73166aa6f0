"""The contract on Discord."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import AbstractAsyncContextManager, asynccontextmanager

from adapters.base import Button, Outgoing
from adapters.discord.adapter import DiscordAdapter
from adapters.discord.settings import Settings
from tests.adapters.contract import AdapterContract, Recorder, Stage, running, sent
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

    async def test_a_timed_message_notifies_its_person_alone_and_has_buttons(self) -> None:
        async with on_discord(Recorder()) as stage:
            assert isinstance(stage, DiscordStage)
            server, [home] = stage.server, stage.server.world.guilds.values()
            ada, bob = server.person("Ada", home), server.person("Bob", home)
            buttons = (Button("Later", "/reminders snooze t1 10"), Button("Done", "/reminders done t1", "good"))
            text = f"Reminder: tell <@{bob.user.id}> and @everyone"
            made_for = f"discord::{ada.user.id}"
            one = Outgoing(7, str(home.channel("general").id), text, mention=str(ada.user.id), buttons=buttons, made_for=made_for)
            sent_as = await sent(stage.adapter, one)
            [shown] = server.messages(home.channel("general"), server.bot)
            assert shown.content == f"<@{ada.user.id}> {text}"
            assert shown.mentions == [ada.user]
            assert not shown.mention_everyone
            lines = [button["custom_id"].split("|")[3] for row in shown.components for button in row["components"]]
            assert lines == ["/reminders snooze t1 10", "/reminders done t1"]
            assert await stage.adapter.find(one) == sent_as
