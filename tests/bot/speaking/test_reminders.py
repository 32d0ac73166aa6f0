"""A due reminder always reaches its person, once: every way in which a model can fail to speak it, through a real worker."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field, replace
from datetime import timedelta

import pytest

from bot.engine.events import Claim, TryAgainLater, TurnCancelled
from bot.engine.queue import Queue
from bot.engine.settings import EngineSettings
from bot.engine.timers import fire_due
from bot.engine.turns import LIMIT
from bot.engine.worker import Worker
from bot.speaking.initiative import Initiative
from bot.speaking.reminders import say_dead
from bot.turn.state import AgentSettings
from memory.db import Database
from memory.spending import Budgets, Limits
from tests.bot.dialogue import SETTINGS, Dialogue, dialogue, seen
from tests.bot.engine.world import QUICK
from tests.bot.speaking.test_initiative import RULES, Counts, give_leave, pause
from tests.servers.model import EMPTY_CHOICES, MALFORMED, Gate, Reset, Status, Step, call, reply
from tests.waiting import until

PLANTS, MUM = "Reminder: water the plants", "Reminder: call Mum"
Turn = Callable[[Claim], Awaitable[None]]


@dataclass(frozen=True)
class Way:
    """How a model comes to say nothing: its answer to every request, each `seconds` long, or what stands in the way of asking it."""

    answer: Step = field(default_factory=reply)
    seconds: float = 0.0
    settings: AgentSettings = SETTINGS
    engine: EngineSettings = QUICK
    limits: Limits = Limits()
    turn: Callable[[Dialogue], Turn] = lambda d: d.agent.turn


def crashes(_: Dialogue) -> Turn:
    async def turn(_: Claim) -> None:
        raise RuntimeError("a fault of ours")

    return turn


def never_ready(_: Dialogue) -> Turn:
    async def turn(_: Claim) -> None:
        raise TryAgainLater("memory kept changing")

    return turn


def stopped(d: Dialogue) -> Turn:
    async def turn(claim: Claim) -> None:
        async with d.db.bare() as connection:
            await connection.execute("SELECT * FROM cancel_work(%s, %s, %s)", (claim.agent, claim.place, d.at))
        raise TurnCancelled

    return turn


SHORT = replace(SETTINGS, bounds=replace(SETTINGS.bounds, passes=3))
SILENCES = {
    "no text": Way(reply(None)),
    "an empty text": Way(reply("  \n")),
    "stay_silent": Way(reply(None, call("stay_silent"))),
    "stay_silent beside a text": Way(reply("I say nothing.", call("stay_silent"))),
    "only a thought": Way(reply("<think>The plants are due.</think>")),
    "cut off by its length": Way(reply("", finish="length")),
    "an empty send_message": Way(reply(None, call("send_message", text=" ")), settings=SHORT),
    "calls without end": Way(reply("Let me see.", call("list_timers", request_heartbeat=True)), settings=SHORT),
    "an unknown function": Way(reply(None, call("remind", text="plants")), settings=SHORT),
    "the answer filtered": Way(reply("…", finish="content_filter")),
    "the request filtered": Way(Status(400, "content_filter", "The response was filtered.")),
    "too long a context": Way(Status(400, "context_length_exceeded", "maximum context length")),
    "the key refused": Way(Status(401, "invalid_api_key")),
    "the model unknown": Way(Status(404, "model_not_found")),
    "an outage": Way(Status(503), seconds=20),
    "an outage with a wait": Way(Status(429, headers={"Retry-After": "1"}), seconds=31),
    "the connection lost": Way(Reset(after=True), seconds=20),
    "no choices": Way(EMPTY_CHOICES, seconds=20),
    "broken JSON": Way(MALFORMED, seconds=20),
    "an answer that never comes": Way(Gate(), seconds=31, settings=replace(SETTINGS, patience=timedelta(seconds=1))),
    "the person's budget spent": Way(limits=Limits(person_tokens=1)),
    "the bot's budget spent": Way(limits=Limits(bot_tokens=1)),
    "a turn that breaks off": Way(turn=crashes, engine=replace(QUICK, max_attempts=2)),
    "a turn that never gets to it": Way(turn=never_ready, engine=replace(QUICK, give_up=0.0)),
    "a stop": Way(turn=stopped),
}


@asynccontextmanager
async def reminded(db: Database, *purposes: str, way: Way = Way()) -> AsyncIterator[tuple[Dialogue, Counts]]:
    """Somebody whose reminders have come due, their events in the inbox."""
    asked = reply("I will.", *(call("set_timer", purpose=purpose, asked="Remind me", in_minutes=5) for purpose in purposes))
    counts = Counts()

    def answer(_: object) -> Step:
        d.clock[0] += timedelta(seconds=way.seconds)
        return way.answer

    async with dialogue(db, asked, policy=answer, settings=way.settings) as d:
        d.initiative = Initiative(db, RULES, count=counts)
        d.engine = way.engine
        await d.hear("Remind me")
        d.budgets = Budgets(db, way.limits, {})
        d.clock[0] += timedelta(minutes=5)
        await fire(d)
        yield d, counts


async def fire(d: Dialogue) -> None:
    assert d.initiative is not None
    await fire_due(d.db, d.at, d.initiative.on_due)


async def worked_off(d: Dialogue, turn: Turn | None = None) -> list[str]:
    """Let a worker take what waits, with the tick beside it; all that was sent in timed turns."""
    assert d.initiative is not None
    initiative = d.initiative

    async def nothing_waits() -> bool:
        await say_dead(initiative, d.at)
        return not await d.rows("SELECT FROM events WHERE status IN (0, 2)")

    async with Queue(d.db.url, d.engine, random=lambda: 0.0) as queue:
        worker = asyncio.create_task(Worker(d.db, queue, turn or d.agent.turn, d.engine, now=lambda: d.at).run())
        try:
            await until(nothing_waits, timeout=40, every=0.05)
        finally:
            worker.cancel()
            with suppress(asyncio.CancelledError):
                await worker
    return await sent(d)


async def agent_of(d: Dialogue) -> int:
    [row] = await d.rows("SELECT id FROM agents")
    return int(str(row["id"]))


async def sent(d: Dialogue) -> list[str]:
    rows = await d.rows("SELECT body FROM outbox WHERE turn_id IN (SELECT id FROM turns WHERE origin = 'timed') ORDER BY id")
    return [str(row["body"]) for row in rows]


@pytest.mark.parametrize("way", SILENCES.values(), ids=SILENCES)
async def test_what_the_model_leaves_unsaid_the_bot_says(db: Database, way: Way) -> None:
    async with reminded(db, "water the plants", way=way) as (d, _):
        assert await worked_off(d, way.turn(d)) == [PLANTS]
        [row] = await d.rows("SELECT created_at FROM events WHERE kind = 'timer'")
        assert d.at - timedelta(minutes=1) <= row["created_at"], "nobody waits for long"  # type: ignore[operator]
        await fire(d)
        assert await worked_off(d) == [PLANTS], "once"


@pytest.mark.parametrize("way", SILENCES.values(), ids=SILENCES)
async def test_two_at_once_are_one_message_of_the_bots_own(db: Database, way: Way) -> None:
    async with reminded(db, "water the plants", "call Mum", way=way) as (d, _):
        assert await worked_off(d, way.turn(d)) == [f"{PLANTS}\n{MUM}"]


@pytest.mark.parametrize(
    "answer", [reply("Your plants are thirsty!"), reply(None, call("send_message", text="Your plants are thirsty!"))]
)
async def test_one_is_the_models_to_phrase(db: Database, answer: Step) -> None:
    async with reminded(db, "water the plants", way=Way(answer)) as (d, counts):
        assert await worked_off(d) == ["Your plants are thirsty!"]
        assert "call send_message and tell them" in seen(d.model.requests[-1])
        assert counts == {}


async def test_a_model_that_names_one_of_two_is_not_relied_upon(db: Database) -> None:
    named = Way(reply(None, call("send_message", text="Your plants!")))
    async with reminded(db, "water the plants", "call Mum", way=named) as (d, counts):
        assert await worked_off(d) == [f"{PLANTS}\n{MUM}"]
        assert counts == {"reminder_own_words": 1}


async def test_the_agent_knows_what_the_bot_said(db: Database) -> None:
    async with reminded(db, "water the plants", way=Way(reply(None, call("stay_silent")))) as (d, _):
        await worked_off(d)
        d.model.add(reply("Well done."))
        assert await d.hear("Done!") == ["Well done."]
        assert PLANTS in seen(d.model.requests[-1])


async def test_one_that_comes_with_a_follow_up_is_said_and_the_follow_up_left_to_the_model(db: Database) -> None:
    own = call("set_timer", purpose="ask how the exam went", in_minutes=240)
    asked = call("set_timer", purpose="water the plants", asked="remind me of the plants", in_minutes=240)
    script = [reply("Hi"), reply("Good luck!", own, asked), reply(None, call("send_message", text="How was the exam?"))]
    async with dialogue(db, *script) as d:
        d.initiative = Initiative(db, RULES)
        d.engine = QUICK
        await d.hear("Hello")
        await give_leave(d)
        await d.hear("I have an exam, and remind me of the plants in four hours")
        d.clock[0] += timedelta(minutes=240)
        await fire(d)
        assert await worked_off(d) == [PLANTS, "How was the exam?"]
        assert "A follow-up that you set yourself" in seen(d.model.requests[-1])


async def test_what_was_said_is_not_said_again_after_a_crash(db: Database) -> None:
    said = Way(reply(None, call("send_message", text="Your plants!"), call("list_timers", request_heartbeat=True)))
    async with reminded(db, "water the plants", way=said) as (d, _):
        last = Gate()
        d.model.add(said.answer, last)
        crashing = asyncio.create_task(d.run(await d.claim(await agent_of(d))))
        async with asyncio.timeout(20):
            await last.reached.wait()
        crashing.cancel()
        with suppress(asyncio.CancelledError):
            await crashing
        assert await sent(d) == ["Your plants!"]
        assert await worked_off(d) == ["Your plants!"]


async def test_many_long_ones_that_died_with_their_turn_are_said_in_messages_that_the_platform_takes(db: Database) -> None:
    purposes = [f"number {number} {'x' * 480}" for number in range(8)]
    async with reminded(db, *purposes, way=Way(turn=stopped)) as (d, _):
        said = await worked_off(d, stopped(d))
        assert len(said) > 1
        assert max(map(len, said)) <= LIMIT
        assert [number for number in range(8) if f"number {number} " not in "".join(said)] == []


async def test_a_dead_one_waits_for_a_person_who_is_paused(db: Database) -> None:
    async with reminded(db, "water the plants", way=Way(engine=replace(QUICK, max_attempts=1))) as (d, counts):
        assert d.initiative is not None
        agent = await agent_of(d)
        await d.claim(agent)
        async with d.db.bare() as connection:
            await connection.execute("SELECT * FROM claim_turn(%s, %s, 10, 1, 0, '{}')", (agent, d.at))
        await pause(d, True)
        assert await say_dead(d.initiative, d.at) == 0
        await pause(d, False)
        d.clock[0] += timedelta(hours=3)
        both = await asyncio.gather(*(say_dead(d.initiative, d.at) for _ in range(4)))
        assert sorted(both) == [0, 0, 0, 1]
        assert await sent(d) == ["Reminder, 3 h late: water the plants"]
        assert counts == {"reminder_rescued": 1}


async def test_a_pause_while_the_model_thinks_puts_it_off(db: Database) -> None:
    async with reminded(db, "water the plants") as (d, _):

        async def paused_meanwhile(_: object) -> Step:
            await pause(d, True)
            return reply("Your plants!")

        d.model.add(paused_meanwhile, reply("Your plants!"))  # type: ignore[arg-type]
        assert await worked_off(d) == []
        await pause(d, False)
        d.clock[0] += timedelta(hours=2)
        await fire(d)
        assert await worked_off(d) == ["Your plants!"]
