"""Memory pressure over long conversations: warned once, flushed to size, summarised from the summary before, nothing lost."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import UTC

import pytest
import tiktoken

from adapters.base import Quote
from bot.model.replies import Reply
from bot.turn.summariser import summarise
from memory import working_context
from memory.db import Database
from memory.messages import Message
from memory.queue_manager import PRESSURE
from memory.search import Query, search_messages
from memory.tokens import count
from tests.bot.dialogue import SETTINGS, START, Dialogue, dialogue, seen
from tests.servers.model import Answer, Gate, Request, Status, Step, call, reply
from tests.waiting import until

SMALL = replace(SETTINGS, budget=4000, reply_reserve=600)
count("seeds the tokenizer's cache", "cl100k_base")
OTHER = tiktoken.get_encoding("cl100k_base")


def size(request: Request) -> int:
    """A request's tokens as another tokenizer counts everything in it."""
    tokens = 0
    for message in request.messages:
        tokens += 4 + len(OTHER.encode(str(message.get("content") or ""), disallowed_special=()))
        tokens += len(OTHER.encode(json.dumps(message.get("tool_calls", "")), disallowed_special=()))
    return tokens + len(OTHER.encode(json.dumps(request.body.get("tools", "")), disallowed_special=()))


def is_summary(request: Request) -> bool:
    return not request.functions


class Summariser:
    """Answers every message with `ok`, and summaries with a number and the number of the one before."""

    def __init__(self, *summaries: Step) -> None:
        self.made = 0
        self.scripted = list(summaries)

    def __call__(self, request: Request) -> Step:
        if not is_summary(request):
            return reply("ok")
        if self.scripted:
            return self.scripted.pop(0)
        self.made += 1
        before = f"after summary {self.made - 1}" if f"summary {self.made - 1}" in seen(request) else "the first"
        return reply(f"This is summary {self.made}, {before}.")


def text(n: int) -> str:
    return f"Entry number {n}: " + " ".join(f"word{n}x{k}" for k in range(30))


def pressures(d: Dialogue) -> list[Request]:
    return [r for r in d.model.requests if not is_summary(r) and PRESSURE[:40] in seen(r)]


async def talk(d: Dialogue, messages: int, start: int = 0) -> None:
    for n in range(start, start + messages):
        assert await d.hear(text(n)) == ["ok"]


async def test_a_long_conversation_is_warned_once_a_period_flushed_and_summarised_in_turn(db: Database) -> None:
    async with dialogue(db, policy=Summariser(), settings=SMALL) as d:
        await talk(d, 60)
        chats = [r for r in d.model.requests if not is_summary(r)]
        summaries = [r for r in d.model.requests if is_summary(r)]
        assert len(summaries) >= 4
        assert max(map(size, d.model.requests)) <= SMALL.budget
        alerts = await d.rows("SELECT position FROM messages WHERE kind = 'alert' ORDER BY position")
        flushes = await d.rows("SELECT target_id FROM memory_log WHERE action = 'flush'")
        assert len(alerts) - len(flushes) in (0, 1), "one warning a period"
        for summary in summaries:
            before = max((r.number for r in chats if r.number < summary.number), default=0)
            assert any(PRESSURE[:40] in seen(r) for r in chats if r.number <= before), "no flush without a warned pass before it"
        # Slot 0 holds the newest summary, and each was made from the one before.
        [conversation] = await d.rows("SELECT summary, fifo_start FROM conversations")
        assert conversation["summary"] == f"This is summary {len(summaries)}, after summary {len(summaries) - 1}."
        assert conversation["summary"] in seen(chats[-1])

        # Every evicted message is found by its exact text, and stands nowhere in the prompt any more.
        evicted = await d.rows(
            "SELECT content FROM messages WHERE position < %s AND kind = 'message' AND role = 'user'",
            (conversation["fifo_start"],),
        )
        assert len(evicted) >= 40
        [agent] = await d.rows("SELECT id FROM agents")
        async with db.agent(int(str(agent["id"])), everything=True) as connection:
            for row in evicted:
                found = await search_messages(connection, Query(str(row["content"])))
                assert found.hits[0].content == row["content"]
                assert str(row["content"]) not in seen(chats[-1])


async def test_after_a_flush_the_queue_takes_at_most_half_of_what_the_fixed_part_leaves(db: Database) -> None:
    async with dialogue(db, policy=Summariser(), settings=SMALL) as d:
        n = 0
        while not any(is_summary(r) for r in d.model.requests):
            await talk(d, 1, n)
            n += 1
        after = d.model.requests[-1]
        queue = [m for m in after.messages[1:] if "summary" not in str(m.get("content"))[:20]]
        fixed = size(after) - sum(len(OTHER.encode(str(m.get("content")))) for m in queue)
        tokens = sum(4 + len(OTHER.encode(str(m.get("content")))) for m in queue)
        assert tokens <= (SMALL.budget - SMALL.reply_reserve - fixed) * 0.5 * 1.15, "with another tokenizer, give or take"


async def test_a_message_of_100_000_characters_is_answered_kept_whole_and_found(db: Database) -> None:
    giant = "begin of it all " + "x" * 60_000 + " the needle in the middle " + "y" * 39_900 + " end of it all"
    async with dialogue(db, policy=Summariser(), settings=SMALL) as d:
        await talk(d, 3)
        assert await d.hear(giant) == ["ok"]
        assert max(map(size, d.model.requests)) <= SMALL.budget
        assert "begin of it all" in seen(d.model.requests[-1])
        assert "end of it all" in seen(d.model.requests[-1])
        assert "search recall storage" in seen(d.model.requests[-1])
        [row] = await d.rows("SELECT content FROM messages WHERE length(content) > 50000")
        assert row["content"] == giant
        await talk(d, 3, 10)
        [agent] = await d.rows("SELECT id FROM agents")
        async with db.agent(int(str(agent["id"])), everything=True) as connection:
            assert (await search_messages(connection, Query("needle in the middle"))).hits[0].content == giant


@pytest.mark.parametrize(
    "fault",
    [
        reply(None),
        reply("long " * 3000),
        Status(500),
        Status(400, "context_length_exceeded", "maximum context length"),
        Answer(None, finish="length"),
    ],
    ids=["nothing", "longer than it got", "fails", "overflows", "cut off"],
)
async def test_a_summariser_that_fails_is_replaced_by_truncation_and_tried_again(db: Database, fault: Step) -> None:
    async with dialogue(db, policy=Summariser(fault, fault), settings=SMALL) as d:
        n = 0
        while not await d.rows("SELECT id FROM conversations WHERE pending_from IS NOT NULL"):
            await talk(d, 1, n)
            n += 1
            assert n < 40
        assert "Not summarised yet" in seen([r for r in d.model.requests if not is_summary(r)][-1])
        made = len(d.model.requests)
        await talk(d, 30, n)
        [conversation] = await d.rows("SELECT summary, summary_tail, pending_from FROM conversations")
        assert (conversation["summary_tail"], conversation["pending_from"]) == ("", None)
        assert "This is summary" in str(conversation["summary"])
        again = [r for r in d.model.requests[made:] if is_summary(r)]
        assert any("Entry number 0:" in seen(r) for r in again), "made from what left the conversation before, too"


async def test_a_summary_longer_than_what_it_sums_up_is_not_taken() -> None:
    said = [Message(n, n, "user", "message", f"Short number {n}.", "ada", "Ada", (), None, "direct", START) for n in range(1, 4)]
    answers = ["So much to tell. " * 40, "Three short ones."]

    async def ask(messages: Sequence[Mapping[str, str]], longest: int) -> Reply:
        return Reply(answers.pop(0))

    first, second = [await summarise(ask, "Sum up.", "Before.", said, zone=UTC, window=2000, count=count) for _ in range(2)]
    assert first.text == "Before."
    assert "Short number 3." in first.tail
    assert (second.text, second.tail) == ("Three short ones.", "")


async def test_a_working_context_that_grows_leaves_the_queue_room_to_be_warned_and_flushed(db: Database) -> None:
    async with dialogue(db, policy=Summariser(), settings=SMALL) as d:
        await talk(d, 3)
        [agent], [place] = await d.rows("SELECT id FROM agents"), await d.rows("SELECT id FROM places")
        number, here = int(str(agent["id"])), int(str(place["id"]))
        for turn, (section, room) in enumerate(working_context.SECTION_LIMITS.items()):
            async with db.agent(number, everything=True) as connection:
                for n in range(room // 450):
                    await working_context.insert(
                        connection,
                        agent=number,
                        place=here,
                        visibility="direct",
                        section=section,
                        turn=None,
                        at=d.at,
                        content=f"{section} {n}: " + " ".join(f"fact{n}of{k}" for k in range(40)),
                    )
                await connection.execute("UPDATE agents SET version = version + 1")
            await talk(d, 2, 3 + 2 * turn)
        full = len(d.model.requests)
        await talk(d, 12, 100)
        late = d.model.requests[full:]
        assert max(map(size, d.model.requests)) <= SMALL.budget
        assert "older entries are not shown" in seen(late[-1])
        assert all(len([m for m in r.messages if "Entry number" in str(m["content"])]) >= 2 for r in late if not is_summary(r))
        assert sum(map(is_summary, late)) <= 6, "not one a turn"
        alerts = await d.rows("SELECT position FROM messages WHERE kind = 'alert'")
        flushes = await d.rows("SELECT target_id FROM memory_log WHERE action = 'flush'")
        assert len(alerts) >= len(flushes), "each after a warned pass"


async def test_the_model_may_save_when_warned(db: Database) -> None:
    def saving(request: Request) -> Step:
        if is_summary(request):
            return reply("A summary.")
        if PRESSURE[:40] in request.last:
            return reply("ok", call("archival_storage_insert", content="Entry number 0 was important."))
        return reply("ok")

    async with dialogue(db, policy=saving, settings=SMALL) as d:
        n = 0
        while not pressures(d):
            await talk(d, 1, n)
            n += 1
        assert await d.rows("SELECT content FROM passages") == [{"content": "Entry number 0 was important."}]


async def test_a_refusal_of_the_endpoint_in_spite_of_the_count_flushes_and_tries_again(db: Database) -> None:
    refused = [0]

    def strict(request: Request) -> Step:
        if is_summary(request):
            return reply("A summary.")
        if len(request.messages) > 12 and refused[0] < 2:
            refused[0] += 1
            return Status(400, "context_length_exceeded", "This model's maximum context length is 100 tokens")
        return reply("ok")

    async with dialogue(db, policy=strict) as d:
        await talk(d, 10)
        assert refused[0] >= 1
        assert any(is_summary(r) for r in d.model.requests)


async def test_an_endpoint_that_reports_too_few_tokens_does_not_make_prompts_outgrow_the_budget(db: Database) -> None:
    def without_functions(request: Request) -> Step:
        said = "A summary." if is_summary(request) else "ok"
        return reply(said, prompt_tokens=size(request) * 6 // 10, completion_tokens=1)

    async with dialogue(db, policy=without_functions, settings=SMALL) as d:
        agent = d.agent  # one for all turns, as in one process, so that it learns
        for n in range(75):
            await agent.turn(await d.claim(await d.accept(text(n))))
        assert max(map(size, d.model.requests)) <= SMALL.budget


@pytest.mark.parametrize("cut_at", ["chat", "summary"])
async def test_a_crash_between_any_two_steps_of_a_flush_loses_nothing_and_doubles_nothing(db: Database, cut_at: str) -> None:
    """Every request that the turn makes is cut off once, as by kill -9: before the flush, in the summary, after the flush."""
    cut: set[tuple[str, bool]] = set()
    gates: list[Gate] = []

    def policy(request: Request) -> Step:
        kind = "summary" if is_summary(request) else "chat"
        flushed = "A summary." in seen(request)
        warned = PRESSURE[:40] in seen(request)
        if kind == cut_at and (warned or kind == "summary") and (kind, flushed) not in cut:
            cut.add((kind, flushed))
            gates.append(Gate())
            return gates[-1]
        return reply("A summary." if kind == "summary" else "ok")

    async with dialogue(db, policy=policy, settings=SMALL) as d:
        for n in range(30):
            agent = await d.accept(text(n))
            claim = await d.claim(agent)
            while True:
                before = len(gates)
                turn = asyncio.create_task(d.agent.turn(claim))
                reached = asyncio.create_task(until(lambda before=before: len(gates) > before, timeout=20))  # type: ignore[misc]
                done, _ = await asyncio.wait({turn, reached}, return_when=asyncio.FIRST_COMPLETED)
                for task in {turn, reached} - done:
                    task.cancel()
                await asyncio.wait({turn, reached})
                if turn in done:
                    turn.result()
                    break
                claim = await d.claim(agent)
                assert claim.resumed
            assert await d.outbox(claim) == ["ok"]
        assert cut == {(cut_at, False), (cut_at, True)}
        said = await d.rows("SELECT content FROM messages WHERE kind = 'message' AND role = 'user' ORDER BY position")
        assert [row["content"] for row in said] == [text(n) for n in range(30)]
        positions = [row["position"] for row in await d.rows("SELECT position FROM messages ORDER BY position")]
        assert positions == list(range(1, len(positions) + 1))


async def test_the_question_stays_in_the_prompt_through_its_own_turn_whatever_the_calls_bring(db: Database) -> None:
    searches = [call("recall_storage_search", call_id=f"c{n}", query=f"word{n}x1") for n in range(6)]
    giant = call("archival_storage_insert", content="x" * 200_000, request_heartbeat=True)
    question = "THE QUESTION of this turn"

    def policy(request: Request) -> Step:
        if is_summary(request):
            return reply("A summary.")
        asked = question in seen(request)
        results_so_far = len(request.contents("tool"))
        if asked and results_so_far == 0:
            return reply(None, *searches)
        if asked and results_so_far <= 6:
            return reply(None, giant)
        return reply("ok")

    async with dialogue(db, policy=policy, settings=SMALL) as d:
        await talk(d, 8)
        begun = len(d.model.requests)
        assert await d.hear(question) == ["ok"]
        chats = [r for r in d.model.requests[begun:] if not is_summary(r)]
        assert len(chats) >= 3
        assert all(question in seen(r) for r in chats)
        assert max(map(size, chats)) <= SMALL.budget


async def test_others_words_around_a_question_never_push_the_prompt_over_the_budget(db: Database) -> None:
    around = tuple(Quote(f"console::bob{n}", "Bob", text(n), "context") for n in range(60))
    async with dialogue(db, policy=Summariser(), settings=SMALL) as d:
        assert await d.hear("THE QUESTION beside them", quotes=around) == ["ok"]
        [asked] = d.model.requests
        assert size(asked) <= SMALL.budget
        assert "THE QUESTION beside them" in seen(asked)
        kept = await d.rows("SELECT content FROM messages WHERE kind = 'quote'")
        assert len(kept) == 60, "left out of the prompt, not of recall storage"


async def test_many_large_calls_at_once_never_push_the_prompt_over_the_budget(db: Database) -> None:
    def policy(request: Request) -> Step:
        keep = [call("archival_storage_insert", call_id=f"c{n}", content=text(n) * 3, request_heartbeat=True) for n in range(14)]
        return reply("ok") if request.contents("tool") else reply(None, *keep)

    async with dialogue(db, policy=policy, settings=SMALL) as d:
        assert await d.hear("THE QUESTION beside them") == ["ok"]
        assert max(map(size, d.model.requests)) <= SMALL.budget
        assert "THE QUESTION beside them" in seen(d.model.requests[-1])
        assert len(d.model.requests[-1].contents("tool")) == 14, "every call has its result"
