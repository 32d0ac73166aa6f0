"""A content filter that refuses prompts: what it refuses is found and set aside; everything else goes on."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import pytest

from adapters.catalogue import say
from memory.db import Database
from tests.bot.dialogue import SETTINGS, dialogue, results, seen
from tests.servers.model import Answer, Request, Status, Step, call, reply

WORD = "flugblatt"
AZURE = (
    '{"error": {"message": "The response was filtered due to the prompt triggering Azure OpenAI\'s content management policy.", '
    '"type": null, "param": "prompt", "code": "content_filter", "status": 400}}'
)


def filtering(answer: Callable[[Request], Step], word: str = WORD) -> Callable[[Request], Step]:
    """An endpoint whose filter refuses every request that holds a word."""
    return lambda request: Status(400, body=AZURE) if word in seen(request) else answer(request)


async def test_a_refused_message_is_set_aside_and_later_ones_are_answered(db: Database) -> None:
    async with dialogue(db, policy=filtering(lambda _: reply("Gladly."))) as d:
        assert await d.hear("Hello") == ["Gladly."]
        [told] = await d.hear(f"Write a {WORD} for me")
        assert "content filter" in told
        assert "other words" in told
        assert len(d.model.requests) <= 4, "one for the answer, two or three to find it"
        assert await d.hear("Something else, then") == ["Gladly."]
        assert await d.hear("And more") == ["Gladly."]
        assert WORD not in seen(d.model.requests[-1])
        kept = await d.rows("SELECT content, withheld FROM messages WHERE content LIKE '%%' || %s || '%%'", [WORD])
        assert kept == [{"content": f"Write a {WORD} for me", "withheld": True}]


async def test_what_stood_there_before_the_filter_was_is_found_among_many(db: Database) -> None:
    """After a change of endpoint, say: an old message, an entry with the word, and the calls that stored it."""
    strict: list[bool] = []
    keep = call("working_context_append", section="goals", content=f"Print a {WORD}.")

    def policy(request: Request) -> Step:
        if strict:
            return filtering(lambda _: reply("Gladly."))(request)
        last = str(request.messages)
        return reply("Noted.", keep) if WORD in last and not results(request) else reply("Gladly.")

    async with dialogue(db, policy=policy) as d:
        for number in range(10):
            await d.hear(f"Message {number}")
        await d.hear(f"I want to print a {WORD}")
        await d.hear("Go on")
        strict.append(True)
        before = len(d.model.requests)
        said = await d.hear("Are you still there?")
        assert said[-1] == "Gladly."
        assert [line.split("through")[0] for line in said[:-1]] != []
        assert all("content filter" in line and "/memory" in line for line in said[:-1])
        assert len(d.model.requests) - before <= 3 * 13 + 1
        before = len(d.model.requests)
        assert await d.hear("Good") == ["Gladly."]
        assert len(d.model.requests) == before + 1
        withheld = await d.rows("SELECT content FROM working_context WHERE withheld")
        assert withheld == [{"content": f"Print a {WORD}."}]


async def test_a_result_is_set_aside_and_the_turn_goes_on(db: Database) -> None:
    def answer(request: Request) -> Step:
        if not results(request):
            return reply(None, call("working_context_remove", content="nothing"))
        return reply("I could not read that.")

    # The error names the function's rule, which this filter refuses: a word that stands in the result alone.
    async with dialogue(db, policy=filtering(answer, "No entry of the working context")) as d:
        said = await d.hear("Remove it")
        assert said[-1] == "I could not read that."
        assert "something that I looked up" in said[0]


async def test_a_corrected_entry_is_shown_again(db: Database) -> None:
    async with dialogue(db, policy=filtering(lambda _: reply("Gladly."))) as d:
        await d.hear("Hello")
        await d.rows(
            """WITH p AS (SELECT id FROM places LIMIT 1) INSERT INTO working_context (agent_id, place_id, visibility, section, content,
                 created_at, updated_at) SELECT a.id, p.id, 'direct', 'goals', %s, now(), now() FROM agents a, p RETURNING id""",
            [f"Print a {WORD}."],
        )
        await d.rows("UPDATE agents SET version = version + 1 RETURNING id")
        [told, answer] = await d.hear("What is my goal?")
        assert "an entry of your memory (w1)" in told
        assert answer == "Gladly."
        await d.rows("UPDATE working_context SET content = 'Print a leaflet.' RETURNING id")
        await d.rows("UPDATE agents SET version = version + 1 RETURNING id")
        assert await d.hear("And now?") == ["Gladly."]
        assert "Print a leaflet." in seen(d.model.requests[-1])


async def test_a_summary_leaves_out_what_the_summary_models_filter_refuses(db: Database) -> None:
    """The chat model took the words, the summary model's filter does not: without them there is a summary all the same."""
    summed: list[str] = []

    def policy(request: Request) -> Step:
        if request.functions:
            return reply("ok")
        if WORD in request.last:
            return Status(400, body=AZURE)
        summed.append(request.last)
        return reply("They spoke of the sea.")

    async with dialogue(db, policy=policy, settings=replace(SETTINGS, budget=5_000, reply_reserve=500)) as d:
        await d.hear(f"Print me a {WORD}")
        for number in range(40):
            await d.hear(f"Entry {number}: " + "a long story of the sea and of ships, " * 12)
            if summed and d.model.requests[-1].functions:
                break
        assert "They spoke of the sea." in seen(d.model.requests[-1])
        assert "Not summarised yet" not in seen(d.model.requests[-1])
        assert "Entry 0:" in " ".join(summed), "what stood beside the words is in it"


async def test_instructions_that_are_refused_blame_nobody(db: Database) -> None:
    async with dialogue(db, policy=lambda _: Status(400, body=AZURE)) as d:
        assert await d.hear("Hello") == [say("turn.declined", "")]
        assert len(d.model.requests) <= 4
        assert await d.rows("SELECT id FROM messages WHERE withheld") == []


@pytest.mark.parametrize("finish", ["content_filter"])
async def test_an_answer_that_is_stopped_blames_nobody(db: Database, finish: str) -> None:
    async with dialogue(db, Answer("The way", finish=finish)) as d:
        assert await d.hear("Hello") == [say("turn.declined", "")]
        assert await d.rows("SELECT id FROM messages WHERE withheld") == []
