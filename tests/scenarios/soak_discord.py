"""A soak: thousands of people talk to the real bot process on Discord at once, in bursts. Nothing may be lost, said twice or out of order.

    python -m tests.scenarios.soak_discord [--people 2000 --messages 10 --seed 7]

Prints what was lost, said twice and out of order, and the bot's memory after each third; fails when any of it is not as it should be.
"""

from __future__ import annotations

import argparse
import asyncio
import random
import sys
import time
from collections import Counter
from dataclasses import dataclass

import psutil

from tests.scenarios.discord_bot import Bot, bot_on, echo
from tests.servers.discord import DiscordServer, Person
from tests.servers.model import ScriptedModel

STAGES = 3
BURST = 3
"""The most messages that somebody writes without waiting for an answer."""
PATIENCE = 900.0
GROWTH, EMBEDDER = 0.25, 170.0
"""How much more memory the last third may end with than the one before, for what is kept of each person is in the database; and the MB of
the local embedder, which is loaded when its first turn comes."""


@dataclass(frozen=True, slots=True)
class Soaked:
    """What a soak came to. Memory in MB after each third."""

    messages: int
    seconds: float
    lost: int
    twice: int
    disorder: int
    memory: tuple[float, ...]

    @property
    def well(self) -> bool:
        """Whether nothing is wrong."""
        steady = self.memory[-1] <= self.memory[-2] * (1 + GROWTH) + EMBEDDER
        return steady and not (self.lost or self.twice or self.disorder)

    def __str__(self) -> str:
        rate = self.messages / self.seconds
        memory = ", ".join(f"{one:.0f}" for one in self.memory)
        return (
            f"{self.messages} messages in {self.seconds:.0f} s ({rate:.0f}/s): {self.lost} lost, {self.twice} answered twice, "
            f"{self.disorder} out of order; the bot's memory after each third: {memory} MB"
        )


async def soak(server: DiscordServer, bot: Bot, people: int, messages: int, seed: int = 7) -> Soaked:
    """Everybody talks at once, in three stages. The model has to be `echo`."""
    assert bot.process is not None
    process = psutil.Process(bot.process.pid)
    everybody = [server.person(f"P{number}") for number in range(people)]
    said: dict[Person, list[str]] = {person: [] for person in everybody}
    began = time.monotonic()
    memory = []
    for stage in range(STAGES):
        share = messages // STAGES + (stage < messages % STAGES)
        chance = random.Random(seed + stage)
        await asyncio.gather(*(_stage(server, person, said[person], share, chance) for person in everybody))
        memory.append(process.memory_info().rss / 1e6)
    seconds = time.monotonic() - began
    counts = [compare(said[person], answered(server, person)) for person in everybody]
    lost, twice, disorder = (sum(column) for column in zip(*counts, strict=True))
    return Soaked(people * messages, seconds, lost, twice, disorder, tuple(memory))


def answered(server: DiscordServer, person: Person) -> list[str]:
    """What the bot's messages say that they answer, in their order."""
    texts = [one.content.removeprefix("re: ") for one in server.messages(person.dm, server.bot)]
    return [part for text in texts for part in text.split(" | ")]


def compare(said: list[str], heard: list[str]) -> tuple[int, int, int]:
    """How many were lost, answered twice, and answered before an earlier one."""
    counted = Counter(heard)
    lost = sum(counted[text] == 0 for text in said)
    twice = sum(number - 1 for number in counted.values() if number > 1)
    order = [said.index(text) for text in dict.fromkeys(heard) if text in counted and text in said]
    return lost, twice, sum(later < earlier for earlier, later in zip(order, order[1:], strict=False))


async def _stage(server: DiscordServer, person: Person, said: list[str], count: int, chance: random.Random) -> None:
    while count:
        burst = min(count, chance.randint(1, BURST))
        count -= burst
        await asyncio.sleep(chance.random() * 0.05)
        for _ in range(burst):
            said.append(f"{person.user.name} says {len(said)}")
            person.say(text=said[-1])
        last = said[-1]
        try:
            async with asyncio.timeout(PATIENCE):
                while last not in answered(server, person):
                    await server.wait_for_message(person.dm, timeout=PATIENCE)
        except TimeoutError:
            return  # counted as lost


async def main() -> int:
    """Returns 1 when something is wrong."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--people", type=int, default=2000)
    parser.add_argument("--messages", type=int, default=10)
    parser.add_argument("--seed", type=int, default=7)
    chosen = parser.parse_args()
    async with DiscordServer() as server, ScriptedModel(policy=echo) as model, bot_on(server, model, ENGINE__DEBOUNCE="0") as bot:
        soaked = await soak(server, bot, chosen.people, chosen.messages, chosen.seed)
    print(f"soak of Discord, {chosen.people} people x {chosen.messages}: {soaked}")
    return 0 if soaked.well else 1


if __name__ == "__main__":
    sys.exit(asyncio.run(main()))
