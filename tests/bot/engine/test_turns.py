"""Claims and steps: which events make a turn, and what the fence refuses."""

from __future__ import annotations

import asyncio
from contextlib import suppress
from datetime import timedelta
from typing import Any

import pytest

from adapters.base import Button
from adapters.catalogue import say
from bot.bench.stage import keep_words
from bot.engine import turns
from bot.engine.deadletters import dead_letters, replay
from bot.engine.events import Claim, ContextChanged, StaleTurn, TurnCancelled
from bot.engine.inbox import Accepted
from memory.db import value
from tests.bot.engine.world import NOW, World, place


async def test_a_run_ends_where_place_origin_or_kind_change(engine: World) -> None:
    other = place("channel", "public")
    await engine.say("a")
    await engine.say("b")
    await engine.say("", kind="join")
    await engine.say("c", where=other)
    await engine.say("d")
    accepted = await engine.say("", kind="retry")
    runs = []
    for _ in range(5):
        claim = await engine.claim(accepted.agent)
        runs.append((claim.origin, [event.payload["text"] or event.kind for event in claim.events]))
        await engine.finish(claim)
    assert runs == [("person", ["a", "b"]), ("timed", ["join"]), ("person", ["c"]), ("person", ["d"]), ("person", ["retry"])]
    assert await turns.claim(engine.db, accepted.agent, NOW, engine.settings) is None
    assert await engine.one("SELECT wake FROM agents") is False


@pytest.mark.parametrize(
    ("ids", "said"),
    [
        (["1764500000.000300", "1764500000.000100", "1764500000.000200"], ["second", "third", "first"]),
        (["999", "1000", "998"], ["third", "first", "second"]),
        (["c", "b", "a"], ["first", "second", "third"]),
        (["2", None, "1"], ["third", "second", "first"]),
    ],
    ids=["Slack", "Discord", "a platform whose ids are no numbers", "one without an id keeps its place"],
)
async def test_what_was_taken_in_together_is_in_the_order_in_which_it_was_said(
    engine: World, ids: list[str | None], said: list[str]
) -> None:
    """Two connections hand over what was written within milliseconds, and each takes it in when it gets there."""
    for text, number in zip(("first", "second", "third"), ids, strict=True):
        accepted = await engine.say(text, message_id=number)
    claim = await engine.claim(accepted.agent)
    assert [event.payload["text"] for event in claim.events] == said
    assert [event.payload["text"] for event in (await turns.refresh(engine.db, claim)).events] == said


async def test_a_long_run_is_cut(engine: World) -> None:
    for number in range(12):
        accepted = await engine.say(str(number))
    claim = await engine.claim(accepted.agent)
    assert [event.seq for event in claim.events] == list(range(1, 11))
    await engine.finish(claim)
    assert claim.fence.more is True
    assert [event.seq for event in (await engine.claim(accepted.agent)).events] == [11, 12]


async def test_a_crashed_turn_goes_on_with_its_counters_and_without_new_events(engine: World) -> None:
    accepted = await engine.say("a")
    first = await engine.claim(accepted.agent)
    assert not first.resumed
    async with turns.step(engine.db, first, now=NOW) as step:
        step.passes, step.memory_calls, step.memory_writes, step.tokens, step.nudged = 1, 3, 2, 500, True
        assert await step.reply("part one") == 1
    await engine.say("b")
    again = await engine.claim(accepted.agent)
    assert again.resumed
    assert (again.turn, again.step, again.passes, again.memory_calls, again.memory_writes, again.tokens) == (
        first.turn,
        1,
        1,
        3,
        2,
        500,
    )
    assert again.replied
    assert again.nudged
    assert [event.payload["text"] for event in again.events] == ["a"]
    await engine.finish(again, "part two")
    assert await engine.column("SELECT body FROM outbox ORDER BY id") == ["part one", "part two"]
    assert await engine.look("SELECT DISTINCT turn_id, step FROM outbox ORDER BY step") == [
        {"turn_id": first.turn, "step": 0},
        {"turn_id": first.turn, "step": 1},
    ]
    assert await engine.column("SELECT status FROM events ORDER BY seq") == [1, 0]


async def test_a_step_that_breaks_leaves_nothing(engine: World) -> None:
    claim = await engine.claim((await engine.say("a")).agent)
    with suppress(RuntimeError):
        async with turns.step(engine.db, claim, now=NOW) as step:
            await step.reply("never")
            raise RuntimeError
    assert await engine.one("SELECT count(*) FROM outbox") == 0
    assert await engine.one("SELECT step FROM turns") == claim.fence.step == 0


async def test_an_old_claim_is_refused(engine: World) -> None:
    accepted = await engine.say("a")
    old = await engine.claim(accepted.agent)
    new = await engine.claim(accepted.agent)
    for finish in (None, "done", "failed", "cancelled"):
        with pytest.raises(StaleTurn):
            async with turns.step(engine.db, old, now=NOW, finish=finish) as step:
                await step.reply("stale")
    with pytest.raises(StaleTurn):
        await turns.refresh(engine.db, old)
    await turns.release(engine.db, old, "stale")
    assert await engine.one("SELECT attempts FROM events") == 2
    await engine.finish(new, "good")
    assert await engine.column("SELECT body FROM outbox") == ["good"]


async def test_a_finished_turn_takes_no_further_step(engine: World) -> None:
    claim = await engine.claim((await engine.say("a")).agent)
    await engine.finish(claim, "good")
    with pytest.raises(StaleTurn):
        async with turns.step(engine.db, claim, now=NOW) as step:
            await step.reply("after the end")
    with pytest.raises(StaleTurn):
        await engine.finish(claim, "twice")
    assert await engine.column("SELECT body FROM outbox") == ["good"]


@pytest.mark.parametrize(
    "change", ["UPDATE agents SET version = version + 1", "UPDATE places SET policy_version = policy_version + 1"]
)
async def test_a_changed_context_is_refused_until_it_is_read_anew(engine: World, change: str) -> None:
    claim = await engine.claim((await engine.say("a")).agent)
    await engine.owner.execute(change.encode())
    for finish in (None, "done"):
        with pytest.raises(ContextChanged):
            async with turns.step(engine.db, claim, now=NOW, finish=finish) as step:
                await step.reply("from an old prompt")
    await turns.refresh(engine.db, claim)
    await engine.finish(claim, "from a new one")
    assert await engine.column("SELECT body FROM outbox") == ["from a new one"]


async def test_every_step_raises_the_version_the_last_one_too(engine: World) -> None:
    accepted = await engine.say("a")
    claim = await engine.claim(accepted.agent)
    seen = [claim.fence.version]
    async with turns.step(engine.db, claim, now=NOW):
        pass
    seen.append(await engine.one("SELECT version FROM agents"))
    assert claim.fence.version == seen[-1]
    await engine.finish(claim)
    seen.append(await engine.one("SELECT version FROM agents"))
    assert seen == sorted(set(seen))


async def test_the_fence_knows_the_version_after_the_last_step(engine: World) -> None:
    claim = await engine.claim((await engine.say("a")).agent)
    await engine.finish(claim)
    assert claim.fence.version == await engine.one("SELECT version FROM agents")


async def test_a_step_sees_one_agent_at_one_place(engine: World) -> None:
    await engine.say("mine", where=place("channel", "private"))
    await engine.say("theirs", user="bob", where=place("channel", "private"))
    claim = await engine.claim((await engine.say("here", where=place("channel", "private"))).agent)
    await engine.say("elsewhere", where=place("other", "private"))
    async with turns.step(engine.db, claim, now=NOW) as step:
        assert await value(step.connection, "SELECT count(*) FROM events") == 2


async def test_replies_are_split_numbered_and_unique(engine: World) -> None:
    claim = await engine.claim((await engine.say("a")).agent)
    async with turns.step(engine.db, claim, now=NOW, limits={"test": 40}, finish="done") as step:
        await keep_words(step)
        assert await step.reply("one two three " * 6, reply_to="m1") == 3
        assert await step.reply(" \n ") == 0
        assert await step.reply("four", reply_to="m2") == 1
    rows = await engine.look("SELECT part, length(body) AS length, reply_to, platform, channel FROM outbox ORDER BY id")
    assert [row["part"] for row in rows] == [0, 1, 2, 3]
    assert max(row["length"] for row in rows) <= 40
    assert [row["reply_to"] for row in rows] == ["m1", None, None, "m2"]
    assert {(row["platform"], row["channel"]) for row in rows} == {("test", "dm-ada")}
    assert (
        await engine.one(
            "SELECT count(*) FROM pg_indexes WHERE tablename = 'outbox' AND indexdef LIKE '%%UNIQUE%%(turn_id, step, part)'"
        )
        == 1
    )


async def test_a_poison_turn_becomes_a_dead_letter_with_one_apology(engine: World) -> None:
    accepted = await engine.say("poison")
    await engine.say("fine", where=place("channel", "public"))
    for attempt in range(engine.settings.max_attempts):
        claim = await engine.claim(accepted.agent)
        assert claim.resumed is (attempt > 0)
        await turns.note_crash(engine.db, claim, "ValueError")
    await engine.owner.execute("UPDATE agents SET locale = 'pt-BR'")
    claim = await engine.claim(accepted.agent)
    assert [event.payload["text"] for event in claim.events] == ["fine"]
    assert await engine.look("SELECT body, channel FROM outbox") == [{"body": say("turn.apology", "pt"), "channel": "dm-ada"}]
    (letter,) = await dead_letters(engine.db)
    assert (letter.event_id, letter.last_error, letter.attempts) == (accepted.event_id, "ValueError", 5)

    await engine.finish(claim)
    assert await replay(engine.db, letter.event_id) == 1
    assert await replay(engine.db) == 0
    assert len(await engine.jobs()) == 1 + 1  # the first wake-up was never run here, the replay made its own
    claim = await engine.claim(accepted.agent)
    assert [event.payload["text"] for event in claim.events] == ["poison"]
    await engine.finish(claim, "after all")
    assert await dead_letters(engine.db) == []


@pytest.mark.parametrize("changes", [{"addressed": False}, {"kind": "join"}])
async def test_nobody_is_told_who_did_not_ask(engine: World, changes: dict[str, Any]) -> None:
    accepted = await engine.say("poison", **changes)
    for _ in range(engine.settings.max_attempts):
        await engine.claim(accepted.agent)
    assert await turns.claim(engine.db, accepted.agent, NOW, engine.settings) is None
    assert await engine.one("SELECT count(*) FROM outbox") == 0
    assert len(await dead_letters(engine.db)) == 1


async def test_a_clean_exit_does_not_count(engine: World) -> None:
    accepted = await engine.say("a")
    for _ in range(20):
        await turns.release(engine.db, await engine.claim(accepted.agent), "ModelUnavailable")
    assert (await engine.claim(accepted.agent)).events
    assert await engine.look("SELECT attempts, last_error FROM events") == [{"attempts": 1, "last_error": "ModelUnavailable"}]


async def test_stop_cancels_what_waits_and_what_runs(engine: World) -> None:
    accepted = await engine.say("running")
    claim = await engine.claim(accepted.agent)
    async with turns.step(engine.db, claim, now=NOW) as step:
        await step.reply("half an answer")
    await engine.say("waiting")
    await engine.say("elsewhere", where=place("channel", "public"))
    async with engine.db.bare() as connection:
        await connection.execute("SELECT cancel_work(%s, %s, %s)", (accepted.agent, accepted.place_id, NOW))
    assert await turns.cancelled(engine.db, claim)
    for finish in (None, "done"):
        with pytest.raises(TurnCancelled):
            async with turns.step(engine.db, claim, now=NOW, finish=finish) as step:
                await step.reply("the other half")
    assert await turns.end_cancelled(engine.db, claim, now=NOW) is True
    assert await engine.column("SELECT status FROM events ORDER BY seq") == [3, 3, 0]
    assert await engine.column("SELECT state FROM outbox") == ["withdrawn"]
    assert (await engine.claim(accepted.agent)).events[0].payload["text"] == "elsewhere"


async def test_stop_and_a_step_at_once_do_not_deadlock(engine: World) -> None:
    async def stop(accepted: Accepted) -> None:
        async with engine.db.bare() as connection:
            await connection.execute("SELECT cancel_work(%s, %s, %s)", (accepted.agent, accepted.place_id, NOW))

    async def commit(claim: Claim, begun: asyncio.Event) -> None:
        async with turns.step(engine.db, claim, now=NOW) as step:
            await step.reply("x")
            begun.set()

    async def both(user: str) -> list[BaseException | None]:
        accepted = await engine.say("a", user)
        claim, begun = await engine.claim(accepted.agent), asyncio.Event()
        step = asyncio.create_task(commit(claim, begun))
        await begun.wait()
        return list(await asyncio.gather(step, stop(accepted), stop(accepted), return_exceptions=True))

    async with asyncio.timeout(20):
        for number in range(30):
            outcomes = await both(f"user{number}")
            assert {type(outcome) for outcome in outcomes} <= {type(None), TurnCancelled}


async def test_erasing_during_a_turn_waits_for_the_step_and_ends_the_turn(engine: World) -> None:
    accepted = await engine.say("a")
    claim = await engine.claim(accepted.agent)
    async with turns.step(engine.db, claim, now=NOW) as step:
        # Nothing was inserted yet, so no foreign key holds the agent's row: the step does.
        erasing = asyncio.create_task(engine.look("SELECT erase_agent(%s, 'person', 'k', %s)", accepted.agent, NOW))
        _, pending = await asyncio.wait({erasing}, timeout=0.2)
        assert pending
        await step.reply("x")
    await erasing
    with pytest.raises(StaleTurn):
        async with turns.step(engine.db, claim, now=NOW):
            raise AssertionError
    assert await engine.one("SELECT count(*) FROM outbox") == 0
    assert await turns.claim(engine.db, accepted.agent, NOW, engine.settings) is None


async def test_giving_up_tells_the_person_and_keeps_the_reason(engine: World) -> None:
    claim = await engine.claim((await engine.say("a")).agent)
    await turns.notice(engine.db, claim, "This takes longer.", now=NOW)
    await turns.notice(engine.db, claim, "This takes longer.", now=NOW)
    await engine.owner.execute("UPDATE agents SET locale = 'it'")
    await turns.give_up(engine.db, claim, "ModelUnavailable", now=NOW + timedelta(days=1))
    assert await engine.column("SELECT body FROM outbox ORDER BY id") == ["This takes longer.", say("turn.apology", "it")]
    assert [letter.last_error for letter in await dead_letters(engine.db)] == ["ModelUnavailable"]
    assert await engine.one("SELECT wake FROM agents") is False


async def test_a_long_text_of_the_bots_own_goes_out_in_messages_that_the_platform_takes(engine: World) -> None:
    accepted = await engine.say("x")
    claim = await engine.claim(accepted.agent)
    async with turns.step(engine.db, claim, now=NOW, finish="done") as step:
        await keep_words(step)
        await step.say(-30, "\n".join(f"line {number}" for number in range(500)), [Button("Cancel", "/reminders cancel t1")])
    rows = await engine.look("SELECT body, buttons FROM outbox ORDER BY part")
    assert len(rows) > 1
    assert max(len(row["body"]) for row in rows) <= turns.LIMIT
    assert "\n".join(row["body"] for row in rows).splitlines()[-1] == "line 499"
    assert [bool(row["buttons"]) for row in rows] == [False] * (len(rows) - 1) + [True]
