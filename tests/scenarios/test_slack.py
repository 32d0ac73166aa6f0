"""Talking on Slack: one bot process in Socket Mode, and what people do and see."""

from __future__ import annotations

from collections.abc import AsyncIterator
from dataclasses import dataclass

import pytest
import pytest_asyncio

from tests.scenarios.discord_bot import echo, quoted, said
from tests.scenarios.slack_bot import POST, Bot, bot_on, slack_server
from tests.servers.model import Gate, ScriptedModel, call, reply
from tests.servers.slack import Channel, Person, SlackServer, Team
from tests.waiting import until

pytestmark = pytest.mark.asyncio(loop_scope="module")


@dataclass(slots=True)
class World:
    """A workspace, the bot in it, and a person who never met it before."""

    server: SlackServer
    model: ScriptedModel
    bot: Bot
    acme: Team
    ada: Person

    def channel(self, name: str, *people: Person, **options: bool) -> Channel:
        return self.server.channel(self.acme, name, self.ada, *people, **options)


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def running() -> AsyncIterator[tuple[SlackServer, ScriptedModel, Bot, Team]]:
    async with slack_server() as server, ScriptedModel(policy=echo) as model:
        acme = server.team("Acme")
        async with bot_on(server, model, acme) as bot:
            yield server, model, bot, acme


@pytest_asyncio.fixture(loop_scope="module")
async def world(running: tuple[SlackServer, ScriptedModel, Bot, Team]) -> AsyncIterator[World]:
    server, model, bot, acme = running
    yield World(server, model, bot, acme, server.person("Ada", acme, tz="Europe/Berlin"))
    server.faults.clear()


async def test_a_direct_message_is_answered_and_remembered(world: World) -> None:
    ada = world.ada
    await world.bot.exchange(ada.dm, lambda: ada.say(None, "hello"), "re: hello", thread=False)
    await world.bot.exchange(ada.dm, lambda: ada.say(None, "remember Biscuit is my dog"), "Noted.")
    await world.bot.exchange(ada.dm, lambda: ada.say(None, "what is kept?"), "kept: Biscuit")


async def test_each_thread_of_direct_messages_is_answered_in_it(world: World) -> None:
    ada = world.ada
    root = ada.say(None, "first")
    await world.server.wait_for_message(ada.dm)
    answer = await world.bot.exchange(ada.dm, lambda: ada.say(None, "in here", thread=root), "re: in here")
    assert answer.thread_ts == root.ts
    assert quoted(world.model.requests[-1]) == [("ada", "first")]
    other = ada.say(None, "second")
    assert (await world.server.wait_for_message(ada.dm, after=other)).thread_ts is None


async def test_a_mention_is_answered_in_its_thread_with_what_was_said_before_as_quotes(world: World) -> None:
    server, ada, ben = world.server, world.ada, world.server.person("Ben", world.acme)
    garden = world.channel("garden", ben)
    ben.say(garden, "the roses need <water> & sun")
    ada.say(garden, "I agree")
    asked = ada.ask(garden, f"what about {ben.mention} and {garden.mention}?")
    answer = await server.wait_for_message(garden)
    assert answer.shown == "re: what about @ben and #garden?"
    assert answer.thread_ts == asked.ts
    request = world.model.requests[-1]
    assert said(request) == ["what about @ben and #garden?"]
    assert quoted(request) == [("ben", "the roses need <water> & sun"), ("ada", "I agree")]
    # The thread is followed from now on, and nothing comes along twice.
    ben.say(garden, "nothing to me", thread=asked)
    follow = await world.bot.exchange(garden, lambda: ada.say(garden, "and now?", thread=asked), "re: and now?")
    assert follow.thread_ts == asked.ts
    request = next(one for one in reversed(world.model.requests) if "and now?" in said(one))  # Ben's agent may have been later
    texts = [text for _, text in quoted(request)]
    assert texts.count("the roses need <water> & sun") == 1


@pytest.mark.parametrize("order", ["message_first", "mention_first"])
@pytest.mark.parametrize("bare", [False, True])
async def test_twins_make_one_turn(world: World, order: str, bare: bool) -> None:
    ada = world.ada
    den = world.channel(f"den-{order}-{bare}".lower())
    before = len(world.model.requests)
    ada.ask(den, "tea?", order=order, event_ts_only=bare)  # type: ignore[arg-type]
    assert (await world.server.wait_for_message(den)).shown == "re: tea?"
    await world.server.wait_settled()
    await world.bot.exchange(den, lambda: ada.ask(den, "milk?"), "re: milk?")
    assert len(world.model.requests) == before + 2


async def test_no_status_stays_when_they_wrote_more_while_the_bot_worked(world: World) -> None:
    """It was cleared under the newest message, and stood under the one that it was set at."""
    server, ada = world.server, world.ada
    gate = Gate(reply("re: slowly"))
    world.model.add(gate)
    asked = ada.say(None, "slowly")
    await server.until(lambda: server.status(ada.dm, asked.ts), 15, "a status")
    more = ada.say(None, "and this")
    await server.wait_settled()
    gate.release()
    await server.wait_for_message(ada.dm, after=asked, timeout=15)
    await server.wait_for_message(ada.dm, after=more, timeout=15)
    await until(lambda: not server.statuses, timeout=15)
    assert server.status(ada.dm, asked.ts) == ""


async def test_retries_make_no_turn_however_late(world: World) -> None:
    server, ada = world.server, world.ada
    await world.bot.exchange(ada.dm, lambda: ada.say(None, "once"), "re: once")
    delivery = server.delivered("message")[-2]
    assert delivery.event["text"] == "once"
    before = len(world.model.requests)
    server.redeliver(delivery)
    await server.wait_settled()
    await world.bot.exchange(ada.dm, lambda: ada.say(None, "next"), "re: next")
    assert len(world.model.requests) == before + 1


async def test_mass_mentions_talk_and_bots_are_not_answered(world: World) -> None:
    server, ada = world.server, world.ada
    lobby = world.channel("lobby")
    for text in ("<!channel> hello", "<!here> hello", "<!subteam^S0A1B2C3D|@helpers> hello", "just talk"):
        ada.say(lobby, text, raw=True)
    server.bot_says(lobby, f"<@{world.acme.bot.id}> build done")  # type: ignore[union-attr]
    server.bot_says(lobby, f"<@{world.acme.bot.id}> build done", webhook=True)  # type: ignore[union-attr]
    await world.bot.exchange(lobby, lambda: ada.ask(lobby, "you?"), "re: you?")
    assert len(server.messages(lobby, bot=True)) == 1


async def test_two_people_in_one_channel_talk_to_their_own_agents(world: World) -> None:
    server, ada, clara = world.server, world.ada, world.server.person("Clara", world.acme)
    den = world.channel("kitchen", clara)
    gate = Gate(reply("for Ada"))
    world.model.add(gate)
    first = ada.ask(den, "first")
    await gate.reached.wait()
    second = clara.ask(den, "second")
    answer = await server.wait_for_message(den)
    assert (answer.shown, answer.thread_ts) == ("re: second", second.ts)
    gate.release()
    mine = await server.wait_for_message(den)
    assert (mine.shown, mine.thread_ts) == ("for Ada", first.ts)


async def test_five_messages_in_a_second_are_one_turn_in_order(world: World) -> None:
    ada = world.ada
    before = len(world.model.requests)
    for number in range(4):
        ada.say(None, f"line {number}")
    await world.bot.exchange(ada.dm, lambda: ada.say(None, "line 4"), "re: line 0 | line 1 | line 2 | line 3 | line 4")
    assert len(world.model.requests) == before + 1


async def test_markdown_arrives_in_a_markdown_block_with_plain_text_beside_it(world: World) -> None:
    server, ada = world.server, world.ada
    text = "# Title\n\n**bold** and [a link](https://example.com/x)\n\n| a | b |\n|---|---|\n| 1 | 2 |\n\n```python\nif a < b:\n    pass\n```"
    world.model.add(reply(text))
    ada.say(None, "markdown, please")
    answer = await server.wait_for_message(ada.dm)
    assert [(block["type"], block["text"]) for block in answer.blocks] == [("markdown", text)]
    assert answer.text.startswith("Title\n\nbold and a link (https://example.com/x)")
    assert "if a &lt; b:" in answer.text


async def test_a_long_reply_comes_in_parts_within_the_limits_in_order(world: World) -> None:
    server, ada = world.server, world.ada
    world.model.add(reply("\n\n".join(f"Paragraph {number}. " + "word " * 800 for number in range(8))))
    ada.say(None, "at length, please")
    await server.until(lambda: "Paragraph 7" in " ".join(one.shown for one in server.messages(ada.dm, bot=True)) or None)
    parts = server.messages(ada.dm, bot=True)
    assert len(parts) == 4
    assert all(len(part.shown) <= 12_000 for part in parts)
    text = " ".join(part.shown for part in parts)
    positions = [text.index(f"Paragraph {number}") for number in range(8)]
    assert positions == sorted(positions)


async def test_the_model_notifies_nobody(world: World) -> None:
    server, ada = world.server, world.ada
    world.model.add(reply(f"<!channel> <!here> <!subteam^S0A1B2C3D> {ada.mention} @channel"))
    ada.say(None, "ping everyone")
    answer = await server.wait_for_message(ada.dm)
    assert not answer.notifies
    assert "!channel" in answer.shown


async def test_a_message_edited_into_a_crisis_gets_the_emergency_lines(world: World) -> None:
    server, ada = world.server, world.ada
    message = await world.bot.exchange(ada.dm, lambda: ada.say(text="I had a fine day"), "re: I had a fine day")
    [asked] = [each for each in server.messages(ada.dm) if "I had a fine day" in each.text and each is not message]
    asked_before = len(world.model.requests)
    ada.edit(asked, "I want to kill myself")
    assert "findahelpline.com" in (await server.wait_for_message(ada.dm)).text
    assert len(world.model.requests) == asked_before, "no model was asked"


async def test_edits_and_deletions_are_followed_and_unfurls_are_none(world: World) -> None:
    server, ada = world.server, world.ada
    gate = Gate(reply("wrong"))
    world.model.add(gate)
    message = ada.say(None, "I like tae")
    await gate.reached.wait()
    before = await world.bot.counted("slack_edited")
    ada.edit(message, "I like tea")
    await until(lambda: world.bot.counted("slack_edited", above=before))
    gate.release()
    assert (await server.wait_for_message(ada.dm)).shown == "re: I like tea"
    # Answered: not answered again.
    ada.edit(message, "I like green tea")
    ada.unfurl(message)
    gate = Gate(reply("never said"))
    world.model.add(gate)
    gone = ada.say(None, "forget this")
    await gate.reached.wait()
    before = await world.bot.counted("slack_deleted")
    ada.delete(gone)
    await until(lambda: world.bot.counted("slack_deleted", above=before))
    gate.release()
    await world.bot.exchange(ada.dm, lambda: ada.say(None, "still there?"), "re: still there?")
    texts = said(world.model.requests[-1])
    assert "I like green tea" in texts
    assert "I like tea" not in texts
    assert "forget this" not in texts
    assert len(server.messages(ada.dm, bot=True)) == 2


async def test_what_others_quote_of_a_message_follows_it_too(world: World) -> None:
    server, ada, ben = world.server, world.ada, world.server.person("Ben", world.acme)
    yard = world.channel("yard", ben)
    wrong, gone = ben.say(yard, "the gate code is 1234"), ben.say(yard, "and the key is under the mat")
    asked = ada.ask(yard, "noted?")
    await server.wait_for_message(yard)
    assert [text for _, text in quoted(world.model.requests[-1])] == [wrong.text, gone.text]
    before = await world.bot.counted("slack_deleted")
    ben.edit(wrong, "the gate code is 5678")
    ben.delete(gone)
    await until(lambda: world.bot.counted("slack_deleted", above=before))
    await world.bot.exchange(yard, lambda: ada.say(yard, "and now?", thread=asked), "re: and now?")
    texts = " ".join(text for _, text in quoted(world.model.requests[-1]))
    assert "5678" in texts
    assert "1234" not in texts
    assert "under the mat" not in texts


async def test_the_message_that_began_a_thread_is_followed_after_it_has_replies(world: World) -> None:
    server, ada = world.server, world.ada
    root = ada.say(None, "I like tae")
    await server.wait_for_message(ada.dm)
    await world.bot.exchange(ada.dm, lambda: ada.say(None, "by the way", thread=root), "re: by the way")
    before = await world.bot.counted("slack_edited")
    ada.edit(root, "I like tea")
    await until(lambda: world.bot.counted("slack_edited", above=before))
    await world.bot.exchange(ada.dm, lambda: ada.say(None, "next"), "re: next")
    assert "I like tea" in said(world.model.requests[-1])


async def test_a_mention_edited_in_is_answered_once(world: World) -> None:
    ada, bot = world.ada, world.acme.bot
    assert bot is not None
    attic = world.channel("attic")
    message = ada.say(attic, "are you there?")
    ada.edit(message, f"{bot.mention} are you there?")
    assert (await world.server.wait_for_message(attic)).shown == "re: are you there?"
    ada.edit(message, f"{bot.mention} are you really there?")
    await world.bot.exchange(attic, lambda: ada.ask(attic, "next"), "re: next")


async def test_a_status_shows_while_the_agent_works_and_is_cleared_on_every_way_out(world: World) -> None:
    server, ada = world.server, world.ada
    root = ada.say(None, "begin")
    await server.wait_for_message(ada.dm)
    gate = Gate(reply(None, call("working_context_append", section="goals", content="x")))
    last = Gate(reply("done"))
    world.model.add(gate, last)
    ada.say(None, "think", thread=root)
    await server.until(lambda: server.status(ada.dm, root.ts) or None)
    gate.release()
    last.release()
    answer = await server.wait_for_message(ada.dm)
    await server.until(lambda: [one for one in server.calls_of("assistant.threads.setStatus") if not one.args["status"]] or None)
    late = [one for one in server.calls_of("assistant.threads.setStatus") if one.args["status"] and one.at > answer.made_at]
    assert not late
    # Stopped: nothing is said, and nothing stays.
    gate = Gate(reply("never"))
    world.model.add(gate)
    ada.say(None, "think again", thread=root)
    await server.until(lambda: server.status(ada.dm, root.ts) or None)
    stop = ada.say(None, "stop", thread=root)
    await server.until(lambda: not server.status(ada.dm, root.ts) or None)
    await server.wait_for_message(ada.dm, after=stop)
    gate.release()
    # One that fails is nobody's loss.
    server.faults.error("assistant.threads.setStatus", "internal_error", 5)
    await world.bot.exchange(ada.dm, lambda: ada.say(None, "and now?", thread=root), "re: think again | and now?")


async def test_a_lost_answer_to_a_post_makes_no_second_message(world: World) -> None:
    server, ada = world.server, world.ada
    server.faults.lose_answer(POST)
    await world.bot.exchange(ada.dm, lambda: ada.say(None, "once"), "re: once")
    await world.bot.exchange(ada.dm, lambda: ada.say(None, "and on"), "re: and on")
    assert [one.shown for one in server.messages(ada.dm, bot=True)] == ["re: once", "re: and on"]


async def test_faults_of_the_api_are_waited_out_without_a_duplicate_or_a_stall_of_others(world: World) -> None:
    server, ada, ben = world.server, world.ada, world.server.person("Ben", world.acme)
    mine = ada.dm.id
    server.faults.status(POST, 503, 1, where=lambda one: one.args.get("channel") == mine)
    server.faults.rate_limit(POST, 1, where=lambda one: one.args.get("channel") == mine)
    ada.say(None, "patience")
    await world.bot.exchange(ben.dm, lambda: ben.say(None, "me first"), "re: me first")
    assert (await server.wait_for_message(ada.dm, timeout=40)).shown == "re: patience"
    await world.bot.exchange(ada.dm, lambda: ada.say(None, "next"), "re: next")
    assert [one.shown for one in server.messages(ada.dm, bot=True)] == ["re: patience", "re: next"]


async def test_an_archived_channel_is_final_and_others_go_on(world: World) -> None:
    server, ada = world.server, world.ada
    shed = world.channel("shed")
    gate = Gate(reply("too late"))
    world.model.add(gate)
    ada.ask(shed, "quick")
    await gate.reached.wait()
    server.places.archive(shed)
    gate.release()
    await until(lambda: any(one.error == "is_archived" for one in server.calls_of(POST)))
    await world.bot.exchange(ada.dm, lambda: ada.say(None, "others go on"), "re: others go on")
    assert [one.error for one in server.calls_of(POST)].count("is_archived") == 1


async def test_files_are_read_or_described_and_a_sign_in_page_is_noticed(world: World) -> None:
    server, ada = world.server, world.ada
    paste = ada.file("notes.txt", "pasted line\n" * 3)
    picture = ada.file("cat.png", b"\x89PNG", "image/png")
    answer = await world.bot.server.wait_for_message(ada.say(None, files=[paste, picture]).channel)
    assert "pasted line\npasted line" in answer.shown
    assert "[image cat.png, image/png, 4 bytes]" in answer.shown
    moved = ada.file("moved.txt", "followed", served="redirect")
    foreign = ada.file("foreign.txt", "elsewhere", served="elsewhere")
    login = ada.file("login.txt", "secret", served="login")
    ada.say(None, "look", files=[moved, foreign, login])
    answer = await server.wait_for_message(ada.dm)
    assert "followed" in answer.shown
    assert "login.txt" in answer.shown
    assert "could not be read" in answer.shown
    assert "<html" not in answer.shown
    # The token stays within Slack.
    assert all(not right for path, right in foreign.downloads if path.startswith("/elsewhere") or path != foreign.downloads[0][0])
    huge = ada.file("log.txt", "x" * 100_000)
    ada.say(None, "long", files=[huge])
    await until(lambda: any("[truncated 65536 of 100000 bytes]" in text for text in said(world.model.requests[-1])))


async def test_a_deleted_file_leaves_memory_and_the_message_stays(world: World) -> None:
    server, ada = world.server, world.ada
    notes, other = ada.file("notes.txt", "juniper and larch"), ada.file("list.txt", "salt and flour")
    message = ada.say(None, "my notes", files=[notes, other])
    assert "juniper" in (await server.wait_for_message(ada.dm)).shown
    before = await world.bot.counted("slack_edited")
    ada.delete_file(message, notes)
    await until(lambda: world.bot.counted("slack_edited", above=before))
    ada.say(None, "and now?")
    assert (await server.wait_for_message(ada.dm)).shown.endswith("and now?")
    told = "\n".join(said(world.model.requests[-1]))
    assert "my notes" in told
    assert "salt and flour" in told
    assert "juniper" not in str(world.model.requests[-1].messages)


async def test_many_people_at_once_each_get_their_answers_in_order(world: World) -> None:
    server = world.server
    people = [server.person(f"P{number}", world.acme) for number in range(30)]
    before = len(server.deliveries)
    for number in range(3):
        for person in people:
            person.say(None, f"{number}")
        for person in people:
            answer = await server.wait_for_message(person.dm, timeout=40)
            assert answer.shown == f"re: {number}"
    slow = [one for one in server.deliveries[before:] for attempt in one.attempts if attempt.number]
    assert not slow, "something was not acknowledged within three seconds"
