"""A session that Discord does not resume: whatever was said meanwhile is answered once, in however many channels, however far back."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass

import pytest
import pytest_asyncio

from tests.scenarios.discord_bot import Bot, bot_on, echo
from tests.servers.discord import Channel, DiscordServer, Guild, Person
from tests.servers.discord.permissions import VIEW_CHANNEL
from tests.servers.model import ScriptedModel
from tests.waiting import until

pytestmark = pytest.mark.asyncio(loop_scope="module")

CROWD = 300
HISTORY = "GET /channels/{channel_id}/messages"


@dataclass(slots=True)
class World:
    """A bot whose sessions are lost, and many people who write it direct messages."""

    server: DiscordServer
    model: ScriptedModel
    bot: Bot
    home: Guild
    crowd: list[Person]

    @property
    def ada(self) -> Person:
        return self.crowd[0]

    @asynccontextmanager
    async def unheard(self) -> AsyncIterator[None]:
        """What is said inside the block comes over no session; afterwards there is a new one."""
        before = len(self.server.connections)
        async with self.server.down("gateway"):
            self.server.hub.forget_sessions()
            yield
        await self.server.wait_connected(before + 1, timeout=20)

    def answered(self, text: str, people: list[Person] | None = None) -> list[int]:
        """How often each of these people got an answer to a text."""
        return [
            sum(
                text in message.content.removeprefix("re: ").split(" | ")
                for message in self.server.messages(one.dm, self.server.bot)
            )
            for one in people or self.crowd
        ]

    def texts(self, channel: Channel) -> list[str]:
        """What the bot said there."""
        return [message.content for message in self.server.messages(channel, self.server.bot)]


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def world() -> AsyncIterator[World]:
    async with DiscordServer() as server, ScriptedModel(policy=echo) as model:
        home = server.guild("Home")
        async with bot_on(server, model, DISCORD__SILENCE="3") as bot:
            world = World(server, model, bot, home, [server.person(f"P{number}", home) for number in range(CROWD)])
            yield world


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def crowded(world: World) -> World:
    """Everybody has talked with the bot."""
    for one in world.crowd:
        one.say(text="hello")
    await until(lambda: world.answered("hello") == [1] * CROWD, timeout=60, every=0.1)
    return world


async def test_everybody_is_answered_once_however_many_wrote_and_whoever_wrote_again_before_they_were_read(
    crowded: World,
) -> None:
    async with crowded.unheard():
        for one in crowded.crowd:
            one.say(text="unheard")
    late = crowded.crowd[:20]
    for one in late:
        one.say(text="and again")
    await until(lambda: all(crowded.answered("unheard")) and all(crowded.answered("and again", late)), timeout=60, every=0.1)
    assert crowded.answered("unheard") == [1] * CROWD
    assert crowded.answered("and again", late) == [1] * len(late)


async def test_killed_while_it_catches_up_it_answers_everybody_once_afterwards(crowded: World) -> None:
    before, wrote = len(crowded.server.requests_of(HISTORY)), crowded.crowd[::2]
    async with crowded.unheard():
        for one in wrote:
            one.say(text="gone by")
    late = wrote[:20]
    for one in late:
        one.say(text="once more")
    await until(lambda: len(crowded.server.requests_of(HISTORY)) > before + 60, timeout=20)
    await crowded.bot.kill()
    assert not all(crowded.answered("gone by", wrote)), "killed in the middle"
    await crowded.bot.start()
    await until(
        lambda: all(crowded.answered("gone by", wrote)) and all(crowded.answered("once more", late)), timeout=60, every=0.1
    )
    assert crowded.answered("gone by", wrote) == [1] * len(wrote)
    assert crowded.answered("once more", late) == [1] * len(late)


async def test_a_mention_in_a_channel_new_to_the_bot_is_found_though_another_came_first(world: World) -> None:
    attic = world.server.channel(world.home, "attic")
    async with world.unheard():
        world.ada.ask(attic, "first")
    world.ada.ask(attic, "second")
    await until(lambda: " | ".join(world.texts(attic)).replace("re: ", "").split(" | ") == ["first", "second"], timeout=30)


async def test_a_mention_behind_a_long_gap_is_found(world: World) -> None:
    hall, ben = world.server.channel(world.home, "hall"), world.crowd[1]
    await world.bot.exchange(hall, lambda: world.ada.ask(hall, "before"), "re: before")
    async with world.unheard():
        world.ada.ask(hall, "long ago")
        for number in range(249):
            ben.say(hall, f"chatter {number}")
    await until(lambda: world.texts(hall) == ["re: before", "re: long ago"], timeout=30)


async def test_channels_that_the_bot_may_not_see_are_not_asked_for(world: World) -> None:
    cellars = [world.server.channel(world.home, f"cellar-{number}", private_to=[world.ada]) for number in range(40)]
    for cellar in cellars:
        world.server.places.overwrite(cellar, world.server.bot, deny=VIEW_CHANNEL)
    porch = world.server.channel(world.home, "porch")
    before = len(world.server.requests)
    async with world.unheard():
        for cellar in cellars:
            world.ada.say(cellar, "between us")
        world.ada.ask(porch, "are you there?")
    await until(lambda: world.texts(porch) == ["re: are you there?"], timeout=30)
    refused = [one for one in world.server.requests[before:] if one.status in (401, 403, 429)]
    assert len(refused) <= 2, [one.path for one in refused]
