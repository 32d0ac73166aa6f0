"""Two worker processes, one of them killed, the other stopped and continued; a tenth of the turns fails; every event comes three times.

Nothing may be lost, doubled or out of order, and at the end nothing may be left over.
"""

from __future__ import annotations

import asyncio
import itertools
import os
import signal
import sys
from asyncio.subprocess import Process
from collections import defaultdict
from datetime import UTC, datetime, timedelta
from pathlib import Path

from adapters.base import Incoming, Person, PlaceOf
from bot.engine.inbox import accept
from tests.bot.engine.world import World, world
from tests.chaos.worker_main import SETTINGS
from tests.conftest import Urls
from tests.waiting import stretched, until

AGENTS, EACH = 100, 6
ALL = AGENTS * EACH
ROOT = Path(__file__).parents[2]
_SEEDS = itertools.count(1)


async def start(url: str, folder: Path) -> Process:
    with (folder / "log").open("ab") as log:
        return await asyncio.create_subprocess_exec(
            sys.executable, "-m", "tests.chaos.worker_main", url, str(folder), str(next(_SEEDS)), cwd=ROOT, stderr=log
        )


async def stop(process: Process) -> int:
    if process.returncode is None:
        process.send_signal(signal.SIGCONT)
        process.terminate()
    try:
        async with asyncio.timeout(stretched(20)):
            return await process.wait()
    except TimeoutError:
        process.kill()
        raise


async def done(engine: World) -> int:
    count: int = await engine.one("SELECT count(*) FROM events WHERE status = 1")
    return count


async def produce(engine: World) -> None:
    """Every person writes six messages; a new round begins when most of the last one was answered."""

    async def deliver(person: int, number: int) -> None:
        user = f"user{person}"
        incoming = Incoming(
            "message",
            Person("folder", "", user, user),
            PlaceOf("folder", "", "", f"dm-{user}", "direct"),
            key=f"{user}-{number}",
            at=datetime.now(UTC),
            text=str(number),
        )
        outcomes = await asyncio.gather(
            *(accept(engine.db, incoming, burst=timedelta(), now=datetime.now(UTC)) for _ in range(3))
        )
        assert sum(outcome.event_id is not None for outcome in outcomes) == 1

    for number in range(1, EACH + 1):
        await asyncio.gather(*(deliver(person, number) for person in range(AGENTS)))
        enough = (number - 1) * AGENTS + AGENTS // 2
        await until(lambda enough=enough: _reached(engine, enough), timeout=30, every=0.05)  # type: ignore[misc]


async def _reached(engine: World, count: int) -> bool:
    return await done(engine) >= count


async def at_rest(engine: World) -> bool:
    return await engine.at_rest() and not await engine.one("SELECT count(*) FROM outbox WHERE state <> 'sent'")


async def test_nothing_is_lost_doubled_or_out_of_order(urls: Urls, tmp_path: Path) -> None:
    async with world(urls.bot, urls.owner, SETTINGS) as engine:
        processes = [await start(urls.bot, tmp_path)]
        (first,) = await workers(engine, 1)
        processes.append(await start(urls.bot, tmp_path))
        (second,) = set(await workers(engine, 2)) - {first}
        producer = asyncio.create_task(produce(engine))
        try:
            await until(lambda: _reached(engine, ALL * 3 // 10), timeout=60, every=0.02)
            await until(lambda: _busy(engine, first, 10), timeout=30)
            processes[0].kill()
            processes.append(await start(urls.bot, tmp_path))
            await until(lambda: _reached(engine, ALL // 2), timeout=60, every=0.02)

            zombie = processes[1]
            await until(lambda: _busy(engine, second, 10), timeout=30)
            assert zombie.pid is not None
            os.kill(zombie.pid, signal.SIGSTOP)
            await until(lambda: _taken_over(engine, second), timeout=30, every=0.1)
            os.kill(zombie.pid, signal.SIGCONT)

            await producer
            await until(lambda: at_rest(engine), timeout=60, every=0.1)
            assert [await stop(process) for process in processes[1:]] == [0, 0], (tmp_path / "log").read_text()[-3000:]
        finally:
            producer.cancel()
            for process in processes:
                await stop(process)
        await check(engine, (tmp_path / "shown").read_text())
        log = (tmp_path / "log").read_text()
        assert "taken over" in log, "the stopped process had nothing to lose"
        assert "freed" in log, "the killed process had nothing to lose"


async def workers(engine: World, count: int) -> list[int]:
    """The workers of the queue, once there are so many."""
    await until(lambda: _workers(engine, count), timeout=30)
    return await engine.column("SELECT id FROM procrastinate_workers")


async def _workers(engine: World, count: int) -> bool:
    return len(await engine.column("SELECT id FROM procrastinate_workers")) == count


async def _busy(engine: World, worker: int, least: int) -> bool:
    """The worker has turns in flight."""
    return len([job for job in await engine.jobs() if job["status"] == "doing" and job["worker_id"] == worker]) >= least


async def _taken_over(engine: World, worker: int) -> bool:
    """The worker's jobs are the other's now."""
    return not [job for job in await engine.jobs() if job["status"] == "doing" and job["worker_id"] == worker]


async def check(engine: World, shown: str) -> None:
    wanted = [str(number) for number in range(1, EACH + 1)]
    assert await engine.column("SELECT DISTINCT status FROM events") == [1]
    assert await engine.one("SELECT count(*) FROM events") == ALL
    assert set(await engine.column("SELECT string_agg(seq::text, ' ' ORDER BY seq) FROM events GROUP BY agent_id")) == {
        " ".join(wanted)
    }

    for role in ("user", "assistant"):
        said = await engine.column(
            "SELECT string_agg(content, ' ' ORDER BY position) FROM messages WHERE role = %s GROUP BY agent_id", role
        )
        assert said == [" ".join(wanted)] * AGENTS

    assert (
        await engine.column("SELECT string_agg(body, ' ' ORDER BY id) FROM outbox GROUP BY agent_id")
        == [" ".join(wanted)] * AGENTS
    )
    channels: defaultdict[str, list[str]] = defaultdict(list)
    for line in shown.splitlines():
        channel, text = line.split("\t")
        channels[channel] += text.split()
    assert list(channels.values()) == [wanted] * AGENTS

    assert await engine.one("SELECT count(*) FROM agents WHERE wake") == 0
    assert await engine.jobs() == []
    assert await engine.column("SELECT DISTINCT state FROM turns") == ["done"]
