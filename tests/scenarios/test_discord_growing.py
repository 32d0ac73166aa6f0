"""Discord shows a reply while the model still writes it, and a model that sees is shown pictures."""

from __future__ import annotations

import base64
import json
from collections.abc import AsyncIterator
from dataclasses import dataclass

import pytest
import pytest_asyncio

from bot.engine.outbox import STOPPED
from tests.scenarios.discord_bot import POST, Bot, bot_on, echo, said
from tests.servers.discord import DiscordServer, Guild, Person
from tests.servers.model import Gate, Growing, Request, ScriptedModel, Status, call, reply
from tests.waiting import until

pytestmark = pytest.mark.asyncio(loop_scope="module")

EDIT = "PATCH /channels/{channel_id}/messages/{message_id}"
STORY = "Once upon a time there was a dog called Biscuit who liked nothing better than the sea. " * 4
PNG = base64.b64decode("iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNkYPhfDwAChwGA60e6kgAAAABJRU5ErkJggg==")


@dataclass(slots=True)
class World:
    """One bot whose replies grow and whose model sees."""

    server: DiscordServer
    model: ScriptedModel
    bot: Bot
    home: Guild
    ada: Person


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def running() -> AsyncIterator[tuple[DiscordServer, ScriptedModel, Bot, Guild]]:
    async with DiscordServer() as server, ScriptedModel(policy=echo) as model:
        home = server.guild("Home", channels=("general",))
        async with bot_on(server, model, DISCORD__STREAMING="true", MODEL__SEES_IMAGES="true") as bot:
            yield server, model, bot, home


@pytest_asyncio.fixture(loop_scope="module")
async def world(running: tuple[DiscordServer, ScriptedModel, Bot, Guild]) -> AsyncIterator[World]:
    server, model, bot, home = running
    yield World(server, model, bot, home, server.person("Ada", home))
    server.faults.clear()


def pictures(request: Request) -> list[str]:
    """The addresses of the pictures that a request shows the model."""
    return [
        part["image_url"]["url"]
        for message in request.messages
        if isinstance(content := message.get("content"), list)
        for part in content
        if part["type"] == "image_url"
    ]


async def test_a_reply_grows_by_edits_at_a_polite_rate_and_is_one_message(world: World) -> None:
    server, ada = world.server, world.ada
    step = Growing(reply("a thought", call("send_message", text=STORY)), shown=100)
    world.model.add(step)
    ada.say(text="a story, please")
    begun = await server.wait_for_message(ada.dm, timeout=20)
    assert STORY.startswith(begun.content)
    await step.reached.wait()
    step.release()
    await until(lambda: begun.content == STORY.strip(), timeout=20)
    assert server.messages(ada.dm, server.bot) == [begun]
    assert all(STORY.startswith(text) for text in begun.history)
    edits = [one.at for one in server.requests_of(EDIT) if one.params["message_id"] == str(begun.id)]
    # The last one is the outbox's, as soon as the reply is whole.
    assert all(later - earlier > 1 for earlier, later in zip(edits[:-1], edits[1:-1], strict=False))
    assert "send_message" in str(world.model.requests[-1].messages[0]["content"]).rpartition("grow")[2]


async def test_more_than_a_message_holds_goes_on_in_the_next(world: World) -> None:
    server, ada = world.server, world.ada
    text = "\n\n".join(f"Paragraph {number}. " + "word " * 150 for number in range(5))
    step = Growing(reply(None, call("send_message", text=text)), shown=2600)
    world.model.add(step)
    ada.say(text="at great length")
    await step.reached.wait()
    await until(lambda: len(server.messages(ada.dm, server.bot)) == 2, timeout=20)
    step.release()
    await until(lambda: "Paragraph 4" in " ".join(one.content for one in server.messages(ada.dm, server.bot)), timeout=20)
    whole = " ".join(one.content for one in server.messages(ada.dm, server.bot))
    assert [whole.count(f"Paragraph {number}.") for number in range(5)] == [1] * 5
    assert all(len(one.content) <= 2000 for one in server.messages(ada.dm, server.bot))


async def test_stop_leaves_the_beginning_marked_as_stopped(world: World) -> None:
    server, ada = world.server, world.ada
    step = Growing(reply(None, call("send_message", text=STORY)), shown=100)
    world.model.add(step)
    ada.say(text="a story, please")
    begun = await server.wait_for_message(ada.dm, timeout=20)
    await server.wait_for_answer(ada.command("stop"), timeout=10)
    await until(lambda: begun.content.endswith(STOPPED), timeout=20)
    step.release()
    ada.say(text="and now?")
    assert (await server.wait_for_message(ada.dm, after=begun, timeout=20)).content.endswith("and now?")


async def test_killed_in_the_middle_the_same_message_is_finished_by_the_next_process(world: World) -> None:
    server, ada = world.server, world.ada
    step = Growing(reply(None, call("send_message", text=STORY)), shown=100)
    world.model.add(step)
    ada.say(text="a story, please")
    begun = await server.wait_for_message(ada.dm, timeout=20)
    await step.reached.wait()
    await world.bot.kill()
    world.model.add(reply(None, call("send_message", text=STORY + "The end.")))
    await world.bot.start()
    step.release()
    await until(lambda: begun.content == STORY + "The end.", timeout=40)
    assert server.messages(ada.dm, server.bot) == [begun]


async def test_a_growing_message_that_somebody_deletes_is_sent_anew_as_a_whole(world: World) -> None:
    server, ada = world.server, world.ada
    general = world.home.channel("general")
    step = Growing(reply(None, call("send_message", text=STORY)), shown=100)
    world.model.add(step)
    ada.ask(general, "a story, please")
    begun = await server.wait_for_message(general, timeout=20)
    await step.reached.wait()
    server.actions.delete(begun)
    step.release()
    assert (await server.wait_for_message(general, after=begun, timeout=20)).content == STORY.strip()


async def test_a_picture_is_shown_to_the_model_once_and_not_kept(world: World) -> None:
    server, ada = world.server, world.ada
    gate = Gate(reply("A cat.", call("working_context_append", section="goals", content="x", request_heartbeat=True)))
    world.model.add(gate, reply(None, call("send_message", text="A cat.")))
    before = len(world.model.requests)
    ada.say(
        text="what is this?", attachments=[ada.file("cat.png", PNG, "image/png"), ada.file("not.png", b"<html>", "image/png")]
    )
    await gate.reached.wait()
    gate.release()
    assert (await server.wait_for_message(ada.dm, timeout=20)).content == "A cat."
    shown = [pictures(request) for request in world.model.requests[before:]]
    address = f"data:image/png;base64,{base64.b64encode(PNG).decode()}"
    assert shown == [[address], [address]], "in every pass of its turn, and nothing that is no picture"
    ada.say(text="and now?")
    await server.wait_for_message(ada.dm, timeout=20)
    request = world.model.requests[-1]
    assert pictures(request) == []
    assert "[image cat.png, image/png," in " ".join(said(request))
    assert base64.b64encode(PNG).decode()[:40] not in json.dumps(request.messages)


async def test_a_model_that_turns_out_not_to_see_is_asked_without_the_picture(world: World) -> None:
    server, ada = world.server, world.ada
    world.model.add(Status(400, "invalid_request_error", "image_url is not supported by this model"))
    ada.say(text="and this?", attachments=[ada.file("dog.png", PNG, "image/png")])
    assert (await server.wait_for_message(ada.dm, timeout=20)).content.startswith("re: and this?")
    assert pictures(world.model.requests[-2])
    assert not pictures(world.model.requests[-1])


async def test_replies_without_a_call_come_whole_as_ever(world: World) -> None:
    server, ada = world.server, world.ada
    before = len(server.requests_of(EDIT))
    posts = len(server.requests_of(POST))
    await world.bot.exchange(ada.dm, lambda: ada.say(text="hello"), "re: hello")
    assert len(server.requests_of(EDIT)) == before
    assert len(server.requests_of(POST)) == posts + 1
