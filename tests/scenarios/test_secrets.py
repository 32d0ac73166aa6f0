"""Everything a run leaves behind, but for the tables and the backup that hold what people said, is free of their words and of every secret."""

from __future__ import annotations

import asyncio
import os
import signal
import sys
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import aiohttp
import pytest
from redis.asyncio import Redis

from bot.embedded import attach
from tests.folders import data_folder
from tests.scenarios.terminal import ended, environment, run, terminal
from tests.servers.model import Raw, Request, ScriptedModel, Status, Step, call, reply, unused_port
from tests.waiting import until

WORDS = "CANARY-8c1e"
KEY = "sk-canary-3f9b4a7d6e"
TABLES = ("postgres",)
"""The folder of the database's files is what may hold words; its logs are looked at all the same."""


@pytest.fixture
def data() -> Iterator[Path]:
    with data_folder("secrets") as data:
        yield data


def troubled(request: Request) -> Step:
    """A model that quotes the person in everything, also in faults."""
    last = request.contents("user")[-1]  # headed by the status
    if "crash" in last and request.number % 2:
        return Status(500, "server_error", f"failed on {WORDS} with {KEY}")
    if "garbage" in last and request.number % 2:
        return Raw(f"{WORDS} {KEY} is no JSON")
    if request.number % 3 == 0:
        return reply(
            None,
            call("no_such_function", text=WORDS),
            call("archival_storage_insert", content=f"{WORDS} is stored", tags=[WORDS]),
        )
    return reply(f"You said {WORDS}.")


async def test_nothing_said_and_no_secret_is_anywhere_but_in_the_tables(data: Path) -> None:
    port = unused_port()
    async with ScriptedModel(policy=troubled) as model:
        settings = {
            "KEEPSAKE__MODEL__BASE_URL": model.base_url,
            "KEEPSAKE__MODEL__CHAT": "scripted",
            "KEEPSAKE__MODEL__SIZE": "large",
            "KEEPSAKE__MODEL__API_KEY_ENV": "CANARY_KEY",
            "CANARY_KEY": KEY,
            "KEEPSAKE__LOG__LEVEL": "debug",
            "KEEPSAKE__HEALTH__BIND": f"127.0.0.1:{port}",
        }
        emitted: dict[str, str] = {}
        said = [
            f"I am {WORDS}",
            f"crash {WORDS}",
            f"garbage {WORDS} \x00 \udcff",
            "/memory search " + WORDS,
            f"/nonsense{WORDS}",
            "/memory view",
        ]
        code, _, emitted["chat"] = await run(data, "chat", user="ada", given="\n".join(said) + "\n", **settings)
        assert code == 0, emitted["chat"]
        code, out, err = await run(data, "backup", str(data.parent), **settings)
        assert code == 0, err
        emitted["backup"] = out + err
        _, out, err = await run(data, "doctor", **settings)
        emitted["doctor"] = out + err
        emitted["run"], emitted["metrics"] = await served(data, port, settings)
        async with terminal(data, "ada", **settings) as chat:
            await chat.say(f"and again {WORDS}")
            await chat.hear_until(WORDS)
            emitted["redis"] = await in_redis(data)
            chat.kill()
            await chat.process.wait()
        _, out, err = await run(data, "memory", "delete", "console::ada", **settings)
        emitted["delete"] = out + err

    files = await asyncio.to_thread(lambda: [file for file in data.rglob("*") if file.is_file()])
    assert any(file.name == "bot.log" for file in files)
    for file in files:
        assert WORDS not in str(file), "in the name of a file"
        inside = set(TABLES) & set(file.relative_to(data).parts)
        if not inside or "log" in file.suffix or "log" in file.parts:
            emitted[str(file.relative_to(data))] = file.read_bytes().decode(errors="replace")
    assert not [file for file in files if file.suffix in (".rdb", ".aof")], "Redis keeps nothing on disk"
    for name in os.listdir(data.parent):
        assert WORDS not in name
        assert "ada" not in name
    # The cache holds what is said, for an hour, in memory; never a key.
    assert WORDS in emitted["redis"]
    wrong = [name for name, text in emitted.items() if (WORDS in text and name != "redis") or KEY in text]
    assert not wrong, wrong


async def served(data: Path, port: int, settings: dict[str, str]) -> tuple[str, str]:
    """What `bot run` says, and its health page."""
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", "bot", "run", "--only", "worker"),
        cwd=data.parent,
        env=environment(data, "ada", settings),
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
    )

    async def metrics() -> str:
        with suppress(aiohttp.ClientError):
            async with aiohttp.ClientSession() as session, session.get(f"http://127.0.0.1:{port}/metrics") as answer:
                return await answer.text()
        return ""

    try:
        page = str(await until(metrics, timeout=60, every=0.1))
    finally:
        process.send_signal(signal.SIGTERM)
        out, err = await ended(process)
    return out + err, page


async def in_redis(data: Path) -> str:
    """Everything in the Redis inside."""

    def address() -> str:
        held = attach(data)
        try:
            return held.servers.redis_url
        finally:
            held.release()

    redis = Redis.from_url(await asyncio.to_thread(address))
    found = [f"{key!r} {await redis.get(key)!r}" async for key in redis.scan_iter()]
    await redis.aclose()
    return "\n".join(found)
