"""Waiting for a condition instead of sleeping, longer where the machine is busy."""

from __future__ import annotations

import asyncio
import inspect
import os
import time
from collections.abc import Awaitable, Callable


def stretched(seconds: float) -> float:
    """A deadline for a quiet machine, in seconds; as many times longer as processes here compete for a core."""
    return seconds * max(1.0, os.getloadavg()[0] / (os.cpu_count() or 1))


async def until(predicate: Callable[[], object | Awaitable[object]], timeout: float = 10.0, every: float = 0.01) -> object:
    """Ask until the answer is true and return it; the predicate may be async. Fails with TimeoutError after `timeout` seconds, stretched."""
    began = time.monotonic()
    while True:
        answer = predicate()
        if inspect.isawaitable(answer):
            answer = await answer
        if answer:
            return answer
        if time.monotonic() - began > timeout and time.monotonic() - began > stretched(timeout):
            raise TimeoutError(
                f"not within {timeout} s: {inspect.getsource(predicate).strip() if inspect.isfunction(predicate) else predicate}"
            )
        await asyncio.sleep(every)
