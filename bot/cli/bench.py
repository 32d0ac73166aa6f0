"""`bot bench NAME`."""

import asyncio
import importlib.util
import re
from pathlib import Path

from bot.config.findings import StartError
from bot.config.loading import Loaded

NAMES = (
    "retrieval",
    "nested_kv",
    "eviction",
    "prompt_growth",
    "turn_overhead",
    "throughput",
    "search",
    "footprint",
    "timers",
    "openers",
    "erasure",
    "tasks",
)
"""What measures is part of a checkout, not of an installed program."""
CONFIGURED = ("tasks",)
"""Those that try the configured model: their `main` takes the configuration instead of data."""


async def measure(name: str, data: Path, loaded: Loaded) -> int:
    """`bot bench NAME`: its figures on standard output. Returns the exit code."""
    known = sorted(NAMES)
    if name not in known:
        raise StartError(f"bench: there is no {re.sub(r'[^A-Za-z0-9_-]', '?', name)[:40]}. There is: {', '.join(known)}.")
    if importlib.util.find_spec("bot.bench") is None:
        raise StartError("bench: the benchmarks are not installed. Run them in a checkout: `make bench DATA=PATH`.")
    module = importlib.import_module(f"bot.bench.{name}")
    try:
        return int(await asyncio.to_thread(module.main, loaded if name in CONFIGURED else data) or 0)
    except (ValueError, KeyError, UnicodeError) as error:
        raise StartError(
            f"--data: {data} is not what `bench {name}` reads ({type(error).__name__}). docs/benchmarks.md names its data."
        ) from error
