"""Discord's ids: they grow, and they carry the time."""

from __future__ import annotations

import time
from datetime import UTC, datetime

EPOCH = 1_420_070_400_000


class Snowflakes:
    """Makes ids that only ever grow; several in one millisecond share its time."""

    def __init__(self) -> None:
        self._last = 0

    def next(self) -> int:
        fresh = (time.time_ns() // 1_000_000 - EPOCH) << 22
        self._last = max(self._last + 1, fresh)
        return self._last

    def of_shard(self, shard: int, count: int) -> int:
        """An id of a guild that `shard` of `count` receives."""
        while True:
            made = self.next()
            if (made >> 22) % count == shard:
                return made
            self._last += 1 << 22


def moment(snowflake: int) -> datetime:
    """When the id was made."""
    return datetime.fromtimestamp(((snowflake >> 22) + EPOCH) / 1000, UTC)


def stamp(when: datetime) -> str:
    """A time as the API writes it."""
    return when.astimezone(UTC).isoformat(timespec="microseconds")
