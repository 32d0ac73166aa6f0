"""One scheduler process of the timer test: `python -m tests.chaos.scheduler_main URL`. Ticks until it is killed."""

from __future__ import annotations

import asyncio
import sys

from bot.engine.timers import Ticker
from bot.speaking.decision import SpeakingRules
from bot.speaking.initiative import Initiative
from memory.db import Database


async def main(url: str) -> None:
    """Tick for ever."""
    async with Database(url, size=3) as db:
        initiative = Initiative(db, SpeakingRules())
        await Ticker(db, every=0.02, decide=initiative.on_due, also=(initiative.plan,)).run()


if __name__ == "__main__":
    asyncio.run(main(sys.argv[1]))
