"""How much longer a message takes through the bot than through a plain slack-bolt echo bot, in Socket Mode.

    python -m tests.scenarios.measure_slack

The clock runs in the local server, from the making of a person's message to the making of the bot's. Ours is the real `bot run` process
with an instant model and debounce 0; the echo bot is a process with slack-bolt and one listener. Rounds alternate.
"""

from __future__ import annotations

import asyncio
import os
import sys
from collections.abc import Sequence
from contextlib import AsyncExitStack

from tests.scenarios.measure_discord import ROUNDS, WARM_UP, instant, percentiles
from tests.scenarios.slack_bot import bot_on, slack_server
from tests.servers.model import ScriptedModel
from tests.servers.slack import Person, SlackServer

ECHO = """
import asyncio, sys
from slack_bolt.adapter.socket_mode.async_handler import AsyncSocketModeHandler
from slack_bolt.async_app import AsyncApp
from slack_sdk.web.async_client import AsyncWebClient

async def main():
    app = AsyncApp(client=AsyncWebClient(token=sys.argv[2], base_url=sys.argv[1]))

    @app.event("message")
    async def heard(say):
        await say("ok")

    await AsyncSocketModeHandler(app, sys.argv[3]).start_async()

asyncio.run(main())
"""


async def round_trip(server: SlackServer, person: Person) -> float:
    """Seconds from a person's message to the bot's."""
    sent = person.say(None, "hello there")
    answer = await server.wait_for_message(person.dm, after=sent, timeout=30)
    return answer.made_at - sent.made_at


async def roundtrips() -> tuple[Sequence[float], Sequence[float]]:
    """Ours and the echo bot's, in alternating rounds."""
    async with AsyncExitStack() as stack:
        mine, plain = [await stack.enter_async_context(slack_server()) for _ in range(2)]
        model = await stack.enter_async_context(ScriptedModel(policy=instant))
        acme, other = mine.team("Acme"), plain.team("Acme")
        await stack.enter_async_context(bot_on(mine, model, acme, ENGINE__DEBOUNCE="0"))
        kept = {name: value for name, value in os.environ.items() if not name.upper().endswith("_PROXY")}
        echo = await asyncio.create_subprocess_exec(
            sys.executable,
            "-c",
            ECHO,
            plain.api_base,
            other.bot_token,
            plain.app_token,
            env=kept,
            stdout=asyncio.subprocess.DEVNULL,
            stderr=asyncio.subprocess.DEVNULL,
        )
        stack.callback(echo.kill)
        await plain.wait_connected()
        ada, ben = mine.person("Ada", acme), plain.person("Ada", other)
        ours: list[float] = []
        bare: list[float] = []
        for _ in range(WARM_UP + ROUNDS):
            ours.append(await round_trip(mine, ada))
            bare.append(await round_trip(plain, ben))
        return ours[WARM_UP:], bare[WARM_UP:]


async def main() -> None:
    ours, bare = await roundtrips()
    for name, seconds in (("keepsake", ours), ("echo", bare)):
        print(f"slack_roundtrip {name}: p50 {percentiles(seconds)[0]:.1f} ms, p95 {percentiles(seconds)[1]:.1f} ms")


if __name__ == "__main__":
    asyncio.run(main())
