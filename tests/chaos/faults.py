"""Doing the faults of a schedule to a running bot, from outside, each to its end: when it returns, everything serves again."""

from __future__ import annotations

import asyncio
import random
import signal
import time
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from pathlib import Path

from tests.chaos.brain import Brain
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
    """A fault that was done, from its beginning to when everything served again, on the monotonic clock."""

    fault: Fault
    began: float
    ended: float

    def __str__(self) -> str:
        return f"{self.fault}: {self.ended - self.began:.1f} s"


@dataclass(slots=True)
class Faults:
    """Does faults. `episodes` is what was done so far, `wrong` what went wrong in doing it."""

    crew: Crew
    stage: Stage
    brain: Brain
    stores: Stores
    points: Points
    episodes: list[Episode] = field(default_factory=list)

    async def do(self, fault: Fault) -> Episode:
        """One fault to its end."""
        began = time.monotonic()
        await self._acts[fault.kind](fault)
        await self.stores.until_back()
        await self.crew.start()
        episode = Episode(fault, began, time.monotonic())
        self.episodes.append(episode)
        return episode

    @property
    def _acts(self) -> dict[Kind, Callable[[Fault], Awaitable[None]]]:
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
            "kill_at": self._kill_at,
        }

    async def _kill(self, fault: Fault) -> None:
        await self.crew.kill(fault.process)

    async def _freeze(self, fault: Fault) -> None:
        self.crew.signal(fault.process, signal.SIGSTOP)
        try:
            await asyncio.sleep(fault.seconds)
        finally:
            self.crew.signal(fault.process, signal.SIGCONT)

    async def _postgres_quit(self, fault: Fault) -> None:
        postmaster = self.stores.postmaster()
        kill(postmaster, signal.SIGQUIT)
        await ended(postmaster)

    async def _postgres_kill(self, fault: Fault) -> None:
        postmaster = self.stores.postmaster()
        kill(postmaster)
        await ended(postmaster)

    async def _backend_kill(self, fault: Fault) -> None:
        await until(self.stores.backends, timeout=PATIENCE)
        victim = random.Random(fault.number).choice(self.stores.backends())
        kill(victim)
        await ended(victim)

    async def _redis_kill(self, fault: Fault) -> None:
        redis = self.stores.redis()
        kill(redis)
        await ended(redis)

    async def _redis_empty(self, fault: Fault) -> None:
        await self.stores.empty_redis()

    async def _session_cut(self, fault: Fault) -> None:
        self.stage.cut_sessions()

    async def _session_lost(self, fault: Fault) -> None:
        self.stage.lose_sessions()

    async def _answer_lost(self, fault: Fault) -> None:
        self.stage.lose_answers(LOST_ANSWERS)

    async def _model(self, fault: Fault) -> None:
        modes = {"model_error": "failing", "model_hang": "hanging", "model_reset": "resetting"}
        self.brain.become(modes[fault.kind])  # type: ignore[arg-type]
        await asyncio.sleep(fault.seconds)
        self.brain.become("well")

    async def _disk_full(self, fault: Fault) -> None:
        filler = self.stores.data.parent / "filler"
        await asyncio.to_thread(_fill, filler)
        try:
            await asyncio.sleep(fault.seconds)
        finally:
            filler.unlink()

    async def _kill_at(self, fault: Fault) -> None:
        assert fault.point is not None
        await self.points.kill(fault.point, fault.number)


def _fill(filler: Path) -> None:
    """Writes until nothing more goes in."""
    block = b"\0" * 2**16
    with filler.open("wb", buffering=0) as file:
        try:
            while file.write(block) == len(block):
                pass
        except OSError:
            return
