"""Guilds, threads, forums and what people delete there, with a bot that sees all of it."""

from __future__ import annotations

from collections.abc import AsyncIterator
from dataclasses import dataclass

import pytest
import pytest_asyncio

from tests.scenarios.discord_bot import POST, Bot, bot_on, echo, quoted, said
from tests.servers.discord import DiscordServer, Guild, Person
from tests.servers.discord.permissions import VIEW_CHANNEL
from tests.servers.model import Gate, ScriptedModel, reply
from tests.waiting import until

pytestmark = pytest.mark.asyncio(loop_scope="module")


@dataclass(slots=True)
class World:
    """Three guilds, the bot in all of them, and a person who never met it before."""

    server: DiscordServer
    model: ScriptedModel
    bot: Bot
    home: Guild
    others: tuple[Guild, Guild]
    ada: Person


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def running() -> AsyncIterator[tuple[DiscordServer, ScriptedModel, Bot, list[Guild]]]:
    async with DiscordServer() as server, ScriptedModel(policy=echo) as model:
        guilds = [server.guild(name) for name in ("Home", "Work", "Club")]
        async with bot_on(server, model) as bot:
            yield server, model, bot, guilds


@pytest_asyncio.fixture(loop_scope="module")
async def world(running: tuple[DiscordServer, ScriptedModel, Bot, list[Guild]]) -> AsyncIterator[World]:
    server, model, bot, [home, work, club] = running
    yield World(server, model, bot, home, (work, club), server.person("Ada", home, work, club))
    server.faults.clear()


async def test_one_person_in_three_guilds_has_one_memory_that_crosses_into_their_own_messages_alone(world: World) -> None:
    ada = world.ada
    first, second = world.home.channel("general"), world.others[0].channel("general")
    third = world.server.channel(world.others[1], "private", private_to=[ada])
    await world.bot.exchange(first, lambda: ada.ask(first, "remember Biscuit is my dog"), "Noted.")
    await world.bot.exchange(third, lambda: ada.ask(third, "remember Clara is my sister"), "Noted.")
    await world.bot.exchange(second, lambda: ada.ask(second, "what is kept?"), "kept:")
    await world.bot.exchange(first, lambda: ada.ask(first, "what is kept?"), "kept: Biscuit")
    await world.bot.exchange(ada.dm, lambda: ada.say(text="what is kept?"), "kept: Biscuit, Clara")


@pytest.mark.parametrize("forum", [False, True], ids=["thread", "post"])
async def test_a_channel_that_turns_private_takes_its_threads_along(world: World, forum: bool) -> None:
    """Also one in which nobody ever spoke to the bot but in the thread."""
    server, ada, general = world.server, world.ada, world.home.channel("general")
    channel = server.channel(world.home, "pets", forum=forum)
    thread = ada.post(channel, "Dogs", "which breed?") if forum else ada.thread(channel, "dogs")
    await world.bot.exchange(thread, lambda: ada.ask(thread, "remember Biscuit is my dog"), "Noted.")
    await world.bot.exchange(general, lambda: ada.ask(general, "what is kept?"), "kept: Biscuit")
    server.places.overwrite(channel, server.bot, allow=VIEW_CHANNEL)
    server.places.overwrite(channel, world.home.everyone, deny=VIEW_CHANNEL)
    # Words of the channel's own turn private: the next question is behind the change.
    await world.bot.exchange(ada.dm, lambda: ada.say(text="hello"), "re: hello")
    await world.bot.exchange(general, lambda: ada.ask(general, "what is kept?"), "kept:")


async def test_a_channel_that_the_bot_alone_may_not_see_says_nothing_about_people(world: World) -> None:
    server, ada, general = world.server, world.ada, world.home.channel("general")
    cellar = server.channel(world.home, "cellar")
    await world.bot.exchange(cellar, lambda: ada.ask(cellar, "remember Biscuit is my dog"), "Noted.")
    server.places.overwrite(cellar, server.bot, deny=VIEW_CHANNEL)
    await world.bot.exchange(general, lambda: ada.ask(general, "what is kept?"), "kept: Biscuit")
    server.places.overwrite(cellar, world.home.everyone, deny=VIEW_CHANNEL)
    await world.bot.exchange(general, lambda: ada.ask(general, "what is kept?"), "kept: Biscuit")
    server.places.overwrite(cellar, server.bot, allow=VIEW_CHANNEL)
    await world.bot.exchange(general, lambda: ada.ask(general, "what is kept?"), "kept:")


async def test_a_guild_whose_everyone_sees_nothing_any_more_has_no_public_channels(world: World) -> None:
    server, ada = world.server, world.ada
    club = server.guild("Closed club", channels=("general", "lounge"))
    ada.join(club)
    server.places.role(club, "inside", club.everyone.permissions, [server.bot, ada.user])
    general, lounge = club.channel("general"), club.channel("lounge")
    await world.bot.exchange(general, lambda: ada.ask(general, "remember Biscuit is my dog"), "Noted.")
    await world.bot.exchange(lounge, lambda: ada.ask(lounge, "what is kept?"), "kept: Biscuit")
    server.places.permit(club, club.everyone, 0)
    await world.bot.exchange(ada.dm, lambda: ada.say(text="hello"), "re: hello")
    await world.bot.exchange(lounge, lambda: ada.ask(lounge, "what is kept?"), "kept:")


async def test_deleted_words_go_from_where_others_had_them_quoted(world: World) -> None:
    server, ada, ben = world.server, world.ada, world.server.person("Ben", world.home)
    garden = server.channel(world.home, "garden")
    secret, roses = ben.say(garden, "the key is under the pot"), ben.say(garden, "the roses need watr")
    await world.bot.exchange(garden, lambda: ada.ask(garden, "what about it?"), "re: what about it?")
    assert quoted(world.model.requests[-1]) == [("Ben", "the key is under the pot"), ("Ben", "the roses need watr")]
    deleted, edited = await world.bot.counted("discord_deleted"), await world.bot.counted("discord_edited")
    ben.delete(secret)
    ben.edit(roses, "the roses need water")
    await until(lambda: world.bot.counted("discord_deleted", above=deleted))
    await until(lambda: world.bot.counted("discord_edited", above=edited))
    await world.bot.exchange(garden, lambda: ada.ask(garden, "and now?"), "re: and now?")
    assert quoted(world.model.requests[-1]) == [("Ben", "the roses need water")]
    assert said(world.model.requests[-1]) == ["what about it?", "and now?"], "what she said herself stays"
    assert "pot" not in (await server.wait_for_answer(ada.command("memory search", garden, text="key pot"), timeout=15)).text


async def test_a_bulk_deletion_takes_all_of_them_and_what_was_made_of_them(world: World) -> None:
    server, ada = world.server, world.ada
    shed = server.channel(world.home, "shed")
    said_first, said_second = "remember Biscuit is my dog", "we met in May"
    one = ada.ask(shed, said_first)
    assert (await server.wait_for_message(shed, after=one, timeout=20)).content == "Noted."
    two = ada.ask(shed, said_second)
    assert (await server.wait_for_message(shed, after=two, timeout=20)).content == f"re: {said_second}"
    before = await world.bot.counted("discord_deleted")
    ada.delete(one, two)
    await until(lambda: world.bot.counted("discord_deleted", above=before))
    await world.bot.exchange(shed, lambda: ada.ask(shed, "what is kept?"), "kept:")
    assert said(world.model.requests[-1]) == ["what is kept?"]


async def test_an_archived_thread_comes_back_with_its_next_message(world: World) -> None:
    server, ada = world.server, world.ada
    yard = server.channel(world.home, "yard")
    thread = ada.thread(yard, "shed plans")
    await world.bot.exchange(thread, lambda: ada.ask(thread, "a shed?"), "re: a shed?")
    ada.archive(thread)
    await world.bot.exchange(thread, lambda: ada.say(thread, "still there?"), "re: still there?")


async def test_a_thread_that_is_locked_meanwhile_is_given_up_and_nobody_else_waits(world: World) -> None:
    server, ada, ben = world.server, world.ada, world.server.person("Ben", world.home)
    thread = ada.thread(server.channel(world.home, "barn"), "barn plans")
    gate = Gate(reply("too late"))
    world.model.add(gate)
    ada.ask(thread, "a barn?")
    await gate.reached.wait()
    ada.lock(thread)
    before = len(server.requests_of(POST))
    gate.release()

    def refused() -> list[int | None]:
        return [one.status for one in server.requests_of(POST)[before:] if one.params["channel_id"] == str(thread.id)]

    await until(lambda: refused() == [403], timeout=20)
    await world.bot.exchange(ben.dm, lambda: ben.say(text="others go on"), "re: others go on")
    await world.bot.exchange(ada.dm, lambda: ada.say(text="and so do I"), "re: and so do I")
    assert refused() == [403]


async def test_the_first_post_of_a_forum_is_answered_in_it(world: World) -> None:
    server, ada, ben = world.server, world.ada, world.server.person("Ben", world.home)
    forum = server.channel(world.home, "questions", forum=True)
    post = ada.post(forum, "Dogs", "which breed?", mentions=[server.bot])
    assert (await server.wait_for_message(post, timeout=20)).content == "re: which breed?"
    await world.bot.exchange(post, lambda: ben.ask(post, "and for me?"), "re: and for me?")
    assert ("Ada", "which breed?") in quoted(world.model.requests[-1])


async def test_dispatches_that_are_wrong_or_unknown_cost_nobody_an_answer(world: World) -> None:
    server, ada = world.server, world.ada
    await world.bot.exchange(ada.dm, lambda: ada.say(text="hello"), "re: hello")
    for event, data in (
        ("SOMETHING_NEW", {"id": "1"}),
        ("MESSAGE_DELETE", {"id": "1", "channel_id": "2"}),
        ("MESSAGE_DELETE_BULK", {"ids": [], "channel_id": "2"}),
        ("MESSAGE_UPDATE", {"id": "1", "channel_id": str(ada.dm.id)}),
        ("GUILD_MEMBER_ADD", {"guild_id": "1", "user": None}),
        ("TYPING_START", None),
        ("INTERACTION_CREATE", {"id": "1", "type": 3, "token": "x", "data": {}}),
        ("MESSAGE_CREATE", []),
    ):
        server.dispatch_raw(event, data)
        ada.say(text=f"after {event}")
        answer = await server.wait_for_message(ada.dm, timeout=30)
        assert answer.content == f"re: after {event}"


async def test_a_message_that_is_dispatched_twice_is_answered_once(world: World) -> None:
    server, ada = world.server, world.ada
    message = ada.say(text="once")
    server.actions._tell("MESSAGE_CREATE", message)
    assert (await server.wait_for_message(ada.dm, timeout=20)).content == "re: once"
    server.actions._tell("MESSAGE_CREATE", message)
    await world.bot.exchange(ada.dm, lambda: ada.say(text="and on"), "re: and on")
    assert [one.content for one in server.messages(ada.dm, server.bot)] == ["re: once", "re: and on"]


async def test_previews_and_pins_are_no_edits_of_anybody(world: World) -> None:
    server, ada = world.server, world.ada
    general = world.home.channel("general")
    asked = ada.ask(general, "see https://example.com/")
    answer = await server.wait_for_message(general, after=asked, timeout=20)
    before = await world.bot.counted("discord_edited")
    for message in (asked, answer):
        server.actions.unfurl(message)
        server.actions.pin(message, ada.user)
    await world.bot.exchange(general, lambda: ada.ask(general, "next"), "re: next")
    assert await world.bot.counted("discord_edited") == before


async def test_a_block_by_the_proxy_in_front_of_discord_is_waited_out(world: World) -> None:
    server, ada = world.server, world.ada
    mine = str(ada.dm.id)
    server.faults.rate_limit(POST, 0.5, via=False, where=lambda request: request.params["channel_id"] == mine)
    await world.bot.exchange(ada.dm, lambda: ada.say(text="patience"), "re: patience")
    assert [one.content for one in server.messages(ada.dm, server.bot)] == ["re: patience"]


async def test_why_a_message_was_not_answered_is_counted(world: World) -> None:
    server, ada = world.server, world.ada
    lobby = server.channel(world.home, "lobby")
    for text, reason in (("just talk", "not_addressed"), ("@everyone hello", "mass_mention")):
        before = await world.bot.counted(f"discord_ignored_{reason}")
        ada.say(lobby, text)
        await until(lambda: world.bot.counted(f"discord_ignored_{reason}", above=before))  # noqa: B023
    before = await world.bot.counted("discord_ignored_webhook")
    server.webhook_says(lobby, server.bot.mention + " build done")
    await until(lambda: world.bot.counted("discord_ignored_webhook", above=before))
    assert not server.messages(lobby, server.bot)
