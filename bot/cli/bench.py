"""`bot bench NAME`."""

import asyncio
import importlib
import re
from pathlib import Path

from bot import bench
from bot.config.findings import StartError
from bot.config.loading import Loaded


async def measure(name: str, data: Path, loaded: Loaded) -> int:
    """`bot bench NAME`: its figures on standard output. Returns the exit code."""
    known = sorted(bench.NAMES)
    if name not in known:
        raise StartError(f"bench: there is no {re.sub(r'[^A-Za-z0-9_-]', '?', name)[:40]}. There is: {', '.join(known)}.")
    module = importlib.import_module(f"bot.bench.{name}")
    try:
        return int(await asyncio.to_thread(module.main, loaded if name in bench.CONFIGURED else data) or 0)
    except (ValueError, KeyError, UnicodeError) as error:
        raise StartError(
            f"--data: {data} is not what `bench {name}` reads ({type(error).__name__}). README names its data."
        ) from error
