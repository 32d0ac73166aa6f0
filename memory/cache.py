"""Redis, which holds only what may vanish: one state a conversation, which names every version it was made from.

A stale entry can never be used, because it is compared with the versions that the database has; a lost one costs a query. Every fault of
Redis is a miss, logged once until it works again.
"""

from __future__ import annotations

import json
import logging
import time
from collections.abc import Awaitable, Mapping, Sequence
from typing import Any, cast

from redis.asyncio import Redis
from redis.asyncio.retry import Retry
from redis.backoff import NoBackoff
from redis.exceptions import RedisError

log = logging.getLogger(__name__)

LIFETIME = 3600
"""Seconds an entry stays; an agent's next message after longer than that is read from Postgres."""
PAUSE = 5.0
"""Seconds without a try after a fault, so that a dead Redis does not slow every turn."""
HOLD = 60
"""Seconds after forgetting in which nothing of that agent is stored: a turn that ended just before may still want to."""

# Whether an agent is held is looked at where it is stored, in one go.
_PUT = """if redis.call('exists', KEYS[2]) == 1 then return 0 end
redis.call('set', KEYS[1], ARGV[1], 'EX', ARGV[2]) return 1"""


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
        """Store a value for `LIFETIME` seconds under `keepsake:<agent>:...`; nothing while the agent is held after a forgetting."""
        if self._redis is None or time.monotonic() < self._resume_at:
            return
        try:
            await cast(
                Awaitable[int],
                self._redis.eval(_PUT, 2, key, _hold(key.removeprefix("keepsake:").split(":")[0]), json.dumps(value), LIFETIME),
            )
        except (RedisError, OSError) as error:
            self._failed(error)
        else:
            self._worked()

    async def forget(self, agent: int, *, hold: int = HOLD) -> int:
        """Delete every key of an agent and let nothing be stored for `hold` seconds; returns how many there were.

        Call it before the commit that forgets: nothing is stored meanwhile, so nothing stays behind if the process dies in between.
        Raises RedisError when it cannot be known.
        """
        if self._redis is None:
            return 0
        await self._redis.set(_hold(agent), 1, ex=hold)
        keys = await self._keys(agent)
        return int(await self._redis.delete(*keys)) if keys else 0

    async def empty(self) -> None:
        """Delete everything of every agent: a restored database counts its versions anew, and a process that died may have left something
        that was forgotten. Raises RedisError."""
        if self._redis is not None:
            keys = [key async for key in self._redis.scan_iter(match="keepsake:*", count=1000)]
            for start in range(0, len(keys), 1000):
                await self._redis.delete(*keys[start : start + 1000])

    async def left(self, agent: int) -> int:
        """How many keys of an agent there are. Raises RedisError when that cannot be known."""
        return len(await self._keys(agent))

    async def holding(self, words: Sequence[str], agents: Sequence[int] | None) -> int:
        """How many states hold any of these words (in lower case), of some agents or with None of all. Raises RedisError."""
        if self._redis is None:
            return 0
        matches = ["keepsake:*"] if agents is None else [f"keepsake:{agent}:*" for agent in agents]
        found = 0
        for match in matches:
            async for key in self._redis.scan_iter(match=match, count=1000):
                raw = await self._redis.get(key)
                # As Python writes JSON: beyond ASCII in escapes, so it is read, and written again without.
                text = "" if raw is None else json.dumps(json.loads(raw), ensure_ascii=False).lower()
                found += any(word in text for word in words)
        return found

    async def _keys(self, agent: int) -> list[bytes]:
        if self._redis is None:
            return []
        return [key async for key in self._redis.scan_iter(match=f"keepsake:{agent}:*", count=1000)]

    async def forget_quietly(self, agent: int) -> None:
        """As `forget`; without Redis what it still holds is never asked for again and vanishes within `LIFETIME`."""
        try:
            await self.forget(agent)
        except (RedisError, OSError) as error:
            self._failed(error)

    async def empty_quietly(self) -> None:
        """As `empty`, at a start: without Redis there is nothing to be used."""
        try:
            await self.empty()
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


def _hold(agent: int | str) -> str:
    return f"keepsake-hold:{agent}"
