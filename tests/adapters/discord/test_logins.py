"""Who has come online, told by the gateway: the real adapter against the local server."""

from __future__ import annotations

import pytest

from adapters.discord import presence
from adapters.discord.adapter import DiscordAdapter
from adapters.discord.settings import Settings
from tests.adapters.contract import Recorder, running
from tests.servers.discord import DiscordServer
from tests.waiting import until


@pytest.mark.parametrize("members", [False, True])
async def test_who_is_online_at_the_start_has_not_come_when_they_begin_a_game(
    monkeypatch: pytest.MonkeyPatch, members: bool
) -> None:
    monkeypatch.setattr(presence, "SETTLING", 0.0)
    bot, counted = Recorder(), list[str]()
    async with DiscordServer() as server:
        guilds = [server.guild(name) for name in ("Home", "Work", "Club")]
        ada, ben = server.person("Ada", *guilds), server.person("Ben", *guilds)
        ada.online()
        settings = Settings(server.token, api_base=server.api_base, gateway=server.gateway, login_events=True, members=members)
        async with running(DiscordAdapter(settings, (), count=counted.append), bot):
            await server.wait_connected()
            ada.online("idle")  # any change is told like this
            ben.online()
            await until(lambda: "discord_login" in counted)
            ada.say(text="hello")
            await until(lambda: len(bot.incoming) == 2)
            assert [(one.kind, one.person.name) for one in bot.incoming] == [("login", "Ben"), ("message", "Ada")]
            # Another session, and nobody has come with it.
            sessions = len(server.connections)
            server.hub.forget_sessions()
            server.hub.cut()
            await server.wait_connected(sessions + 1, timeout=20)
            ada.online("dnd")
            ada.offline()
            ada.online()
            await until(lambda: counted.count("discord_login") == 2)
    assert [(one.kind, one.person.name) for one in bot.incoming[2:]] == [("login", "Ada")]
