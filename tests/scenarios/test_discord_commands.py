"""Slash commands, buttons and modals on Discord: whom they serve, that they outlive the process, and that they are in time."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from dataclasses import dataclass

import pytest
import pytest_asyncio

from tests.scenarios.discord_bot import Bot, bot_on, echo, quoted, said
from tests.scenarios.soak_discord import soak
from tests.servers.discord import DiscordServer, Guild, Interaction, Person, Role
from tests.servers.model import ScriptedModel, reply
from tests.waiting import until

pytestmark = pytest.mark.asyncio(loop_scope="module")

CALLBACK = "POST /interactions/{interaction_id}/{token}/callback"
FOLLOW_UP = "POST /webhooks/{application_id}/{token}"


@dataclass(slots=True)
class World:
    """A guild with a role for those who look after it, and a person."""

    server: DiscordServer
    model: ScriptedModel
    bot: Bot
    home: Guild
    keepers: Role
    ada: Person

    async def said(self, interaction: Interaction) -> Interaction:
        return await self.server.wait_for_answer(interaction, timeout=15)

    async def tell(self, text: str) -> None:
        await self.bot.exchange(self.ada.dm, lambda: self.ada.say(text=f"remember {text}"), "Noted.")


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def running() -> AsyncIterator[tuple[DiscordServer, ScriptedModel, Bot, Guild, Role]]:
    async with DiscordServer() as server, ScriptedModel(policy=echo) as model:
        home = server.guild("Home", channels=("general",))
        keepers = server.places.role(home, "keepers")
        admins = f'{{"{home.id}": ["{keepers.id}"]}}'
        async with bot_on(server, model, ACCESS__ADMINS=admins) as bot:
            yield server, model, bot, home, keepers


@pytest_asyncio.fixture(loop_scope="module")
async def world(running: tuple[DiscordServer, ScriptedModel, Bot, Guild, Role]) -> AsyncIterator[World]:
    server, model, bot, home, keepers = running
    yield World(server, model, bot, home, keepers, server.person("Ada", home))
    server.faults.clear()


def number_of(text: str, word: str) -> str:
    """The number (`w3`) that a listing shows for the line with a word in it."""
    line = next(line for line in text.splitlines() if word in line)
    return next(
        part
        for part in line.replace("[", " ").replace("]", " ").replace(",", " ").replace("*", " ").split()
        if part[0] in "wma" and part[1:].isdigit()
    )


async def test_a_button_runs_its_line_for_the_person_it_was_made_for_alone(world: World) -> None:
    await world.tell("Biscuit is my dog")
    view = await world.said(world.ada.command("memory view"))
    thing = number_of(view.text, "Biscuit")
    shown = await world.said(world.ada.command("memory view", text=thing))
    ben = world.server.person("Ben", world.home)
    refused = await world.said(ben.press(shown.answers[-1], "Forget"))
    assert refused.text == "This button was made for somebody else."
    assert refused.ephemeral
    assert "Biscuit" in (await world.said(world.ada.command("memory view"))).text, "nothing was done"
    pressed = await world.said(world.ada.press(shown.answers[-1], "Forget"))
    assert pressed.ephemeral
    sure = [button for one in pressed.answers for button in ([one] if one.components else [])]
    if sure:
        await world.said(world.ada.press(sure[-1], "Forget"))
    assert "Biscuit" not in (await world.said(world.ada.command("memory view"))).text


async def test_a_button_that_asks_opens_a_modal_and_both_outlive_the_process(world: World) -> None:
    await world.tell("Clara is my sister")
    thing = number_of((await world.said(world.ada.command("memory view"))).text, "Clara")
    shown = await world.said(world.ada.command("memory view", text=thing))
    await world.bot.stop()
    await world.bot.start()
    asked = await world.server.wait_for_acknowledgement(world.ada.press(shown.answers[-1], "Correct"), timeout=15)
    assert asked.modal is not None
    assert asked.modal["title"] == "Correct"
    await world.bot.stop()
    await world.bot.start()
    done = await world.said(world.ada.submit(asked, {"text": "Clara is my cousin"}))
    assert "Clara is my cousin" in done.text
    assert "cousin" in (await world.said(world.ada.command("memory view"))).text
    # Somebody else is not even asked.
    ben = world.server.person("Ben", world.home)
    refused = await world.said(ben.press(shown.answers[-1], "Correct"))
    assert refused.modal is None
    assert refused.text == "This button was made for somebody else."


async def test_people_see_correct_share_pause_and_forget_their_memory_by_commands(world: World) -> None:
    ada, general = world.ada, world.home.channel("general")

    async def said(line: str, text: str = "") -> str:
        answer = await world.said(ada.command(line, text=text) if text else ada.command(line))
        assert answer.ephemeral
        return answer.text

    await world.tell("Biscuit is my dog")
    thing = number_of(await said("memory view"), "Biscuit")
    await said("memory correct", f"{thing} Biscuit is my cat")
    assert "Biscuit is my cat" in await said("memory view")
    thing = number_of(await said("memory view"), "Biscuit")
    await world.bot.exchange(general, lambda: ada.ask(general, "what is kept?"), "kept:")
    await said("memory share", thing)
    await world.bot.exchange(general, lambda: ada.ask(general, "what is kept?"), "kept: Biscuit")
    await said("memory pause")
    ada.say(text="remember Clara is my sister")
    await world.server.wait_for_message(ada.dm)
    await said("memory resume")
    assert "Clara" not in await said("memory view")
    assert "Biscuit is my cat" in await said("memory export")
    await said("memory forget", thing)
    assert "Biscuit is my cat" not in await said("memory view")


async def test_the_conversation_and_the_settings_are_steered_by_commands(world: World) -> None:
    ada = world.ada
    await world.bot.exchange(ada.dm, lambda: ada.say(text="hello"), "re: hello")
    before = world.server.messages(ada.dm, world.server.bot)[-1]
    world.model.add(reply("hello again"))
    ada.command("retry")
    assert (await world.server.wait_for_message(ada.dm, after=before, timeout=20)).content == "hello again"
    await world.said(ada.command("fresh"))
    await world.bot.exchange(ada.dm, lambda: ada.say(text="a new day"), "re: a new day")
    assert said(world.model.requests[-1]) == ["a new day"]
    for line, told in (("timezone Europe/Berlin", "Europe/Berlin"), ("quiet 22:00-07:00", "22:00"), ("openers off", "")):
        answer = await world.said(ada.command("settings", text=line))
        assert answer.ephemeral
        assert told in answer.text
    settings = (await world.said(ada.command("settings"))).text
    assert "Europe/Berlin" in settings
    assert "22:00" in settings
    assert (await world.said(ada.command("status"))).text
    assert str(ada.id) in (await world.said(ada.command("whoami"))).text


async def test_commands_of_three_words_serve_those_whose_role_the_operator_named(world: World) -> None:
    names = {command["name"]: command for command in world.server.world.application.commands[None]}
    manage_guild = str(1 << 5)
    assert str(names["admin"]["default_member_permissions"]) == manage_guild
    assert names["memory"].get("default_member_permissions") is None
    ben = world.server.person("Ben", world.home)
    refused = await world.said(ben.command("admin memory view", world.home.channel("general"), text=str(world.ada.id)))
    assert refused.ephemeral
    # The role that the operator named opens it, there and nowhere else.
    world.home.members[ben.user.id].roles.add(world.keepers.id)
    general = world.home.channel("general")
    await world.bot.exchange(general, lambda: world.ada.ask(general, "remember the roses"), "Noted.")
    allowed = await world.said(ben.command("admin memory view", general, text=str(world.ada.id)))
    assert "the roses" in allowed.text
    assert "the roses" not in refused.text
    assert "the roses" not in (await world.said(ben.command("admin memory view", text=str(world.ada.id)))).text


async def test_commands_are_acknowledged_in_time_while_the_api_is_slow(world: World) -> None:
    await world.tell("Clara is my sister")
    world.server.faults.delay(FOLLOW_UP, 3.5, 2)
    world.server.faults.delay(CALLBACK, 0.5, 2)
    first, second = world.ada.command("memory view"), world.ada.command("memory search", text="sister")
    for interaction in (first, second):
        assert "Clara" in (await world.said(interaction)).text
        assert interaction.refused == []
        assert interaction.delay is not None
        assert interaction.delay < 3


async def test_commands_are_acknowledged_within_three_seconds_under_load(world: World) -> None:
    people = [world.server.person(f"Q{number}", world.home) for number in range(30)]
    asked: list[Interaction] = []

    async def ask(person: Person) -> None:
        asked.append(await world.said(person.command("whoami")))

    await asyncio.gather(soak(world.server, world.bot, people=60, messages=3), *(ask(person) for person in people))
    assert len(asked) == 30
    assert [one for one in asked if one.refused or one.delay is None or one.delay >= 3] == []


async def test_a_press_that_comes_too_late_is_still_done(world: World) -> None:
    await world.tell("Biscuit is my dog")
    thing = number_of((await world.said(world.ada.command("memory view"))).text, "Biscuit")
    shown = await world.said(world.ada.command("memory view", text=thing))
    world.server.faults.error(CALLBACK, 404, 10062)
    before = len(world.server.messages(world.ada.dm, world.server.bot))
    world.ada.press(shown.answers[-1], "Share")
    await until(lambda: len(world.server.messages(world.ada.dm, world.server.bot)) > before, timeout=15)


async def test_words_of_somebody_paused_or_blocked_come_along_with_nobodys_question(world: World) -> None:
    server, home = world.server, world.home
    garden = server.channel(home, "garden")
    ada, ben, eve = world.ada, server.person("Ben", home), server.person("Eve", home)
    keeper = server.person("Keeper", home)
    home.members[keeper.user.id].roles.add(world.keepers.id)
    ben.say(garden, "the key is under the pot")
    secret = eve.say(garden, "the safe is behind the mirror")
    await world.said(ben.command("memory pause"))
    assert "is blocked in this workspace" in (await world.said(keeper.command("admin block", garden, text=str(eve.id)))).text
    ben.say(garden, "the roses need water")
    keeper.say(garden, "it rains")
    await world.bot.exchange(garden, lambda: ada.ask(garden, "what about it?", reply_to=secret), "re: what about it?")
    assert quoted(world.model.requests[-1]) == [("Keeper", "it rains")]
    assert "Nothing" in (await world.said(ada.command("memory search", garden, text="key mirror"))).text
    # His own talk goes on with his own words, and once he resumes he is quoted like anybody.
    await world.bot.exchange(garden, lambda: ben.ask(garden, "do they?"), "re: do they?")
    assert ("Ben", "the roses need water") in quoted(world.model.requests[-1])
    await world.said(ben.command("memory resume"))
    ben.say(garden, "the tulips too")
    await world.bot.exchange(garden, lambda: ada.ask(garden, "and now?"), "re: and now?")
    assert ("Ben", "the tulips too") in quoted(world.model.requests[-1])


async def test_a_command_that_is_typed_as_text_in_a_direct_message_is_one(world: World) -> None:
    await world.tell("Biscuit is my dog")
    before = len(world.model.requests)
    said = await world.server.wait_for_message(world.ada.dm, after=world.ada.say(text="/memory forget everything"), timeout=20)
    assert "erases everything I know about you" in said.content
    assert "Forget everything" in str(said.components)
    gone = await world.server.wait_for_message(
        world.ada.dm, after=world.ada.say(text=" /memory forget everything yes"), timeout=20
    )
    assert "found nothing left" in gone.content
    assert len(world.model.requests) == before, "the model is not asked, and has nothing to say that it forgot"
    # What only begins with a slash is talk.
    await world.bot.exchange(world.ada.dm, lambda: world.ada.say(text="/o\\ what a day"), "re: /o\\ what a day")
