"""`bot bench erasure` in small: nothing is left, and the report says how long it took."""

from __future__ import annotations

import asyncio

from bot.bench import erasure
from bot.embedded import Servers


def test_in_small(running: Servers) -> None:
    times, left = asyncio.run(erasure.run(running, count=400, people=4, say=lambda _: None))
    assert times.left == sum(left.values()) == 0
    assert min(times.erase, times.bare) > 0
    shown = erasure.report(times, left)
    assert "400 messages" in shown
    assert "Left after it: 0. Left of people erased under load: 0" in shown
