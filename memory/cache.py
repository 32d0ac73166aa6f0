"""Redis, which holds only what may vanish: rendered-ready state under a key that names every version it was made from.

A stale entry can never be used, because its key is never asked for again; a lost one costs a query. Every fault of Redis is a miss,
logged once until it works again.
"""

from __future__ import annotations

import json
import logging
import time
from collections.abc import Mapping
from typing import Any

from redis.asyncio import Redis
from redis.asyncio.retry import Retry
from redis.backoff import NoBackoff
from redis.exceptions import RedisError

log = logging.getLogger(__name__)

LIFETIME = 3600
"""Seconds an entry stays; an agent's next message after longer than that is read from Postgres."""
PAUSE = 5.0
"""Seconds without a try after a fault, so that a dead Redis does not slow every turn."""


class Cache:
    """Get and put JSON values; never raises for Redis' sake. `url` None: no cache at all."""

    def __init__(self, url: str | None, *, timeout: float = 0.5) -> None:
        self._redis: Redis | None = None
        if url:
            self._redis = Redis.from_url(
                url, socket_timeout=timeout, socket_connect_timeout=timeout, retry=Retry(NoBackoff(), 0), max_connections=50
            )
        self._resume_at = 0.0
        self.healthy = True

    async def get(self, key: str) -> Any | None:
        """The value under a key, or None when it is not there, not readable, or Redis is away."""
        if self._redis is None or time.monotonic() < self._resume_at:
            return None
        try:
            raw = await self._redis.get(key)
        except (RedisError, OSError) as error:
            self._failed(error)
            return None
        self._worked()
        try:
            return None if raw is None else json.loads(raw)
        except ValueError:
            return None

    async def put(self, key: str, value: Mapping[str, Any]) -> None:
        """Store a value for `LIFETIME` seconds."""
        if self._redis is None or time.monotonic() < self._resume_at:
            return
        try:
            await self._redis.set(key, json.dumps(value), ex=LIFETIME)
        except (RedisError, OSError) as error:
            self._failed(error)
        else:
            self._worked()

    async def forget(self, agent: int) -> int:
        """Delete every key of an agent; returns how many there were. Raises RedisError when that cannot be known."""
        if self._redis is None:
            return 0
        keys = [key async for key in self._redis.scan_iter(match=f"keepsake:{agent}:*", count=1000)]
        return int(await self._redis.delete(*keys)) if keys else 0

    async def forget_quietly(self, agent: int) -> None:
        """As `forget`; without Redis what it still holds is never asked for again and vanishes within `LIFETIME`."""
        try:
            await self.forget(agent)
        except (RedisError, OSError) as error:
            self._failed(error)

    async def ping(self) -> None:
        """Raise RedisError or OSError when Redis does not answer; nothing when there is no cache."""
        if self._redis is not None:
            await self._redis.ping()

    async def close(self) -> None:
        """Give the connections back."""
        if self._redis is not None:
            await self._redis.aclose()

    def _failed(self, error: Exception) -> None:
        if self.healthy:
            log.warning("Redis is away (%s); going on from Postgres, slower", type(error).__name__)
        self.healthy = False
        self._resume_at = time.monotonic() + PAUSE

    def _worked(self) -> None:
        if not self.healthy:
            log.info("Redis is back")
        self.healthy = True
