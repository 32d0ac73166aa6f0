"""Overload: ten times more arrives than the bot can serve, then one person floods it while few others write.

    python -m tests.chaos.overload --platform discord [--people 160 --seconds 10 --seed 7]

What the bot can serve is set by the model alone, so that it is the same on every machine: `TURNS` turns at once, each as long as the
model takes. In the first part everybody writes without waiting for answers; in the second a few write calmly, and one writes a great deal.
"""

from __future__ import annotations

import argparse
import asyncio
import random
import statistics
import sys
import time
from collections import Counter, defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, replace

from bot.app.runtime import engine_settings
from bot.config.sections import EngineSection
from tests.chaos import figures
from tests.chaos.auditor import Finding, audit
from tests.chaos.brain import Brain
from tests.chaos.crew import Crew, crew_on
from tests.chaos.people import names
from tests.chaos.run import SETTINGS, STAGES, data_folder, scripted
from tests.chaos.snapshots import Said, Seen, person_of
from tests.chaos.stage import Stage
from tests.chaos.stores import Stores, stores_of
from tests.waiting import until

TURNS, TAKES = 8, 0.5
"""Turns at once, and seconds that the model takes."""
TIMES = 10
"""How many times more messages arrive than turns can be run."""
FLOOD = 20
"""The messages of the one who floods, in turns that are full of them."""
CALM = 0.5
"""The share of what the bot can serve that the others take meanwhile."""
PATIENCE = 240.0
UNEVEN = 2.5
"""How many times the wait of most people is one person's own, before that is called starving."""
GROWTH = 1.2
"""How many times the memory may be what it was."""
SOON = 3.0 + TAKES
"""Seconds in which a message is answered that comes after the storm, or beside a flood: the model's, and a machine that does other things."""


@dataclass(frozen=True, slots=True)
class Overloaded:
    """What came of it. Waits are seconds, memory is MB, `mean` is each person's mean wait under overload."""

    messages: int
    mean: Sequence[float]
    deepest: int
    drained: float
    memory: tuple[float, float]
    late: Sequence[str]
    commands: int
    afterwards: float
    calm: Sequence[float]
    flood: float
    findings: Sequence[Finding]

    def wrong(self) -> list[str]:
        """What was promised and did not hold."""
        middle, (before, most) = figures.percentile(self.mean, 0.5), self.memory
        beside = figures.percentile(self.calm, 0.95)
        broken = {
            f"no overload: at most {self.deepest} of {self.messages} messages waited": self.deepest <= self.messages / 3,
            f"somebody starved: {max(self.mean):.1f} s, where most waited {middle:.1f} s": max(self.mean) > UNEVEN * middle,
            f"memory grew from {before:.0f} to {most:.0f} MB": most >= GROWTH * before,
            f"{len(self.late)} acknowledgements after the platform's deadline": bool(self.late),
            "no command was answered meanwhile": not self.commands,
            f"it did not recover: one message afterwards took {self.afterwards:.1f} s": self.afterwards >= SOON,
            f"a flood slows others: {beside:.1f} s": beside >= SOON,
            f"who floods is not slowed: {self.flood:.1f} s": self.flood < FLOOD * TAKES,
        }
        return [*map(str, self.findings), *(what for what, is_so in broken.items() if is_so)]

    def __str__(self) -> str:
        middle = figures.percentile(self.mean, 0.5)
        table = {
            "messages under overload": f"{self.messages}, most waiting at once {self.deepest}",
            "mean wait of a person p5 / p50 / max": f"{figures.percentile(self.mean, 0.05):.1f} / {middle:.1f} / {max(self.mean):.1f} s",
            "all answered after the last message": f"{self.drained:.1f} s",
            "memory before / most": f"{self.memory[0]:.0f} / {self.memory[1]:.0f} MB",
            "late acknowledgements, commands meanwhile": f"{len(self.late)}, {self.commands}",
            "wait of one message afterwards": f"{self.afterwards:.1f} s",
            "beside a flood: wait of the others p50 / p95": (
                f"{figures.percentile(self.calm, 0.5):.1f} / {figures.percentile(self.calm, 0.95):.1f} s"
            ),
            "... and until the flood was answered": f"{self.flood:.1f} s",
            "wrong": str(len(self.wrong())),
        }
        return "\n".join(f"{name:<50} {value}" for name, value in table.items())


async def overload(platform: str, people: int, seconds: float, seed: int = 7) -> Overloaded:
    """Both parts on one bot, and the audit."""
    brain = Brain(seed, takes=(TAKES, TAKES))
    settings = {**SETTINGS, "ENGINE__CONCURRENCY": str(TURNS)}
    with data_folder() as top:
        async with STAGES[platform]() as stage, scripted(brain) as model:
            for name in names(people):
                stage.join(name)
            async with crew_on(stage, model, top / "data", 1, settings) as crew:
                stores = await asyncio.to_thread(stores_of, top / "data")
                return await _Overload(stage, crew, stores, names(people), seconds, seed).run()


class _Overload:
    def __init__(self, stage: Stage, crew: Crew, stores: Stores, people: Sequence[str], seconds: float, seed: int) -> None:
        self._stage, self._crew, self._stores, self._people, self._seconds = stage, crew, stores, people, seconds
        self._chance = random.Random(seed)
        self._numbers: Counter[str] = Counter()
        self._deepest, self._asked, self._most = 0, 0, 0.0

    async def run(self) -> Overloaded:
        await self._once(self._people[0])
        await self._rest()  # the embedder is loaded by now
        before = self._memory()
        beside = [asyncio.create_task(self._watch()), asyncio.create_task(self._commands())]
        stormed = await self._storm()
        await until(self._stores.answered, timeout=PATIENCE, every=0.2)
        for task in beside:
            task.cancel()
        await asyncio.wait(beside)
        afterwards = await self._once(self._people[1])
        calm, flood = await self._flood()
        await self._rest()
        findings = audit(self._seen(), await self._stores.kept())
        return Overloaded(
            len(stormed),
            self._means(stormed),
            self._deepest,
            self._drained(stormed),
            (before, self._most),
            self._stage.late(),
            self._asked,
            afterwards,
            self._waits(calm),
            max(self._waits(flood)),
            findings,
        )

    def _memory(self) -> float:
        """MB of the process."""
        return max(self._crew.memory().values())

    def _say(self, name: str) -> Said:
        self._numbers[name] += 1
        return self._stage.say(name, "direct", f"{name}-{self._numbers[name]}", "and so it went on")

    async def _once(self, name: str) -> float:
        """One message, answered; how long that took."""
        began = time.monotonic()
        assert await self._stage.answered(self._say(name), PATIENCE), f"no answer to {name}"
        return time.monotonic() - began

    async def _storm(self) -> list[Said]:
        """`TIMES` as many messages as there can be turns, at their times, whoever is answered."""
        count = round(TURNS / TAKES * TIMES * self._seconds)
        each = [name for _ in range(count // len(self._people)) for name in self._people]
        return await self._at_times(each, self._seconds)

    async def _at_times(self, writers: Sequence[str], seconds: float) -> list[Said]:
        began = time.monotonic()
        said = []
        for number, name in enumerate(writers):
            await asyncio.sleep(max(0.0, began + number * seconds / len(writers) - time.monotonic()))
            said.append(self._say(name))
        return said

    async def _flood(self) -> tuple[list[Said], list[Said]]:
        """What a few say calmly while the last one says a great deal at once, and that."""
        coalesced = engine_settings(EngineSection()).coalesce
        seconds = FLOOD * TAKES
        flooder, *others = reversed(self._people)
        flood = [self._say(flooder) for _ in range(FLOOD * coalesced)]
        calm = [self._chance.choice(others) for _ in range(round(TURNS / TAKES * CALM * seconds))]
        return await self._at_times(calm, seconds), flood

    async def _rest(self) -> None:
        """Until nothing waits."""
        await until(self._stores.at_rest, timeout=PATIENCE, every=0.2)

    async def _watch(self) -> None:
        while True:
            self._deepest = max(self._deepest, await self._stores.waiting())
            self._most = max(self._most, self._memory())
            await asyncio.sleep(0.5)

    async def _commands(self) -> None:
        """Somebody looks at their memory again and again; the stage knows which answer came late."""
        while True:
            assert await self._stage.command(self._people[2], "memory view"), "a command without an answer"
            self._asked += 1
            await asyncio.sleep(0.5)

    def _seen(self) -> Seen:
        return Seen(tuple(self._stage.said()), tuple(self._stage.shown()), tuple(self._stage.typing(0.0)))

    def _drained(self, said: Sequence[Said]) -> float:
        """Seconds from the last message to the last answer."""
        found = figures.answered_at(self._seen())
        return max(found[one.token] for one in said) - said[-1].at

    def _waits(self, said: Sequence[Said]) -> list[float]:
        return figures.waits(replace(self._seen(), said=tuple(said)))

    def _means(self, said: Sequence[Said]) -> list[float]:
        """The mean wait of each person."""
        waits: defaultdict[str, list[float]] = defaultdict(list)
        for one, wait in zip(said, self._waits(said), strict=True):
            waits[person_of(one.token)].append(wait)
        return [statistics.mean(each) for each in waits.values()]


async def main() -> int:
    """Returns 1 when a message came to harm, or a promise does not hold."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--platform", choices=sorted(STAGES), default="discord")
    parser.add_argument("--people", type=int, default=160)
    parser.add_argument("--seconds", type=float, default=10)
    parser.add_argument("--seed", type=int, default=7)
    overloaded = await overload(**vars(parser.parse_args()))
    for wrong in overloaded.wrong():
        print(wrong)
    print(overloaded)
    return 1 if overloaded.wrong() else 0


if __name__ == "__main__":
    sys.exit(asyncio.run(main()))
