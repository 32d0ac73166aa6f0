"""Waiting until something in the server is so, without polling."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import TypeVar

from tests.waiting import stretched

T = TypeVar("T")


class Signal:
    """Wakes who waits whenever anything happened, or (with a `topic`) something about that: thousands may wait side by side."""

    def __init__(self) -> None:
        self._waiting: dict[object, set[asyncio.Future[None]]] = {}

    def notify(self, topic: object = None) -> None:
        for waiting in {None, topic}:
            for future in self._waiting.get(waiting, ()):
                if not future.done():
                    future.set_result(None)

    async def until(self, predicate: Callable[[], T | None], timeout: float, what: str, topic: object = None) -> T:
        """The predicate's first answer that is true. TimeoutError, saying `what`, when it stays false (stretched)."""
        loop = asyncio.get_running_loop()
        limit = loop.time() + stretched(timeout)
        while not (answer := predicate()):
            future = loop.create_future()
            self._waiting.setdefault(topic, set()).add(future)
            try:
                await asyncio.wait_for(future, limit - loop.time())
            except TimeoutError:
                raise TimeoutError(f"not within {timeout} s: {what}") from None
            finally:
                self._leave(topic, future)
        return answer

    def _leave(self, topic: object, future: asyncio.Future[None]) -> None:
        self._waiting[topic].discard(future)
        if not self._waiting[topic]:
            del self._waiting[topic]
