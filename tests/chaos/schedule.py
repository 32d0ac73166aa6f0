"""The faults of a run, in order: the same seed gives the same list. Pure."""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, get_args

Kind = Literal[
    "kill",  # kill -9 of a process of the bot, which is started again
    "freeze",  # SIGSTOP, and SIGCONT after a while
    "postgres_quit",  # immediate shutdown of PostgreSQL; the bot has to start it again
    "postgres_kill",  # kill -9 of the postmaster; likewise
    "backend_kill",  # kill -9 of one backend: PostgreSQL ends all the others and recovers by itself
    "redis_kill",
    "redis_empty",
    "session_cut",  # the sessions with the platform break and may be resumed
    "session_lost",  # they break and may not: what was said meanwhile is in the history alone
    "answer_lost",  # a message is posted, and the connection breaks before the answer
    "model_error",
    "model_hang",
    "model_reset",
    "disk_full",  # nothing can be written into the data folder; only where that is a small file system of its own
    "clock",  # the clock of a process is moved forwards or back, and put right after a while
    "kill_at",  # kill -9 of every process at a named point of somebody's turn
]
Point = Literal[
    "accepted", "claimed", "appended", "between_calls", "flushing", "model_answered", "handed_over", "sent_unrecorded", "erasing"
]
KINDS: tuple[Kind, ...] = get_args(Kind)
POINTS: tuple[Point, ...] = get_args(Point)
CRASHES: frozenset[Kind] = frozenset({"postgres_quit", "postgres_kill", "backend_kill"})
"""What takes PostgreSQL down without a goodbye."""
KILLS: frozenset[Kind] = frozenset({"kill", "kill_at"})
"""What ends a process of the bot."""
LASTING: dict[Kind, tuple[float, float]] = {
    "freeze": (1.0, 12.0),
    "model_error": (0.5, 4.0),
    "model_hang": (1.0, 6.0),
    "model_reset": (0.5, 3.0),
    "disk_full": (1.0, 4.0),
    "clock": (2.0, 10.0),
}
"""Shortest and longest duration in seconds; everything else is over when the bot has recovered. A freeze may outlast the stall limit."""


SHIFTS = (-7200.0, -60.0, -3.0, 3.0, 60.0, 7200.0)
"""By how many seconds a clock is moved: as a time server corrects it, as a machine wakes up with it, and as somebody mistakes a time zone."""


@dataclass(frozen=True, slots=True)
class Fault:
    """One fault. `process`: which process of the bot it strikes, where it strikes one. `seconds`: how long it lasts, where it lasts.

    `shift`: by how many seconds a clock is moved.
    """

    number: int
    kind: Kind
    process: int = 0
    seconds: float = 0.0
    point: Point | None = None
    shift: float = 0.0

    def __str__(self) -> str:
        one = f" of process {self.process}"
        of = {"kill": one, "freeze": one, "kill_at": f" {self.point}", "clock": f"{one} by {self.shift:+.0f} s"}
        lasting = f", {self.seconds:.1f} s" if self.seconds else ""
        return f"{self.number} {self.kind}{of.get(self.kind, '')}{lasting}"


def schedule(
    seed: int, count: int, processes: int, kinds: Sequence[Kind] = KINDS, points: Sequence[Point] = POINTS
) -> list[Fault]:
    """`count` faults of the kinds named, `kill_at` at the points named. Every kind, and every point, comes once before any comes again."""
    chance = random.Random(seed)
    faults: list[Fault] = []
    bag: list[Kind] = []
    ahead: list[Point] = []
    shifts: list[float] = []
    for number in range(1, count + 1):
        bag = bag or chance.sample(list(kinds), len(kinds))
        kind = bag.pop()
        seconds = chance.uniform(*LASTING[kind]) if kind in LASTING else 0.0
        point, shift = None, 0.0
        if kind == "kill_at":
            ahead = ahead or chance.sample(list(points), len(points))
            point = ahead.pop()
        if kind == "clock":
            shifts = shifts or chance.sample(list(SHIFTS), len(SHIFTS))
            shift = shifts.pop()
        faults.append(Fault(number, kind, chance.randrange(processes), round(seconds, 2), point, shift))
    return faults
