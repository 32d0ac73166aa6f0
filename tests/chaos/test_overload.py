"""The short form of the overload: everybody waits alike, deadlines hold, memory stays, and who floods the bot is slowed alone."""

from __future__ import annotations

import pytest

from tests.chaos.figures import percentile
from tests.chaos.overload import FLOOD, TAKES, overload

DEADLINE = 3.0
"""Seconds in which one message has its answer once the storm is over, on a machine that does other things too."""


@pytest.mark.timeout(480)
async def test_ten_times_too_much_is_answered_evenly_and_a_flood_slows_its_own_person_alone() -> None:
    overloaded = await overload("discord", people=60, seconds=4)
    assert not overloaded.findings, "\n".join(map(str, overloaded.findings))
    assert overloaded.deepest > overloaded.messages / 3, "it was no overload"
    assert max(overloaded.mean) <= 2.5 * percentile(overloaded.mean, 0.5), f"somebody starved: {sorted(overloaded.mean)}"
    assert not overloaded.late
    assert overloaded.commands
    before, most = overloaded.memory
    assert most < before * 1.2, overloaded
    assert overloaded.afterwards < DEADLINE + TAKES
    assert percentile(overloaded.calm, 0.95) < DEADLINE + TAKES, overloaded
    assert overloaded.flood >= FLOOD * TAKES, "who floods is not slowed"
