"""The processes of the bot in a chaos run, on one data folder."""

from __future__ import annotations

import asyncio
import os
import signal
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager, suppress
from pathlib import Path

import psutil

from tests.chaos.clock import Clock, clocks
from tests.chaos.stage import Stage
from tests.scenarios.running_bot import RunningBot
from tests.servers.model import ScriptedModel
from tests.waiting import until

PATIENCE = 120.0
"""Seconds in which a process has to say that it serves."""
WORKER = ("--only", "worker", "--only", "scheduler")


class Crew:
    """All processes. `ended` names those that ended by themselves; `clocks` are theirs, where clocks can be moved."""

    def __init__(self, bots: list[RunningBot], clocks: Sequence[Clock] = ()) -> None:
        self._bots, self._clocks = bots, clocks
        self.ended: list[str] = []

    def __len__(self) -> int:
        return len(self._bots)

    @property
    def lines(self) -> list[str]:
        """All that they logged."""
        return [line for bot in self._bots for line in bot.lines]

    async def start(self) -> None:
        """Start those that do not run, the first one before the others, and wait until all serve."""
        first, *others = self._bots
        await self._started(first)
        await asyncio.gather(*(self._started(bot) for bot in others))

    async def _started(self, bot: RunningBot) -> None:
        if not _runs(bot):
            await bot.start(listening=False)
        before = len(self.ended)
        try:
            await until(lambda: self._serves(bot), timeout=PATIENCE, every=0.1)
        except TimeoutError:
            wrong = await self._says(bot)
            raise AssertionError(
                f"process {self._bots.index(bot)} does not serve: {wrong}, {self.ended[before:]}, {bot.lines[-5:]}"
            ) from None

    async def _serves(self, bot: RunningBot) -> bool:
        """Whether it does; one that ended by itself is noted and started again, as a supervisor would."""
        if not _runs(bot):
            assert bot.process is not None
            self.ended.append(f"process {self._bots.index(bot)} ended by itself with {bot.process.returncode}: {bot.lines[-1:]}")
            await bot.start(listening=False)
        with suppress(TimeoutError):
            async with asyncio.timeout(5):
                return await bot.ready()
        return False

    @staticmethod
    async def _says(bot: RunningBot) -> str:
        """What its own health page says is wrong; empty when it gives no answer."""
        with suppress(TimeoutError):
            async with asyncio.timeout(5):
                return "; ".join(await bot.down())
        return "no answer"

    async def kill(self, number: int) -> None:
        """kill -9 of one."""
        await self._bots[number % len(self)].kill()

    async def kill_all(self) -> None:
        """kill -9 of all at once."""
        for bot in self._bots:
            if bot.process is not None and bot.process.returncode is None:
                bot.process.send_signal(signal.SIGKILL)
        await asyncio.gather(*(bot.ended() for bot in self._bots))

    def signal(self, number: int, which: signal.Signals) -> None:
        process = self._bots[number % len(self)].process
        assert process is not None
        assert process.pid is not None
        os.kill(process.pid, which)

    def frozen(self, number: int) -> bool:
        """Whether it is stopped, and has not ended."""
        process = self._bots[number % len(self)].process
        return process is not None and psutil.Process(process.pid).status() == psutil.STATUS_STOPPED

    def clock(self, number: int) -> Clock:
        return self._clocks[number % len(self)]

    def memory(self) -> dict[int, float]:
        """What each has now, in MB, by the number of its process."""
        found = {}
        for bot in self._bots:
            with suppress(psutil.NoSuchProcess):
                assert bot.process is not None
                found[bot.process.pid] = psutil.Process(bot.process.pid).memory_info().rss / 1e6
        return found

    async def stop(self) -> list[str]:
        """SIGTERM to all, the first one last; what did not end as it should."""
        wrong = []
        for bot in reversed(self._bots):
            code = await bot.stop()
            if code not in (0, 2):
                wrong.append(f"process {self._bots.index(bot)} stopped with {code}: {bot.lines[-3:]}")
        return wrong

    async def leave(self) -> None:
        """Whatever state they are in."""
        for bot in self._bots:
            if bot.process is not None and bot.process.returncode is None:
                bot.process.send_signal(signal.SIGCONT)
            await bot.leave()


def _runs(bot: RunningBot) -> bool:
    return bot.process is not None and bot.process.returncode is None


@asynccontextmanager
async def crew_on(
    stage: Stage, model: ScriptedModel, data: Path, size: int, settings: Mapping[str, str], *, moving: bool = False
) -> AsyncIterator[Crew]:
    """So many processes that run, all of them with the platform where that goes; else the first one has it and the others work.

    `moving`: their clocks can be moved.
    """
    named = {f"KEEPSAKE__{name}": value for name, value in settings.items()}
    found = clocks(data.parent, size) if moving else []
    bots = [stage.bot(model, data, named | (found[number].environment if found else {})) for number in range(size)]
    if not stage.everywhere:
        for bot in bots[1:]:
            bot.arguments = WORKER
    crew = Crew(bots, found)
    try:
        await crew.start()
        yield crew
    finally:
        await crew.leave()
