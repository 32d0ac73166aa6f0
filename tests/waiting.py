"""Waiting for a condition instead of sleeping."""

from __future__ import annotations

import asyncio
import inspect
import time
from collections.abc import Awaitable, Callable


async def until(predicate: Callable[[], object | Awaitable[object]], timeout: float = 10.0, every: float = 0.01) -> object:
    """Ask until the answer is true and return it; the predicate may be async. Fails with TimeoutError after `timeout` seconds."""
    limit = time.monotonic() + timeout
    while True:
        answer = predicate()
        if inspect.isawaitable(answer):
            answer = await answer
        if answer:
            return answer
        if time.monotonic() > limit:
            raise TimeoutError(
                f"not within {timeout} s: {inspect.getsource(predicate).strip() if inspect.isfunction(predicate) else predicate}"
            )
        await asyncio.sleep(every)
