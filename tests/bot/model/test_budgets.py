"""Daily budgets: race-safe, told once, resettable; what a person writes meanwhile is kept."""

from __future__ import annotations

import asyncio
from datetime import timedelta

import pytest

from adapters.catalogue import say
from bot.bench.stage import Freely
from memory.db import Database, value
from memory.spending import Budgets, Limits, OverBudget, Price, tell
from tests.bot.dialogue import START, dialogue
from tests.bot.turn.test_pressure import SMALL, text
from tests.servers.model import Request, Step, reply


def answer(request: Request) -> Step:
    return reply(f"answer {request.number}", prompt_tokens=1000, completion_tokens=100)


async def test_a_spent_budget_is_told_once_a_day_and_what_is_written_is_kept(db: Database) -> None:
    async with dialogue(db, policy=answer) as d:
        d.budgets = Budgets(db, Limits(person_tokens=6000), {})
        assert await d.hear("one") == ["answer 1"]
        assert await d.hear("two") == ["answer 2"]
        said = [await d.hear(text) for text in ("three", "four", "five")]
        assert [len(each) for each in said].count(1) >= 1
        assert said[-1] == []
        assert sum(each == [say("turn.spent", "")] for each in said) == 1
        kept = await d.rows("SELECT content FROM messages WHERE role = 'user' AND kind = 'message' ORDER BY position")
        assert [row["content"] for row in kept] == ["one", "two", "three", "four", "five"]
        calls = len(d.model.requests)
        d.clock[0] += timedelta(days=1)
        assert (await d.hear("six"))[0].startswith("answer")
        assert len(d.model.requests) == calls + 1


async def test_the_budget_of_the_whole_bot_stops_everybody_but_tells_each_once(db: Database) -> None:
    from adapters.base import Person

    async with dialogue(db, policy=answer) as d:
        d.budgets = Budgets(db, Limits(bot_tokens=5000), {})
        assert await d.hear("one") == ["answer 1"]
        bob = d.elsewhere("bob", "direct", workspace="", person=Person("console", "", "bob", "Bob"))
        bob.settings = d.settings
        said = [await each.hear(text) for text in ("a", "b", "c") for each in (d, bob)]
        assert sum(each == [say("turn.spent", "")] for each in said) == 2


@pytest.mark.parametrize("first", ["timed turn", "summary"])
async def test_who_is_told_is_the_person_who_asks_whatever_met_the_spent_budget_first(db: Database, first: str) -> None:
    async with dialogue(db, policy=answer, settings=SMALL) as d:
        d.initiative = Freely(db)
        for n in range(30):
            await d.hear(text(n))
            [conversation] = await d.rows("SELECT warned, fifo_start FROM conversations")
            if conversation["warned"]:
                break
        d.budgets = Budgets(db, Limits(person_tokens=1), {})
        if first == "timed turn":
            assert await d.hear("", kind="login") == []
            assert await d.hear("and now?") == [say("turn.spent", "")]
        else:  # so much to say that the queue must be flushed before anything is asked
            assert await d.hear(" ".join(text(n) for n in range(40, 52))) == [say("turn.spent", "")]
            [after] = await d.rows("SELECT fifo_start FROM conversations")
            assert after != {"fifo_start": conversation["fifo_start"]}
        assert await d.hear("and now?") == []


async def test_many_calls_at_once_cannot_overspend_together(db: Database) -> None:
    async with dialogue(db, policy=answer) as d:
        await d.hear("hello")
        [agent] = await d.rows("SELECT id FROM agents")
        number = int(str(agent["id"]))
        budgets = [Budgets(db, Limits(person_tokens=10_000), {}) for _ in range(4)]
        results = await asyncio.gather(
            *(budgets[n % 4].reserve(number, "m", prompt=900, completion=100, now=START) for n in range(30)),
            return_exceptions=True,
        )
        granted = [each for each in results if not isinstance(each, BaseException)]
        assert len(granted) == 10
        over = [each for each in results if isinstance(each, OverBudget)]
        assert len(over) == 20
        async with db.bare() as connection:
            assert [await tell(connection, number, each.day) for each in over].count(True) == 1


async def test_an_estimate_is_replaced_by_what_the_call_cost(db: Database) -> None:
    async with dialogue(db, policy=answer) as d:
        await d.hear("hello")
        [agent] = await d.rows("SELECT id FROM agents")
        number = int(str(agent["id"]))
        budgets = Budgets(db, Limits(person_money=1.0), {"m": Price(2.0, 1.0, 10.0)})
        taken = await budgets.reserve(number, "m", prompt=1000, completion=1500, now=START)
        assert taken is not None
        assert taken.micros == 1000 * 2 + 1500 * 10
        await budgets.settle(taken, "m", prompt=1100, cached=100, completion=50)
        [row] = await d.rows("SELECT tokens, micros FROM spending")
        assert row == {"tokens": 1150, "micros": 1000 * 2 + 100 * 1 + 50 * 10}
        async with db.bare() as connection:  # as the operator sees it, across agents
            shown = await (await connection.execute("SELECT * FROM spent_on(%s)", (START.date(),))).fetchall()
        assert shown == [{"agent_id": own, **row, "told": False} for own in (None, number)]


async def test_the_operator_starts_the_day_anew(db: Database) -> None:
    async with dialogue(db, policy=answer) as d:
        d.budgets = Budgets(db, Limits(person_tokens=6000), {})
        said = [await d.hear(text) for text in ("one", "two", "three", "four", "five")]
        assert [say("turn.spent", "")] in said
        async with db.bare() as connection:
            assert await value(connection, "SELECT reset_spending(NULL, %s)", (d.at.date(),)) == 1
        assert (await d.hear("again"))[0].startswith("answer")


@pytest.mark.parametrize("limits", [Limits(), Limits(person_tokens=10**9)])
async def test_without_or_within_limits_nothing_is_noticed(db: Database, limits: Limits) -> None:
    async with dialogue(db, policy=answer) as d:
        d.budgets = Budgets(db, limits, {})
        assert await d.hear("one") == ["answer 1"]
