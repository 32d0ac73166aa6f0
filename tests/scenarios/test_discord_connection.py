"""Discord goes away and comes back, the bot is killed, and nothing is lost or said twice."""

from __future__ import annotations

from collections.abc import AsyncIterator
from dataclasses import dataclass

import aiohttp
import pytest
import pytest_asyncio

from tests.scenarios.discord_bot import Bot, bot_on, echo, said
from tests.servers.discord import Channel, DiscordServer, Guild, Person
from tests.servers.model import Gate, ScriptedModel, reply
from tests.waiting import until

pytestmark = pytest.mark.asyncio(loop_scope="module")


@dataclass(slots=True)
class World:
    """One server with fast heartbeats, and one bot on it that gets killed at times."""

    server: DiscordServer
    model: ScriptedModel
    bot: Bot
    home: Guild
    ada: Person

    def texts(self, channel: Channel) -> list[str]:
        """What the bot said there."""
        return [message.content for message in self.server.messages(channel, self.server.bot)]

    async def ready(self) -> int:
        """The status of /ready."""
        async with aiohttp.ClientSession() as session, session.get(f"http://127.0.0.1:{self.bot.port}/ready") as response:
            return response.status


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def running() -> AsyncIterator[tuple[DiscordServer, ScriptedModel, Bot, Guild]]:
    async with DiscordServer(heartbeat_interval=0.5) as server, ScriptedModel(policy=echo) as model:
        home = server.guild("Home")
        async with bot_on(server, model, start=False, DISCORD__SILENCE="1.5") as bot:
            yield server, model, bot, home


@pytest_asyncio.fixture(loop_scope="module")
async def world(running: tuple[DiscordServer, ScriptedModel, Bot, Guild]) -> AsyncIterator[World]:
    server, model, bot, home = running
    if bot.process is None or bot.process.returncode is not None:
        await bot.start()
    yield World(server, model, bot, home, server.person("Ada", home))
    server.faults.clear()


async def test_a_cut_in_the_middle_is_resumed_and_nothing_is_answered_twice(world: World) -> None:
    server, ada = world.server, world.ada
    gate = Gate(reply("re: one"))
    world.model.add(gate)
    ada.say(text="one")
    await gate.reached.wait()
    before = len(server.connections)
    server.hub.cut()
    ada.say(text="two")
    gate.release()
    back = await server.wait_connected(before + 1)
    assert back.resumed
    await until(lambda: world.texts(ada.dm) == ["re: one", "re: two"])
    await world.bot.exchange(ada.dm, lambda: ada.say(text="three"), "re: three")
    assert world.texts(ada.dm) == ["re: one", "re: two", "re: three"]


async def test_a_session_that_cannot_be_resumed_is_caught_up(world: World) -> None:
    server, ada = world.server, world.ada
    hall, attic = server.channel(world.home, "hall"), server.channel(world.home, "attic")
    await world.bot.exchange(ada.dm, lambda: ada.say(text="before"), "re: before")
    await world.bot.exchange(hall, lambda: ada.ask(hall, "before"), "re: before")
    before = len(server.connections)
    async with server.down("gateway"):
        server.hub.forget_sessions()
        ada.say(text="unheard")
        ada.say(text="also unheard")
        ada.ask(hall, "unheard in a channel")
        ada.ask(attic, "unheard in a new channel")
        ada.say(attic, "and not to the bot")
    await server.until(lambda: len([one for one in server.connections[before:] if one.session]) > 0, timeout=20)
    await until(lambda: "also unheard" in " ".join(world.texts(ada.dm)), timeout=20)
    answers = " ".join(world.texts(ada.dm)).replace("also unheard", "second")
    assert [answers.count(text) for text in ("unheard", "second")] == [1, 1]
    assert answers.index("unheard") < answers.index("second")
    await until(lambda: world.texts(hall) == ["re: before", "re: unheard in a channel"], timeout=20)
    await until(lambda: world.texts(attic) == ["re: unheard in a new channel"], timeout=20)


async def test_killed_in_the_middle_everything_is_answered_once_afterwards(world: World) -> None:
    server, ada, ben = world.server, world.ada, world.server.person("Ben", world.home)
    await world.bot.exchange(ada.dm, lambda: ada.say(text="hello"), "re: hello")
    await world.bot.exchange(ben.dm, lambda: ben.say(text="hello"), "re: hello")
    gate = Gate()
    world.model.add(gate)
    ada.say(text="in the middle")
    await gate.reached.wait()
    await world.bot.kill()
    ada.say(text="while it was dead")
    ben.say(text="me too")
    syncs = server.command_syncs
    await world.bot.start()
    gate.release()
    await until(lambda: len(world.texts(ben.dm)) == 2, timeout=30)
    await until(lambda: "while it was dead" in " ".join(world.texts(ada.dm)), timeout=30)
    answers = " ".join(world.texts(ada.dm))
    assert [answers.count(text) for text in ("in the middle", "while it was dead")] == [1, 1]
    assert world.texts(ben.dm) == ["re: hello", "re: me too"]
    assert server.command_syncs == syncs, "the commands had not changed"


async def test_a_gateway_that_is_up_but_says_nothing_is_noticed(world: World) -> None:
    server, ada = world.server, world.ada
    await world.bot.exchange(ada.dm, lambda: ada.say(text="hello"), "re: hello")
    assert await world.ready() == 200
    before = len(server.connections)
    server.hub.deafen()
    ada.say(text="are you deaf?")

    async def ready() -> bool:
        return await world.ready() == 200

    await server.wait_connected(before + 1, timeout=20)
    assert (await server.wait_for_message(ada.dm, timeout=20)).content == "re: are you deaf?"
    await until(ready, timeout=20)


async def test_a_malformed_dispatch_costs_a_restart_and_no_message(world: World) -> None:
    server, ada = world.server, world.ada
    await world.bot.exchange(ada.dm, lambda: ada.say(text="hello"), "re: hello")
    before = len(server.connections)
    server.dispatch_raw("MESSAGE_CREATE", {"id": None, "channel_id": "x"})
    ada.say(text="right after")
    await server.wait_connected(before + 1, timeout=20)
    assert (await server.wait_for_message(ada.dm, timeout=20)).content == "re: right after"
    assert await world.bot.heard("the connection to Discord ended")


async def test_a_first_connection_that_fails_is_tried_again(world: World) -> None:
    server, ada = world.server, world.ada
    await world.bot.exchange(ada.dm, lambda: ada.say(text="hello"), "re: hello")
    assert await world.bot.stop() == 0
    async with server.down("gateway"):
        before = len(world.bot.lines)
        await world.bot.start(listening=False)
        await until(lambda: any("the connection to Discord ended" in line for line in world.bot.lines[before:]), timeout=30)
        assert await world.ready() == 503
        ada.say(text="at last")
    assert (await server.wait_for_message(ada.dm, timeout=20)).content == "re: at last"


async def test_an_edit_and_a_command_work_after_a_reconnection(world: World) -> None:
    server, ada = world.server, world.ada
    await world.bot.exchange(ada.dm, lambda: ada.say(text="remember Biscuit"), "Noted.")
    before = len(server.connections)
    server.hub.reconnect()
    await server.wait_connected(before + 1)
    assert "Biscuit" in (await server.wait_for_answer(ada.command("memory view"), timeout=10)).text


async def refused(world: World, **settings: str) -> list[str]:
    """What a bot says that ends by itself with exit code 2, without what it says at every start."""
    other = Bot(world.model, world.bot.data, {**world.bot.settings, **settings}, server=world.server)
    await other.start(listening=False)
    assert await other.ended() == 2, other.lines
    return [line for line in other.lines if not line.startswith(("Starting", "Running")) and "discord.client" not in line]


async def test_a_wrong_token_is_one_clear_line(world: World) -> None:
    lines = await refused(world, DISCORD_TOKEN="wrong")
    assert len(lines) == 1, lines
    assert lines[0].startswith("discord.token_env: Discord does not accept the token in DISCORD_TOKEN")


async def test_missing_intents_are_one_clear_line(world: World) -> None:
    kept = world.server.world.application.privileged
    world.server.world.application.privileged = 0
    try:
        lines = [line for line in await refused(world) if "[info" not in line]
    finally:
        world.server.world.application.privileged = kept
    assert len(lines) == 1, lines
    assert "discord.message_content" in lines[0]
    assert "Privileged Gateway Intents" in lines[0]


async def test_a_revoked_token_ends_the_bot_with_one_clear_line(world: World) -> None:
    token = world.server.token
    world.server.revoke_token()
    try:
        assert await world.bot.ended() == 2
    finally:
        world.server.world.application.token = token
    assert len([line for line in world.bot.lines if "does not accept the token" in line]) == 1


async def test_what_was_said_meanwhile_is_answered_at_the_next_start(world: World) -> None:
    # The fixture has started it again.
    await world.bot.exchange(world.ada.dm, lambda: world.ada.say(text="back"), "re: back")
    assert said(world.model.requests[-1]) == ["back"]
