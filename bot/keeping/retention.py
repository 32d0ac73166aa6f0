"""Retention: what is older than the operator keeps it goes, a little at a time. Any number of processes may do this at once."""

from __future__ import annotations

import logging
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path

from bot.config.keeping import RetentionSection as Days
from bot.engine.loops import forever
from bot.keeping import erasures
from memory import retention
from memory.cache import Cache
from memory.db import Database

log = logging.getLogger(__name__)

EVERY = 3600.0
"""Seconds between two passes."""


class Retention:
    """Looks every hour. `run` goes on until it is cancelled."""

    def __init__(
        self,
        db: Database,
        cache: Cache,
        days: Days,
        data: Path,
        key: bytes,
        *,
        now: Callable[[], datetime] = lambda: datetime.now(UTC),
    ) -> None:
        self._db, self._cache, self._days, self._data, self._key, self._now = db, cache, days, data, key, now

    async def run(self) -> None:
        """Keep to it until cancelled."""
        await forever("retention", self.look, every=EVERY)

    async def look(self) -> None:
        """One pass over every kind."""
        now = self._now()
        removed = await retention.apply(self._db, self._cache, ages(self._days), now)
        await erasures.keep(self._db, self._data, self._key)
        if any(removed.values()):
            log.info("retention removed %s", ", ".join(f"{number} {kind}" for kind, number in removed.items() if number))


def ages(days: Days) -> dict[retention.Kind, timedelta]:
    """How old each kind may become; kinds that stay are left out."""
    chosen: dict[retention.Kind, int] = {
        "messages": days.messages,
        "quotes": days.quotes,
        "quotes_waiting": days.quotes,
        "quotes_derived": days.quotes,
        "quotes_stored": days.quotes,
        "archival": days.archival,
        "documents": days.documents,
        "timers": days.timers,
        "deliveries": days.deliveries,
        "events": days.events,
        "usage": days.usage,
        "log": days.log,
        "erasures": days.erasures,
        "workspaces": days.left_workspaces,
    }
    return {kind: timedelta(days=number) for kind, number in chosen.items() if number}
