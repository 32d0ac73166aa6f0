"""The figures of a run and its goals: how long people waited, how soon the bot was back, how its memory grew. Pure."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from tests.chaos.snapshots import Seen, tokens

Span = tuple[float, float]
WAIT_P99, WAIT_MAX = 20.0, 60.0
"""Seconds that people may wait for an answer, without the time in which a fault lasted."""
FIRST_P50, FIRST_MAX = 3.0, 10.0
"""Seconds from a kill within which somebody has an answer again."""
GROWTH = 0.05
"""The share by which the memory of a process that has settled may grow."""


def answered_at(seen: Seen) -> dict[str, float]:
    """When each token was first answered."""
    found: dict[str, float] = {}
    for shown in sorted(seen.shown, key=lambda shown: shown.at):
        for token in tokens(shown.text):
            found.setdefault(token, shown.at)
    return found


def waits(seen: Seen, outages: Iterable[Span] = ()) -> list[float]:
    """How long each answered message waited, in seconds, without the time in which a fault lasted."""
    found, spans = answered_at(seen), merged(outages)
    return [
        found[said.token] - said.at - overlap((said.at, found[said.token]), spans) for said in seen.said if said.token in found
    ]


def merged(spans: Iterable[Span]) -> list[Span]:
    """Spans that overlap as one."""
    joined: list[Span] = []
    for start, end in sorted(spans):
        if joined and start <= joined[-1][1]:
            joined[-1] = joined[-1][0], max(end, joined[-1][1])
        else:
            joined.append((start, end))
    return joined


def overlap(span: Span, spans: Iterable[Span]) -> float:
    """How much of a span lies within others, which do not overlap each other."""
    return sum(max(0.0, min(span[1], end) - max(span[0], start)) for start, end in spans)


@dataclass(frozen=True, slots=True)
class Recovery:
    """Seconds from a kill to the first answer that anybody got, and to the last one of those who waited at the kill."""

    first: float
    last: float


def recovery(seen: Seen, at: float) -> Recovery | None:
    """How the bot came back from a kill; None when nobody waited then."""
    found = answered_at(seen)
    waited = [found[said.token] for said in seen.said if said.at <= at < found.get(said.token, -math.inf)]
    return Recovery(min(waited) - at, max(waited) - at) if waited else None


def percentile(values: Sequence[float], share: float) -> float:
    """The value that `share` of them do not exceed; 0 without any."""
    ranked = sorted(values)
    return ranked[min(len(ranked) - 1, max(0, math.ceil(share * len(ranked)) - 1))] if ranked else 0.0


def growth(samples: Sequence[tuple[float, float]], settled: float) -> float | None:
    """How much more memory there is at the end than after `settled` seconds, as a share; None when it did not run so long.

    `samples` are seconds and MB. Each end is the median of a tenth of the time, as one sample may catch a turn at its height.
    """
    if not samples or samples[-1][0] <= settled:
        return None
    width = (samples[-1][0] - settled) / 10
    early = [mb for at, mb in samples if settled <= at <= settled + width]
    late = [mb for at, mb in samples if at >= samples[-1][0] - width]
    return percentile(late, 0.5) / percentile(early, 0.5) - 1 if early and late else None


def missed(waited: Sequence[float], firsts: Sequence[float], grown: float | None) -> list[str]:
    """The goals that were missed, each with what it came to. `firsts`: seconds from each kill to the first answer; `grown`: as a share."""
    goals = (
        ("wait p99", percentile(waited, 0.99), WAIT_P99, "s"),
        ("wait max", max(waited, default=0.0), WAIT_MAX, "s"),
        ("SIGKILL to the first answer p50", percentile(firsts, 0.5), FIRST_P50, "s"),
        ("SIGKILL to the first answer max", max(firsts, default=0.0), FIRST_MAX, "s"),
        ("memory growth", 100 * (grown or 0.0), 100 * GROWTH, "%"),
    )
    return [f"{name}: {came_to:.1f} {unit} instead of {goal:.0f} {unit}" for name, came_to, goal, unit in goals if came_to > goal]
