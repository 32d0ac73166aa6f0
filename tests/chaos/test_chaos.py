"""The short form of a chaos run: hundreds of people write while PostgreSQL crashes and processes are killed; the audit finds nothing.

The long form is `make soak`; what is done and compared is told in `run` and `auditor`.
"""

from __future__ import annotations

import pytest

from tests.chaos.run import Plan, run
from tests.chaos.schedule import CRASHES, Kind, Point

SAMPLE: dict[str, tuple[Point, ...]] = {"discord": ("sent_unrecorded",), "slack": ("model_answered",)}
"""Some of the points; all of them, on both platforms, are in `make soak`."""
CRASHING: tuple[Kind, ...] = (*("backend_kill",) * 5, "postgres_kill", "kill", "session_lost", "answer_lost")


async def test_nobody_is_forgotten_while_postgres_crashes_and_processes_are_killed() -> None:
    plan = Plan(processes=2, people=250, messages=600, faults=len(CRASHING), seed=7, kinds=CRASHING)
    report = await run(plan)
    told = "\n".join([*map(str, report.findings), *report.blanks, str(report), *report.logged[-20:]])
    assert report.well, told
    assert len(report.seen.said) == plan.messages
    assert sum(one.fault.kind in CRASHES for one in report.episodes) >= 6


@pytest.mark.parametrize(("platform", "points"), SAMPLE.items())
async def test_a_kill_at_a_point_of_a_turn_loses_and_doubles_nothing(platform: str, points: tuple[Point, ...]) -> None:
    plan = Plan(platform, processes=1, people=3, messages=9, faults=len(points), seed=3, kinds=("kill_at",), points=points)
    report = await run(plan)
    assert report.well, "\n".join([*map(str, report.findings), *report.blanks, str(report)])
    assert {one.fault.point for one in report.episodes} == set(points)
