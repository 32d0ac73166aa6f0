"""What an operator may choose on Discord: as few intents as possible, several shards, places, other bots, limits, join and login events."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from dataclasses import dataclass

import pytest
import pytest_asyncio

from tests.scenarios.discord_bot import Bot, bot_on, echo, quoted, said
from tests.servers.discord import DiscordServer, Guild, Person
from tests.servers.discord.people import Person as Somebody
from tests.servers.model import ScriptedModel
from tests.waiting import until

pytestmark = pytest.mark.asyncio(loop_scope="module")


@dataclass(slots=True)
class World:
    """Two guilds on two shards, and a bot that was given many choices."""

    server: DiscordServer
    model: ScriptedModel
    bot: Bot
    home: Guild
    other: Guild
    robot: Somebody
    ada: Person


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def running() -> AsyncIterator[tuple[DiscordServer, ScriptedModel, Bot, Guild, Guild, Person]]:
    async with DiscordServer(heartbeat_interval=0.5) as server, ScriptedModel(policy=echo) as model:
        home = server.guild("Home", channels=("general", "door", "quiet", "no-mentions"), shard=(0, 2))
        other = server.guild("Other", shard=(1, 2))
        robot = server.person("Robot", home, bot=True)
        choices = {
            "SHARDED": "true",
            "SILENCE": "2",
            "MESSAGE_CONTENT": "false",
            "MEMBERS": "true",
            "BOTS": str(robot.id),
            "DAILY_LIMIT": "6",
            "ON_DELETE": "mark",
            "JOIN_CHANNELS": str(home.channel("door").id),
            "DENY": f"{home.channel('quiet').id}",
            "PLACES": json.dumps({str(home.channel("no-mentions").id): {"mentions": False}}),
        }
        server.place_routes.shards = 2
        settings = {f"DISCORD__{name}": value for name, value in choices.items()} | {"WELCOME__TEXT": "Welcome, {name}!"}
        async with bot_on(server, model, **settings) as bot:
            await server.until(lambda: len(list(server.hub.live())) == 2, timeout=30)
            await bot.heard("connected to Discord")
            yield server, model, bot, home, other, robot


@pytest_asyncio.fixture(loop_scope="module")
async def world(running: tuple[DiscordServer, ScriptedModel, Bot, Guild, Guild, Person]) -> World:
    server, model, bot, home, other, robot = running
    return World(server, model, bot, home, other, robot, server.person("Ada", home, other))


async def test_who_joins_is_greeted_once_in_the_place_that_was_set(world: World) -> None:
    server, door = world.server, world.home.channel("door")

    async def greeted(times: int) -> None:
        await until(lambda: len(server.messages(door, server.bot)) == times, timeout=20)

    await greeted(1)  # Ada
    ben = server.person("Ben", world.other)
    ben.join(world.home)
    await greeted(2)
    ben.leave(world.home)
    ben.join(world.home)
    await greeted(3)
    assert [message.content for message in server.messages(door, server.bot)] == [
        "Welcome, Ada!",
        "Welcome, Ben!",
        "Welcome, Ben!",
    ]
    assert world.model.requests == [], "the words are the operator's"


async def test_direct_messages_and_both_shards_are_heard_without_the_content_intent(world: World) -> None:
    ada = world.ada
    await world.bot.exchange(ada.dm, lambda: ada.say(text="hello"), "re: hello")
    for guild in (world.home, world.other):
        general = guild.channel("general")
        answer = await world.bot.exchange(general, lambda: ada.ask(general, "and here?"), "re: and here?")  # noqa: B023
        await world.bot.exchange(general, lambda: ada.say(general, "you said?", reply_to=answer), "re: you said?")  # noqa: B023
    assert all(text for _, text in quoted(world.model.requests[-1]))
    assert len([line for line in world.bot.lines if "without discord.message_content" in line]) == 1


async def test_a_thread_whose_text_is_hidden_is_not_followed_and_that_is_said_once(world: World) -> None:
    ada, general = world.ada, world.other.channel("general")
    thread = ada.thread(general, "a thread")
    await world.bot.exchange(thread, lambda: ada.ask(thread, "join us"), "re: join us")
    ada.say(thread, "hidden")
    ada.say(thread, "hidden too")
    await world.bot.exchange(thread, lambda: ada.ask(thread, "next"), "re: next")
    assert len([line for line in world.bot.lines if "hides the text" in line]) == 1


async def test_places_are_chosen(world: World) -> None:
    ada, server = world.ada, world.server
    quiet, unmentioned = world.home.channel("quiet"), world.home.channel("no-mentions")
    ada.ask(quiet, "hello")
    ada.ask(unmentioned, "hello")
    general = world.home.channel("general")
    await world.bot.exchange(general, lambda: ada.ask(general, "hello"), "re: hello")
    assert not server.messages(quiet, server.bot)
    assert not server.messages(unmentioned, server.bot)


async def test_an_allowed_bot_is_answered_until_the_guard_stops_the_loop(world: World) -> None:
    server, robot, ada = world.server, world.robot, world.ada
    ring = server.channel(world.home, "ring")
    for number in range(4):
        await world.bot.exchange(ring, lambda: robot.ask(ring, f"round {number}"), f"re: round {number}")  # noqa: B023
    robot.ask(ring, "round 4")
    await world.bot.exchange(ring, lambda: ada.ask(ring, "enough"), "re: enough")
    assert len(server.messages(ring, server.bot)) == 5
    await world.bot.exchange(ring, lambda: robot.ask(ring, "after a person"), "re: after a person")


async def test_a_deleted_message_is_only_marked(world: World) -> None:
    ada = world.ada
    message = ada.say(text="the code is 4711")
    assert (await world.server.wait_for_message(ada.dm, timeout=20)).content == "re: the code is 4711"
    ada.delete(message)
    await until(lambda: world.bot.counted("discord_deleted"))
    await world.bot.exchange(ada.dm, lambda: ada.say(text="and now?"), "re: and now?")
    assert said(world.model.requests[-1]) == ["[deleted] the code is 4711", "and now?"]


async def test_a_days_limit_is_told_once(world: World) -> None:
    server, ada = world.server, world.ada
    for number in range(6):
        await world.bot.exchange(ada.dm, lambda: ada.say(text=f"{number}"), f"re: {number}")  # noqa: B023
    ada.say(text="one more")
    assert "today's limit" in (await server.wait_for_message(ada.dm)).content
    ada.say(text="and another")
    ben = server.person("Ben", world.home)
    await world.bot.exchange(ben.dm, lambda: ben.say(text="hi"), "re: hi")
    assert len(server.messages(ada.dm, server.bot)) == 7
