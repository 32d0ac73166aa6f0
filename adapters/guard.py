"""The guard against two bots that answer each other."""

from __future__ import annotations

from collections import deque

WINDOW = 600.0
IN_WINDOW = 6
"""Messages of one bot in one channel that are answered within the window."""
SINCE_HUMAN = 4
"""Messages of bots in one channel that are answered since a person last wrote there."""


class PairGuard:
    """Whether one more message of an allowed bot is answered. Our own replies count for nothing, so that they break no row."""

    def __init__(self) -> None:
        self._times: dict[tuple[str, str], deque[float]] = {}
        self._since_human: dict[str, int] = {}

    def person(self, channel: str) -> None:
        """A person wrote here."""
        self._since_human.pop(channel, None)

    def bot(self, channel: str, author: str, at: float) -> bool:
        """A bot wrote here, `at` in seconds; true when it may be answered, which is then counted."""
        times = self._times.setdefault((channel, author), deque())
        while times and times[0] <= at - WINDOW:
            times.popleft()
        turns = self._since_human.get(channel, 0)
        if len(times) >= IN_WINDOW or turns >= SINCE_HUMAN:
            return False
        times.append(at)
        self._since_human[channel] = turns + 1
        return True
