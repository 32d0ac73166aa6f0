"""Waiting until something in the server is so, without polling."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import TypeVar

T = TypeVar("T")


class Signal:
    """Wakes who waits whenever anything happened."""

    def __init__(self) -> None:
        self._waiting: set[asyncio.Future[None]] = set()

    def notify(self) -> None:
        for future in self._waiting:
            if not future.done():
                future.set_result(None)

    async def until(self, predicate: Callable[[], T | None], timeout: float, what: str) -> T:
        """The predicate's first answer that is true. TimeoutError, saying `what`, when it stays false."""
        loop = asyncio.get_running_loop()
        limit = loop.time() + timeout
        while not (answer := predicate()):
            future = loop.create_future()
            self._waiting.add(future)
            try:
                await asyncio.wait_for(future, limit - loop.time())
            except TimeoutError:
                raise TimeoutError(f"not within {timeout} s: {what}") from None
            finally:
                self._waiting.discard(future)
        return answer
