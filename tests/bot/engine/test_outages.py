"""The database goes away while messages are sent: none is sent twice, and none waits until nobody would know about it any more."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from datetime import timedelta

import psycopg
import pytest

from adapters.base import TryLater, Undeliverable
from bot.engine.events import Claim
from tests.bot.engine.outage import Outage
from tests.bot.engine.test_outbox import Platform, all_sent, answer, sender, sending
from tests.bot.engine.world import NOW, QUICK, Turns, World, working
from tests.conftest import Urls
from tests.waiting import until


async def test_what_was_sent_is_written_down_as_soon_as_that_is_possible(engine: World, outage: Outage) -> None:
    """The process knows that it was sent: nothing is looked up, and what comes next does not wait until the row would be doubtful."""
    for text in ("one", "two", "three"):
        await answer(engine, text, "a")
    platform = Platform(when_shown={"one": outage.cut, "two": outage.cut})
    async with sending(sender(engine, platform)):
        await until(all_sent(engine), timeout=20)
    assert platform.calls == ["send one", "send two", "send three"]
    assert await engine.column("SELECT platform_id FROM outbox ORDER BY id") == ["id1", "id2", "id3"]


async def test_what_was_sent_is_not_looked_up_after_a_long_outage_either(
    engine: World, outage: Outage, caplog: pytest.LogCaptureFixture
) -> None:
    for text in ("one", "two"):
        await answer(engine, text, "a")
    platform = Platform(when_shown={"one": outage.begin})
    async with sending(sender(engine, platform)):
        try:
            await until(lambda: "error connecting" in caplog.text)
            engine.at += timedelta(seconds=QUICK.doubtful_after + 1)
        finally:
            await outage.end()
        await until(all_sent(engine), timeout=30)
    assert platform.calls == ["send one", "send two"]


async def test_what_is_being_sent_is_not_looked_up_as_the_clock_jumps(engine: World) -> None:
    """A machine that slept: to the clock the sending has taken a minute, and the process knows that it still goes on."""
    for text in ("one", "two"):
        await answer(engine, text, "a")

    async def sleep() -> None:
        engine.at += timedelta(seconds=QUICK.doubtful_after + 1)
        await until(lambda: engine.one("SELECT count(*) FROM outbox WHERE sending_since = %s", engine.at))

    async with sending(sender(engine, platform := Platform(when_shown={"one": sleep}))):
        await until(all_sent(engine), timeout=20)
    assert platform.calls == ["send one", "send two"]


async def test_what_was_taken_and_not_read_is_no_more_doubtful_than_before(engine: World, outage: Outage, urls: Urls) -> None:
    """The connection broke before anything was sent, and the process that took it knows that."""
    await answer(engine, "one", "a")
    platform = Platform()
    async with await psycopg.AsyncConnection.connect(urls.owner) as other:
        await other.execute("LOCK TABLE keepsake.places")
        async with sending(sender(engine, platform)):
            await until(lambda: engine.one("SELECT count(*) FROM pg_locks WHERE NOT granted"))
            await outage.cut()
            await other.rollback()
            await until(all_sent(engine), timeout=20)
    assert platform.calls == ["send one"]


@pytest.mark.parametrize("outcome", [TryLater(0), Undeliverable("no"), ValueError("unknown")])
async def test_a_late_word_about_a_row_that_somebody_took_since_changes_nothing(engine: World, outcome: Exception) -> None:
    await answer(engine, "one", "a")

    async def taken_by_another() -> None:
        await engine.owner.execute("UPDATE outbox SET sending_since = sending_since + interval '61 s'")

    platform = Platform(fails={"a": [(outcome, True)]}, when_shown={"one": taken_by_another})
    first = sender(engine, platform)
    async with sending(first):
        await until(lambda: platform.shown)
        await until(lambda: not first._sending)
    [row] = await engine.look("SELECT state, not_before, last_error FROM outbox")
    assert row == {"state": "sending", "not_before": None, "last_error": ""}


async def test_a_look_whose_answer_was_lost_leaves_its_rows_doubtful_at_once(engine: World) -> None:
    for channel in ("a", "b"):
        await answer(engine, channel, channel)
    take = "SELECT * FROM claim_outbox('test', %s, 10, %s, %s)"
    await engine.owner.execute(take, (["a"], NOW, NOW))
    await engine.owner.execute(take, (["b"], NOW + timedelta(seconds=1), NOW))
    assert await engine.one("SELECT doubt_sending(%s, 'elsewhere', %s)", engine.at, NOW) == 0
    assert await engine.one("SELECT doubt_sending(%s, 'test', %s)", engine.at, NOW) == 1
    platform = Platform()
    async with sending(sender(engine, platform)):
        await until(lambda: platform.shown)
    assert platform.calls == ["find a", "send a"]


async def test_nobody_is_given_a_connection_that_broke_while_it_was_idle(engine: World, outage: Outage) -> None:
    await asyncio.gather(*(engine.db.once("SELECT pg_sleep(0.1)") for _ in range(8)))
    await outage.cut()
    assert len(await asyncio.gather(*(engine.db.once("SELECT 1") for _ in range(8)))) == 8


async def test_after_a_long_outage_the_database_is_used_as_soon_as_it_is_back(
    engine: World, outage: Outage, caplog: pytest.LogCaptureFixture
) -> None:
    """Waits that double had the next attempt come as late again as the outage had lasted."""
    asking = asyncio.ensure_future(engine.db.once("SELECT 1"))
    await outage.begin()
    asking.cancel()
    asking = asyncio.ensure_future(engine.db.once("SELECT 1 AS one"))
    try:
        await until(lambda: caplog.text.count("error connecting") >= 20, timeout=40)
    finally:
        await outage.end()
    async with asyncio.timeout(2.5):
        assert await asking == [{"one": 1}]


async def test_others_are_answered_after_an_outage_while_a_long_turn_goes_on(engine: World, outage: Outage) -> None:
    """The worker used to end, and to begin again only when the turns that it was running had ended."""
    thinking = asyncio.Event()

    async def think(claim: Claim) -> None:
        await thinking.wait()

    turn = Turns(engine, [think])
    engine.settings = replace(QUICK, shutdown_grace=600.0)
    async with working(engine, turn):
        try:
            await engine.say("first")
            await until(lambda: turn.seen)
            await outage.begin()
            await outage.end()
            await engine.say_until_taken("from the same")
            await engine.say("second", user="bob")
            await until(lambda: len(turn.seen) == 2)
        finally:
            thinking.set()
        await until(engine.at_rest)
    assert turn.seen == [["first"], ["second"], ["from the same"]]
