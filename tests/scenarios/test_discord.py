"""Talking on Discord: one bot process, and what people do and see."""

from __future__ import annotations

from collections.abc import AsyncIterator
from dataclasses import dataclass

import pytest
import pytest_asyncio

from tests.scenarios.discord_bot import POST, Bot, bot_on, echo, quoted, said
from tests.scenarios.soak_discord import soak
from tests.servers.discord import DiscordServer, Guild, Person
from tests.servers.model import Gate, ScriptedModel, call, reply
from tests.waiting import until

pytestmark = pytest.mark.asyncio(loop_scope="module")


@dataclass(slots=True)
class World:
    """A guild, the bot in it, and a person who never met it before."""

    server: DiscordServer
    model: ScriptedModel
    bot: Bot
    home: Guild
    ada: Person


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def running() -> AsyncIterator[tuple[DiscordServer, ScriptedModel, Bot, Guild]]:
    async with DiscordServer() as server, ScriptedModel(policy=echo) as model:
        home = server.guild("Home", channels=("general",))
        async with bot_on(server, model) as bot:
            yield server, model, bot, home


@pytest_asyncio.fixture(loop_scope="module")
async def world(running: tuple[DiscordServer, ScriptedModel, Bot, Guild]) -> AsyncIterator[World]:
    server, model, bot, home = running
    yield World(server, model, bot, home, server.person("Ada", home))
    server.faults.clear()


async def test_a_direct_message_is_answered_and_remembered(world: World) -> None:
    ada = world.ada
    await world.bot.exchange(ada.dm, lambda: ada.say(text="hello"), "re: hello")
    await world.bot.exchange(ada.dm, lambda: ada.say(text="remember Biscuit is my dog"), "Noted.")
    await world.bot.exchange(ada.dm, lambda: ada.say(text="what is kept?"), "kept: Biscuit")


async def test_typing_shows_while_the_agent_works_and_ends_with_its_turn(world: World) -> None:
    server, ada = world.server, world.ada
    gate = Gate(reply(None, call("working_context_append", section="goals", content="x")))
    last = Gate(reply("done"))
    world.model.add(gate, last)
    ada.say(text="think")
    await until(lambda: server.typing(ada.dm))
    gate.release()
    last.release()
    answer = await server.wait_for_message(ada.dm)
    # One that fails is nobody's loss.
    server.faults.status("POST /channels/{channel_id}/typing", 500, 5)
    gate = Gate(reply("and again"))
    world.model.add(gate)
    ada.say(text="think again")
    await until(lambda: [one for one in server.requests_of("POST /channels/{channel_id}/typing") if one.status == 500])
    gate.release()
    await server.wait_for_message(ada.dm)
    assert all(at < answer.made_at for at in server.typing(ada.dm))


async def test_a_mention_is_answered_with_what_was_said_before_as_quotes(world: World) -> None:
    server, ada, ben = world.server, world.ada, world.server.person("Ben", world.home)
    garden = server.channel(world.home, "garden")
    ben.say(garden, "the roses need water")
    ada.say(garden, "I agree")
    answer = await world.bot.exchange(
        garden, lambda: ada.ask(garden, f"what about {ben.mention} <:rose:123>?"), "re: what about @Ben :rose:?"
    )
    request = world.model.requests[-1]
    assert said(request) == ["what about @Ben :rose:?"]
    assert quoted(request) == [("Ben", "the roses need water"), ("Ada", "I agree")]
    assert answer.reference is not None
    assert [user.name for user in answer.mentions] == ["Ada"]
    # Nothing comes along twice.
    ben.say(garden, "and the tulips")
    await world.bot.exchange(garden, lambda: ada.ask(garden, "and now?"), "re: and now?")
    assert quoted(world.model.requests[-1])[-1] == ("Ben", "and the tulips")
    assert [text for _, text in quoted(world.model.requests[-1])].count("the roses need water") == 1


async def test_everyone_here_roles_and_talk_are_no_mention(world: World) -> None:
    server, ada = world.server, world.ada
    lobby = server.channel(world.home, "lobby")
    role = server.places.role(world.home, "helpers", members=[server.bot])
    for text in ("@everyone hello", "@here hello", f"{role.mention} hello", "just talk"):
        ada.say(lobby, text)
    server.webhook_says(lobby, server.bot.mention + " build done")
    other = server.person("Robot", world.home, bot=True)
    other.ask(lobby, "hello fellow bot")
    await world.bot.exchange(lobby, lambda: ada.ask(lobby, "@everyone but you?"), "re: @everyone but you?")
    assert len(server.messages(lobby, server.bot)) == 1


async def test_a_reply_to_the_bot_addresses_it(world: World) -> None:
    ada, ben = world.ada, world.server.person("Ben", world.home)
    den = world.server.channel(world.home, "den")
    answer = await world.bot.exchange(den, lambda: ada.ask(den, "tea?"), "re: tea?")
    # Sent once it is noted to whom the first was said.
    await world.bot.exchange(den, lambda: ada.ask(den, "milk?"), "re: milk?")
    await world.bot.exchange(den, lambda: ben.say(den, "coffee!", reply_to=answer, ping=False), "re: coffee!")
    assert ("Keepsake", "re: tea?") in quoted(world.model.requests[-1])


async def test_two_people_in_one_channel_talk_to_their_own_agents(world: World) -> None:
    server, ada, clara = world.server, world.ada, world.server.person("Clara", world.home)
    den = server.channel(world.home, "kitchen")
    gate = Gate(reply("for Ada"))
    world.model.add(gate)
    ada.ask(den, "first")
    await gate.reached.wait()
    answer = await world.bot.exchange(den, lambda: clara.ask(den, "second"), "re: second")
    assert [user.name for user in answer.mentions] == ["Clara"]
    gate.release()
    mine = await server.wait_for_message(den)
    assert (mine.content, [user.name for user in mine.mentions]) == ("for Ada", ["Ada"])


async def test_five_messages_in_a_second_are_one_turn_in_order(world: World) -> None:
    ada = world.ada
    before = len(world.model.requests)
    for number in range(4):
        ada.say(text=f"line {number}")
    await world.bot.exchange(ada.dm, lambda: ada.say(text="line 4"), "re: line 0 | line 1 | line 2 | line 3 | line 4")
    assert len(world.model.requests) == before + 1


async def test_a_long_reply_comes_in_parts_in_order(world: World) -> None:
    server, ada = world.server, world.ada
    ada.say(text="at length")
    await until(lambda: "Paragraph 7" in " ".join(one.content for one in server.messages(ada.dm, server.bot)))
    parts = server.messages(ada.dm, server.bot)
    assert len(parts) > 2
    assert all(len(part.content) <= 2000 for part in parts)
    text = " ".join(part.content for part in parts)
    assert [text.index(f"Paragraph {number}") for number in range(8)] == sorted(
        text.index(f"Paragraph {number}") for number in range(8)
    )


async def test_nobody_is_pinged_but_the_person_answered(world: World) -> None:
    server, ada = world.server, world.ada
    hall = server.channel(world.home, "hall")
    await world.bot.exchange(hall, lambda: ada.ask(hall, "ping everyone"), "@everyone @here hello <@&1> <@2>")
    message = server.messages(hall, server.bot)[0]
    assert not message.mention_everyone
    assert [user.name for user in message.mentions] == ["Ada"]
    assert server.requests_of(POST)[-1].body["allowed_mentions"] == {"parse": [], "replied_user": True}  # type: ignore[index]


async def test_a_thread_is_followed_and_the_agent_may_stay_silent(world: World) -> None:
    server, ada, ben = world.server, world.ada, world.server.person("Ben", world.home)
    yard = server.channel(world.home, "yard")
    thread = ada.thread(ben.say(yard, "shall we build a shed?"), "shed")
    await world.bot.exchange(thread, lambda: ada.ask(thread, "what do you think?"), "re: what do you think?")
    assert ("Ben", "shall we build a shed?") in quoted(world.model.requests[-1])
    await until(lambda: server.bot.id in thread.followers)
    before = len(world.model.requests)
    ben.say(thread, "nothing to me")
    await until(lambda: len(world.model.requests) > before)
    await world.bot.exchange(thread, lambda: ada.say(thread, "and you?"), "re: and you?")
    assert len(server.messages(thread, server.bot)) == 2


async def test_files_are_read_or_described_also_without_any_text(world: World) -> None:
    ada = world.ada
    paste = ada.file("message.txt", "pasted line\n" * 3)
    picture = ada.file("cat.png", b"\x89PNG", "image/png")
    await until(lambda: ada.say(attachments=[paste, picture]))
    answer = await world.server.wait_for_message(ada.dm)
    assert "pasted line\npasted line" in answer.content
    assert "[image cat.png, image/png, 4 bytes]" in answer.content
    huge = ada.file("log.txt", "x" * 100_000, "text/plain")
    ada.say(text="look", attachments=[huge])
    await until(lambda: any("[truncated 65536 of 100000 bytes]" in text for text in said(world.model.requests[-1])))


async def test_a_forward_is_a_quote(world: World) -> None:
    ada, ben = world.ada, world.server.person("Ben", world.home)
    post = ben.say(world.server.channel(world.home, "news"), "the bridge is closed")
    await world.bot.exchange(ada.dm, lambda: ada.say(forward=post), "re: (forwards a message)")
    assert quoted(world.model.requests[-1]) == [("somebody elsewhere", "the bridge is closed")]


async def test_what_is_replied_to_is_quoted_also_where_it_has_no_words_of_its_own(world: World) -> None:
    server, ada, ben = world.server, world.ada, world.server.person("Ben", world.home)
    board = server.channel(world.home, "board")
    build = server.webhook_says(board, "", embeds=[{"type": "rich", "title": "Build 7", "description": "failed on main"}])
    await world.bot.exchange(board, lambda: ada.ask(board, "why?", reply_to=build), "re: why?")
    assert quoted(world.model.requests[-1]) == [("Build", "Build 7\nfailed on main")]
    post = ben.say(server.channel(world.home, "paper"), "the bridge is closed")
    shared = ben.say(board, forward=post)
    await world.bot.exchange(board, lambda: ada.ask(board, "really?", reply_to=shared), "re: really?")
    assert quoted(world.model.requests[-1])[-1] == ("Ben", "[forwards: the bridge is closed]")


async def test_a_file_that_cannot_be_had_is_described_and_the_message_answered(world: World) -> None:
    ada = world.ada
    lost = ada.file("message.txt", "pasted line\n")
    del world.server.world.attachments[lost.id]
    await world.bot.exchange(
        ada.dm, lambda: ada.say(text="look", attachments=[lost]), "re: look\n[file message.txt, unknown type, 12 bytes]"
    )


async def test_a_message_edited_into_a_crisis_gets_the_emergency_lines(world: World) -> None:
    server, ada = world.server, world.ada
    message = await world.bot.exchange(ada.dm, lambda: ada.say(text="I had a fine day"), "re: I had a fine day")
    [asked] = [each for each in server.messages(ada.dm) if "I had a fine day" in each.content and each is not message]
    asked_before = len(world.model.requests)
    ada.edit(asked, "I want to kill myself")
    assert "findahelpline.com" in (await server.wait_for_message(ada.dm)).content
    assert len(world.model.requests) == asked_before, "no model was asked"


async def test_edits_and_deletions_are_followed(world: World) -> None:
    server, ada = world.server, world.ada
    gate = Gate(reply("wrong"))
    world.model.add(gate)
    message = ada.say(text="I like tae")
    await gate.reached.wait()
    before = await world.bot.counted("discord_edited")
    ada.edit(message, "I like tea")
    await until(lambda: world.bot.counted("discord_edited", above=before))
    gate.release()
    assert (await server.wait_for_message(ada.dm)).content == "re: I like tea"
    # Answered: not answered again. An unfurled link is no edit.
    ada.edit(message, "I like green tea")
    server.actions.unfurl(message)
    gate = Gate(reply("never said"))
    world.model.add(gate)
    gone = ada.say(text="forget this")
    await gate.reached.wait()
    before = await world.bot.counted("discord_deleted")
    ada.delete(gone)
    await until(lambda: world.bot.counted("discord_deleted", above=before))
    gate.release()
    await world.bot.exchange(ada.dm, lambda: ada.say(text="still there?"), "re: still there?")
    texts = said(world.model.requests[-1])
    assert "I like green tea" in texts
    assert "I like tea" not in texts
    assert "forget this" not in texts
    assert len(server.messages(ada.dm, server.bot)) == 2


async def test_what_was_said_in_a_deleted_channel_or_thread_is_gone(world: World) -> None:
    """With a channel go its threads, also one that was archived long ago."""
    server, ada = world.server, world.ada
    attic = server.channel(world.home, "attic")
    thread, old = ada.thread(attic, "beams"), ada.thread(attic, "roof")
    for where, words in ((attic, "it smells of juniper"), (thread, "the beams are of larch"), (old, "the roof is of slate")):
        await world.bot.exchange(where, lambda where=where, words=words: ada.ask(where, words), f"re: {words}")  # type: ignore[misc]
    ada.archive(old)
    for gone, known in ((thread, ["juniper", "slate"]), (attic, [])):
        before = await world.bot.counted("discord_deleted")
        server.places.delete_channel(gone)
        await until(lambda before=before: world.bot.counted("discord_deleted", above=before))  # type: ignore[misc]
        answers = [
            (await server.wait_for_answer(ada.command("memory search", text=words))).text
            for words in ("larch", "juniper", "slate")
        ]
        assert [words for words in ("larch", "juniper", "slate") if f"of {words}" in str(answers)] == known


async def test_an_attachment_that_is_taken_off_leaves_memory_and_the_message_stays(world: World) -> None:
    server, ada = world.server, world.ada
    notes = ada.file("notes.txt", "juniper and larch", "text/plain")
    message = ada.say(text="my notes", attachments=[notes])
    assert "juniper" in (await server.wait_for_message(ada.dm, after=message, timeout=20)).content
    before = await world.bot.counted("discord_edited")
    ada.take_off(message, notes)
    await until(lambda: world.bot.counted("discord_edited", above=before))
    after = ada.say(text="and now?")
    assert (await server.wait_for_message(ada.dm, after=after, timeout=20)).content.endswith("and now?")
    assert said(world.model.requests[-1]) == ["my notes", "and now?"]
    assert "juniper" not in str(world.model.requests[-1].messages)


async def test_a_mention_edited_in_is_answered_once(world: World) -> None:
    ada = world.ada
    attic = world.server.channel(world.home, "attic")
    message = ada.say(attic, "are you there?")
    ada.edit(message, f"{world.server.bot.mention} are you there?")
    assert (await world.server.wait_for_message(attic)).content == "re: are you there?"
    ada.edit(message, f"{world.server.bot.mention} are you really there?")
    await world.bot.exchange(attic, lambda: ada.ask(attic, "next"), "re: next")


async def test_slash_commands_are_acknowledged_in_time_and_answered_for_one(world: World) -> None:
    server, ada = world.server, world.ada
    await world.bot.exchange(ada.dm, lambda: ada.say(text="remember Clara is my sister"), "Noted.")
    view = await server.wait_for_answer(ada.command("memory view"))
    assert "Clara is my sister" in view.text
    assert view.deferred
    assert view.ephemeral
    assert view.delay is not None
    assert view.delay < 3
    # In public only what may be used there.
    general = world.home.channel("general")
    assert "Clara" not in (await server.wait_for_answer(ada.command("memory view", general))).text
    found = await server.wait_for_answer(ada.command("memory search", text="sister"))
    assert "Clara" in found.text
    assert "/memory forget" in (await server.wait_for_answer(ada.command("help"))).text
    assert str(ada.id) in (await server.wait_for_answer(ada.command("whoami"))).text
    export = await server.wait_for_answer(ada.command("memory export"))
    assert export.ephemeral
    # One that Discord will not wait for any longer is still done, and answered by a direct message.
    server.faults.error("POST /interactions/{interaction_id}/{token}/callback", 404, 10062)
    ada.command("whoami", general)
    assert str(ada.id) in (await server.wait_for_message(ada.dm)).content
    # One that was acknowledged before (a replay, another process) is not done again.
    server.faults.error("POST /interactions/{interaction_id}/{token}/callback", 400, 40060)
    ada.command("whoami", general)
    stranger = server.person("Stranger", world.home)
    assert "nothing" in (await server.wait_for_answer(stranger.command("memory view"))).text


async def test_a_closed_mailbox_is_final_until_the_person_writes_again(world: World) -> None:
    server, ada, ben = world.server, world.ada, world.server.person("Ben", world.home)
    gate = Gate(reply("too late"))
    world.model.add(gate)
    ada.say(text="quick")
    await gate.reached.wait()
    ada.user.dms_open = False
    before = len(server.requests_of(POST))
    gate.release()
    await until(lambda: any(one.status == 403 for one in server.requests_of(POST)[before:]))
    await world.bot.exchange(ben.dm, lambda: ben.say(text="others go on"), "re: others go on")
    ada.user.dms_open = True
    await world.bot.exchange(ada.dm, lambda: ada.say(text="open again"), "re: open again")
    assert [one.status for one in server.requests_of(POST)[before:]].count(403) == 1


async def test_a_lost_answer_to_a_post_makes_no_second_message(world: World) -> None:
    server, ada = world.server, world.ada
    server.faults.lose_answer(POST)
    await world.bot.exchange(ada.dm, lambda: ada.say(text="once"), "re: once")
    await world.bot.exchange(ada.dm, lambda: ada.say(text="and on"), "re: and on")
    assert [one.content for one in server.messages(ada.dm, server.bot)] == ["re: once", "re: and on"]


async def test_faults_of_the_api_are_waited_out_without_a_duplicate_or_a_stall_of_others(world: World) -> None:
    server, ada, ben = world.server, world.ada, world.server.person("Ben", world.home)
    mine = str(ada.dm.id)
    server.faults.status(POST, 503, 2, where=lambda request: request.params["channel_id"] == mine)
    server.faults.rate_limit(POST, 0.3, where=lambda request: request.params["channel_id"] == mine)
    server.faults.status(POST, 500, 1, where=lambda request: request.params["channel_id"] == mine)
    ada.say(text="patience")
    await world.bot.exchange(ben.dm, lambda: ben.say(text="me first"), "re: me first")
    assert (await server.wait_for_message(ada.dm, timeout=30)).content == "re: patience"
    await world.bot.exchange(ada.dm, lambda: ada.say(text="next"), "re: next")
    assert [one.content for one in server.messages(ada.dm, server.bot)] == ["re: patience", "re: next"]


async def test_many_people_at_once_each_get_their_answers_in_order(world: World) -> None:
    soaked = await soak(world.server, world.bot, people=40, messages=4)
    assert (soaked.lost, soaked.twice, soaked.disorder) == (0, 0, 0), soaked
