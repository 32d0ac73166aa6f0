"""Reminders under faults of the model, the database, Redis and two processes: each reaches its person once, in time.

REMINDERS=10000 in the environment makes it the whole measurement, which prints its figures.
"""

from __future__ import annotations

import asyncio
import os
import random
import sys
from asyncio.subprocess import Process
from collections import Counter, defaultdict
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from redis.asyncio import Redis

from bot.embedded import Servers
from tests.bot.engine.outage import Outage
from tests.bot.engine.world import World, place, world
from tests.conftest import Urls
from tests.servers.model import EMPTY_CHOICES, MALFORMED, Request, Reset, ScriptedModel, Status, Step, call, reply
from tests.waiting import until

ROOT = Path(__file__).parents[2]
REMINDERS = int(os.environ.get("REMINDERS", "120"))
A_SECOND = 10 if REMINDERS > 1000 else 20
"""So many come due in a second; each person has ten. The whole measurement is of how late they come, not of how many a machine can do."""
KILLS, CUTS = (4, 4) if REMINDERS > 1000 else (1, 1)
IN_TIME, AFTER_A_RESTART = 5.0, 60.0
"""Seconds after it is due in which all but one in a hundred come; and all, also those that come due so soon after a fault."""
WAYS: tuple[Step, ...] = (
    reply("Time for it!"),
    reply(None, call("send_message", text="Time for it!")),
    reply(None),
    reply(None, call("stay_silent")),
    reply("…", finish="content_filter"),
    Status(400, "content_filter", "The response was filtered."),
    Status(401, "invalid_api_key"),
    Status(503),
    Status(429, headers={"Retry-After": "1"}),
    Reset(after=True),
    EMPTY_CHOICES,
    MALFORMED,
)


@dataclass
class Bot:
    """One of two processes side by side, which is killed and started again."""

    arguments: tuple[str, ...]
    log: Path
    process: Process | None = None

    async def start(self) -> None:
        with self.log.open("ab") as log:
            self.process = await asyncio.create_subprocess_exec(
                sys.executable, "-m", "tests.chaos.reminder_main", *self.arguments, cwd=ROOT, stderr=log
            )

    async def kill(self) -> None:
        assert self.process is not None
        assert self.process.returncode is None, f"the bot ended by itself:\n{self.log.read_text()[-6000:]}"
        self.process.kill()
        await self.process.wait()


def shown(folder: Path) -> list[tuple[str, float]]:
    """What was sent: the channel, and when. A message of several reminders is a line each."""
    if not (folder / "shown").exists():
        return []
    found = []
    for line in (folder / "shown").read_text().splitlines():
        channel, *texts, at = line.split("\t")
        found += [(channel, float(at))] * len(texts)
    return found


@pytest.mark.timeout(3600)
async def test_each_comes_once_and_in_time_whatever_fails(cluster: Servers, urls: Urls, tmp_path: Path) -> None:
    chance, people = random.Random(3), REMINDERS // 10

    def answer(_: Request) -> Step:
        return chance.choice(WAYS)

    async with (
        world(urls.bot, urls.owner) as engine,
        ScriptedModel(policy=answer) as model,
        Redis.from_url(cluster.redis_url) as redis,
    ):
        places = []
        for number in range(people):
            channel = place(f"dm{number}", "direct", platform="folder")
            accepted = await engine.say("hello", user=f"user{number}", where=channel)
            await engine.finish(await engine.claim(accepted.agent))
            places.append((accepted.agent, accepted.place_id, f"dm{number}"))
        await engine.owner.execute("DELETE FROM procrastinate_jobs")
        arguments = (urls.bot, model.base_url, cluster.redis_url, str(tmp_path))
        bots = [Bot(arguments, tmp_path / f"log-{number}") for number in range(2)]
        for bot in bots:
            await bot.start()
        await until(lambda: len([*tmp_path.glob("ready-*")]) == len(bots), timeout=180)
        begin = datetime.now(UTC) + timedelta(seconds=10)  # after the rows are written
        seconds, due = REMINDERS / A_SECOND, defaultdict[str, list[float]](list)
        for number in range(REMINDERS):
            due[places[number % people][2]].append((begin + timedelta(seconds=number / A_SECOND)).timestamp())
        await engine.owner.execute(
            """INSERT INTO timers (agent_id, place_id, visibility, kind, purpose, zone, wall_time, due_at, created_at)
               SELECT agents[1 + n %% %(people)s], places[1 + n %% %(people)s], 'direct', 'reminder', 'number ' || n, 'UTC', at AT TIME ZONE 'UTC',
                 at, now()
               FROM generate_series(0, %(last)s) n, (SELECT %(agents)s::bigint[] AS agents, %(places)s::bigint[] AS places) known,
                 LATERAL (SELECT %(begin)s::timestamptz + n * %(step)s AS at) times""",
            {
                "people": people,
                "last": REMINDERS - 1,
                "agents": [agent for agent, _, _ in places],
                "places": [where for _, where, _ in places],
                "begin": begin,
                "step": timedelta(seconds=1 / A_SECOND),
            },
        )
        assert datetime.now(UTC) < begin
        outage = Outage.of(cluster, urls)
        faults: list[tuple[float, float]] = []
        try:
            for number in range(KILLS + CUTS):
                at = begin + timedelta(seconds=seconds * (number + 1) / (KILLS + CUTS + 1))
                await until(lambda at=at: _is_past(at), timeout=seconds + 60, every=0.05)  # type: ignore[misc]
                fault = datetime.now(UTC).timestamp()
                await redis.flushall()
                if number % 2:
                    await outage.cut()
                else:
                    for bot in bots if number % 4 else bots[:1]:  # now one of them, now both
                        await bot.kill()
                        await bot.start()
                faults.append((fault, fault + AFTER_A_RESTART))
            with suppress(TimeoutError):
                await until(lambda: _all(tmp_path), timeout=600 if REMINDERS > 1000 else 240, every=0.2)
                await until(lambda: _none_waits(engine.one), timeout=60, every=0.2)
        finally:
            for bot in bots:
                await bot.kill()
        sent = shown(tmp_path)
        assert len(sent) == REMINDERS, f"none is lost, none is doubled: {await _standing(engine)}"
        assert await _none_waits(engine.one), await _standing(engine)
        assert Counter(channel for channel, _ in sent) == Counter({channel: len(times) for channel, times in due.items()})
        late = _lateness(due, sent)
        calm = [seconds for at, seconds in late if not any(begin - 2 <= at <= end for begin, end in faults)]
        print(
            f"{REMINDERS} reminders, two processes, {KILLS} kills, {CUTS} cuts: 0 lost, 0 doubled; {len(calm)} due while nothing had just failed: "
            f"{_figures(calm)}; all: {_figures([seconds for _, seconds in late])}"
        )
        if calm:  # a small run is over before the first fault is
            assert _percentile(calm, 0.99) <= IN_TIME
        assert max(seconds for _, seconds in late) <= AFTER_A_RESTART


def _times(sent: list[tuple[str, float]], channel: str) -> list[float]:
    return sorted(at for one, at in sent if one == channel)


def _lateness(due: dict[str, list[float]], sent: list[tuple[str, float]]) -> list[tuple[float, float]]:
    """When each was due and how many seconds late it came: the n-th message of a channel is for its n-th reminder."""
    pairs = [pair for channel, times in due.items() for pair in zip(sorted(times), _times(sent, channel), strict=True)]
    return [(due_at, at - due_at) for due_at, at in pairs]


def _percentile(seconds: list[float], share: float) -> float:
    return sorted(seconds)[min(len(seconds) - 1, int(len(seconds) * share))]


def _figures(seconds: list[float]) -> str:
    if not seconds:
        return "none"
    return f"p50 {_percentile(seconds, 0.5):.1f} s, p99 {_percentile(seconds, 0.99):.1f} s, the latest {max(seconds):.1f} s"


async def _is_past(at: datetime) -> bool:
    return datetime.now(UTC) >= at


async def _all(folder: Path) -> bool:
    return len(await asyncio.to_thread(shown, folder)) >= REMINDERS


async def _standing(engine: World) -> str:
    """How many rows are in which state, of what is to become a message."""
    rows = await (
        await engine.owner.execute(
            """SELECT 'timer' AS what, (due_at IS NOT NULL)::text AS state, count(*) FROM timers GROUP BY 2
               UNION ALL SELECT 'event', status::text, count(*) FROM events GROUP BY 2
               UNION ALL SELECT 'outbox', state, count(*) FROM outbox GROUP BY 2
               UNION ALL SELECT 'job', status::text, count(*) FROM procrastinate_jobs GROUP BY 2"""
        )
    ).fetchall()
    return str(rows)


async def _none_waits(one: object) -> bool:
    return not await one("SELECT count(*) FROM events WHERE status IN (0, 2)")  # type: ignore[operator]
