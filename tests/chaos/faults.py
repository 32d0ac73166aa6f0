"""Doing the faults of a schedule to a running bot, from outside, each to its end: when it returns, everything serves again."""

from __future__ import annotations

import asyncio
import os
import random
import signal
import time
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from pathlib import Path

from tests.chaos.brain import Brain, Mode
from tests.chaos.crew import Crew
from tests.chaos.points import Points
from tests.chaos.schedule import Fault, Kind
from tests.chaos.stage import Stage
from tests.chaos.stores import PATIENCE, Stores, ended, kill
from tests.waiting import until

LOST_ANSWERS = 5
"""Posts in a row whose answer is lost."""


@dataclass(frozen=True, slots=True)
class Episode:
    """A fault that was done, from its beginning to when everything served again, on the monotonic clock.

    `struck`: how much it struck, in the unit of its kind; 0: it may as well not have been done. `killed`: when a process was killed.
    """

    fault: Fault
    began: float
    ended: float
    struck: int = 1
    killed: float | None = None

    def __str__(self) -> str:
        return f"{self.fault}: {self.ended - self.began:.1f} s, struck {self.struck}"


@dataclass(slots=True)
class Faults:
    """Does faults. `episodes` is what was done so far."""

    crew: Crew
    stage: Stage
    brain: Brain
    stores: Stores
    points: Points
    episodes: list[Episode] = field(default_factory=list)
    _killed: float | None = None

    async def do(self, fault: Fault) -> Episode:
        """One fault to its end."""
        began, self._killed = time.monotonic(), None
        struck = await self._acts[fault.kind](fault)
        await self.stores.until_back()
        await self.crew.start()
        episode = Episode(fault, began, time.monotonic(), struck, self._killed)
        self.episodes.append(episode)
        return episode

    @property
    def _acts(self) -> dict[Kind, Callable[[Fault], Awaitable[int]]]:
        return {
            "kill": self._kill,
            "freeze": self._freeze,
            "postgres_quit": self._postgres_quit,
            "postgres_kill": self._postgres_kill,
            "backend_kill": self._backend_kill,
            "redis_kill": self._redis_kill,
            "redis_empty": self._redis_empty,
            "session_cut": self._session_cut,
            "session_lost": self._session_lost,
            "answer_lost": self._answer_lost,
            "model_error": self._model,
            "model_hang": self._model,
            "model_reset": self._model,
            "disk_full": self._disk_full,
            "clock": self._clock,
            "kill_at": self._kill_at,
        }

    # Each returns how much it struck, as seen from outside: processes, connections, keys, posts, requests, readings of the clock.

    async def _kill(self, fault: Fault) -> int:
        self._killed = time.monotonic()
        await self.crew.kill(fault.process)
        return 1

    async def _freeze(self, fault: Fault) -> int:
        self.crew.signal(fault.process, signal.SIGSTOP)
        try:
            await until(lambda: self.crew.frozen(fault.process), timeout=PATIENCE)
            await asyncio.sleep(fault.seconds)
            return int(self.crew.frozen(fault.process))
        finally:
            self.crew.signal(fault.process, signal.SIGCONT)

    async def _postgres_quit(self, fault: Fault) -> int:
        return await self._crash(self.stores.postmaster(), signal.SIGQUIT)

    async def _postgres_kill(self, fault: Fault) -> int:
        return await self._crash(self.stores.postmaster())

    async def _backend_kill(self, fault: Fault) -> int:
        await until(self.stores.backends, timeout=PATIENCE)
        return await self._crash(random.Random(fault.number).choice(self.stores.backends()))

    async def _crash(self, victim: int, how: signal.Signals = signal.SIGKILL) -> int:
        """The end of one of PostgreSQL's processes is the end of every backend."""
        backends = self.stores.backends()
        kill(victim, how)
        await ended(victim)
        for backend in backends:
            await ended(backend)
        return len(backends)

    async def _redis_kill(self, fault: Fault) -> int:
        redis = self.stores.redis()
        kill(redis)
        await ended(redis)
        return 1

    async def _redis_empty(self, fault: Fault) -> int:
        return await self.stores.empty_redis()

    async def _session_cut(self, fault: Fault) -> int:
        return await self.stage.cut_sessions()

    async def _session_lost(self, fault: Fault) -> int:
        return await self.stage.lose_sessions()

    async def _answer_lost(self, fault: Fault) -> int:
        return await self.stage.lose_answers(LOST_ANSWERS)

    async def _model(self, fault: Fault) -> int:
        modes: dict[Kind, Mode] = {"model_error": "failing", "model_hang": "hanging", "model_reset": "resetting"}
        self.brain.become(modes[fault.kind])
        await asyncio.sleep(fault.seconds)
        return self.brain.become("well")

    async def _disk_full(self, fault: Fault) -> int:
        filler = self.stores.data.parent / "filler"
        await asyncio.to_thread(_fill, filler)
        try:
            await asyncio.sleep(fault.seconds)
            return int(not os.statvfs(filler).f_bavail)
        finally:
            filler.unlink()

    async def _clock(self, fault: Fault) -> int:
        clock = self.crew.clock(fault.process)
        before = clock.readings
        clock.move(fault.shift)
        try:
            await asyncio.sleep(fault.seconds)
            return clock.readings - before
        finally:
            clock.move(0)

    async def _kill_at(self, fault: Fault) -> int:
        assert fault.point is not None
        await self.points.kill(fault.point, fault.number)
        self._killed = self.points.killed_at
        return len(self.crew)


def _fill(filler: Path) -> None:
    """Writes until nothing more goes in."""
    block = b"\0" * 2**16
    with filler.open("wb", buffering=0) as file:
        try:
            while file.write(block) == len(block):
                pass
        except OSError:
            return
