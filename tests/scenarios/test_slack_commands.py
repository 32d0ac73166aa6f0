"""Commands on Slack in all their forms: after a slash, as words, as buttons, in windows, in App Home."""

from __future__ import annotations

import re
from collections.abc import AsyncIterator
from dataclasses import dataclass
from typing import Any

import pytest
import pytest_asyncio

from adapters.slack.blocks import INPUT
from tests.scenarios.discord_bot import echo, quoted
from tests.scenarios.slack_bot import Bot, bot_on, slack_server
from tests.servers.model import Gate, ScriptedModel, reply
from tests.servers.slack import Channel, Person, SlackServer, Team
from tests.waiting import until

pytestmark = pytest.mark.asyncio(loop_scope="module")


@dataclass(slots=True)
class World:
    """A workspace, the bot in it, an admin of it, and a person who never met the bot before."""

    server: SlackServer
    model: ScriptedModel
    bot: Bot
    acme: Team
    admin: Person
    ada: Person

    def channel(self, name: str, *people: Person, **options: bool) -> Channel:
        return self.server.channel(self.acme, name, self.ada, *people, **options)


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def running() -> AsyncIterator[tuple[SlackServer, ScriptedModel, Bot, Team, Person]]:
    async with slack_server() as server, ScriptedModel(policy=echo) as model:
        acme = server.team("Acme")
        admin = server.person("Admin", acme)
        async with bot_on(server, model, acme, ACCESS__ADMINS=f'{{"{acme.id}": ["{admin.id}"]}}') as bot:
            yield server, model, bot, acme, admin


@pytest_asyncio.fixture(loop_scope="module")
async def world(running: tuple[SlackServer, ScriptedModel, Bot, Team, Person]) -> AsyncIterator[World]:
    server, model, bot, acme, admin = running
    yield World(server, model, bot, acme, admin, server.person("Ada", acme))
    server.faults.clear()


async def test_slash_commands_are_acknowledged_in_time_and_answered_for_one(world: World) -> None:
    server, ada = world.server, world.ada
    await world.bot.exchange(ada.dm, lambda: ada.say(None, "remember Clara is my sister"), "Noted.")
    view = await server.wait_for_answer(ada.command("/keepsake memory view"))
    assert "Clara is my sister" in view.texts[0]
    assert view.answers[0].only_for is ada.user
    assert view.acknowledged_at is not None
    assert view.acknowledged_at - view.at < 3
    # In public only what may be used there; and somebody else's direct messages are not one's own.
    general = world.channel("general")
    assert "Clara" not in (await server.wait_for_answer(ada.command("/keepsake memory view", general))).texts[0]
    assert "Clara" in (await server.wait_for_answer(ada.command("/keepsake memory search sister"))).texts[0]
    assert "/memory forget" in (await server.wait_for_answer(ada.command("/keepsake"))).texts[0]
    assert ada.id in (await server.wait_for_answer(ada.command("/keepsake whoami"))).texts[0]
    assert "no" in (await server.wait_for_answer(ada.command("/keepsake dance"))).texts[0]
    stranger = server.person("Stranger", world.acme)
    assert "nothing" in (await server.wait_for_answer(stranger.command("/keepsake memory view"))).texts[0]


async def test_words_are_commands_in_direct_messages_and_after_a_mention(world: World) -> None:
    server, ada, ben = world.server, world.ada, world.server.person("Ben", world.acme)
    await world.bot.exchange(ada.dm, lambda: ada.say(None, "remember Biscuit is my dog"), "Noted.")
    before = len(world.model.requests)
    ada.say(None, "memory view")
    assert "Biscuit" in (await server.wait_for_message(ada.dm)).shown
    den = world.channel("den", ben)
    root = ben.say(den, "hello all")
    ada.ask(den, "memory view", thread=root)
    told = await server.wait_for_ephemeral(ada)
    assert "Biscuit" not in told.shown  # from a direct message, not for here
    assert told.thread_ts == root.ts
    ada.ask(den, "help")
    assert "/memory forget" in (await server.wait_for_ephemeral(ada)).shown
    assert len(world.model.requests) == before
    await world.bot.exchange(ada.dm, lambda: ada.say(None, "help me remember"), "re: help me remember")


async def test_stop_retry_and_fresh_as_words(world: World) -> None:
    server, ada = world.server, world.ada
    gate = Gate(reply("never said"))
    world.model.add(gate)
    ada.say(None, "think")
    await gate.reached.wait()
    ada.say(None, "stop")
    assert (await server.wait_for_message(ada.dm)).shown == "Stopped."
    gate.release()
    await world.bot.exchange(ada.dm, lambda: ada.say(None, "tea"), "re: think | tea")
    ada.say(None, "retry")
    assert (await server.wait_for_message(ada.dm)).shown.startswith("re:")
    ada.say(None, "fresh")
    assert "fresh" in (await server.wait_for_message(ada.dm)).shown
    await world.bot.exchange(ada.dm, lambda: ada.say(None, "new"), "re: new")


async def test_a_long_answer_comes_as_a_file_for_its_person_alone(world: World) -> None:
    server, ada = world.server, world.ada
    for number in range(3):
        ada.say(None, f"{number} " + "word " * 3500)
        await server.wait_for_message(ada.dm, timeout=20)
    general = world.channel("archive")
    asked = await server.wait_for_answer(ada.command("/keepsake memory export json", ada.dm), timeout=20)
    assert "as a file" in asked.texts[0]
    sent = await server.until(lambda: next((one for one in server.messages(ada.dm, bot=True) if one.files), None))
    assert sent.files[0].name == "keepsake.json"
    assert b"word word" in sent.files[0].content
    assert not server.messages(general, bot=True)


async def test_a_response_url_that_is_gone_is_no_dead_end(world: World) -> None:
    server, ada = world.server, world.ada
    general = world.channel("lounge")
    server.faults.status("response_url", 404)
    ada.command("/keepsake whoami", general)
    assert ada.id in (await server.wait_for_ephemeral(ada)).shown


async def test_app_home_shows_memory_and_its_buttons_serve_only_its_person(world: World) -> None:
    server, ada, mallory = world.server, world.ada, world.server.person("Mallory", world.acme)
    await world.bot.exchange(ada.dm, lambda: ada.say(None, "remember Clara is my sister"), "Noted.")
    ada.open_home("home")
    home = await server.wait_for_home(ada)
    assert "Clara is my sister" in home.shown
    buttons = [element for block in home.blocks if block["type"] == "actions" for element in block["elements"]]
    mallory.open_home("home")
    await server.wait_for_home(mallory)
    assert buttons
    stolen = server.home(mallory)
    assert stolen is not None
    # A button that was made for Ada does nothing for anybody else, whatever a request claims.
    pressed = press_as(world, mallory, buttons[0])
    await server.until(lambda: pressed.delivery.acknowledged.is_set() or None)
    await server.wait_for_home(mallory, lambda view: "Just now" in view.shown)
    assert "Clara" not in (server.home(mallory) or stolen).shown
    ada.open_home("home")
    assert "Clara is my sister" in (await server.wait_for_home(ada)).shown


def press_as(world: World, thief: Person, button: dict[str, Any]) -> Any:
    """A press on somebody else's button, as a forged or leaked value would come."""
    view = world.server.home(thief)
    assert view is not None
    view.body["blocks"] = [*view.body["blocks"], {"type": "actions", "block_id": "stolen", "elements": [button]}]
    return thief.press(view, button["action_id"])


async def test_opening_the_app_suggests_first_words_also_in_the_older_way(world: World) -> None:
    server, ada = world.server, world.ada
    ada.open_home("messages")
    await server.until(lambda: server.prompts or None)
    before = len(server.prompts)
    root = ada.open_assistant()
    await server.until(lambda: len(server.prompts) > before or None)
    answer = await world.bot.exchange(ada.dm, lambda: ada.say(None, "hello", thread=root), "re: hello")
    assert answer.thread_ts == root.ts
    ada.change_assistant_context(root, world.channel("context"))
    await server.wait_settled()


async def test_the_stop_button_stops(world: World) -> None:
    server, ada = world.server, world.ada
    root = ada.say(None, "begin")
    await server.wait_for_message(ada.dm)
    gate = Gate(reply("never said"))
    world.model.add(gate)
    ada.say(None, "think", thread=root)
    await gate.reached.wait()
    before = await world.bot.counted("command")
    ada.press_stop(root)
    await until(lambda: world.bot.counted("command", above=before))
    gate.release()
    await world.bot.exchange(ada.dm, lambda: ada.say(None, "next", thread=root), "re: think | next")


async def test_a_button_that_asks_opens_a_window_and_goes_on_with_what_was_typed(world: World) -> None:
    server, ada = world.server, world.ada
    await world.bot.exchange(ada.dm, lambda: ada.say(None, "remember Clara is my sister"), "Noted.")
    ada.open_home("home")
    home = await server.wait_for_home(ada, lambda view: "Clara is my sister" in view.shown)
    pressed = ada.press(home, "Correct")
    window = await server.wait_for_modal(pressed)
    number = re.search(r"\bw\d+\b", home.shown)
    assert number is not None
    ada.submit(window, {INPUT: f"{number[0]} Clara is my cousin"})
    home = await server.wait_for_home(ada, lambda view: "Clara is my cousin" in view.shown)
    assert "Just now" in home.shown
    # The same under an answer that only she sees, in a channel.
    lounge = world.channel("library")
    view = await server.wait_for_answer(ada.command("/keepsake memory view", lounge))
    forget = ada.press(view.answers[0], "Forget")
    window = await server.wait_for_modal(forget)
    ada.submit(window, {INPUT: "w999999"})
    told = await server.wait_for_answer(forget)
    assert "999999" in told.texts[0] or "no" in told.texts[0].casefold()
    assert told.answers[0].only_for is ada.user


async def test_words_of_somebody_paused_or_blocked_come_along_with_nobodys_question(world: World) -> None:
    server, ada, admin = world.server, world.ada, world.admin
    ben, eve = server.person("Ben", world.acme), server.person("Eve", world.acme)
    garden = world.channel("garden", ben, eve, admin)
    ben.say(garden, "the key is under the pot")
    eve.say(garden, "the safe is behind the mirror")
    await server.wait_for_answer(ben.command("/keepsake memory pause"))
    blocked = await server.wait_for_answer(admin.command(f"/keepsake admin block {eve.mention}", garden))
    assert "is blocked in this workspace" in blocked.texts[0]
    starter = ben.say(garden, "the roses need water")
    admin.say(garden, "it rains")
    await world.bot.exchange(garden, lambda: ada.ask(garden, "what about it?"), "re: what about it?")
    assert quoted(world.model.requests[-1]) == [("admin", "it rains")]
    await world.bot.exchange(garden, lambda: ada.ask(garden, "is that so?", thread=starter), "re: is that so?")
    assert "the roses need water" not in str(world.model.requests[-1].messages), "a thread's first message is a quote as well"
    await server.wait_for_answer(ben.command("/keepsake memory resume"))
    ben.say(garden, "the tulips too")
    await world.bot.exchange(garden, lambda: ada.ask(garden, "and now?"), "re: and now?")
    assert ("ben", "the tulips too") in quoted(world.model.requests[-1])
