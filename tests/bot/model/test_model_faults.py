"""Faults of the model's endpoint as a person meets them: one answer, or one friendly line and later the answer; never two, never lost."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from datetime import timedelta

import pytest

from adapters.base import Person
from adapters.catalogue import say
from bot.engine.events import TryAgainLater
from bot.model.client import ModelClient
from bot.model.processor import Endpoint
from memory.db import Database
from tests.bot.dialogue import SETTINGS, Dialogue, dialogue
from tests.servers.model import (
    EMPTY_CHOICES,
    MALFORMED,
    NULL_CHOICES,
    Answer,
    Gate,
    Request,
    Reset,
    ScriptedModel,
    Status,
    Step,
    Truncated,
    call,
    reply,
)
from tests.waiting import until

PASSING: dict[str, Step] = {
    "429 with Retry-After": Status(429, headers={"Retry-After": "7"}),
    "500": Status(500),
    "502": Status(502, body="<html>bad gateway</html>"),
    "503": Status(503),
    "reset after processing": Reset(after=True),
    "truncated body": Truncated(),
    "malformed JSON": MALFORMED,
    "empty choices": EMPTY_CHOICES,
    "null choices": NULL_CHOICES,
    "key revoked": Status(401, "invalid_api_key"),
    "model gone": Status(404, "model_not_found"),
}


async def answered_later(d: Dialogue, agent: int) -> list[str]:
    """Run the turn again and again, as the queue does, until it ends; what the person got in all."""
    for _ in range(10):
        claim = await d.claim(agent)
        try:
            await d.run(claim)
        except TryAgainLater:
            continue
        return await d.outbox(claim)
    raise AssertionError("never answered")


@pytest.mark.parametrize("fault", PASSING.values(), ids=PASSING.keys())
async def test_a_fault_that_passes_is_followed_by_exactly_one_answer(db: Database, fault: Step) -> None:
    faults = [fault, fault]

    def policy(request: Request) -> Step:
        return faults.pop() if faults else reply("Here I am.")

    async with dialogue(db, policy=policy) as d:
        agent = await d.accept("Are you there?")
        refused = isinstance(fault, Status) and fault.status in (401, 404)
        assert await answered_later(d, agent) == ([say("turn.refused", "")] if refused else []) + ["Here I am."]
        said = await d.rows("SELECT content FROM messages WHERE kind = 'message' ORDER BY position")
        assert [row["content"] for row in said] == ["Are you there?", "Here I am."]


async def test_a_reset_before_the_endpoint_read_anything_is_followed_by_exactly_one_answer(db: Database) -> None:
    async with dialogue(db, Reset(after=False), Reset(after=False), reply("Here I am.")) as d:
        agent = await d.accept("Are you there?")
        assert await answered_later(d, agent) == ["Here I am."]


@pytest.mark.parametrize(
    "fault",
    [*PASSING.values(), Status(400, "context_length_exceeded", "maximum context length")],
    ids=[*PASSING, "context_length_exceeded"],
)
async def test_a_fault_in_the_middle_of_a_turn_repeats_nothing_that_was_done(db: Database, fault: Step) -> None:
    faults = [fault, fault]
    keep = call("working_context_append", section="goals", content="Sail to Porto.", request_heartbeat=True)

    def policy(request: Request) -> Step:
        if not request.contents("tool"):
            return reply("Let me note that.", keep)
        return faults.pop() if faults else reply("Good plan.")

    async with dialogue(db, policy=policy) as d:
        agent = await d.accept("I want to sail to Porto")
        assert [line for line in await answered_later(d, agent) if line != say("turn.refused", "")] == ["Good plan."]
        assert await d.entries() == [("goals", "Sail to Porto.")]
        assert not faults


@pytest.mark.parametrize(
    ("odd", "said"),
    [
        (Answer(None, message={"content": None}), "Second try."),
        (Answer("", finish="length"), "Second try."),
        (Answer("A long answer that was cut", finish="length"), "A long answer that was cut"),
        (Answer(None, message={"content": None, "reasoning_content": "secret thoughts"}), "Second try."),
        (Answer("<think>secret thoughts</think>Said aloud."), "Said aloud."),
        (Answer(None, finish="content_filter"), say("turn.declined", "")),
        (Answer(None, message={"content": None, "refusal": "I cannot help with that."}), "I cannot help with that."),
    ],
    ids=[
        "null content",
        "length without text",
        "length with text",
        "reasoning only",
        "thoughts in text",
        "content filter",
        "refusal",
    ],
)
async def test_an_odd_reply_still_ends_in_one_answer(db: Database, odd: Answer, said: str) -> None:
    given = [odd]

    def policy(request: Request) -> Step:
        if (
            given
            and given[0].finish == "length"
            and not given[0].text
            and request.body.get("max_completion_tokens", 0) == 4 * 1500
        ):
            return given.pop()
        return given.pop() if given else reply("Second try.")

    async with dialogue(db, policy=policy) as d:
        assert await d.hear("Tell me") == [said]
        assert not [row for row in await d.rows("SELECT body FROM outbox") if "secret" in str(row["body"])]


@pytest.mark.parametrize("refused", ["temperature", "max_tokens"])
async def test_a_reasoning_model_that_refuses_an_argument_is_asked_without_it(db: Database, refused: str) -> None:
    def policy(request: Request) -> Step:
        if refused in request.body:
            return Status(
                400,
                "unsupported_parameter",
                f"Unsupported parameter: '{refused}' is not supported with this model.",
                param=refused,
            )
        return reply("Fine.")

    async with dialogue(db, policy=policy) as d:
        assert await d.hear("Hi") == ["Fine."]
        calls = len(d.model.requests)
        assert await d.hear("Hi again") == ["Fine."]
        assert len(d.model.requests) == calls + 1, "learned once"


async def test_a_hang_is_told_once_and_answered_later(db: Database) -> None:
    quick = replace(SETTINGS, patience=timedelta(seconds=0.2))
    gate = Gate(reply("At last."))
    async with dialogue(db, gate, settings=quick) as d:
        agent = await d.accept("Hello?")
        claim = await d.claim(agent)
        turn = asyncio.create_task(d.agent.turn(claim))

        async def told() -> bool:
            return await d.outbox(claim) == [say("turn.waiting", "")]

        await until(told)
        gate.release()
        await turn
        assert await d.outbox(claim) == [say("turn.waiting", ""), "At last."]


@pytest.mark.parametrize(
    ("fault", "why"),
    [
        (Status(429, "rate_limit_exceeded", "Rate limit reached. Please try again in 45s."), "limited"),
        (Status(503, headers={"Retry-After": "40"}), "away"),
        (Status(401), "refused"),
    ],
)
async def test_whoever_will_wait_longer_hears_at_once_why(db: Database, fault: Status, why: str) -> None:
    faults = [fault]
    async with dialogue(db, policy=lambda _: faults.pop() if faults else reply("Here I am.")) as d:
        agent = await replace(d, person=replace(d.person, locale="de-AT")).accept("Are you there?")
        told, answer = await answered_later(d, agent)
        assert (told, answer) == (say(f"turn.{why}", "de"), "Here I am.")
        assert told != say(f"turn.{why}", "en")


async def test_a_summary_that_takes_long_is_told_too(db: Database) -> None:
    """Whatever a turn waits for, and not the answer alone."""
    gate = Gate(reply("They talked."))

    def policy(request: Request) -> Step:
        return gate if "Messages that leave" in request.last else reply("Fine.")

    async with dialogue(db, policy=policy, settings=replace(SETTINGS, budget=9000)) as d:
        flushing: asyncio.Task[None] | None = None
        while not gate.reached.is_set():
            claim = await d.claim(await d.accept("word " * 700))
            d.settings = replace(d.settings, patience=timedelta(seconds=0.2))
            flushing = asyncio.create_task(d.agent.turn(claim))
            reached = asyncio.create_task(gate.reached.wait())
            await asyncio.wait({flushing, reached}, return_when=asyncio.FIRST_COMPLETED)
            reached.cancel()
        assert flushing is not None

        async def told() -> bool:
            return await d.outbox(claim) == [say("turn.waiting", "")]

        await until(told)
        gate.release()
        await flushing
        assert await d.outbox(claim) == [say("turn.waiting", ""), "Fine."]


async def test_an_endpoint_down_for_hours_is_told_once_and_the_event_is_never_lost(db: Database) -> None:
    down = [True]

    def policy(request: Request) -> Step:
        return Status(503) if down[0] else reply("Back.")

    async with dialogue(db, policy=policy) as d:
        agent = await d.accept("Are you there?")
        for hour in range(5):
            claim = await d.claim(agent)
            with pytest.raises(TryAgainLater):
                await d.run(claim)
            d.clock[0] += timedelta(hours=1)
            assert len(await d.outbox(claim)) == (0 if hour == 0 else 1)
        down[0] = False
        assert await answered_later(d, agent) == [say("turn.waiting", ""), "Back."]


async def test_the_fallback_model_answers_while_the_first_is_away_and_the_first_is_left_alone(db: Database) -> None:
    async with (
        ScriptedModel(policy=lambda request: reply(f"by {request.model}")) as other,
        dialogue(db, Status(503)) as d,
        ModelClient(other.base_url, "") as client,
    ):
        d.fallbacks = (Endpoint(client, "spare"),)
        assert await d.hear("one") == ["by spare"]
        assert await d.hear("two") == ["by spare"]
        assert len(d.model.requests) == 1
        models = await d.rows("SELECT model FROM usage")
        assert {row["model"] for row in models} == {"spare"}


async def test_a_request_that_the_endpoint_refuses_goes_to_the_fallback_alone(db: Database) -> None:
    def picky(request: Request) -> Step:
        odd = "an odd request" in str(request.messages)
        return Status(400, "invalid_request", "cannot parse") if odd else reply(f"by {request.model}")

    async with (
        ScriptedModel(policy=lambda request: reply(f"by {request.model}")) as other,
        dialogue(db, policy=picky) as d,
        ModelClient(other.base_url, "") as client,
    ):
        d.fallbacks = (Endpoint(client, "spare"),)
        bob = d.elsewhere("bob", "direct", workspace="", person=Person("console", "", "bob", "Bob"))
        assert await d.hear("an odd request") == ["by spare"]
        bob.made = d.made  # one processor for both, as in one process
        assert await bob.hear("hello") == ["by gpt-4o"]
