"""What every adapter owes the bot, as tests that a platform inherits with a stage of its own."""

from __future__ import annotations

import asyncio
from abc import ABC, abstractmethod
from collections.abc import AsyncIterator, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager, suppress
from dataclasses import dataclass, field
from datetime import datetime

import pytest

from adapters.base import Adapter, Answer, Changed, Incoming, Newest, Outgoing, Person, PlaceOf, TryLater, Undeliverable
from tests.waiting import until


@dataclass
class Recorder:
    """The bot as an adapter sees it: takes everything in, and knows the command /help."""

    incoming: list[Incoming] = field(default_factory=list)
    commands: list[tuple[Person, PlaceOf, str]] = field(default_factory=list)
    changes: list[Changed] = field(default_factory=list)
    newest_known: tuple[Newest, ...] = ()
    channels_known: tuple[PlaceOf, ...] = ()
    heard_until: str | None = None
    told: list[tuple[object, ...]] = field(default_factory=list)

    async def receive(self, incoming: Incoming) -> bool:
        fresh = all(one.key != incoming.key for one in self.incoming)
        if fresh:
            self.incoming.append(incoming)
        return fresh

    async def command(self, person: Person, place: PlaceOf, line: str, *, made_for: str | None = None) -> Answer | None:
        if not line.startswith("/help"):
            return None
        self.commands.append((person, place, line))
        return Answer("This is help.")

    async def heard(self, platform: str) -> str | None:
        return self.heard_until

    async def hear(self, platform: str, message_id: str) -> None:
        self.heard_until = message_id

    async def newest(self, platform: str) -> Sequence[Newest]:
        return self.newest_known

    async def changed(self, changed: Changed) -> None:
        self.changes.append(changed)

    async def workspace_gone(self, platform: str, realm: str, workspace: str, *, gone: bool) -> None:
        self.told.append(("workspace", workspace, gone))

    async def channels(self, platform: str) -> Sequence[PlaceOf]:
        return self.channels_known

    async def place_changed(self, place: PlaceOf) -> None:
        self.told.append(("place", place.external_id, place.kind))

    async def access_changed(self, person: Person, workspace: str, channels: Sequence[str] | None, *, lost: bool) -> None:
        self.told.append(("access", person.user_id, lost))

    async def kept(self, place: PlaceOf, limit: int) -> Sequence[str]:
        return ()

    async def taken(self, person: Person, kind: str, since: datetime, channel: str | None = None) -> int:
        return 0

    async def tell_limit(self, person: Person, at: datetime) -> str:
        return "Enough for today."

    async def wants_login(self, person: Person, at: datetime, flap: float) -> bool:
        return True


class Stage(ABC):
    """A platform with one person on it, and the adapter that serves them. `knows`: sent messages can be looked up there."""

    adapter: Adapter
    knows = True
    forgets_channels = True

    @property
    @abstractmethod
    def channel(self) -> str:
        """Where the person and the bot talk."""

    @abstractmethod
    async def say(self, text: str) -> None:
        """The person says something to the bot."""

    @abstractmethod
    def heard(self) -> list[str]:
        """What the bot said there, oldest first."""

    async def again(self) -> None:
        """The platform tells once more what it told last, where it does."""
        return


@asynccontextmanager
async def running(adapter: Adapter, bot: Recorder) -> AsyncIterator[None]:
    """The adapter at work; ended as the bot ends it."""
    task = asyncio.create_task(adapter.run(bot))
    try:
        yield
    finally:
        task.cancel()
        await asyncio.wait([task])


async def sent(adapter: Adapter, outgoing: Outgoing) -> str:
    """Sent, once the adapter is ready for it."""

    ids: list[str] = []

    async def taken() -> bool:
        with suppress(TryLater):
            ids.append(await adapter.send(outgoing))
        return bool(ids)

    await until(taken, timeout=20, every=0.05)
    return ids[0]


class AdapterContract:
    """The tests. A platform's class says how its stage is set."""

    def stage(self, bot: Recorder) -> AbstractAsyncContextManager[Stage]:
        """The platform with the adapter running on it."""
        raise NotImplementedError

    async def test_a_message_comes_in_whole_and_once(self) -> None:
        bot = Recorder()
        async with self.stage(bot) as stage:
            await stage.say("hello & <good> morning")
            await until(lambda: bot.incoming)
            await stage.again()
            await stage.say("and more")
            await until(lambda: len(bot.incoming) == 2)
            first, second = bot.incoming
            assert (first.kind, first.text, second.text) == ("message", "hello & <good> morning", "and more")
            assert first.person.platform == first.place.platform == stage.adapter.platform
            assert first.person.author_id == second.person.author_id
            assert (first.place.kind, first.place.external_id, first.addressed) == ("direct", stage.channel, True)
            assert first.key != second.key
            assert first.at <= second.at
            assert first.at.tzinfo is not None
            assert not bot.commands

    async def test_messages_go_out_in_order_and_are_found_again(self) -> None:
        bot = Recorder()
        async with self.stage(bot) as stage:
            adapter = stage.adapter
            outgoing = [Outgoing(number, stage.channel, f"**part** {number}") for number in range(1, 4)]
            ids = [await sent(adapter, one) for one in outgoing]
            await until(lambda: len(stage.heard()) == 3)
            assert [text.rpartition(" ")[2] for text in stage.heard()] == ["1", "2", "3"]
            assert len(set(ids)) == 3
            assert all(ids)
            found = [await adapter.find(one) for one in outgoing]
            assert found == (ids if stage.knows else [None] * 3)
            assert await adapter.find(Outgoing(4, stage.channel, "never sent")) is None

    async def test_the_longest_message_fits(self) -> None:
        bot = Recorder()
        async with self.stage(bot) as stage:
            longest = ("<b>&amp; ü " * stage.adapter.limit)[: min(stage.adapter.limit, 20_000)]
            await sent(stage.adapter, Outgoing(1, stage.channel, longest))
            await until(stage.heard)

    async def test_what_is_gone_is_undeliverable(self) -> None:
        bot = Recorder()
        async with self.stage(bot) as stage:
            if not stage.forgets_channels:
                # The bot gives it nothing of other places.
                assert stage.adapter.channels is not None
                assert nowhere(stage.channel) not in stage.adapter.channels
                return
            await sent(stage.adapter, Outgoing(1, stage.channel, "here"))
            with pytest.raises(Undeliverable):
                await stage.adapter.send(Outgoing(2, nowhere(stage.channel), "there"))

    async def test_the_sign_of_work_breaks_nothing(self) -> None:
        bot = Recorder()
        async with self.stage(bot) as stage:
            await sent(stage.adapter, Outgoing(1, stage.channel, "here"))
            async with stage.adapter.working(stage.channel), stage.adapter.working(stage.channel):
                pass
            with pytest.raises(ZeroDivisionError):
                async with stage.adapter.working(stage.channel):
                    raise ZeroDivisionError
            async with stage.adapter.working(nowhere(stage.channel)):
                pass

    async def test_it_ends_when_it_is_told_to(self) -> None:
        bot = Recorder()
        async with self.stage(bot) as stage:
            await sent(stage.adapter, Outgoing(1, stage.channel, "here"))
        assert stage.adapter.platform


def nowhere(channel: str) -> str:
    """A channel that looks like this one and is not there."""
    return f"{channel[:-3]}{'000' if channel[-3:] != '000' else '111'}"
