"""The short form of the overload: everybody waits alike, deadlines hold, memory stays, and who floods the bot is slowed alone."""

from __future__ import annotations

from dataclasses import replace

import pytest

from tests.chaos.auditor import Finding
from tests.chaos.overload import FLOOD, TAKES, Overloaded, overload

WELL = Overloaded(
    messages=900,
    mean=[20.0] * 50,
    deepest=800,
    drained=40.0,
    memory=(200.0, 210.0),
    late=(),
    commands=30,
    afterwards=0.7,
    calm=[0.8] * 80,
    flood=FLOOD * TAKES + 2,
    findings=(),
)


async def test_ten_times_too_much_is_answered_evenly_and_a_flood_slows_its_own_person_alone() -> None:
    overloaded = await overload("discord", people=60, seconds=4)
    assert overloaded.wrong() == [], str(overloaded)


def test_nothing_is_wrong_where_every_promise_holds() -> None:
    assert WELL.wrong() == []


@pytest.mark.parametrize(
    ("broken", "told"),
    [
        ({"findings": (Finding("lost", "P0-1"),)}, "lost: P0-1"),
        ({"deepest": 100}, "no overload"),
        ({"mean": [*[20.0] * 49, 70.0]}, "somebody starved: 70.0 s"),
        ({"memory": (200.0, 260.0)}, "memory grew"),
        ({"late": ("one",)}, "1 acknowledgements"),
        ({"commands": 0}, "no command"),
        ({"afterwards": 9.0}, "did not recover"),
        ({"calm": [*[0.8] * 70, *[9.0] * 10]}, "a flood slows others: 9.0 s"),
        ({"flood": 3.0}, "who floods is not slowed"),
    ],
)
def test_a_broken_promise_is_told(broken: dict[str, object], told: str) -> None:
    (wrong,) = replace(WELL, **broken).wrong()  # type: ignore[arg-type]
    assert told in wrong
