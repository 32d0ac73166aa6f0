"""The load: hundreds of people who write in bursts, in direct messages, channels and threads, and wait for what they are told."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Sequence
from dataclasses import dataclass, field

from tests.chaos.brain import REMEMBER
from tests.chaos.snapshots import Said
from tests.chaos.stage import Stage, Where

BURST = 3
"""The most messages that somebody writes without waiting for an answer."""
PLACES: tuple[Where, ...] = ("direct", "direct", "direct", "channel", "thread")
THINKING = 0.5
"""The most seconds between an answer and the next message."""
TYPING = 0.2
"""The most seconds between two messages of a burst."""
REMEMBERED = 0.1
"""The share of messages that ask to be remembered."""


class Pace:
    """How many messages may be sent by now. Who wants to send more waits, until the run is over."""

    def __init__(self) -> None:
        self.sent = 0
        self._allowed = 0
        self._over = False
        self._changed = asyncio.Condition()

    async def allow(self, more: int) -> None:
        """So many more."""
        async with self._changed:
            self._allowed += more
            self._changed.notify_all()

    async def take(self, most: int) -> int:
        """Waits until something may be sent, and says how much; 0 once the run is over."""
        async with self._changed:
            await self._changed.wait_for(lambda: self._over or self.sent < self._allowed)
            count = 0 if self._over else min(most, self._allowed - self.sent)
            self.sent += count
            self._changed.notify_all()
            return count

    async def used(self) -> None:
        """Until everything that is allowed was sent."""
        async with self._changed:
            await self._changed.wait_for(lambda: self._over or self.sent >= self._allowed)

    async def end(self) -> None:
        """Nothing more is sent."""
        async with self._changed:
            self._over = True
            self._changed.notify_all()


@dataclass(slots=True)
class Load:
    """Everybody. `patience`: seconds after which somebody writes on without an answer."""

    stage: Stage
    pace: Pace
    people: Sequence[str]
    seed: int
    patience: float = 120.0
    unanswered: list[Said] = field(default_factory=list)

    async def greet(self) -> None:
        """Everybody writes a first direct message and has it answered. Discord shows nobody the direct messages of strangers: a first one
        that is written while no process listens could never be caught up."""
        first = [self.stage.say(name, "direct", f"{name}-1", "hello") for name in self.people]
        answered = await asyncio.gather(*(self.stage.answered(said, self.patience) for said in first))
        self.unanswered += [said for said, known in zip(first, answered, strict=True) if not known]

    async def run(self) -> None:
        """Until the pace ends; after `greet`."""
        async with asyncio.TaskGroup() as group:
            for number, name in enumerate(self.people):
                group.create_task(self._talk(name, random.Random(f"{self.seed} {number}")))

    async def _talk(self, name: str, chance: random.Random) -> None:
        number = 1
        while True:
            await asyncio.sleep(chance.random() * THINKING)
            count = await self.pace.take(chance.randint(1, BURST))
            if not count:
                return
            where = chance.choice(PLACES)
            for more in range(count):
                await asyncio.sleep(chance.random() * TYPING if more else 0.0)
                number += 1
                said = self.stage.say(name, where, f"{name}-{number}", words(chance))
            if not await self.stage.answered(said, self.patience):
                self.unanswered.append(said)


def words(chance: random.Random) -> str:
    """What somebody says behind the token."""
    if chance.random() < REMEMBERED:
        return f"{REMEMBER} it was fine"
    return "and so it went on " * chance.choice((1, 1, 1, 5, 20))


def names(count: int, letter: str = "P") -> list[str]:
    """So many names."""
    return [f"{letter}{number}" for number in range(count)]
