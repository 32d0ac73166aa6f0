"""Loops that outlive errors, and ending tasks for good."""

from __future__ import annotations

import asyncio
import re
import time

import pytest

from bot.engine.loops import ended, forever
from tests.waiting import until


@pytest.mark.parametrize(
    ("lasts", "waits"),
    [
        pytest.param(0.0, ["0.1", "0.2", "0.3", "0.3"], id="a trouble that lasts is asked after less and less often"),
        pytest.param(0.4, ["0.1", "0.1", "0.1", "0.1"], id="the next trouble is a new one, though the loop never returns"),
    ],
)
async def test_the_wait_grows_within_one_trouble_only(lasts: float, waits: list[str], caplog: pytest.LogCaptureFixture) -> None:
    async def connected() -> None:
        began = time.monotonic()
        await until(lambda: time.monotonic() - began >= lasts)
        raise ConnectionError

    loop = asyncio.create_task(forever("listening", connected, every=0.0, first=0.1, cap=0.3))
    await until(lambda: caplog.text.count("again in") >= len(waits), timeout=20)
    loop.cancel()
    assert re.findall(r"again in (\S+) s", caplog.text) == waits


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
    over = asyncio.Event()
    task = asyncio.create_task(over.wait())
    asyncio.get_running_loop().call_soon(over.set)
    await ended([task], patience=5.0)
    assert not task.cancelled()
