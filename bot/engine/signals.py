"""Signals between the parts of one process: who sends for which channel, and which turn runs in which task."""

from __future__ import annotations

import asyncio
from collections.abc import Collection

from bot.engine.events import Claim


class Senders:
    """The outbox senders of this process. A step tells them of new replies without a round trip through Postgres."""

    def __init__(self) -> None:
        self._served: list[tuple[str, Collection[str] | None, asyncio.Event]] = []

    def serve(self, platform: str, channels: Collection[str] | None) -> asyncio.Event:
        """Register a sender; the event is set when there may be something for it to send."""
        event = asyncio.Event()
        self._served.append((platform, channels, event))
        return event

    def leave(self, event: asyncio.Event) -> None:
        """Take a sender's registration back."""
        self._served = [entry for entry in self._served if entry[2] is not event]

    def serves(self, platform: str, channel: str) -> bool:
        """Whether a sender of this process takes what goes to a channel."""
        return any(platform == name and (channels is None or channel in channels) for name, channels, _ in self._served)

    def made(self, platform: str, channel: str) -> None:
        """There is something new for a channel."""
        for name, channels, event in self._served:
            if platform == name and (channels is None or channel in channels):
                event.set()

    def look(self) -> None:
        """Other processes may have made something: everybody looks."""
        for _, _, event in self._served:
            event.set()


class Stopper:
    """The tasks of the turns that run in this process, so that `/stop` ends a model call in flight at once."""

    def __init__(self) -> None:
        self._running: dict[int, tuple[Claim, asyncio.Task[None]]] = {}
        self._stopped: set[asyncio.Task[None]] = set()

    def add(self, claim: Claim, task: asyncio.Task[None]) -> None:
        """The claim's turn runs in the task."""
        self._running[claim.agent] = claim, task

    def remove(self, claim: Claim, task: asyncio.Task[None]) -> bool:
        """The task is over; returns whether it was stopped from here."""
        if self._running.get(claim.agent, (None, None))[1] is task:
            del self._running[claim.agent]
        stopped = task in self._stopped
        self._stopped.discard(task)
        return stopped

    def running(self, agent: int | None = None) -> tuple[Claim, ...]:
        """The claims whose turns run in this process, of one agent or of all."""
        return tuple(claim for key, (claim, _) in self._running.items() if agent is None or key == agent)

    def stop(self, claim: Claim) -> None:
        """Cancel the claim's turn, if it still runs here."""
        running, task = self._running.get(claim.agent, (None, None))
        if running is claim and task is not None and not task.done():
            self._stopped.add(task)
            task.cancel()
