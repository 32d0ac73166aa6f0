"""What a channel of Slack is now decides where its words may go: it turns private or is shared, also while nobody listens."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from dataclasses import dataclass

import pytest
import pytest_asyncio

from tests.scenarios.discord_bot import PASSES, echo, holding, quoted, searches
from tests.scenarios.slack_bot import Bot, bot_on, slack_server
from tests.servers.model import Request, ScriptedModel
from tests.servers.slack import ALWAYS, Channel, Message, Person, SlackServer, Team
from tests.waiting import until

pytestmark = pytest.mark.asyncio(loop_scope="module")

INFO = "conversations.info"
PEOPLE = 25
"""With the passes of a search 200 prompts."""


@dataclass(slots=True)
class World:
    """A workspace, the bot in it, and a channel where everybody is."""

    server: SlackServer
    model: ScriptedModel
    bot: Bot
    acme: Team
    people: list[Person]
    park: Channel

    @property
    def ada(self) -> Person:
        return self.people[0]

    def channel(self, name: str) -> Channel:
        return self.server.channel(self.acme, name, *self.people)

    async def all_answered(self, channel: Channel, asked: list[Message]) -> None:
        """Everybody has the bot's answer, in the thread of what they said."""
        threads = {one.ts for one in asked}

        def answered() -> bool:
            bots = [one for one in channel.messages.values() if one.author is self.acme.bot]
            return threads <= {one.thread_ts for one in bots}

        await until(answered, timeout=40)

    async def tell(self, channel: Channel, people: list[Person]) -> None:
        """Everybody tells a thing of their own there."""
        await self.all_answered(channel, [one.ask(channel, "remember Biscuit is my dog") for one in people])

    async def prompts(self, people: list[Person]) -> list[Request]:
        """The prompts of everybody's question in the public park."""
        before = len(self.model.requests)
        await self.all_answered(self.park, [one.ask(self.park, "search") for one in people])
        return searches(self.model, before)

    async def kept(self) -> str:
        """What one of them is told to be remembered, asked in the park."""
        asked = self.ada.ask(self.park, "what is kept?")
        return (await self.server.wait_for_message(self.park, after=asked, timeout=20)).shown


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def running() -> AsyncIterator[tuple[SlackServer, ScriptedModel, Bot, Team]]:
    async with slack_server() as server, ScriptedModel(policy=echo) as model:
        acme = server.team("Acme")
        async with bot_on(server, model, acme) as bot:
            yield server, model, bot, acme


@pytest_asyncio.fixture(loop_scope="module")
async def world(running: tuple[SlackServer, ScriptedModel, Bot, Team]) -> AsyncIterator[World]:
    server, model, bot, acme = running
    people = [server.person(f"P{number}", acme) for number in range(PEOPLE)]
    yield World(server, model, bot, acme, people, server.channel(acme, "park", *people))
    server.faults.clear()


async def test_no_prompt_elsewhere_holds_a_word_of_a_channel_that_turned_private(world: World) -> None:
    lobby = world.channel("lobby")
    await world.tell(lobby, world.people)
    public = await world.prompts(world.people[:2])
    assert holding(public) == len(public) == 2 * PASSES, "while it is public they do"
    world.server.places.make_private(lobby)
    await world.server.wait_settled()
    prompts = await world.prompts(world.people)
    assert (len(prompts), holding(prompts)) == (PEOPLE * PASSES, 0)


async def test_no_prompt_elsewhere_holds_a_word_of_channels_that_changed_while_nobody_listened(world: World) -> None:
    """One turned private, one was shared with outsiders, and one turned private without the bot, which is shown nothing of it any more."""
    lobby, bridge, hut, yard = channels = [world.channel(name) for name in ("lobby", "bridge", "hut", "yard")]
    await asyncio.gather(*(world.tell(one, world.people[number :: len(channels)]) for number, one in enumerate(channels)))
    await world.bot.stop()
    # Slack does not tell this again later, as it does what was not acknowledged.
    lobby.kind = hut.kind = "group"
    bridge.shared.append(world.server.team("Away", installed=False))
    assert world.acme.bot is not None
    del hut.members[world.acme.bot.id]
    await world.bot.start()
    untouched = set(world.people[3 :: len(channels)])
    concerned = [one for one in world.people if one not in untouched]
    prompts = await world.prompts(concerned)
    assert (len(prompts), holding(prompts)) == (len(concerned) * PASSES, 0)
    assert holding(await world.prompts([*untouched][:1])) == PASSES, "what is still public is used as before"
    assert yard.kind == "channel"


@pytest.mark.parametrize("how", ["told", "shown"])
async def test_a_channel_that_outsiders_are_in_is_nobodys_public_place(world: World, how: str) -> None:
    """Told by an event, also while Slack cannot be asked, or shown by the next message there, whoever writes it."""
    server, lobby, away = world.server, world.channel("lobby"), world.server.team("Away", installed=False)
    await world.tell(lobby, [world.ada])
    assert await world.kept() == "kept: Biscuit"
    if how == "told":
        server.faults.error(INFO, "internal_error", times=ALWAYS)
        server.places.share(lobby, away)
        await server.wait_settled()
    else:
        lobby.shared.append(away)
        await world.all_answered(lobby, [world.people[1].ask(lobby, "hello")])
    assert await world.kept() == "kept:"
    server.faults.clear()
    server.places.unshare(lobby, away)
    await server.wait_settled()
    assert await world.kept() == "kept: Biscuit"


async def test_a_failed_look_changes_nothing(world: World) -> None:
    server, ada = world.server, world.ada
    lobby, den = world.channel("lobby"), server.channel(world.acme, "den", *world.people, private=True)
    await world.tell(lobby, [ada])
    server.faults.error(INFO, "internal_error", times=ALWAYS)
    server.places.rename(lobby, "lounge")  # what was known of it is asked again
    await server.wait_settled()
    await server.wait_for_answer(ada.command("/keepsake whoami", lobby))
    asked = len(server.calls_of(INFO))
    await world.all_answered(lobby, [ada.ask(lobby, "and now?")])
    assert any(not one.ok for one in server.calls_of(INFO)[:asked])
    assert await world.kept() == "kept: Biscuit", "still public"
    await world.all_answered(den, [ada.ask(den, "remember Clara is my sister")])
    assert await world.kept() == "kept: Biscuit", "still private"
    server.faults.clear()
    await world.tell(lobby, [world.people[1]])
    assert await world.kept() == "kept: Biscuit"


async def test_a_channel_that_could_not_be_looked_at_is_private_until_it_can(world: World) -> None:
    server, ada, lobby = world.server, world.ada, world.channel("lobby")
    server.faults.error(INFO, "internal_error", times=1, where=lambda one: one.args.get("channel") == lobby.id)
    await world.tell(lobby, [ada])
    assert await world.kept() == "kept:", "nobody knows who reads it"
    await world.all_answered(lobby, [ada.ask(lobby, "remember Clara is my sister")])
    assert await world.kept() == "kept: Clara", "what was said before stays there"


@pytest.mark.parametrize("private", [False, True], ids=["public", "private"])
async def test_what_was_said_in_a_deleted_channel_and_its_threads_is_gone(world: World, private: bool) -> None:
    """Also where somebody else's memory has it as a quote; what was said in another channel stays."""
    server, [ada, ben, *_] = world.server, world.people
    attic = server.channel(world.acme, "attic", *world.people, private=private)
    root = ben.say(attic, "the beams are of larch")
    floor = "the floor is of juniper"
    await world.bot.exchange(attic, lambda: ada.ask(attic, floor, thread=root), f"re: {floor}")
    assert "the beams are of larch" in [text for _, text in quoted(world.model.requests[-1])]
    await world.all_answered(attic, [ada.ask(attic, "it smells of resin")])
    await world.all_answered(world.park, [ada.ask(world.park, "the park has a pond")])

    async def found(word: str) -> bool:
        return "Nothing" not in (await server.wait_for_answer(ada.command(f"/keepsake memory search {word}"))).texts[0]

    words = ("juniper", "resin", "larch", "pond")
    assert [await found(word) for word in words] == [True, True, True, True]
    before = await world.bot.counted("slack_deleted")
    server.places.delete(attic)
    await until(lambda: world.bot.counted("slack_deleted", above=before))
    assert [await found(word) for word in words] == [False, False, False, True]


async def test_an_archived_channel_keeps_what_was_said_and_stays_what_it_was(world: World) -> None:
    server, ada = world.server, world.ada
    lobby = world.channel("lobby")
    await world.tell(lobby, [ada])
    for change in (server.places.archive, server.places.unarchive):
        change(lobby)
        await server.wait_settled()
        assert await world.kept() == "kept: Biscuit"
