"""What the catching up asks Discord for, and what it says of what it does not read: the real adapter against the local server."""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field

import pytest

from adapters.base import Newest
from adapters.discord.adapter import DiscordAdapter
from adapters.discord.settings import Settings
from tests.adapters.contract import Recorder, running
from tests.servers.discord import Channel, DiscordServer
from tests.servers.discord.permissions import READ_MESSAGE_HISTORY, VIEW_CHANNEL
from tests.waiting import until

HISTORY = "GET /channels/{channel_id}/messages"


@dataclass
class World:
    """A server with a guild, and a bot that is not running: it heard everything up to a moment."""

    server: DiscordServer
    bot: Recorder = field(default_factory=Recorder)
    counted: Counter[str] = field(default_factory=Counter)

    def heard(self, *channels: Channel) -> None:
        """Everything until now; these channels are known."""
        self.bot.heard_until = str(self.server.world.ids.next())
        self.bot.newest_known = tuple(
            Newest(str(one.id), str(one.guild.id) if one.guild else "", self.bot.heard_until) for one in channels
        )

    @asynccontextmanager
    async def started(self, **chosen: float) -> AsyncIterator[None]:
        """The bot runs."""
        settings = Settings(self.server.token, api_base=self.server.api_base, gateway=self.server.gateway, **chosen)  # type: ignore[arg-type]
        async with running(DiscordAdapter(settings, (), count=lambda reason: self.counted.update([reason])), self.bot):
            yield

    def texts(self) -> list[str]:
        """What was taken in."""
        return [one.text for one in self.bot.incoming]


@pytest.fixture
async def world() -> AsyncIterator[World]:
    async with DiscordServer() as server:
        server.guild("Home")
        yield World(server)


async def test_more_than_the_bound_is_counted_and_told_by_channel(world: World, caplog: pytest.LogCaptureFixture) -> None:
    ada, ben = world.server.person("Ada"), world.server.person("Ben")
    world.heard(ada.dm, ben.dm)
    for number in range(6):
        ada.say(text=f"{number}")
    for number in range(5):
        ben.say(text=f"ben {number}")
    with caplog.at_level(logging.WARNING):
        async with world.started(catch_up_messages=5):
            await until(lambda: len(world.texts()) == 10 and world.counted["discord_missed_too_many"])
    assert [text for text in world.texts() if "ben" not in text] == ["1", "2", "3", "4", "5"]
    assert world.counted["discord_missed_too_many"] == 1
    assert [one.getMessage() for one in caplog.records if str(ada.dm.id) in one.getMessage()] == [
        f"channel {ada.dm.id}: more messages were missed than discord.catch_up_messages (5)"
    ]
    assert not [one for one in caplog.records if str(ben.dm.id) in one.getMessage()], "all of Ben's were read"


async def test_what_is_too_old_is_counted_and_told_by_channel(world: World, caplog: pytest.LogCaptureFixture) -> None:
    ada, ben = world.server.person("Ada"), world.server.person("Ben")
    ben.say(text="heard before")
    world.heard(ada.dm, ben.dm)
    for text in ("one", "two", "three"):
        ada.say(text=text)
    with caplog.at_level(logging.WARNING):
        async with world.started(catch_up_hours=0.1 / 3600):
            await until(lambda: world.counted["discord_missed_too_old"])
    assert not world.texts()
    assert [one.getMessage() for one in caplog.records if "missed" in one.getMessage()] == [
        f"channel {ada.dm.id}: 3 or more messages were missed longer ago than discord.catch_up_hours"
    ]


async def test_a_channel_costs_one_request_when_nothing_was_missed(world: World) -> None:
    ada = world.server.person("Ada")
    for number in range(250):
        ada.say(text=f"{number}")
    world.heard(ada.dm)
    async with world.started():
        await until(lambda: [one for one in world.server.requests_of(HISTORY) if one.status == 200])
        ada.say(text="now")
        await until(lambda: world.texts()[-1:] == ["now"])
    assert len(world.server.requests_of(HISTORY)) == 1


async def test_nothing_counts_as_heard_while_a_channel_could_not_be_read(world: World) -> None:
    ada, ben = world.server.person("Ada"), world.server.person("Ben")
    world.heard(ada.dm, ben.dm)
    before = world.bot.heard_until
    world.server.faults.error(HISTORY, 400, 0, times=1_000, where=lambda request: request.params["channel_id"] == str(ada.dm.id))
    missed = ada.say(text="missed")
    async with world.started():
        await world.server.wait_connected()
        ben.say(text="live")
        await until(lambda: len(world.server.requests_of(HISTORY)) > 3, timeout=20)
        assert world.texts() == ["live"]
        assert world.bot.heard_until == before
        world.server.faults.clear()
        await until(lambda: int(world.bot.heard_until or 0) > missed.id, timeout=20)
        assert world.texts() == ["live", "missed"]


async def test_what_may_not_be_read_is_not_asked_for_and_what_is_refused_is_asked_for_once(world: World) -> None:
    server, ada = world.server, world.server.person("Ada", *world.server.world.guilds.values())
    home = next(iter(server.world.guilds.values()))
    shut, mute = server.channel(home, "shut"), server.channel(home, "mute")
    private = ada.thread(server.channel(home, "yard"), "private", private=True)
    world.heard(shut, mute, private, ada.dm)
    server.places.overwrite(shut, server.bot, deny=VIEW_CHANNEL)
    server.places.overwrite(mute, server.bot, deny=READ_MESSAGE_HISTORY)
    for where in (shut, mute, private):
        ada.say(where, "between us")
    server.faults.error(HISTORY, 403, 50001, times=100)
    async with world.started():
        await until(lambda: world.counted["discord_missed_unreadable"] == 2, timeout=20)
        assert [one.params["channel_id"] for one in server.requests_of(HISTORY)] == [str(ada.dm.id)]
        server.hub.invalidate()
        again = len(server.connections) + 1
        await server.wait_connected(again, timeout=20)
        await until(lambda: world.counted["discord_missed_unreadable"] == 3, timeout=20)
    assert len(server.requests_of(HISTORY)) == 1


async def test_many_channels_are_read_within_discords_limit_and_hold_up_nobody(world: World) -> None:
    people = [world.server.person(f"P{number}") for number in range(120)]
    world.heard(*(one.dm for one in people))
    for one in people:
        one.say(text="missed")
    late = world.server.person("Late")
    world.server.faults.limit_all()
    async with world.started():
        await until(lambda: "missed" in world.texts(), timeout=20)
        late.say(text="live")
        await until(lambda: "live" in world.texts(), timeout=20)
        assert world.texts().count("missed") < len(people)
        await until(lambda: world.texts().count("missed") == len(people), timeout=30)
    assert not [one for one in world.server.requests if one.status == 429]
