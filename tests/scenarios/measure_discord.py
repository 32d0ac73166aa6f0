"""How much longer a message takes through the bot than through a plain discord.py echo bot, and a soak.

    python -m tests.scenarios.measure_discord [--people N --messages M]

The clock runs in the local server, from the dispatch of a person's message to the taking of the bot's. Ours is the real `bot run` process
with an instant model and debounce 0; the echo bot is a process with discord.py and one handler. Rounds alternate.
"""

from __future__ import annotations

import argparse
import asyncio
import random
import statistics
import sys
import time
from collections.abc import Sequence
from contextlib import AsyncExitStack

import psutil

from tests.scenarios.discord_bot import Bot, bot_on, echo
from tests.servers.discord import DiscordServer, Person
from tests.servers.model import Request, ScriptedModel, Step, reply

ROUNDS, WARM_UP = 200, 20
ECHO = """
import sys, discord, yarl
from discord.gateway import DiscordWebSocket
from discord.http import Route
Route.BASE, DiscordWebSocket.DEFAULT_GATEWAY = sys.argv[1], yarl.URL(sys.argv[2])
intents = discord.Intents.default()
client = discord.Client(intents=intents)
@client.event
async def on_message(message):
    if message.author != client.user:
        await message.channel.send("ok")
client.run(sys.argv[3], log_handler=None)
"""


def instant(_: Request) -> Step:
    return reply("ok")


async def round_trip(server: DiscordServer, person: Person) -> float:
    """Seconds from a person's message to the bot's."""
    sent = person.say(text="hello there")
    answer = await server.wait_for_message(person.dm, after=sent, timeout=30)
    return answer.made_at - sent.made_at


async def roundtrips() -> tuple[Sequence[float], Sequence[float]]:
    """Ours and the echo bot's, in alternating rounds."""
    async with AsyncExitStack() as stack:
        mine, plain = [await stack.enter_async_context(DiscordServer()) for _ in range(2)]
        model = await stack.enter_async_context(ScriptedModel(policy=instant))
        await stack.enter_async_context(bot_on(mine, model, ENGINE__DEBOUNCE="0"))
        echo = await asyncio.create_subprocess_exec(sys.executable, "-c", ECHO, plain.api_base, plain.gateway, plain.token)
        stack.callback(echo.kill)
        await plain.wait_connected()
        ada, ben = mine.person("Ada"), plain.person("Ada")
        ours: list[float] = []
        bare: list[float] = []
        for _ in range(WARM_UP + ROUNDS):
            ours.append(await round_trip(mine, ada))
            bare.append(await round_trip(plain, ben))
        return ours[WARM_UP:], bare[WARM_UP:]


def percentiles(seconds: Sequence[float]) -> tuple[float, float]:
    """p50 and p95 in milliseconds."""
    cuts = statistics.quantiles(seconds, n=20)
    return cuts[9] * 1000, cuts[18] * 1000


async def soak(server: DiscordServer, bot: Bot, people: int, messages: int, seed: int = 7) -> tuple[float, list[float]]:
    """Everybody talks at once, in three stages; returns the seconds it took and the bot's memory in MB after each."""
    assert bot.process is not None
    process = psutil.Process(bot.process.pid)
    everybody = [server.person(f"P{number}") for number in range(people)]
    began = time.monotonic()
    memory: list[float] = []
    for stage in range(3):
        share = [messages // 3 + (stage < messages % 3)] * people
        done = [len(server.messages(person.dm, server.bot)) for person in everybody]
        chance = random.Random(seed + stage)
        await asyncio.gather(
            *(_stage(server, person, first, count, chance) for person, first, count in zip(everybody, done, share, strict=True))
        )
        memory.append(process.memory_info().rss / 1e6)
    assert all(len(server.messages(person.dm, server.bot)) == messages for person in everybody)
    return time.monotonic() - began, memory


async def _stage(server: DiscordServer, person: Person, first: int, count: int, chance: random.Random) -> None:
    for number in range(first, first + count):
        await asyncio.sleep(chance.random() * 0.05)
        sent = person.say(text=f"{person.user.name} says {number}")
        answer = await server.wait_for_message(person.dm, after=sent, timeout=300)
        assert answer.content == f"re: {person.user.name} says {number}", answer


async def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--people", type=int, default=0)
    parser.add_argument("--messages", type=int, default=10)
    chosen = parser.parse_args()
    if chosen.people:
        async with (
            DiscordServer() as server,
            ScriptedModel(policy=echo) as model,
            bot_on(server, model, ENGINE__DEBOUNCE="0") as bot,
        ):
            seconds, memory = await soak(server, bot, chosen.people, chosen.messages)
        rate = chosen.people * chosen.messages / seconds
        print(
            f"soak: {chosen.people} people x {chosen.messages}: {seconds:.0f} s, {rate:.0f} messages/s, memory after each third {memory} MB"
        )
        return
    ours, bare = await roundtrips()
    for name, seconds in (("keepsake", ours), ("echo", bare)):
        print(f"{name}: p50 {percentiles(seconds)[0]:.1f} ms, p95 {percentiles(seconds)[1]:.1f} ms")


if __name__ == "__main__":
    asyncio.run(main())
