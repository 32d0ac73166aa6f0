"""A chaos run: the bot as several processes under load from hundreds of people, while a seeded schedule of faults goes on; then the audit.

    python -m tests.chaos.run --platform discord --processes 3 --people 300 --messages 5000 --faults 100 --seed 7
    python -m tests.chaos.run --kinds kill_at --faults 9    # a kill at every point of a turn, one by one
    python -m tests.chaos.run --minutes 60 --faults 0       # an hour of load: the memory may grow by 5 % after the first ten minutes
    python -m tests.chaos.run --minutes 3 --faults 0        # the short form of it: after the first minute

The same seed gives the same faults in the same order, each when its share of the messages was sent. `disk_full` needs root, to put the
data folder on a small file system of its own; `clock` needs a C compiler. Without those, they are left out and the run says so.

It ends with 1 when the audit finds something, when a fault struck nothing, or when a goal of `figures` is missed; those are for a machine that
does nothing else.
"""

from __future__ import annotations

import argparse
import asyncio
import math
import os
import subprocess
import sys
import tempfile
import time
from collections import defaultdict
from collections.abc import AsyncIterator, Iterator, Sequence
from contextlib import asynccontextmanager, contextmanager, suppress
from dataclasses import dataclass, field, replace
from pathlib import Path

from tests.chaos import figures
from tests.chaos.auditor import Finding, audit, tally
from tests.chaos.brain import SUMMARISER, Brain, forgetful
from tests.chaos.clock import COMPILER
from tests.chaos.crew import Crew, crew_on
from tests.chaos.discord_stage import discord_stage
from tests.chaos.faults import Episode, Faults
from tests.chaos.people import Load, Pace, names
from tests.chaos.points import Points
from tests.chaos.schedule import CRASHES, KILLS, KINDS, POINTS, Kind, Point, schedule
from tests.chaos.slack_stage import slack_stage
from tests.chaos.snapshots import Kept, Seen
from tests.chaos.stage import Stage
from tests.chaos.stores import left_behind, stores_of
from tests.folders import remove
from tests.servers.model import ScriptedModel
from tests.waiting import until

STAGES = {"discord": discord_stage, "slack": slack_stage}
SETTLING = 180.0
"""Seconds after the last message in which all has to come to rest."""
SETTLED = 600.0
"""Seconds after which the memory of a process is watched; of a shorter run a third, and then it only tells."""
DISK, DISK_PER_MESSAGE = 1024, 0.05
"""The size of the data folder's own file system in MB: what the database takes by itself, with its log, and for each message."""
Memory = dict[int, list[tuple[float, float]]]
"""What each process had, by its number: after how many seconds how many MB."""
UNITS: dict[str, str] = {
    **dict.fromkeys(("kill", "kill_at", "freeze", "redis_kill"), "processes"),
    **dict.fromkeys(("postgres_quit", "postgres_kill", "backend_kill"), "backends"),
    **dict.fromkeys(("session_cut", "session_lost"), "sessions"),
    **dict.fromkeys(("model_error", "model_hang", "model_reset"), "requests"),
    "answer_lost": "posts",
    "redis_empty": "keys",
    "disk_full": "disks",
    "clock": "readings of the clock",
}
"""What each kind of fault strikes."""
SETTINGS = {
    "ENGINE__DEBOUNCE": "0.2",
    "ENGINE__DEBOUNCE_CAP": "1",
    "MODEL__TIMEOUT": "20",
    "MODEL__SUMMARY": SUMMARISER,
    "CONTEXT__BUDGET": "10000",
    "LOG__FORMAT": "json",
}


@dataclass(frozen=True, slots=True)
class Plan:
    """What a run does. With `minutes` the load goes on for so long instead of for so many messages."""

    platform: str = "discord"
    processes: int = 3
    people: int = 300
    messages: int = 5000
    faults: int = 100
    seed: int = 7
    kinds: Sequence[Kind] = KINDS
    points: Sequence[Point] = POINTS
    minutes: float = 0.0


@dataclass(slots=True)
class Report:
    """What a run came to."""

    plan: Plan
    seen: Seen
    kept: Kept
    episodes: Sequence[Episode]
    findings: list[Finding]
    seconds: float
    memory: Memory = field(default_factory=dict)
    ended: list[str] = field(default_factory=list)
    logged: list[str] = field(default_factory=list)

    @property
    def well(self) -> bool:
        """Whether nothing is wrong, and every fault was one."""
        return not self.findings and not self.blanks

    @property
    def missed(self) -> list[str]:
        """The goals that were missed, on a machine that has nothing else to do."""
        grown = self.grown if self.settled >= SETTLED else None
        return figures.missed(self.waits, [back.first for back in self._back("kill", "kill_at")], grown)

    @property
    def waits(self) -> list[float]:
        """How long each answered message waited, without the time of the faults; in seconds."""
        return figures.waits(self.seen, [(one.began, one.ended) for one in self.episodes])

    def _back(self, *kinds: Kind) -> list[figures.Recovery]:
        """How the bot came back from each kill of these kinds, where somebody waited."""
        killed = [one.killed for one in self.episodes if one.fault.kind in kinds and one.killed]
        return [back for at in killed if (back := figures.recovery(self.seen, at)) is not None]

    @property
    def blanks(self) -> list[str]:
        """The faults that struck nothing."""
        return [str(one) for one in self.episodes if not one.struck]

    @property
    def settled(self) -> float:
        """The seconds after which the memory is watched."""
        return min(SETTLED, max((samples[-1][0] for samples in self.memory.values()), default=0.0) / 3)

    @property
    def grown(self) -> float | None:
        """By which share the memory of a process has grown since it was so old, the most of all those that were."""
        ages = ([(at - samples[0][0], mb) for at, mb in samples] for samples in self.memory.values())
        grown = [figures.growth(samples, self.settled) for samples in ages]
        return max((one for one in grown if one is not None), default=None)

    def during(self, token: str) -> str:
        """Which faults went on between the sending of a message and its answer, or the end."""
        at = next((said.at for said in self.seen.said if said.token == token), math.inf)
        until = figures.answered_at(self.seen).get(token, at)
        struck = [one for one in self.episodes if one.began <= until and at <= one.ended]
        return f", sent during {'; '.join(map(str, struck))}" if struck else ""

    def __str__(self) -> str:
        return "\n".join(f"{name:<55} {value}" for name, value in self.table().items())

    def table(self) -> dict[str, str]:
        """The figures by their names."""
        plan, counts = self.plan, tally(self.findings)
        crashes = sum(one.fault.kind in CRASHES for one in self.episodes)
        lost, doubled = (sum(number for kind, number in counts.items() if word in kind) for word in ("lost", "doubled"))
        disorder = counts.get("out of order", 0)
        one, every = self._back("kill"), self._back("kill_at")
        sizes = [mb for samples in self.memory.values() for _, mb in samples] or [0.0]
        return {
            "platform, processes, people, seed": f"{plan.platform}, {plan.processes}, {plan.people}, {plan.seed}",
            "messages": f"{len(self.seen.said)} in {self.seconds:.0f} s",
            "faults": f"{len(self.episodes)} ({crashes} crashes of PostgreSQL), {len(self.blanks)} struck nothing",
            **{f"... {kind}": done for kind, done in self._by_kind().items()},
            "lost": str(lost),
            "doubled": str(doubled),
            "out of order": str(disorder),
            "anything else wrong": str(len(self.findings) - lost - doubled - disorder),
            "wait p50 / p99 / max outside the faults": _spread(self.waits, 0.5, 0.99),
            "... with the time of the faults": _spread(figures.waits(self.seen), 0.5, 0.99),
            "SIGKILL of a process to the first answer p50 / max": _spread([back.first for back in one], 0.5),
            "... to the last of those who waited p50 / max": _spread([back.last for back in one], 0.5),
            "SIGKILL of all to the first answer p50 / max": _spread([back.first for back in every], 0.5),
            "memory of a process at first / most": f"{sizes[0]:.0f} / {max(sizes):.0f} MB",
            f"memory growth after {self.settled / 60:.1f} minutes": "unknown" if self.grown is None else f"{self.grown:.1%}",
        }

    def _by_kind(self) -> dict[str, str]:
        """How often each kind of fault was done, and how much it struck in all."""
        kinds: defaultdict[str, list[int]] = defaultdict(list)
        for one in self.episodes:
            kinds[f"{one.fault.kind} {one.fault.point or ''}".strip()].append(one.struck)
        return {kind: f"{len(struck)}, struck {sum(struck)} {UNITS[kind.split()[0]]}" for kind, struck in sorted(kinds.items())}


def _spread(seconds: Sequence[float], *shares: float) -> str:
    """Some percentiles and the largest."""
    parts = [*(figures.percentile(seconds, share) for share in shares), max(seconds, default=0.0)]
    return " / ".join(f"{part:.1f}" for part in parts) + " s"


async def run(plan: Plan, *, tell: bool = False) -> Report:
    """The whole of it. `tell`: print each fault when it is over."""
    own = "disk_full" in plan.kinds and plan.faults > 0
    with data_folder(round(DISK + plan.messages * DISK_PER_MESSAGE) if own else 0) as top:
        brain = Brain(plan.seed)
        async with STAGES[plan.platform]() as stage, scripted(brain) as model:
            people = names(plan.people)
            for name in people:
                stage.join(name)
            async with crew_on(stage, model, top / "data", plan.processes, SETTINGS, moving="clock" in plan.kinds) as crew:
                return await _run(plan, stage, brain, crew, top / "data", people, tell=tell)


async def _run(plan: Plan, stage: Stage, brain: Brain, crew: Crew, data: Path, people: Sequence[str], *, tell: bool) -> Report:
    stores = await asyncio.to_thread(stores_of, data)
    points = Points(crew, stage, brain, stores)
    faults = Faults(crew, stage, brain, stores, points)
    pace = Pace()
    began, memory = time.monotonic(), defaultdict(list)  # type: tuple[float, Memory]
    watching = asyncio.create_task(_watch(crew, began, memory))
    load = Load(stage, pace, people, plan.seed)
    try:
        await load.greet()
        async with asyncio.TaskGroup() as group:
            group.create_task(load.run())
            await _paced(plan, faults, pace, began, tell=tell)
            await pace.end()
        seconds = time.monotonic() - began
        with suppress(TimeoutError):
            await until(stores.at_rest, timeout=SETTLING, every=0.2)
    finally:
        watching.cancel()
        await asyncio.wait({watching})
    kept = await stores.kept()
    wrong = await crew.stop()
    left = {"processes that ended wrongly": (*crew.ended, *wrong), **left_behind(data)}
    kept = replace(kept, leftovers={**kept.leftovers, **left})
    killed_at = max((one.ended for one in faults.episodes if one.fault.kind in KILLS), default=0.0)
    seen = Seen(tuple(stage.said()), tuple(stage.shown()), tuple(stage.typing(killed_at)), frozenset(points.erased))
    return Report(plan, seen, kept, faults.episodes, audit(seen, kept), seconds, memory, crew.ended, crew.lines)


async def _paced(plan: Plan, faults: Faults, pace: Pace, began: float, *, tell: bool) -> None:
    """Faults and messages in step: a fault begins when its share of the messages was sent, and the next share is sent during it."""
    todo = schedule(plan.seed, plan.faults, plan.processes, plan.kinds, plan.points)
    total = 10**9 if plan.minutes else max(0, plan.messages - plan.people)
    share = total // (len(todo) + 1)
    await pace.allow(total - share * len(todo))
    for fault in todo:
        await pace.used()
        await pace.allow(share)
        episode = await faults.do(fault)
        if tell:
            print(f"{time.monotonic() - began:7.1f} s  {episode}", flush=True)
    if plan.minutes:
        await asyncio.sleep(plan.minutes * 60)
    else:
        await pace.used()


async def _watch(crew: Crew, began: float, memory: Memory) -> None:
    """Notes what every process has, every few seconds."""
    while True:
        for process, mb in crew.memory().items():
            memory[process].append((time.monotonic() - began, mb))
        await asyncio.sleep(5)


@asynccontextmanager
async def scripted(brain: Brain) -> AsyncIterator[ScriptedModel]:
    async with ScriptedModel(policy=brain) as model:
        forgetting = asyncio.create_task(forgetful(model))
        try:
            yield model
        finally:
            forgetting.cancel()
            await asyncio.wait({forgetting})


@contextmanager
def data_folder(own: int = 0) -> Iterator[Path]:
    """A folder for the data; `own`: on a file system of its own, of so many MB."""
    top = Path(tempfile.mkdtemp(prefix="ks-chaos-"))
    top.chmod(0o711)  # the servers inside may run under an account of their own
    if own:
        subprocess.run(["mount", "-t", "tmpfs", "-o", f"size={own}m,mode=711", "keepsake", str(top)], check=True)
    try:
        yield top
    finally:
        if own:
            for path in top.iterdir():
                remove(path)
            subprocess.run(["umount", "--lazy", str(top)], check=True)
        remove(top)


def arguments() -> Plan:
    """What the command line asks for."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])  # type: ignore[union-attr]
    standard = Plan()
    parser.add_argument("--platform", choices=sorted(STAGES), default=standard.platform)
    for name in ("processes", "people", "messages", "faults", "seed"):
        parser.add_argument(f"--{name}", type=int, default=getattr(standard, name))
    parser.add_argument("--minutes", type=float, default=0.0, help="go on for so long instead of for so many messages")
    parser.add_argument("--kinds", nargs="+", choices=KINDS, default=None)
    parser.add_argument("--points", nargs="+", choices=POINTS, default=POINTS, help="where kill_at kills")
    chosen = vars(parser.parse_args())
    if chosen["kinds"] is None:
        missing: dict[Kind, str] = {}
        if os.geteuid() != 0:
            missing["disk_full"] = "only root can put the data folder on a small file system of its own"
        if COMPILER is None:
            missing["clock"] = "there is no C compiler (cc)"
        chosen["kinds"] = [kind for kind in KINDS if kind not in missing]
        for kind, why in missing.items():
            print(f"{kind} is left out: {why}")
    return Plan(**chosen)


async def main() -> int:
    """Returns 1 when something is wrong or a goal is missed."""
    report = await run(arguments(), tell=True)
    for finding in report.findings:
        print(f"{finding}{report.during(finding.subject)}")
    for blank in report.blanks:
        print(f"struck nothing: {blank}")
    print(report)
    for goal in report.missed:
        print(f"missed: {goal}")
    return 0 if report.well and not report.missed else 1


if __name__ == "__main__":
    sys.exit(asyncio.run(main()))
