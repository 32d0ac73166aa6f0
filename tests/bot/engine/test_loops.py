"""Ending tasks for good."""

from __future__ import annotations

import asyncio

from bot.engine.loops import ended


async def test_a_task_that_loses_a_cancellation_ends_all_the_same() -> None:
    """As `asyncio.wait_for` does up to Python 3.11; cancelled once, such a task would go on for ever."""
    lost = 0

    async def work() -> None:
        nonlocal lost
        while True:
            try:
                await asyncio.Event().wait()
            except asyncio.CancelledError:
                if lost:
                    raise
                lost += 1

    task = asyncio.create_task(work())
    await asyncio.sleep(0)
    task.cancel()
    async with asyncio.timeout(10):
        await ended([task], patience=0.05)
    assert task.cancelled()
    assert lost == 1


async def test_what_ends_by_itself_is_not_cancelled() -> None:
    task = asyncio.create_task(asyncio.sleep(0.01))
    await ended([task], patience=5.0)
    assert not task.cancelled()
