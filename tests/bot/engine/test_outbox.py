"""Sending: once, in order per channel, and no channel held up by another."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager, nullcontext, suppress
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from typing import Any

from adapters.base import Bot, Outgoing, TryLater, Undeliverable, Unreachable
from adapters.catalogue import say
from bot.bench.stage import keep_words
from bot.engine import turns
from bot.engine.outbox import OutboxSender
from bot.engine.signals import Senders
from tests.bot.engine.world import NOW, QUICK, World, place
from tests.waiting import until


@dataclass
class Platform:
    """A platform that shows what it was sent. `fails` are raised by the next sends to a channel, before or after they got through."""

    channels: tuple[str, ...] | None = None
    platform: str = "test"
    limit: int = 2000
    shown: list[tuple[str, str]] = field(default_factory=list)
    ids: dict[int, str] = field(default_factory=dict)
    fails: dict[str, list[tuple[Exception, bool]]] = field(default_factory=dict)
    calls: list[str] = field(default_factory=list)
    busy: dict[str, int] = field(default_factory=dict)
    when_shown: dict[str, Callable[[], Awaitable[None]]] = field(default_factory=dict)
    gate: dict[str, asyncio.Event] = field(default_factory=dict)

    async def run(self, bot: Bot) -> None:
        raise NotImplementedError

    async def send(self, outgoing: Outgoing) -> str:
        self.calls.append(f"send {outgoing.text}")
        self.busy[outgoing.channel] = self.busy.get(outgoing.channel, 0) + 1
        assert self.busy[outgoing.channel] == 1, "two at once in one channel"
        try:
            if outgoing.channel in self.gate:
                await self.gate[outgoing.channel].wait()
            error, got_through = self.fails.get(outgoing.channel, []).pop(0) if self.fails.get(outgoing.channel) else (None, True)
            if got_through:
                self.shown.append((outgoing.channel, outgoing.text))
                self.ids[outgoing.outbox_id] = f"id{len(self.shown)}"
            if outgoing.text in self.when_shown:
                await self.when_shown[outgoing.text]()
            if error is not None:
                raise error
            return self.ids[outgoing.outbox_id]
        finally:
            self.busy[outgoing.channel] -= 1

    async def find(self, outgoing: Outgoing) -> str | None:
        self.calls.append(f"find {outgoing.text}")
        return self.ids.get(outgoing.outbox_id)

    def working(self, channel: str) -> AbstractAsyncContextManager[None]:
        return nullcontext()


async def answer(engine: World, text: str, channel: str = "dm-ada", **options: Any) -> None:
    """One turn that says one thing in a channel."""
    accepted = await engine.say("x", where=place(channel, "public"))
    claim = await engine.claim(accepted.agent)
    async with turns.step(engine.db, claim, now=engine.at, finish="done", **options) as step:
        await keep_words(step)
        await step.reply(text)


def sender(engine: World, platform: Platform, **options: Any) -> OutboxSender:
    return OutboxSender(engine.db, platform, QUICK, now=lambda: engine.at, **options)


@asynccontextmanager
async def sending(*senders: OutboxSender) -> AsyncIterator[None]:
    tasks = [asyncio.create_task(each.run()) for each in senders]
    try:
        yield
    finally:
        for task in tasks:
            task.cancel()
        for task in tasks:
            with suppress(asyncio.CancelledError):
                await task


def all_sent(engine: World) -> Callable[[], Any]:
    async def predicate() -> bool:
        return not await engine.column("SELECT id FROM outbox WHERE state IN ('waiting', 'sending')")

    return predicate


def later(engine: World) -> Callable[[], Any]:
    """Lets the time go on until everything was sent."""

    async def predicate() -> bool:
        engine.at += timedelta(seconds=1)
        return bool(await all_sent(engine)())

    return predicate


async def test_looking_for_what_may_go_reads_nothing_that_was_sent(engine: World) -> None:
    """Planned among what had been sent, a look walked all of it and compared each row with each channel's head."""
    await answer(engine, "first")
    more = """INSERT INTO outbox (agent_id, place_id, platform, channel, turn_id, step, part, body, state, created_at)
              SELECT agent_id, place_id, platform, 'c' || n, turn_id, n, 0, body, %s, created_at FROM outbox, generate_series(%s, %s::int) n
              WHERE channel = 'dm-ada'"""
    await engine.owner.execute(more, ("sent", 1, 3000))
    await engine.owner.execute(more, ("waiting", 3001, 3900))
    await engine.owner.execute("ANALYZE outbox")
    async with engine.db.bare() as connection:
        claim = "SELECT count(*) AS n FROM claim_outbox('test', NULL, 5, %s, %s)"
        for _ in range(8):
            await connection.execute(claim, (engine.at, engine.at - timedelta(minutes=1)))
        cursor = await connection.execute(
            "SELECT seq_tup_read + idx_tup_fetch AS read FROM pg_stat_xact_user_tables WHERE relname = 'outbox'"
        )
        assert (await cursor.fetchone() or {})["read"] < 8 * 1000, "the heads of 900 channels, each time"


async def test_two_senders_send_each_once_and_each_channel_in_order(engine: World) -> None:
    for number in range(10):
        for channel in ("a", "b", "c"):
            await answer(engine, f"{channel}{number}", channel)
    platform = Platform()
    async with sending(sender(engine, platform), sender(engine, platform)):
        await until(all_sent(engine))
    assert len(platform.shown) == 30
    for channel in ("a", "b", "c"):
        assert [text for where, text in platform.shown if where == channel] == [f"{channel}{number}" for number in range(10)]
    assert await engine.one("SELECT count(DISTINCT platform_id) FROM outbox WHERE state = 'sent'") == 30


async def test_a_channel_that_is_refused_for_now_waits_and_keeps_its_order(engine: World) -> None:
    for number in range(3):
        await answer(engine, f"a{number}", "a")
        await answer(engine, f"b{number}", "b")
    platform = Platform(fails={"a": [(TryLater(30), False)]})
    async with sending(sender(engine, platform)):
        await until(lambda: len(platform.shown) == 3)
        assert {channel for channel, _ in platform.shown} == {"b"}
        engine.at += timedelta(seconds=31)
        await until(all_sent(engine))
    assert [text for channel, text in platform.shown if channel == "a"] == ["a0", "a1", "a2"]
    assert "find a0" not in platform.calls


async def test_a_hanging_channel_does_not_stall_others(engine: World) -> None:
    platform = Platform(gate={"a": asyncio.Event()})
    await answer(engine, "a", "a")
    async with sending(sender(engine, platform)):
        for number in range(5):
            await answer(engine, f"b{number}", "b")
        await until(lambda: len(platform.shown) == 5)
        platform.gate["a"].set()
        await until(all_sent(engine))


async def test_what_cannot_be_delivered_is_failed_and_the_next_is_sent(engine: World) -> None:
    await answer(engine, "first", "a")
    await answer(engine, "second", "a")
    platform = Platform(fails={"a": [(Undeliverable("private words"), False)]})
    async with sending(sender(engine, platform)):
        await until(all_sent(engine))
    assert await engine.look("SELECT state, last_error FROM outbox ORDER BY id") == [
        {"state": "failed", "last_error": "Undeliverable"},
        {"state": "sent", "last_error": ""},
    ]
    assert platform.shown == [("a", "second")]


async def timed_answer(engine: World, text: str, channel: str, user: str = "ada") -> int:
    """As `answer`, in a turn that a timer made; returns the agent."""
    accepted = await engine.say("", user, kind="login", where=place(channel, "public"))
    claim = await engine.claim(accepted.agent)
    async with turns.step(engine.db, claim, now=engine.at, finish="done") as step:
        await keep_words(step)
        await step.reply(text)
    return accepted.agent


async def test_a_timed_message_for_a_vanished_channel_goes_to_the_direct_message_and_nowhere_else(engine: World) -> None:
    direct = await engine.say("hi")  # Ada's direct message
    await engine.finish(await engine.claim(direct.agent))
    agent = await timed_answer(engine, "water the plants", "gone")
    gone = await engine.one("SELECT id FROM places WHERE external_id = 'gone'")
    await engine.owner.execute(
        "INSERT INTO timers (agent_id, place_id, visibility, kind, purpose, zone, wall_time, every, due_at, created_at)"
        " VALUES (%s, %s, 'public', 'reminder', 'x', 'UTC', '2026-12-01 08:00', 'day', '2026-12-01 08:00+0', now())",
        (agent, gone),
    )
    await engine.owner.execute("UPDATE agents SET locale = 'de_AT'")
    platform = Platform(fails={"gone": [(Undeliverable("no such channel"), False)]})
    async with sending(sender(engine, platform)):
        await until(all_sent(engine))
    assert platform.shown == [("dm-ada", f"{say('outbox.redirected', 'de')}\nwater the plants")]
    assert await engine.one("SELECT place_id FROM timers") == direct.place_id, "and so do the timers that are still set there"


async def test_without_a_direct_message_it_fails_where_the_operator_sees_it(engine: World) -> None:
    await timed_answer(engine, "water the plants", "gone")
    platform = Platform(fails={"gone": [(Undeliverable("no such channel"), False)]})
    async with sending(sender(engine, platform)):
        await until(all_sent(engine))
    assert platform.shown == []
    assert await engine.column("SELECT state FROM outbox") == ["failed"]


async def test_an_unknown_outcome_is_looked_up_before_it_is_sent_again(engine: World) -> None:
    await answer(engine, "got through", "a")
    await answer(engine, "did not", "b")
    platform = Platform(fails={"a": [(ConnectionError(), True)], "b": [(ConnectionError(), False)] * 2})
    async with sending(sender(engine, platform)):
        await until(lambda: len(platform.calls) == 2)
        await until(later(engine))
    assert sorted(platform.shown) == [("a", "got through"), ("b", "did not")]
    assert [call for call in platform.calls if "got" in call] == ["send got through", "find got through"]
    assert [call for call in platform.calls if "did" in call] == [
        "send did not",
        "find did not",
        "send did not",
        "find did not",
        "send did not",
    ]


async def test_what_a_dead_sender_left_is_looked_up(engine: World) -> None:
    await answer(engine, "one", "a")
    platform = Platform()
    await engine.owner.execute("SELECT * FROM claim_outbox('test', NULL, 10, %s, %s)", (NOW, NOW))
    async with sending(sender(engine, platform)):
        await answer(engine, "two", "a")
        await answer(engine, "other", "b")
        await until(lambda: platform.shown)
        assert platform.calls == ["send other"]
        engine.at += timedelta(seconds=QUICK.doubtful_after + 1)
        await until(all_sent(engine))
    assert platform.calls == ["send other", "find one", "send one", "send two"]


async def test_nothing_is_tried_for_ever(engine: World) -> None:
    await answer(engine, "one", "a")
    await answer(engine, "two", "a")
    platform = Platform(fails={"a": [(ConnectionError(), False)]})
    engine.at += timedelta(days=2)
    async with sending(sender(engine, platform)):
        await until(all_sent(engine))
    assert await engine.column("SELECT state FROM outbox ORDER BY id") == ["failed", "sent"]


async def test_only_the_senders_own_channels_and_platform(engine: World) -> None:
    await answer(engine, "mine", "a")
    await answer(engine, "theirs", "b")
    platform = Platform(channels=("a",))
    async with sending(sender(engine, platform)):
        await until(lambda: platform.shown)
    assert await engine.column("SELECT body FROM outbox WHERE state = 'waiting'") == ["theirs"]


async def test_withdrawn_replies_are_not_sent(engine: World) -> None:
    await answer(engine, "one", "a")
    await engine.owner.execute("UPDATE outbox SET state = 'withdrawn'")
    await answer(engine, "two", "a")
    platform = Platform()
    async with sending(sender(engine, platform)):
        await until(all_sent(engine))
    assert platform.shown == [("a", "two")]


async def test_stopping_lets_a_send_come_to_its_end(engine: World) -> None:
    platform = Platform(gate={"a": asyncio.Event()})
    await answer(engine, "one", "a")
    async with sending(sender(engine, platform)):
        await until(lambda: platform.calls)
        asyncio.get_running_loop().call_later(0.1, platform.gate["a"].set)
    assert await engine.column("SELECT state FROM outbox") == ["sent"]


async def test_a_reply_is_sent_at_once_here_without_and_elsewhere_with_a_notification(engine: World) -> None:
    """With the poll far away, only the signals can bring it out quickly."""
    here = Senders()
    platform = Platform()
    settings = replace(QUICK, outbox_poll=60.0)
    notified: list[str] = []
    await engine.owner.execute("LISTEN keepsake_outbox")
    engine.owner.add_notify_handler(lambda notification: notified.append(notification.payload))
    async with sending(OutboxSender(engine.db, platform, settings, now=lambda: engine.at, outbound=here)):
        await until(lambda: here.serves("test", "a"))
        await answer(engine, "here", "a", outbound=here)
        await until(lambda: len(platform.shown) == 1, timeout=2)
        await until(lambda: _listens(engine))
        await engine.look("SELECT 1")
        assert notified == []
        await answer(engine, "elsewhere", "a")
        await until(lambda: len(platform.shown) == 2, timeout=2)
        await engine.look("SELECT 1")
        assert notified == ["test"]


async def _listens(engine: World) -> object:
    async with engine.db.bare() as connection:
        return await (
            await connection.execute(
                "SELECT 1 FROM pg_stat_activity WHERE query = 'LISTEN keepsake_outbox' AND datname = current_database()"
            )
        ).fetchone()


async def test_a_row_erased_while_claimed_is_forgotten(engine: World) -> None:
    await answer(engine, "one", "a")
    platform = Platform(gate={"a": asyncio.Event()})
    async with sending(sender(engine, platform)):
        await until(lambda: platform.calls)
        await engine.look("SELECT erase_agent(id, 'person', 'k', %s) FROM agents", datetime.now(NOW.tzinfo))
        platform.gate["a"].set()
        await until(lambda: platform.shown)
    assert await engine.one("SELECT count(*) FROM outbox") == 0


async def test_a_person_who_cannot_be_reached_is_tried_once_until_they_write_again(engine: World) -> None:
    platform = Platform(fails={"dm-ada": [(Unreachable("closed"), False)]})
    claim = await engine.claim((await engine.say("x")).agent)
    async with turns.step(engine.db, claim, now=engine.at, finish="done") as step:
        await keep_words(step)
        await step.reply("one")
        await step.reply("two")
    await answer(engine, "others go on", "b")
    async with sending(sender(engine, platform)):
        await until(all_sent(engine))
    assert platform.calls == ["send one", "send others go on"] or platform.calls == ["send others go on", "send one"]
    [ada] = await engine.look("SELECT user_id, unreachable_since FROM unreachable_people()")
    assert ada == {"user_id": "ada", "unreachable_since": engine.at}
    # Another process, some time later.
    later_platform = Platform()
    claim = await engine.claim((await engine.say("y")).agent)
    await engine.owner.execute("UPDATE identities SET unreachable_since = now() WHERE user_id = 'ada'")
    await engine.finish(claim, "not tried")
    async with sending(sender(engine, later_platform)):
        await until(all_sent(engine))
        assert later_platform.calls == []
        claim = await engine.claim((await engine.say("I am back")).agent)
        await engine.finish(claim, "welcome back")
        await until(all_sent(engine))
    assert later_platform.calls == ["send welcome back"]
    assert await engine.look("SELECT * FROM unreachable_people()") == []


async def test_a_channel_without_access_says_nothing_about_the_person(engine: World) -> None:
    platform = Platform(fails={"a": [(Unreachable("no access"), False)]})
    await answer(engine, "one", "a")
    async with sending(sender(engine, platform)):
        await until(all_sent(engine))
    assert await engine.look("SELECT * FROM unreachable_people()") == []


async def test_what_the_only_process_before_left_in_the_middle_is_looked_up_at_once(engine: World) -> None:
    await answer(engine, "one", "a")
    await engine.owner.execute("SELECT * FROM claim_outbox('test', NULL, 10, %s, %s)", (NOW, NOW))
    assert await engine.one("SELECT doubt_sending(%s)", engine.at) == 1
    platform = Platform()
    async with sending(sender(engine, platform)):
        await until(all_sent(engine))
    assert platform.calls == ["find one", "send one"]
