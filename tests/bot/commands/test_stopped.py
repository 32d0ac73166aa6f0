"""What /stop takes back, and what ends in any other way, is out of the database; a dead letter keeps its words for its replay alone."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from datetime import timedelta

import pytest

from adapters.base import Changed, Person, Quote
from bot.config.keeping import RetentionSection
from bot.engine import deadletters, timers, turns
from bot.engine.changes import follow
from bot.engine.events import Claim
from bot.keeping.retention import ages
from memory import retention
from memory.db import Database
from tests.bot.commands.conftest import Desk, Opener
from tests.bot.commands.test_forgetting import WORD, everywhere
from tests.bot.dialogue import Dialogue, seen
from tests.conftest import Urls
from tests.servers.model import call, reply

SECRET = f"My dog is called {WORD}."
BEN = Person("console", "", "ben", "Ben")
BOSS = Person("console", "", "boss", "Boss")
ADAS = Quote("console::ada", "Ada", SECRET, "context", "lounge/7")
DONE = reply("Noted.")

Eraser = Callable[[Desk, Dialogue], Awaitable[object]]


async def period(one: Desk, _: Dialogue) -> None:
    await one.follow(await one.press("/memory forget from 2026-11-30 to 2026-11-30"), "Forget")


async def here(one: Desk, room: Dialogue) -> None:
    await one.follow(await one.press("/memory forget here", room), "Forget", talk=room)


async def deleted(one: Desk, room: Dialogue) -> None:
    [row] = await one.talk.rows("SELECT payload->>'message_id' AS id FROM events ORDER BY seq DESC LIMIT 1")
    await follow(
        one.parts.db, one.talk.cache, Changed("console", "", room.place.external_id, (str(row["id"]),), None, one.talk.at)
    )


async def by_an_admin(one: Desk, _: Dialogue) -> None:
    boss = one.talk.elsewhere("lounge", "public", person=BOSS)
    await one.follow(await one.press("/admin memory delete console::ada", boss), "Delete", talk=boss)


async def resumed(one: Desk, _: Dialogue) -> None:
    await one.type("/memory resume")


async def too_old(one: Desk, _: Dialogue) -> None:
    await retention.apply(one.parts.db, one.talk.cache, ages(RetentionSection()), one.talk.at + timedelta(days=31))


@pytest.mark.parametrize("eraser", [period, here, deleted, by_an_admin, resumed, too_old])
async def test_what_was_taken_back_is_nowhere_whatever_erases_it(desk: Opener, urls: Urls, eraser: Eraser) -> None:
    async with desk(DONE, operators=(), admins={"w": ["boss"]}) as one:
        room = one.talk.elsewhere("lounge", "public")
        await room.hear("Hello.")
        if eraser is resumed:
            await one.type("/memory pause")
        await room.accept(SECRET, quotes=(Quote("console::ben", "Ben", f"{WORD} barks at night.", "context", "lounge/8"),))
        assert "1 waiting message taken back" in await one.type("/stop", room)
        await eraser(one, room)
        assert await everywhere(urls.owner, WORD) == []


async def test_it_is_nowhere_as_soon_as_it_is_taken_back(desk: Opener, urls: Urls) -> None:
    async with desk() as one:
        await one.talk.accept(SECRET)
        await one.type("/stop")
        assert await everywhere(urls.owner, WORD) == []


async def test_whoever_was_quoted_in_it_finds_nothing_left(desk: Opener, urls: Urls) -> None:
    async with desk(DONE) as one:
        await one.talk.hear("Hello.")
        ben = one.talk.elsewhere("lounge", "public", person=BEN)
        await ben.accept("What does she mean?", quotes=(ADAS,))
        assert "1 waiting message taken back" in await one.type("/stop", ben)
        assert "found nothing left" in await one.type("/memory forget everything yes")
        assert await everywhere(urls.owner, WORD) == []


# Dead letters -------------------------------------------------------------------------------------------


async def died(one: Desk, room: Dialogue, text: str, *quotes: Quote) -> Claim:
    """A message whose turn began and could not go on."""
    claim = await room.claim(await room.accept(text, quotes=quotes))
    await room.agent._begin(await room.agent._opened(claim))
    await turns.give_up(one.parts.db, claim, "ModelAway", now=one.talk.at)
    return claim


async def test_a_dead_letter_keeps_its_words_until_it_was_replayed(desk: Opener, db: Database, urls: Urls) -> None:
    async with desk(DONE) as one:
        claim = await one.talk.claim(await one.talk.accept(SECRET))
        await turns.give_up(db, claim, "ModelAway", now=one.talk.at)
        assert await everywhere(urls.owner, WORD) == ["events"]
        assert await deadletters.replay(db, None) == 1
        await one.talk.agent.turn(await one.talk.claim(claim.agent))
        assert SECRET in seen(one.talk.model.requests[-1])
        assert await everywhere(urls.owner, WORD) == ["messages"]


async def test_a_dead_letter_of_a_pause_ends_with_it(desk: Opener, db: Database, urls: Urls) -> None:
    async with desk(DONE) as one:
        await one.talk.hear("Hello.")
        await one.type("/memory pause")
        await died(one, one.talk, SECRET)
        assert "events" in await everywhere(urls.owner, WORD)
        await one.type("/memory resume")
        assert await everywhere(urls.owner, WORD) == []
        assert await deadletters.replay(db, None) == 0


async def test_a_message_that_is_forgotten_cannot_be_replayed(desk: Opener, db: Database, urls: Urls) -> None:
    async with desk() as one:
        await died(one, one.talk, SECRET)
        [message] = await one.talk.rows("SELECT id FROM messages WHERE kind = 'message' AND role = 'user'")
        await one.type(f"/memory forget m{message['id']}")
        assert await everywhere(urls.owner, WORD) == []
        assert await deadletters.replay(db, None) == 0


async def test_a_quote_leaves_a_dead_letter_after_its_time_and_the_question_stays(desk: Opener, urls: Urls) -> None:
    async with desk(DONE) as one:
        room = one.talk.elsewhere("lounge", "public", person=BEN)
        claim = await died(one, room, "What does she mean?", ADAS)
        removed = await retention.apply(
            one.parts.db, one.talk.cache, ages(RetentionSection(events=0)), one.talk.at + timedelta(days=31)
        )
        assert removed["quotes"] == 1
        assert await everywhere(urls.owner, WORD) == []
        assert await deadletters.replay(one.parts.db, None) == 1
        await room.agent.turn(await room.claim(claim.agent))
        assert "What does she mean?" in seen(one.talk.model.requests[-1])


async def test_a_quote_that_is_forgotten_leaves_the_dead_letter_that_it_came_with(desk: Opener, urls: Urls) -> None:
    async with desk() as one:
        room = one.talk.elsewhere("lounge", "public", person=BEN)
        await died(one, room, "What does she mean?", ADAS)
        await follow(one.parts.db, one.talk.cache, Changed("console", "", "lounge", ("7",), None, one.talk.at))
        assert await everywhere(urls.owner, WORD) == []
        assert await deadletters.replay(one.parts.db, None) == 1


# Reminders ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("day", ["2026-11-30", "2026-12-01"], ids=["the day it was set", "the day it fired"])
@pytest.mark.parametrize("begun", [False, True], ids=["waiting", "begun"])
async def test_a_reminder_that_fired_and_waits_for_the_model_goes_with_its_day(
    desk: Opener, db: Database, urls: Urls, day: str, begun: bool
) -> None:
    setting = reply(
        None, call("set_timer", request_heartbeat=True, purpose=f"feed {WORD}", asked="Remind me of my dog", in_minutes=1440)
    )
    async with desk(setting, DONE) as one:
        await one.talk.hear("Remind me of my dog tomorrow.")
        one.talk.clock[0] += timedelta(days=1)
        assert await timers.fire_due(db, one.talk.at) == 1
        [agent] = await one.talk.rows("SELECT id FROM agents")
        if begun:
            claim = await one.talk.claim(int(str(agent["id"])))
            await one.talk.agent._begin(await one.talk.agent._opened(claim))
            await turns.release(db, claim, "ModelAway")
        if day == "2026-12-01":  # what was said when it was set is forgotten apart
            await one.talk.rows("UPDATE timers SET purpose = '' RETURNING id")
            await one.talk.rows("UPDATE outbox SET body = '' RETURNING id")
            await one.talk.rows("UPDATE messages SET calls = NULL WHERE calls IS NOT NULL RETURNING id")
            await one.talk.rows("DELETE FROM messages WHERE kind = 'result' RETURNING id")
            await one.talk.rows("DELETE FROM memory_log_content RETURNING log_id")
        assert "events" in await everywhere(urls.owner, WORD)
        await one.follow(await one.press(f"/memory forget from {day} to {day}"), "Forget")
        assert await everywhere(urls.owner, WORD) == []
        assert await turns.claim(db, int(str(agent["id"])), one.talk.at, one.talk.engine) is None, "nobody is reminded of it"


async def test_a_day_of_which_only_a_waiting_message_is_kept_can_be_forgotten(desk: Opener, urls: Urls) -> None:
    async with desk(DONE) as one:
        await one.talk.hear("Hello.")
        one.talk.clock[0] += timedelta(days=1)
        await one.talk.accept(SECRET)
        shown = await one.press("/memory forget from 2026-12-01 to 2026-12-01")
        assert "1 message waiting for an answer will be taken back" in shown.text
        assert "1 waiting message taken back" in (await one.follow(shown, "Forget")).text
        assert await everywhere(urls.owner, WORD) == []
