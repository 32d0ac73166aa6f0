"""What outlives the process on Discord: who cannot be reached, limits, logins, and what was deleted while nobody listened."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import AsyncIterator, Awaitable
from dataclasses import dataclass

import pytest
import pytest_asyncio

from tests.scenarios.discord_bot import PASSES, POST, Bot, bot_on, echo, holding, packages_in, quoted, said, searches
from tests.servers.discord import Channel, DiscordServer, Guild, Person
from tests.servers.discord.people import Person as Somebody
from tests.servers.discord.permissions import VIEW_CHANNEL
from tests.servers.model import Gate, Request, ScriptedModel, Step, call, reply
from tests.waiting import until

pytestmark = pytest.mark.asyncio(loop_scope="module")

LIMIT = 6


def policy(request: Request) -> Step:
    """Says good morning to who comes online, else as usual."""
    heard = [message for message in request.messages if message["role"] == "user"]
    happened = [one for one in packages_in(heard[-1]) if one.get("type") == "event"] if heard else []
    if happened and not request.contents("tool"):
        return reply(None, call("send_message", text="Good morning!"))
    return echo(request)


@dataclass(slots=True)
class World:
    """A bot that is ended and started again, in three guilds."""

    server: DiscordServer
    model: ScriptedModel
    bot: Bot
    guilds: list[Guild]
    robot: Somebody
    ada: Person

    @property
    def home(self) -> Guild:
        return self.guilds[0]

    async def again(self) -> None:
        """The process ends and another one begins."""
        await self.bot.stop()
        await self.bot.start()

    async def command_line(self, *words: str) -> str:
        """What an operator's command prints."""
        process = await asyncio.create_subprocess_exec(
            sys.executable,
            "-m",
            "bot",
            *words,
            cwd=self.bot.data.parent,
            env=self.bot.environment(),
            stdin=asyncio.subprocess.DEVNULL,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.PIPE,
        )
        out, err = await process.communicate()
        return out.decode() + err.decode()


async def _not(asked: Awaitable[bool]) -> bool:
    return not await asked


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def running() -> AsyncIterator[tuple[DiscordServer, ScriptedModel, Bot, list[Guild], Person]]:
    async with DiscordServer() as server, ScriptedModel(policy=policy) as model:
        guilds = [server.guild(name) for name in ("Home", "Work", "Club")]
        robot = server.person("Robot", guilds[0], bot=True)
        choices = {
            "DISCORD__PRESENCES": "true",
            "DISCORD__LOGIN_EVENTS": "true",
            "DISCORD__DAILY_LIMIT": str(LIMIT),
            "DISCORD__BOTS": str(robot.id),
            "OPENERS__ENABLED": "true",
            "OPENERS__ACTIVE_MINUTES": "0",
            "OPENERS__MIN_GAP_HOURS": "0",
            "OPENERS__DAILY_CAP": "20",
            "OPENERS__ASK_AFTER": "1000",
        }
        async with bot_on(server, model, **choices) as bot:
            yield server, model, bot, guilds, robot


@pytest_asyncio.fixture(loop_scope="module")
async def world(running: tuple[DiscordServer, ScriptedModel, Bot, list[Guild], Person]) -> AsyncIterator[World]:
    server, model, bot, guilds, robot = running
    if bot.process is None or bot.process.returncode is not None:
        await bot.start()
    yield World(server, model, bot, guilds, robot, server.person("Ada", *guilds))
    server.faults.clear()


async def test_who_cannot_be_reached_is_left_alone_until_they_write_also_by_the_next_process(world: World) -> None:
    server, ada = world.server, world.ada
    gate = Gate(reply("\n\n".join(f"Paragraph {number}. " + "word " * 150 for number in range(8))))
    world.model.add(gate)
    ada.say(text="quick")
    await gate.reached.wait()
    ada.user.dms_open = False
    before = len(server.requests_of(POST))
    gate.release()
    await until(lambda: any(one.status == 403 for one in server.requests_of(POST)[before:]), timeout=20)

    async def listed() -> bool:
        lines = [line for line in (await world.command_line("users")).splitlines() if f"discord::{ada.id}" in line]
        return len(lines) == 1 and lines[0].count("20") >= 2 and lines[0].rstrip()[-3] == ":" and lines[0].count(":") >= 4

    assert await listed()
    await world.again()
    assert await listed()
    assert [one.status for one in server.requests_of(POST)[before:]].count(403) == 1, "the other parts were not even tried"
    ada.user.dms_open = True
    answer = ada.say(text="open again")
    assert "open again" in (await server.wait_for_message(ada.dm, after=answer, timeout=20)).content
    assert not await listed()


async def test_what_was_deleted_or_edited_meanwhile_is_noticed_at_the_start(world: World) -> None:
    server, ada, ben = world.server, world.ada, world.server.person("Ben", world.home)
    garden = server.channel(world.home, "garden")
    words = ben.say(garden, "the key is under the pot")
    await world.bot.exchange(garden, lambda: ada.ask(garden, "hello"), "re: hello")
    first, second = ada.say(text="the code is 4711"), None
    assert (await server.wait_for_message(ada.dm, after=first, timeout=20)).content == "re: the code is 4711"
    second = ada.say(text="I like tae")
    assert (await server.wait_for_message(ada.dm, after=second, timeout=20)).content == "re: I like tae"
    await world.bot.kill()
    ada.delete(first)
    ada.edit(second, "I like tea")
    ben.delete(words)
    ada.say(text="are you back?")
    await world.bot.start()
    await until(lambda: "re: are you back?" in [one.content for one in server.messages(ada.dm, server.bot)], timeout=30)
    await world.bot.exchange(ada.dm, lambda: ada.say(text="and now?"), "re: and now?")
    assert said(world.model.requests[-1]) == ["I like tea", "are you back?", "and now?"]
    await world.bot.exchange(garden, lambda: ada.ask(garden, "and here?"), "re: and here?")
    assert "pot" not in str(quoted(world.model.requests[-1]))


async def test_what_was_deleted_meanwhile_with_its_channel_or_in_an_archived_thread_is_noticed_at_the_start(world: World) -> None:
    server, ada = world.server, world.ada
    attic, yard = server.channel(world.home, "attic"), server.channel(world.home, "yard")
    beams, roof = ada.thread(attic, "beams"), ada.thread(yard, "roof")
    asked = {}
    for where, words in ((attic, "juniper"), (beams, "larch"), (roof, "slate"), (roof, "moss")):
        asked[words] = ada.ask(where, f"it is of {words}")
        assert (await server.wait_for_message(where, after=asked[words], timeout=20)).content == f"re: it is of {words}"
    ada.archive(beams)
    ada.archive(roof)
    await world.bot.kill()
    server.places.delete_channel(attic)
    ada.delete(asked["slate"])
    await world.bot.start()

    async def found(words: str) -> bool:
        return f"of {words}" in (await server.wait_for_answer(ada.command("memory search", text=words))).text

    for words in ("juniper", "larch", "slate"):
        await until(lambda words=words: _not(found(words)), timeout=30)  # type: ignore[misc]
    assert await found("moss")


async def test_a_channel_that_turned_private_meanwhile_is_private_from_the_start(world: World) -> None:
    """Of 200 prompts elsewhere none holds a word of it, though they were asked for before the bot was connected."""
    server = world.server
    people = [server.person(f"P{number}", world.home) for number in range(25)]
    shed, porch, yard = [server.channel(world.home, name) for name in ("shed", "porch", "yard")]

    async def all_answered(channel: Channel, text: str) -> None:
        before = len(server.messages(channel, server.bot))
        for one in people:
            one.ask(channel, text)
        await until(lambda: len(server.messages(channel, server.bot)) == before + len(people), timeout=60)

    await all_answered(shed, "remember Biscuit is my dog")
    before = len(world.model.requests)
    await world.bot.exchange(porch, lambda: people[0].ask(porch, "search"), "done")
    assert holding(searches(world.model, before)) == PASSES, "while it is public they do"
    await world.bot.stop()
    for target, allow, deny in ((server.bot, VIEW_CHANNEL, 0), (world.home.everyone, 0, VIEW_CHANNEL)):
        server.places.overwrite(shed, target, allow=allow, deny=deny)
    before = len(world.model.requests)
    await world.bot.start()
    await all_answered(yard, "search")
    prompts = searches(world.model, before)
    assert (len(prompts), holding(prompts)) == (len(people) * PASSES, 0)


async def test_a_channel_that_was_hidden_from_the_bot_alone_stays_what_it_was(world: World) -> None:
    server, ada = world.server, world.ada
    barn, park = server.channel(world.home, "barn"), server.channel(world.home, "park")
    await world.bot.exchange(barn, lambda: ada.ask(barn, "remember Biscuit is my dog"), "Noted.")
    await world.bot.stop()
    server.places.overwrite(barn, server.bot, deny=VIEW_CHANNEL)
    await world.bot.start()
    await world.bot.exchange(park, lambda: ada.ask(park, "what is kept?"), "kept: Biscuit")


async def test_a_thread_is_followed_also_by_the_next_process(world: World) -> None:
    ada = world.ada
    thread = ada.thread(world.server.channel(world.home, "barn"), "barn")
    await world.bot.exchange(thread, lambda: ada.ask(thread, "a barn?"), "re: a barn?")
    await world.again()
    await world.bot.exchange(thread, lambda: ada.say(thread, "still there?"), "re: still there?")


async def test_a_days_limit_holds_for_the_next_process_too_and_is_told_once(world: World) -> None:
    server, ada = world.server, world.ada
    for number in range(LIMIT):
        await world.bot.exchange(ada.dm, lambda: ada.say(text=f"{number}"), f"re: {number}")  # noqa: B023
    ada.say(text="one more")
    assert "today's limit" in (await server.wait_for_message(ada.dm, timeout=20)).content
    await world.again()
    before = await world.bot.counted("discord_ignored_daily_limit")
    ada.say(text="and another")
    await until(lambda: world.bot.counted("discord_ignored_daily_limit", above=before))
    assert len(server.messages(ada.dm, server.bot)) == LIMIT + 1


async def test_the_guard_against_loops_holds_for_the_next_process_too(world: World) -> None:
    server, robot = world.server, world.robot
    ring = server.channel(world.home, "ring")
    for number in range(4):
        await world.bot.exchange(ring, lambda: robot.ask(ring, f"round {number}"), f"re: round {number}")  # noqa: B023
    await world.again()
    before = await world.bot.counted("discord_ignored_bot_loop")
    robot.ask(ring, "round 4")
    await until(lambda: world.bot.counted("discord_ignored_bot_loop", above=before))
    assert len(server.messages(ring, server.bot)) == 4


async def test_coming_online_is_one_event_of_who_agreed_however_many_guilds_flaps_and_processes(world: World) -> None:
    server, ada, ben = world.server, world.ada, world.server.person("Ben", *world.guilds)
    for one in (ada, ben):
        await world.bot.exchange(one.dm, lambda: one.say(text="hello"), "re: hello")  # noqa: B023
        one.online()
    for line in ("timezone UTC", "quiet off", "openers on"):
        await server.wait_for_answer(ada.command("settings", text=line), timeout=15)
    for one in (ada, ben):
        one.offline()
        one.online()
    assert (await server.wait_for_message(ada.dm, timeout=20)).content == "Good morning!"
    assert await world.bot.counted("discord_ignored_login") == 1, "Ben did not agree"
    ada.offline()
    ada.online()
    await world.again()
    for status in ("online", "offline", "online"):
        ada.online(status) if status != "offline" else ada.offline()
    await until(lambda: world.bot.counted("discord_ignored_login"))
    await world.bot.exchange(ada.dm, lambda: ada.say(text="yes?"), "re: yes?")
    assert [one.content for one in server.messages(ada.dm, server.bot)] == ["re: hello", "Good morning!", "re: yes?"]
    assert len(server.messages(ben.dm, server.bot)) == 1


async def test_the_invite_link_is_printed_for_the_token_of_any_variable(world: World) -> None:
    bot = world.bot
    printed = await world.command_line("discord", "invite")
    assert f"client_id={world.server.bot.id}" in printed
    kept = dict(bot.settings)
    try:
        bot.settings |= {"KEEPSAKE__DISCORD__TOKEN_ENV": "MY_TOKEN", "MY_TOKEN": world.server.token, "DISCORD_TOKEN": ""}
        assert f"client_id={world.server.bot.id}" in await world.command_line("discord", "invite")
        bot.settings |= {"MY_TOKEN": ""}
        assert "discord.token_env: the environment variable MY_TOKEN is not set" in await world.command_line("discord", "invite")
        bot.settings |= {"MY_TOKEN": "wrong"}
        assert "Discord does not accept the token in MY_TOKEN" in await world.command_line("discord", "invite")
    finally:
        bot.settings.clear()
        bot.settings.update(kept)
