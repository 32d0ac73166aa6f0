"""Who has just come online. Pure: Discord says it once for each guild in common, and at every change of an activity."""

from __future__ import annotations

FLAP = 600.0
"""Seconds in which somebody who goes and comes is not seen again."""
SETTLING = 60.0
"""Seconds after a connection in which an unknown state is learnt and no login."""
ONLINE = frozenset(("online", "idle", "dnd"))


class Presences:
    """The last state of each person."""

    def __init__(self) -> None:
        self._online: dict[int, bool] = {}
        self._seen: dict[int, float] = {}
        self._connected = 0.0

    def connected(self, now: float) -> None:
        """A new session: states are unknown, as changes may have been missed."""
        self._online.clear()
        self._connected = now

    def login(self, user: int, status: str, now: float) -> bool:
        """Whether this update means that the person has come online."""
        online = status in ONLINE
        before = self._online.get(user)
        self._online[user] = online
        if not online or before:
            return False
        if before is None and now < self._connected + SETTLING:
            return False
        last = self._seen.get(user)
        if last is not None and now < last + FLAP:
            return False
        self._seen[user] = now
        return True
