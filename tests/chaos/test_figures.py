"""The schedule is the seed's, and the figures are those of the run."""

from __future__ import annotations

import pytest

from tests.chaos.figures import Recovery, growth, merged, missed, overlap, percentile, recovery, waits
from tests.chaos.schedule import KINDS, LASTING, POINTS, schedule
from tests.chaos.snapshots import Said, Seen, Shown


def test_the_same_seed_gives_the_same_faults() -> None:
    assert schedule(7, 100, 3) == schedule(7, 100, 3)
    assert schedule(7, 100, 3) != schedule(8, 100, 3)


def test_every_kind_and_every_point_comes_before_any_comes_again() -> None:
    faults = schedule(7, len(KINDS) * len(POINTS), 3)
    assert {fault.kind for fault in faults[: len(KINDS)]} == set(KINDS)
    assert {fault.point for fault in faults if fault.kind == "kill_at"} == set(POINTS)
    assert all(0 <= fault.process < 3 for fault in faults)
    assert all(LASTING[fault.kind][0] <= fault.seconds <= LASTING[fault.kind][1] for fault in faults if fault.kind in LASTING)
    assert [fault.number for fault in faults] == list(range(1, len(faults) + 1))


def seen(*answers: tuple[float, float]) -> Seen:
    """Messages by when they were sent and answered."""
    said = tuple(Said(f"P1-{number}", "dm", f"m{number}", sent) for number, (sent, _) in enumerate(answers))
    return Seen(said, tuple(Shown(f"b{number}", "dm", f"re: P1-{number}", at) for number, (_, at) in enumerate(answers)))


def test_the_time_of_faults_is_no_wait() -> None:
    assert waits(seen((0, 10), (20, 21)), [(2, 5), (4, 6), (30, 40)]) == [6, 1]
    assert merged([(4, 6), (2, 5), (8, 9)]) == [(2, 6), (8, 9)]
    assert overlap((0, 10), [(2, 6), (8, 20)]) == 6


def test_a_recovery_is_that_of_those_who_waited_at_the_kill() -> None:
    assert recovery(seen((0, 1), (2, 9), (3, 14), (6, 7)), 5) == Recovery(4, 9)
    assert recovery(seen((0, 1)), 5) is None


@pytest.mark.parametrize(("share", "value"), [(0.5, 2), (0.99, 4), (1.0, 4), (0.0, 1)])
def test_percentiles(share: float, value: float) -> None:
    assert percentile([3, 1, 4, 2], share) == value
    assert percentile([], share) == 0


def test_growth_is_measured_from_when_it_had_settled() -> None:
    samples = [(second, 200.0 + second / 10 if second < 600 else 300.0) for second in range(0, 3600, 5)]
    assert growth(samples, 600) == 0
    assert growth([(at, mb * (1 + at / 36_000)) for at, mb in samples], 600) == pytest.approx(0.077, abs=0.01)
    assert growth(samples[:50], 600) is None


def test_a_missed_goal_is_told_with_what_it_came_to() -> None:
    assert missed([1.0] * 99 + [60.0], [3.0, 3.0, 10.0], 0.05) == []
    assert missed([1.0] * 98 + [20.1, 60.1], [3.1, 3.1, 10.1], 0.051) == [
        "wait p99: 20.1 s instead of 20 s",
        "wait max: 60.1 s instead of 60 s",
        "SIGKILL to the first answer p50: 3.1 s instead of 3 s",
        "SIGKILL to the first answer max: 10.1 s instead of 10 s",
        "memory growth: 5.1 % instead of 5 %",
    ]
    assert missed([], [], None) == []
