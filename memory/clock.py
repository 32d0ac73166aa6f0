"""The time by the database's clock, which is the same for all processes. That of a machine can be set while they run, or be wrong."""

from __future__ import annotations

import time
from datetime import UTC, datetime


class Clock:
    """Called, it gives the time. Between two looks at the database it goes on with the monotonic clock, which nobody sets."""

    def __init__(self) -> None:
        # Seconds since 1970 at which the monotonic clock was 0; until the database was asked, by this machine's clock.
        self._origin = time.time() - time.monotonic()

    def __call__(self) -> datetime:
        return datetime.fromtimestamp(self._origin + time.monotonic(), UTC)

    def told(self, theirs: float, asked: float, came: float) -> None:
        """What the database's clock showed (in seconds since 1970) at some moment between two of our monotonic clock.

        Within what that leaves open nothing is changed, so that an answer which takes long does not turn the time back.
        """
        origin = theirs - (asked + came) / 2
        if abs(origin - self._origin) > (came - asked) / 2:
            self._origin = origin
