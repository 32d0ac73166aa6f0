"""`bot bench footprint --data PATH`: what the bot takes while nobody talks, what messages take on disk, and how soon a chat can begin.

    memory   the proportional set size (what is shared counts once) of `bot run` and its servers after a while of rest, in megabytes
    disk     growth of the database per 1,000 messages of real turns, with their vectors, events, logs and indexes
    start    seconds from `make chat` to the answer to `/status`: the first start of a new data folder, later ones, and one beside a bot
             that runs already

Everything happens in data folders of their own, with the rehearsal model.
"""

from __future__ import annotations

import asyncio
import itertools
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

import psutil

import bot
from bot.app.runtime import engine_settings
from bot.bench.bulk import Owner, texts_of
from bot.bench.eviction import Teller
from bot.bench.model import ModelServer
from bot.bench.running import at_rest, running_bot
from bot.bench.stage import ground, owning, services_on, table
from bot.config.findings import StartError
from bot.config.sections import EngineSection
from bot.embedded import Servers
from memory.db import value
from memory.embedding_filler import EmbeddingFiller

MESSAGES = 2_000
STARTS = 5
REST = 10.0
"""Seconds after the start until memory is looked at."""
PATIENCE = 120.0
TABLES = (
    "messages",
    "embeddings",
    "events",
    "turns",
    "outbox",
    "usage",
    "sources",
    "unembedded",
    "procrastinate_jobs",
    "procrastinate_events",
)


@dataclass(frozen=True, slots=True)
class Disk:
    """Kilobytes per 1,000 messages: in all, and by table with its indexes."""

    whole: float
    tables: Mapping[str, float]


def chat_command() -> list[str]:
    """`make chat` where the program runs from its repository and is set up, else what it runs."""
    root = Path(bot.__file__).parents[1]
    if (root / "Makefile").is_file() and shutil.which("make"):
        ready = subprocess.run(["make", "-q", "-C", str(root), ".venv/.ready"], capture_output=True, check=False)
        if ready.returncode == 0:
            return ["make", "-s", "-C", str(root), "chat"]
    return [sys.executable, "-m", "bot", "chat"]


def environment(folder: Path) -> dict[str, str]:
    """This process's environment without any setting of Keepsake: an empty configuration and a data folder here."""
    (folder / "empty.yaml").touch()
    kept = {name: value for name, value in os.environ.items() if not name.startswith("KEEPSAKE")}
    return {
        **kept,
        "KEEPSAKE_CONFIG": str(folder / "empty.yaml"),
        "KEEPSAKE_DATA": str(folder / "data"),
        "KEEPSAKE__CONSOLE__USER": "ada",
    }


def start_of_chat(folder: Path) -> float:
    """Seconds from the command to the first line of its answer. Raises StartError when none comes."""
    began = time.perf_counter()
    with subprocess.Popen(
        chat_command(), env=environment(folder), stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL
    ) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        process.stdin.write(b"/status\n")
        process.stdin.flush()
        line = process.stdout.readline()
        took = time.perf_counter() - began
        process.stdin.close()
        process.stdout.read()
    if not line:
        raise StartError("footprint: the chat did not start. Try `make chat`.")
    return took


def idle_memory(folder: Path, rest: float) -> dict[str, float]:
    """Megabytes of each kind of process of a bot at rest; runs `beside` while it does."""
    with subprocess.Popen(
        [sys.executable, "-m", "bot", "run"], env=environment(folder), stdout=subprocess.DEVNULL, stderr=subprocess.PIPE
    ) as process:
        assert process.stderr is not None
        try:
            if not any(b"Running" in line for line in iter(process.stderr.readline, b"")):
                raise StartError("footprint: the bot did not start. Try `bot run`.")
            time.sleep(rest)
            found = {"bot": _megabytes(psutil.Process(process.pid))}
            for name, server in _servers(folder / "data").items():
                found[name] = sum(_megabytes(each) for each in (server, *server.children(recursive=True)))
            found["chat beside it, s"] = start_of_chat(folder)
        finally:
            process.terminate()
            process.stderr.read()
    return found


def _servers(data: Path) -> dict[str, psutil.Process]:
    """The servers of a data folder, by the numbers they left in it."""
    found = {}
    for path in sorted(data.rglob("*.pid")):
        with suppress(ValueError, psutil.NoSuchProcess):
            server = psutil.Process(int(path.read_text().split()[0]))
            found["PostgreSQL" if path.name == "postmaster.pid" else "Redis"] = server
    return found


def _megabytes(process: psutil.Process) -> float:
    with suppress(psutil.NoSuchProcess):
        try:
            return float(process.memory_full_info().pss) / 1e6
        except (psutil.AccessDenied, AttributeError):
            return float(process.memory_info().rss) / 1e6
    return 0.0


async def disk(running: Servers, said: Sequence[str], messages: int) -> Disk:
    """Have real turns and see what the database grew by."""
    teller, words = Teller(), itertools.cycle(said)
    async with (
        ModelServer(teller) as model,
        owning(running) as owner,
        services_on(running, model.base_url) as services,
        running_bot(services, engine_settings(EngineSection(debounce=0))) as adapter,
    ):
        before = await _sizes(owner)
        for _ in range(messages // 2):
            heard, teller.next = next(words), next(words)
            await adapter.ask("disk", heard)
        await at_rest(owner)
        while await value(owner, "SELECT EXISTS (SELECT FROM unembedded)"):
            await EmbeddingFiller(services.db, services.meaning).fill()
        await owner.execute("VACUUM")
        after = await _sizes(owner)
    grown = {name: (after[name] - before[name]) / messages for name in after}  # bytes a message are kilobytes a thousand
    return Disk(grown.pop(""), grown)


async def _sizes(owner: Owner) -> dict[str, int]:
    rows = await (
        await owner.execute("SELECT name, pg_total_relation_size(name) AS size FROM unnest(%s::text[]) AS name", (list(TABLES),))
    ).fetchall()
    row = await (await owner.execute("SELECT pg_database_size(current_database()) AS size")).fetchone()
    assert row is not None
    return {"": int(row["size"]), **{str(each["name"]): int(each["size"]) for each in rows}}


def report(starts: Mapping[str, float], memory: Mapping[str, float], grown: Disk) -> str:
    """A line a figure."""
    rows = [(f"start: {name}", f"{seconds:.2f} s") for name, seconds in starts.items()]
    rows += [(f"idle memory: {name}", f"{size:.0f} MB") for name, size in memory.items()]
    rows.append(("idle memory in all", f"{sum(memory.values()):.0f} MB"))
    rows.append(("disk per 1,000 messages", f"{grown.whole / 1000:.2f} MB"))
    rows += [
        (f"  of which {name}", f"{size / 1000:.2f} MB") for name, size in sorted(grown.tables.items(), key=lambda pair: -pair[1])
    ]
    return table(("figure", ""), rows)


def main(data: Path) -> int:
    """Measure in folders of their own. Returns the exit code."""
    said, messages = texts_of(data), int(os.environ.get("MESSAGES", MESSAGES))
    with tempfile.TemporaryDirectory(prefix="keepsake-bench-") as name:
        folder = Path(name)
        starts = {"new data folder": start_of_chat(folder)}
        starts["later (median)"] = statistics.median(start_of_chat(folder) for _ in range(STARTS))
        memory = idle_memory(folder, REST)
    starts["beside a running bot"] = memory.pop("chat beside it, s")
    with ground() as running:
        grown = asyncio.run(disk(running, said, messages))
    print(f"Start: {' '.join(chat_command()[-2:])}")
    print(report(starts, memory, grown))
    return 0
