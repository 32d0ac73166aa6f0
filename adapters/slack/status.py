"""The status line that shows while an agent works: set late, cleared on every way out, and never written after the end.

Each conversation has one task that alone writes its status, one call at a time: so a call that was under way when the work ended is
followed by the one that clears it. Slack takes a status away itself when something is posted; while the work goes on it is set again.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from dataclasses import dataclass, field

from adapters.catalogue import say

AFTER = 0.2
"""Seconds of work before a status shows: an answer that is there at once needs no sign."""
AGAIN = 2.0
"""Seconds after a post until the status is set again, if the work goes on: mostly it was the last."""
RENEWED = 90.0
"""Seconds after which a status is set anew: Slack takes it away after two minutes."""
THINKING = say("platform.thinking", None)
"""In English: several may read it."""

Write = Callable[[str, str], Awaitable[bool]]
"""Sets the status of a place; False when it cannot have any. Raises nothing."""


@dataclass(slots=True)
class _Line:
    """One place's status: how much work goes on, since when Slack shows it, and when something was posted."""

    works: int = 0
    shown_at: float | None = None
    posted_at: float = float("-inf")
    changed: asyncio.Event = field(default_factory=asyncio.Event)
    task: asyncio.Task[None] | None = None

    def due(self, now: float) -> bool:
        """Whether it has to be set."""
        return now - self.posted_at >= AGAIN and (self.shown_at is None or now - self.shown_at > RENEWED)


class Statuses:
    """The status lines of all places."""

    def __init__(self, write: Write) -> None:
        self._write = write
        self._lines: dict[str, _Line] = {}

    def working(self, place: str) -> AbstractAsyncContextManager[None]:
        """The status shows as long as any context for the place is open."""

        @asynccontextmanager
        async def shown() -> AsyncIterator[None]:
            line = self._lines.setdefault(place, _Line())
            line.works += 1
            line.task = line.task or asyncio.create_task(self._keep(place, line), name="slack status")
            try:
                yield
            finally:
                line.works -= 1
                line.changed.set()

        return shown()

    def posted(self, place: str) -> None:
        """Something was posted: Slack took the status away."""
        if (line := self._lines.get(place)) is not None:
            line.shown_at, line.posted_at = None, time.monotonic()

    async def _keep(self, place: str, line: _Line) -> None:
        """Write until the work is over; what begins while the status is being cleared is begun anew."""
        while line.works:
            await self._while_working(place, line)
        del self._lines[place]

    async def _while_working(self, place: str, line: _Line) -> None:
        tried, possible = False, True
        while not await _ended_within(line, AGAIN if tried else AFTER):
            if possible and line.due(time.monotonic()):
                line.shown_at, tried = time.monotonic(), True
                possible = await self._write(place, THINKING)
        # Also when a post took it away: a call that was on its way may have come after that.
        if tried and possible:
            await self._write(place, "")
        line.shown_at = None

    async def settle(self, seconds: float) -> None:
        """Let what is being cleared come to its end."""
        tasks = [line.task for line in self._lines.values() if line.task is not None]
        if tasks:
            _, late = await asyncio.wait(tasks, timeout=seconds)
            for task in late:
                task.cancel()


async def _ended_within(line: _Line, seconds: float) -> bool:
    """Whether the work ends within some seconds."""
    try:
        async with asyncio.timeout(seconds):
            while line.works:
                line.changed.clear()
                await line.changed.wait()
    except TimeoutError:
        return False
    return True
