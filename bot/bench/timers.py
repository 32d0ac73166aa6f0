"""`bot bench timers`: what a tick costs with few and with a million timers, and a simulated year of openers.

A tick is the product's own: the people whose zone changed, the people without a plan, the reminders that died with their turn, the due timers,
the faulty ones; with nothing due and with 100 due, which become events. Each number of timers has its own database, and the looks go by
turns. SIZES in the environment names other numbers of timers, PEOPLE and DAYS another year (PEOPLE=0: none).
"""

from __future__ import annotations

import asyncio
import os
import statistics
import time
from collections.abc import AsyncIterator, Sequence
from contextlib import AsyncExitStack, ExitStack, asynccontextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from functools import partial
from pathlib import Path
from typing import Any

import psycopg

from bot.bench.stage import ground, owning, percentile, table
from bot.bench.year import Year, offences
from bot.embedded import Servers
from bot.engine.timers import BATCH, Look, Ticker
from bot.speaking.decision import SpeakingRules
from bot.speaking.initiative import Initiative
from bot.speaking.reminders import say_dead
from bot.speaking.schedules import fingerprint
from memory.db import Database

NOW = datetime(2026, 6, 1, 12, 0, tzinfo=UTC)
SIZES = (10_000, 1_000_000)
PEOPLE, DAYS = 1_000, 365
PEOPLE_AT_MOST = 100_000
LOOKS = 200
ROUNDS = 40
WARM = 5
_FILL = """
INSERT INTO timers (agent_id, place_id, visibility, kind, purpose, zone, wall_time, due_at, created_at)
SELECT a.id, c.place_id, 'direct', 'reminder', 'water the plants', 'UTC', d.due AT TIME ZONE 'UTC', d.due, %(now)s
FROM (SELECT n, %(now)s::timestamptz + interval '1 day' + n * interval '27 seconds' AS due FROM generate_series(1, %(count)s) n) d
JOIN (SELECT id, row_number() OVER (ORDER BY id) AS nth FROM agents) a ON a.nth = 1 + d.n %% %(agents)s
JOIN conversations c ON c.agent_id = a.id"""


async def _people(owner: psycopg.AsyncConnection[dict[str, Any]], count: int) -> None:
    await owner.execute(
        """SELECT conversation_of(made.agent, place_of('bench', '', '', 'dm' || made.n, 'direct', '', NULL, made.agent))
           FROM (SELECT n, agent_of('bench', '', 'u' || n, 'u', NULL, 'UTC') AS agent FROM generate_series(1, %s) n) made""",
        (count,),
    )
    await owner.execute("INSERT INTO speaking (agent_id, openers, planned) SELECT id, 'yes', 'x' FROM agents")


@dataclass(slots=True)
class Tick:
    """A process that looks for due timers in a database with `size` of them. Times are milliseconds."""

    size: int
    owner: psycopg.AsyncConnection[dict[str, Any]]
    db: Database
    initiative: Initiative
    empty: list[float] = field(default_factory=list)
    full: list[float] = field(default_factory=list)

    async def fill(self) -> None:
        """Write the timers, of as many people, all waiting."""
        owner = self.owner
        await owner.execute("TRUNCATE agents, places CASCADE")
        await owner.execute("DELETE FROM procrastinate_jobs")
        people = min(self.size, PEOPLE_AT_MOST)
        await _people(owner, people)
        await owner.execute(_FILL, {"now": NOW, "count": self.size, "agents": people})
        await owner.execute("UPDATE speaking SET planned = %s", (fingerprint(self.initiative.rules, {}),))
        await owner.execute("VACUUM ANALYZE")

    async def look(self, now: datetime) -> float:
        """One look for due timers."""
        also, looks = (self.initiative.plan, partial(say_dead, self.initiative)), list[Look]()
        ticker = Ticker(self.db, now=lambda: now, decide=self.initiative.on_due, also=also, looked=looks.append)
        began = time.perf_counter()
        await ticker.tick()
        assert [look.error for look in looks] == [None]
        return (time.perf_counter() - began) * 1000

    async def look_at_due(self, number: int) -> float:
        """One look with 100 due, each another's, which become events."""
        await self.owner.execute(
            "UPDATE timers SET due_at = %s, wall_time = %s WHERE id IN (SELECT id FROM timers WHERE due_at > %s ORDER BY due_at DESC LIMIT %s)",
            (NOW, NOW.replace(tzinfo=None), NOW + timedelta(hours=1), BATCH - 1),
        )
        return await self.look(NOW + timedelta(seconds=number))

    async def row(self) -> tuple[object, ...]:
        """Of the table: timers, an empty look (median, p99), a look with 100 due (median, p99); and the plan's node."""
        times = (f"{percentile(values, share):.2f}" for values in (self.empty, self.full) for share in (0.5, 0.99))
        return (f"{self.size:,}", *times, await _plan(self.owner))


@asynccontextmanager
async def ticking(running: Servers, size: int) -> AsyncIterator[Tick]:
    """Such a process, with its database filled."""
    async with owning(running) as owner, Database(running.bot_url, size=4) as db:
        tick = Tick(size, owner, db, Initiative(db, SpeakingRules()))
        await tick.fill()
        yield tick


async def side_by_side(ticks: Sequence[Tick], looks: int = LOOKS, rounds: int = ROUNDS) -> None:
    """Look in each of them by turns, so that whatever else the machine does meets all alike. The first looks are not counted."""
    for number in range(looks + WARM):
        for tick in ticks if number % 2 else reversed(ticks):
            taken = await tick.look(NOW)
            tick.empty += [taken] * (number >= WARM)
    for number in range(min(rounds, *(tick.size // BATCH - WARM for tick in ticks)) + WARM):
        for tick in ticks if number % 2 else reversed(ticks):
            taken = await tick.look_at_due(number)
            tick.full += [taken] * (number >= WARM)


def ratios(few: Tick, many: Tick) -> str:
    """How many times as long a look takes with many timers, in a line: the median over looks made right after one another."""
    of_empty, of_full = (
        statistics.median(more / less for less, more in zip(fewer, more_of, strict=True))
        for fewer, more_of in ((few.empty, many.empty), (few.full, many.full))
    )
    return f"{many.size:,} beside {few.size:,}, look by look: {of_empty:.2f} times as long with nothing due, {of_full:.2f} with 100 due"


async def _plan(owner: psycopg.AsyncConnection[dict[str, Any]]) -> str:
    """How PostgreSQL looks for the due, with the body and the settings of the function that does it."""
    row = await (
        await owner.execute(
            "SELECT prosrc, array_to_string(proconfig, ';') AS settings FROM pg_proc WHERE proname = 'due_timers'"
        )
    ).fetchone()
    assert row is not None
    body = row["prosrc"].replace("p_now", "$1").replace("p_limit", "$2")
    async with owner.transaction():
        for setting in row["settings"].split(";"):
            name, _, text = setting.partition("=")
            await owner.execute("SELECT set_config(%s, %s, true)", (name, text))
        await owner.execute(f"PREPARE due (timestamptz, integer) AS {body}".encode())
        plan = await (await owner.execute(f"EXPLAIN (COSTS OFF) EXECUTE due ('{NOW.isoformat()}', {BATCH})".encode())).fetchall()
        await owner.execute("DEALLOCATE due")
    return next(line for row in plan if " on timers" in (line := str(row["QUERY PLAN"]).strip(" ->")))


async def year(running: Servers, people: int, days: int) -> tuple[str, int]:
    """What became of a simulated year, in a line, and how many openers broke a rule."""
    async with owning(running) as owner, Database(running.bot_url, size=4) as db:
        await owner.execute("TRUNCATE agents, places CASCADE")
        simulated, began = Year(db, owner, SpeakingRules(), people, days), time.perf_counter()
        await simulated.run()
        broken = [line for life in simulated.lives.values() for line in offences(life, simulated.rules)]
    reasons = ", ".join(
        f"{reason.removeprefix('opener_')} {count:,}"
        for reason, count in sorted(simulated.counts.items(), key=lambda one: -one[1])
    )
    lines = [
        f"{people:,} people in 20 zones, {days} days in {time.perf_counter() - began:.0f} s: {simulated.looks:,} looks, {simulated.said:,} openers, "
        f"{simulated.dropped:,} dropped at the turn's begin, {len(broken)} outside the rules",
        f"  {reasons}",
        *(f"  {line}" for line in broken[:10]),
    ]
    return "\n".join(lines), len(broken)


async def run(grounds: Sequence[tuple[Servers, int]]) -> int:
    """Everything; the exit code is 1 when a rule was broken."""
    async with AsyncExitStack() as stack:
        ticks = [await stack.enter_async_context(ticking(running, size)) for running, size in grounds]
        await side_by_side(ticks)
        print(table(("timers", "empty p50", "p99 ms", "100 due p50", "p99 ms", "plan"), [await tick.row() for tick in ticks]))
        for many in ticks[1:]:
            print(ratios(ticks[0], many))
    people, days = int(os.environ.get("PEOPLE", PEOPLE)), int(os.environ.get("DAYS", DAYS))
    if not people:
        return 0
    line, broken = await year(grounds[0][0], people, days)
    print(line)
    return int(broken > 0)


def main(_: Path) -> int:
    """Print the figures."""
    sizes = [int(size) for size in os.environ.get("SIZES", "").split(",") if size] or SIZES
    with ExitStack() as stack:
        return asyncio.run(run([(stack.enter_context(ground(lasting=True)), size) for size in sizes]))
