"""Events come in once, numbered without gaps, and wake their agent exactly once."""

from __future__ import annotations

import asyncio
from datetime import timedelta

import psycopg
import pytest

from adapters.base import Quote
from bot.app.runtime import engine_settings
from bot.config.sections import EngineSection
from bot.engine import turns
from bot.engine.events import Wait
from bot.engine.inbox import accept
from tests.bot.engine.world import NOW, World, message, place


async def test_redelivery_by_three_producers_is_one_event(engine: World) -> None:
    messages = [message(f"text {n}", user=f"user{n % 5}") for n in range(20)]

    async def produce() -> list[bool]:
        return [(await accept(engine.db, each, burst=timedelta(), now=NOW)).event_id is not None for each in messages]

    outcomes = await asyncio.gather(produce(), produce(), produce())
    assert [sum(each) for each in zip(*outcomes, strict=True)] == [1] * 20
    assert await engine.one("SELECT count(*) FROM events") == 20
    assert await engine.one("SELECT count(*) FROM agents") == 5
    assert len(await engine.jobs()) == 5


async def test_numbers_have_no_gaps_under_concurrency(engine: World) -> None:
    places = [place(f"channel{n}", "public") for n in range(4)]
    await asyncio.gather(*(engine.say(f"{n}", where=places[n % 4]) for n in range(40)))
    assert await engine.column("SELECT seq FROM events ORDER BY seq") == list(range(1, 41))
    assert len(await engine.jobs()) == 1


async def test_new_places_at_once_do_not_deadlock(engine: World) -> None:
    await engine.say("first")
    async with asyncio.timeout(5):
        await asyncio.gather(*(engine.say("x", where=place(f"new{n}", "private")) for n in range(30)))
    assert await engine.one("SELECT count(*) FROM events") == 31


async def test_accepting_beside_open_steps_does_not_wait_for_them(engine: World) -> None:
    accepted = await engine.say("one")
    claim = await engine.claim(accepted.agent)
    async with turns.step(engine.db, claim, now=NOW) as step:
        await step.reply("half")
        async with asyncio.timeout(2):
            await engine.say("two", where=place("elsewhere", "public"))
    assert await engine.one("SELECT count(*) FROM events") == 2


async def test_payload_is_clean_and_complete(engine: World) -> None:
    long = "x\x00y\ud800 " * 30_000
    quotes = (Quote("test::bob", "Bob\x00", "said \udfff", "reply", "9/8"),)
    accepted = await engine.say(long, quotes=quotes, message_id="77", addressed=False)
    (payload,) = await engine.column("SELECT payload FROM events WHERE id = %s", accepted.event_id)
    assert payload == {
        "text": "xy\ufffd " * 30_000,
        "author_id": "test::ada",
        "author_name": "Ada",
        "message_id": "77",
        "addressed": False,
        "at": NOW.isoformat(),
        "quotes": [
            {
                "author_id": "test::bob",
                "author_name": "Bob",
                "text": "said \ufffd",
                "kind": "reply",
                "origin": "9/8",
                "said_to": "",
            }
        ],
    }


@pytest.mark.parametrize(("kind", "origin"), [("message", "person"), ("retry", "person"), ("join", "timed"), ("login", "timed")])
async def test_origins(engine: World, kind: str, origin: str) -> None:
    await engine.say("", kind=kind, burst=1.0)
    assert await engine.look("SELECT kind, origin, burst_ms FROM events") == [
        {"kind": kind, "origin": origin, "burst_ms": 1000 if kind == "message" else 0}
    ]


async def test_a_late_redelivery_does_not_bring_an_erased_person_back(engine: World) -> None:
    key = b"secret"
    first = message("hello")
    accepted = await accept(engine.db, first, burst=timedelta(), now=NOW, erasure_key=key)
    await engine.look("SELECT erase_agent(%s, 'person', %s, %s)", accepted.agent, key, NOW)
    again = await accept(engine.db, first, burst=timedelta(), now=NOW + timedelta(days=6), erasure_key=key)
    assert again.event_id is None
    assert await engine.one("SELECT (SELECT count(*) FROM agents) + (SELECT count(*) FROM identities)") == 0
    new = await accept(engine.db, message("hello again"), burst=timedelta(), now=NOW, erasure_key=key)
    assert new.event_id is not None


async def test_nothing_is_stored_when_the_wake_up_cannot_be(engine: World) -> None:
    await engine.owner.execute("ALTER TABLE procrastinate_jobs ADD CONSTRAINT closed CHECK (id < 0) NOT VALID")
    with pytest.raises(psycopg.errors.CheckViolation):
        await engine.say("hello")
    assert await engine.one("SELECT (SELECT count(*) FROM agents) + (SELECT count(*) FROM events)") == 0


async def test_a_burst_is_waited_for_up_to_the_cap(engine: World) -> None:
    engine.settings = engine_settings(EngineSection(debounce=1.2, debounce_cap=3))
    for seconds in (0.0, 1.0, 1.9):
        engine.at = NOW + timedelta(seconds=seconds)
        accepted = await engine.say("x", burst=1.2)
    assert await turns.claim(engine.db, accepted.agent, engine.at, engine.settings) == Wait(NOW + timedelta(seconds=3.0))
    engine.at = NOW + timedelta(seconds=3.0)
    assert len((await engine.claim(accepted.agent)).events) == 3


@pytest.mark.parametrize("urgent", ["join", "retry"])
async def test_what_must_not_wait_does_not(engine: World, urgent: str) -> None:
    accepted = await engine.say("x", kind=urgent, burst=1.2)
    assert [event.kind for event in (await engine.claim(accepted.agent)).events] == [urgent]
