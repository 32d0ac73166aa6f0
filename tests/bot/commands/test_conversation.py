"""/stop, /retry, /fresh and /status."""

import json

from adapters.base import Person
from bot.engine import turns
from tests.bot.commands.conftest import Opener
from tests.servers.model import reply

DONE = reply("Noted.")


async def test_stop_takes_back_what_waits(desk: Opener) -> None:
    async with desk(DONE) as one:
        agent = await one.talk.accept("One.")
        await one.talk.accept("Two.")
        assert await one.type("/stop") == "Stopped: 2 waiting messages taken back."
        assert await turns.claim(one.parts.db, agent, one.talk.at, one.talk.engine) is None
        assert await one.type("/stop") == "Nothing is running."
        await one.talk.hear("Three.")


async def test_stop_ends_the_running_turn(desk: Opener) -> None:
    async with desk() as one:
        claim = await one.talk.claim(await one.talk.accept("One."))
        assert await one.type("/stop") == "Stopped."
        assert await turns.cancelled(one.parts.db, claim)


async def test_retry_needs_something_to_answer(desk: Opener) -> None:
    async with desk(DONE) as one:
        group = one.talk.elsewhere("lounge", "public")
        await one.talk.hear("Hello.")
        assert await one.type("/retry") == ""
        assert [row["kind"] for row in await one.talk.rows("SELECT kind FROM events ORDER BY id")] == ["message", "retry"]
        assert "nothing to answer again" in await one.type("/retry", group)


async def test_fresh_empties_the_queue_and_keeps_recall_storage(desk: Opener) -> None:
    async with desk(DONE, DONE) as one:
        assert "nothing about you" in await one.type("/fresh")
        await one.talk.hear("The code word is tulip.")
        assert "fresh conversation" in await one.type("/fresh")
        await one.talk.hear("What now?")
        assert "tulip" not in json.dumps(one.talk.model.requests[-1].messages)
        assert "tulip" in await one.type("/memory search tulip")


async def test_status_counts_what_waits_and_shows_counters_to_operators_only(desk: Opener) -> None:
    async with desk(DONE, operators=("console::boss",)) as one:
        await one.talk.hear("Hello.")
        await one.talk.accept("And?")
        shown = await one.type("/status")
        assert "model: scripted" in shown
        assert "database: well" in shown
        assert "2 messages remembered, 1 waiting for an answer, 1 answer unsent" in shown
        assert "command:" not in shown
        boss = one.talk.elsewhere("boss", "direct", person=Person("console", "", "boss", "Boss"))
        assert "command: 1" in await one.type("/status", boss)
