"""The worker on a real queue: one turn at a time, in order, and every way in which a turn can end."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from contextlib import suppress
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

import psycopg
import pytest

from adapters.catalogue import say
from bot.engine import turns
from bot.engine.deadletters import dead_letters
from bot.engine.events import Claim, StaleTurn, TryAgainLater, TurnCancelled
from bot.engine.worker import Worker
from tests.bot.engine.world import QUICK, Turns, World, place, working
from tests.conftest import Urls
from tests.waiting import until


def clocked(world: World) -> dict[str, Any]:
    """The worker reads the world's time."""
    return {"now": lambda: world.at}


def raising(error: Exception) -> Callable[[Claim], Awaitable[None]]:
    async def act(claim: Claim) -> None:
        raise error

    return act


async def replies(world: World) -> list[str]:
    return await world.column("SELECT body FROM outbox ORDER BY id")


async def test_five_rapid_messages_are_one_turn_in_order(engine: World) -> None:
    turn = Turns(engine)
    async with working(engine, turn):
        for number in range(5):
            engine.at = datetime.now(UTC)
            await engine.say(str(number), burst=0.4)
        await until(engine.at_rest)
    assert turn.seen == [["0", "1", "2", "3", "4"]]


async def test_without_debounce_each_is_answered_at_once(engine: World) -> None:
    turn = Turns(engine)
    async with working(engine, turn):
        for number in range(3):
            await engine.say(str(number))
            await until(engine.at_rest)
    assert turn.seen == [["0"], ["1"], ["2"]]


async def test_a_message_during_a_turn_gets_the_next_one(engine: World) -> None:
    async def say_more(claim: Claim) -> None:
        await engine.say("second")
        await engine.say("third")

    turn = Turns(engine, [say_more])
    async with working(engine, turn):
        await engine.say("first")
        await until(engine.at_rest)
    assert turn.seen == [["first"], ["second", "third"]]
    assert await replies(engine) == ["re first", "re second third"]


async def test_agents_run_side_by_side_and_each_alone(engine: World) -> None:
    running: set[int] = set()
    together = asyncio.Barrier(8)

    async def turn(claim: Claim) -> None:
        assert claim.agent not in running
        running.add(claim.agent)
        if claim.events[0].seq == 1:
            await together.wait()
        running.discard(claim.agent)
        await engine.finish(claim)

    async with working(engine, turn):
        for number in range(3):
            for user in range(8):
                await engine.say(str(number), user=f"user{user}")
        await until(engine.at_rest)
    assert await engine.one("SELECT count(*) FROM events WHERE status = 1") == 24


async def test_the_model_away_keeps_order_and_counts_nothing(engine: World) -> None:
    turn = Turns(engine, [raising(TryAgainLater("ModelUnavailable", 0.01))] * 7)
    await engine.say("first")
    async with working(engine, turn, **clocked(engine)):
        await until(lambda: len(turn.seen) >= 2)
        await engine.say("second")
        await until(engine.at_rest)
    assert turn.seen == [["first"]] * 8 + [["second"]]
    assert await engine.column("SELECT attempts FROM events ORDER BY seq") == [1, 1]
    assert await replies(engine) == ["re first", "re second"]


async def test_after_a_day_it_is_given_up(engine: World) -> None:
    turn = Turns(engine, [raising(TryAgainLater("ModelUnavailable"))] * 1000)
    accepted = await engine.say("first")
    async with working(engine, turn, **clocked(engine)):
        await until(lambda: len(turn.seen) >= 3)
        assert await dead_letters(engine.db) == []
        engine.at += timedelta(seconds=QUICK.give_up)
        await until(engine.at_rest)
    (letter,) = await dead_letters(engine.db)
    assert (letter.event_id, letter.last_error) == (accepted.event_id, "ModelUnavailable")
    assert await replies(engine) == [say("turn.apology", "")]


async def test_an_old_event_that_was_replayed_gets_time_of_its_own(engine: World) -> None:
    turn = Turns(engine, [raising(TryAgainLater("ModelUnavailable"))] * 3)
    await engine.say("first")
    engine.at += timedelta(days=3)
    async with working(engine, turn, **clocked(engine)):
        await until(engine.at_rest)
    assert await replies(engine) == ["re first"]


async def test_a_poison_event_ends_as_a_dead_letter_and_the_next_is_answered(
    engine: World, caplog: pytest.LogCaptureFixture
) -> None:
    turn = Turns(engine, [raising(ValueError("secret words"))] * 5)
    await engine.say("poison")
    async with working(engine, turn):
        await until(lambda: len(turn.seen) >= 2)
        await engine.say("fine")
        await until(engine.at_rest)
    assert turn.seen == [["poison"]] * 5 + [["fine"]]
    assert await replies(engine) == [say("turn.apology", ""), "re fine"]
    assert [letter.last_error for letter in await dead_letters(engine.db)] == ["ValueError"]
    assert "secret words" not in "".join(record.getMessage() for record in caplog.records)


async def test_a_turn_that_returns_unfinished_counts_as_broken(engine: World) -> None:
    async def turn(claim: Claim) -> None:
        return

    await engine.say("x")
    async with working(engine, turn):
        await until(engine.at_rest)
    assert [letter.last_error for letter in await dead_letters(engine.db)] == ["Unfinished"]


async def test_an_error_after_the_last_step_changes_nothing(engine: World) -> None:
    async def late(claim: Claim) -> None:
        await engine.finish(claim, "sent")
        raise ValueError

    turn = Turns(engine, [late])
    await engine.say("x")
    async with working(engine, turn):
        await until(engine.at_rest)
    assert await replies(engine) == ["sent"]


async def test_a_stray_newer_claim_does_not_lose_the_event(engine: World) -> None:
    async def steal(claim: Claim) -> None:
        await engine.claim(claim.agent)
        raise StaleTurn

    turn = Turns(engine, [steal])
    await engine.say("x")
    async with working(engine, turn):
        await until(engine.at_rest)
    assert turn.seen == [["x"], ["x"]]
    assert await replies(engine) == ["re x"]


async def test_a_turn_that_somebody_else_was_given_is_left_to_them(engine: World) -> None:
    taken = asyncio.Event()

    async def lose(claim: Claim) -> None:
        # As the reaper of another process does after a pause: the job becomes another run, which that process fetches.
        (job,) = await engine.jobs()
        await engine.owner.execute("UPDATE procrastinate_jobs SET attempts = attempts + 1 WHERE id = %s", (job["id"],))
        await engine.claim(claim.agent)
        taken.set()
        raise StaleTurn

    turn = Turns(engine, [lose])
    await engine.say("x")
    async with working(engine, turn):
        await taken.wait()
        await engine.say("y", user="bob")
        await until(lambda: _answered(engine, "re y"))
    assert turn.seen == [["x"], ["y"]]
    assert [(job["lock"], job["status"], job["attempts"]) for job in await engine.jobs()] == [("agent:1", "doing", 1)]


async def _answered(engine: World, text: str) -> bool:
    return text in await replies(engine)


async def test_stop_ends_a_turn_in_flight_at_once_from_another_process(engine: World) -> None:
    stopped: list[int] = []

    async def think(claim: Claim) -> None:
        try:
            await asyncio.Event().wait()
        finally:
            stopped.append(claim.agent)

    turn = Turns(engine, [think, think])
    async with working(engine, turn):
        ada = await engine.say("long question")
        bob = await engine.say("another", user="bob")
        elsewhere = await engine.say("unrelated", where=place("channel", "public"))
        await until(lambda: len(turn.seen) == 2)
        # A stop at another place of hers leaves Ada's turn alone, as the stop of Bob's turn, heard later, shows.
        await engine.look("SELECT cancel_work(%s, %s, now())", ada.agent, elsewhere.place_id)
        await engine.look("SELECT cancel_work(%s, %s, now())", bob.agent, bob.place_id)
        await until(lambda: stopped, timeout=5)
        assert stopped == [bob.agent]
        await engine.look("SELECT cancel_work(%s, %s, now())", ada.agent, ada.place_id)
        await until(engine.at_rest, timeout=5)
        await engine.say("next")
        await until(engine.at_rest)
    assert stopped == [bob.agent, ada.agent]
    assert turn.seen[2:] == [["next"]]
    assert await engine.column("SELECT status FROM events WHERE agent_id = %s ORDER BY seq", ada.agent) == [3, 3, 1]
    assert await engine.column("SELECT state FROM turns WHERE agent_id = %s ORDER BY id", ada.agent) == ["cancelled", "done"]


async def test_stop_before_the_turn(engine: World) -> None:
    accepted = await engine.say("never mind")
    await engine.look("SELECT cancel_work(%s, %s, now())", accepted.agent, accepted.place_id)
    turn = Turns(engine)
    async with working(engine, turn):
        await until(engine.at_rest)
    assert turn.seen == []


async def test_stop_between_two_tries(engine: World) -> None:
    accepted = await engine.say("x")
    claim = await engine.claim(accepted.agent)
    await turns.release(engine.db, claim, "ModelUnavailable")
    await engine.look("SELECT cancel_work(%s, %s, now())", accepted.agent, accepted.place_id)
    turn = Turns(engine)
    async with working(engine, turn):
        await until(engine.at_rest)
    assert turn.seen == []
    assert await engine.column("SELECT status FROM events") == [3]


async def test_a_turn_that_reads_the_request_itself(engine: World) -> None:
    turn = Turns(engine, [raising(TurnCancelled())])
    await engine.say("x")
    async with working(engine, turn):
        await until(engine.at_rest)
    assert await engine.column("SELECT status FROM events") == [3]


async def test_stopping_the_process_hands_the_turn_back(engine: World) -> None:
    async def think(claim: Claim) -> None:
        await asyncio.Event().wait()

    turn = Turns(engine, [think])
    await engine.say("x")
    async with asyncio.timeout(5):
        async with working(engine, turn):
            await until(lambda: turn.seen)
    assert [job["status"] for job in await engine.jobs()] == ["todo"]
    assert await engine.look("SELECT attempts, last_error FROM events") == [{"attempts": 0, "last_error": "stopped"}]
    async with working(engine, turn):
        await until(engine.at_rest)
    assert turn.seen == [["x"], ["x"]]


async def test_stopping_the_process_lets_a_short_turn_end(engine: World) -> None:
    release = asyncio.Event()

    async def think(claim: Claim) -> None:
        await release.wait()

    turn = Turns(engine, [think])
    worker = Worker(engine.db, engine.queue, turn, replace(engine.settings, shutdown_grace=20))
    task = asyncio.create_task(worker.run())
    await engine.say("x")
    await until(lambda: turn.seen)
    task.cancel()
    await engine.say("y")
    release.set()
    with suppress(asyncio.CancelledError):
        await task
    assert await replies(engine) == ["re x"]
    assert [job["status"] for job in await engine.jobs()] == ["todo"]


async def test_stopping_the_process_ends_the_wait_for_a_burst(engine: World) -> None:
    turn = Turns(engine)
    async with asyncio.timeout(5):
        async with working(engine, turn, **clocked(engine)):
            await engine.say("x", burst=5.0)
            await until(lambda: _doing(engine))
    assert turn.seen == []
    assert [job["status"] for job in await engine.jobs()] == ["todo"]


async def _doing(engine: World) -> bool:
    return any(job["status"] == "doing" for job in await engine.jobs())


async def test_a_busy_agent_hands_back(engine: World) -> None:
    turn = Turns(engine, [lambda claim: _say(engine, "again")] * 3)
    engine.settings = replace(engine.settings, hand_back=0.0)
    ids: set[int] = set()

    async def noting(claim: Claim) -> None:
        ids.update(job["id"] for job in await engine.jobs() if job["status"] == "doing")
        await turn(claim)

    await engine.say("first")
    async with working(engine, noting):
        await until(engine.at_rest)
    assert turn.seen == [["first"], ["again"], ["again"], ["again"]]
    assert len(ids) == 4


async def _say(engine: World, text: str) -> None:
    await engine.say(text)


async def test_the_worker_comes_back_after_its_connections_and_its_row_are_gone(engine: World, urls: Urls) -> None:
    turn = Turns(engine)
    async with working(engine, turn):
        await engine.say("one")
        await until(engine.at_rest)
        await engine.owner.execute("DELETE FROM procrastinate_workers")
        await engine.say("two")
        await until(engine.at_rest)
        async with await psycopg.AsyncConnection.connect(urls.admin, autocommit=True) as admin:
            await admin.execute(
                "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE usename = 'keepsake_bot' AND datname = current_database()"
            )
        await engine.say_until_taken("three")
        await until(engine.at_rest, timeout=20)
    assert turn.seen == [["one"], ["two"], ["three"]]


async def test_a_worker_that_is_stopped_while_it_starts_ends(engine: World) -> None:
    """At whatever moment of its start the stop comes: none may lose it, or the process would never end."""
    for moment in range(60):
        worker = Worker(engine.db, engine.queue, Turns(engine), engine.settings)
        task = asyncio.create_task(worker.run())
        await asyncio.wait({task}, timeout=moment * 0.0005)
        task.cancel()
        _, pending = await asyncio.wait({task}, timeout=4.0)
        assert not pending, f"stopped at moment {moment}, it goes on"
