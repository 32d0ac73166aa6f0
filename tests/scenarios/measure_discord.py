"""The figure `discord_roundtrip`: how much longer a message takes through the bot than through a plain discord.py echo bot.

    python -m tests.scenarios.measure_discord

The clock runs in the local server, from the dispatch of a person's message to the taking of the bot's. Ours is the real `bot run` process
with an instant model and debounce 0; the echo bot is a process with discord.py and one handler. Rounds alternate.
"""

from __future__ import annotations

import asyncio
import statistics
import sys
from collections.abc import Sequence
from contextlib import AsyncExitStack

from tests.scenarios.discord_bot import bot_on
from tests.servers.discord import DiscordServer, Person
from tests.servers.model import Request, ScriptedModel, Step, reply

ROUNDS, WARM_UP = 200, 20
GOAL = 40.0
"""Milliseconds that the median may be above the echo bot's."""
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


async def main() -> int:
    """Returns 1 when the goal is missed."""
    ours, bare = await roundtrips()
    for name, seconds in (("keepsake", ours), ("echo", bare)):
        print(f"{name}: p50 {percentiles(seconds)[0]:.1f} ms, p95 {percentiles(seconds)[1]:.1f} ms")
    more = percentiles(ours)[0] - percentiles(bare)[0]
    print(f"discord_roundtrip: p50 {more:.1f} ms above the echo bot's; goal: at most {GOAL:.0f} ms")
    return int(more > GOAL)


if __name__ == "__main__":
    sys.exit(asyncio.run(main()))
