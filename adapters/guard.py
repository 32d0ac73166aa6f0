"""Limits of conversation: two bots that answer each other, and how much one person may ask a day."""

from __future__ import annotations

from collections import deque
from datetime import UTC, datetime

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


class DailyLimit:
    """How many messages of each person were taken today (UTC), in this process; a limit of 0 is none."""

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self._day = ""
        self._taken: dict[str, int] = {}
        self._told: set[str] = set()

    def spent(self, person: str, at: datetime) -> bool:
        """Whether nothing more is taken of this person today."""
        self._turn(at)
        return 0 < self._limit <= self._taken.get(person, 0)

    def take(self, person: str, at: datetime) -> None:
        """One more was taken."""
        self._turn(at)
        self._taken[person] = self._taken.get(person, 0) + 1

    def tell(self, person: str) -> bool:
        """True the first time a day: then the person is told."""
        fresh = person not in self._told
        self._told.add(person)
        return fresh

    def _turn(self, at: datetime) -> None:
        day = at.astimezone(UTC).date().isoformat()
        if day > self._day:
            self._day, self._taken, self._told = day, {}, set()
