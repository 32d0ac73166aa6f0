"""A simulated year of people who write, move, pause, refuse and fall silent, on an accelerated clock over the real rows.

The bot's part is the product's: timers are planned, claimed and decided about, turns are claimed, judged and committed; only the model is
left out, which would always speak. What it said is then judged by `offences`, which knows the lives that were led and shares no code
with the decision.
"""

from __future__ import annotations

import heapq
import itertools
from bisect import bisect_right
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from datetime import UTC, date, datetime, time, timedelta
from random import Random
from typing import Any
from zoneinfo import ZoneInfo

import psycopg

from bot.app.runtime import engine_settings
from bot.bench.stage import keep_words
from bot.config.sections import EngineSection
from bot.engine import turns
from bot.engine.events import Claim
from bot.engine.timers import fire_due, rezone
from bot.speaking.decision import SpeakingRules
from bot.speaking.initiative import Initiative
from memory.db import Database

ZONES = (
    "Europe/Berlin",
    "America/New_York",
    "Australia/Lord_Howe",
    "Asia/Kolkata",
    "Asia/Tokyo",
    "America/Los_Angeles",
    "Europe/London",
    "Africa/Cairo",
    "America/Sao_Paulo",
    "Asia/Shanghai",
    "Asia/Kathmandu",
    "Pacific/Auckland",
    "Pacific/Chatham",
    "Africa/Casablanca",
    "America/St_Johns",
    "Asia/Tehran",
    "Europe/Moscow",
    "Pacific/Honolulu",
    "Pacific/Kiritimati",
    "UTC",
)
START = datetime(2026, 1, 1, tzinfo=UTC)
DAY = timedelta(days=1)


@dataclass
class Life:
    """What one person did, as the simulation knows it: changes of each setting in order, and when they wrote."""

    agent: int
    place: int
    user: str
    settings: dict[str, list[tuple[datetime, Any]]] = field(default_factory=dict)
    wrote: list[datetime] = field(default_factory=list)
    spoken: list[datetime] = field(default_factory=list)

    def put(self, name: str, at: datetime, value: Any) -> None:
        """A setting changes."""
        self.settings.setdefault(name, []).append((at, value))

    def at(self, name: str, now: datetime) -> Any:
        """What a setting was at a time."""
        history = self.settings.get(name, [])
        index = bisect_right([at for at, _ in history], now)
        return history[index - 1][1] if index else None


def course(chance: Random, number: int, days: int) -> Iterator[tuple[datetime, str, Any]]:
    """One person's year: what happens to them, in no order."""
    zone = ZONES[number % len(ZONES)]
    yield START, "timezone", zone
    if chance.random() < 0.9:
        yield START + DAY * chance.uniform(0, 5), "openers", "yes"
    for _ in range(chance.choice((0, 0, 0, 1, 2))):
        yield START + DAY * chance.uniform(5, days), "openers", chance.choice(("yes", "no"))
    if chance.random() < 0.3:
        begins = chance.randrange(24)
        yield (
            START + DAY * chance.uniform(0, days),
            "quiet",
            (time(begins, chance.choice((0, 30))), time((begins + chance.randrange(1, 16)) % 24)),
        )
    if chance.random() < 0.2:
        yield START + DAY * chance.uniform(0, days), "daily_cap", chance.randrange(3)
    for name, share in (("paused", 0.2), ("unreachable", 0.1)):
        if chance.random() < share:
            begins_at = START + DAY * chance.uniform(0, days)
            yield begins_at, name, True
            yield begins_at + DAY * chance.uniform(1, 30), name, False
    if chance.random() < 0.15:
        yield START + DAY * chance.uniform(0, days), "timezone", chance.choice(ZONES)
    if chance.random() < 0.05:
        yield START + DAY * chance.uniform(0, days), "crisis", True
    rhythm = chance.choice((0.5, 2, 5, 30, 400))
    at = START
    while at < START + DAY * days:
        at += DAY * chance.expovariate(1 / rhythm)
        yield at, "writes", None


@dataclass
class Year:
    """The simulation. `said` counts openers, `looks` the timers that were due, `dropped` turns that ended before a model call."""

    db: Database
    owner: psycopg.AsyncConnection[dict[str, Any]]
    rules: SpeakingRules
    people: int
    days: int
    seed: int = 1
    lives: dict[int, Life] = field(default_factory=dict)
    counts: dict[str, int] = field(default_factory=dict)
    said: int = 0
    looks: int = 0
    dropped: int = 0

    def __post_init__(self) -> None:
        self._chance = Random(self.seed)
        self._numbers = itertools.count()
        self._heap: list[tuple[datetime, int, str, int, Any]] = []
        self._waiting: set[int] = set()
        self._initiative = Initiative(self.db, self.rules, count=self._count)
        self._engine = engine_settings(EngineSection(debounce=0))

    def _count(self, reason: str) -> None:
        self.counts[reason] = self.counts.get(reason, 0) + 1

    def _push(self, at: datetime, what: str, agent: int, value: Any = None) -> None:
        heapq.heappush(self._heap, (at, next(self._numbers), what, agent, value))

    async def run(self) -> None:
        """Live through it."""
        await self._born()
        end = START + DAY * self.days
        planned = START
        while True:
            due = await self._one("SELECT min(due_at) AS x FROM timers WHERE due_at IS NOT NULL")
            life = self._heap[0][0] if self._heap else end
            now = min(life, due or end, planned)
            if now >= end:
                return
            if now == planned:
                await self._initiative.plan(now)
                # Nobody runs the wake-ups: the simulation takes the turns itself.
                await self.owner.execute("DELETE FROM procrastinate_jobs")
                planned = now + timedelta(hours=6)
            elif now == life:
                at, _, what, agent, value = heapq.heappop(self._heap)
                await self._happens(at, what, self.lives[agent], value)
            else:
                await self._tick(now + timedelta(seconds=self._chance.random()))

    async def _born(self) -> None:
        for number in range(self.people):
            user = f"person{number}"
            row = await (
                await self.owner.execute("SELECT agent_of('sim', '', %s, %s, NULL, NULL) AS agent", (user, user))
            ).fetchone()
            assert row is not None
            agent = row["agent"]
            place = await self._one("SELECT place_of('sim', '', '', %s, 'direct', '', NULL, %s) AS x", f"dm-{user}", agent)
            await self.owner.execute("SELECT conversation_of(%s, %s)", (agent, place))
            self.lives[agent] = Life(agent, place, user)
            for at, what, value in course(self._chance, number, self.days):
                self._push(at, what, agent, value)

    async def _one(self, statement: str, *parameters: object) -> Any:
        row = await (await self.owner.execute(statement.encode(), parameters)).fetchone()
        return row["x"] if row else None

    # What people do ----------------------------------------------------------------------------------

    async def _happens(self, at: datetime, what: str, life: Life, value: Any) -> None:
        if what == "turn":
            self._waiting.discard(life.agent)
            await self._turn(at, life)
        elif what == "writes":
            await self._writes(at, life)
        else:
            life.put(what, at, value)
            statement, parameters = _CHANGES[what]
            await self.owner.execute(
                statement.encode(),
                {
                    **parameters,
                    "agent": life.agent,
                    "value": value,
                    "at": at,
                    "user": life.user,
                    **({"from": value[0], "to": value[1]} if what == "quiet" else {}),
                },
            )
            if what == "timezone":
                await rezone(self.db, at)
            if what == "crisis":
                await self._writes(at, life)

    async def _writes(self, at: datetime, life: Life) -> None:
        life.wrote.append(at)
        await self.owner.execute(
            """WITH a AS (UPDATE agents SET next_seq = next_seq + 1 WHERE id = %s RETURNING id, next_seq - 1 AS seq)
               INSERT INTO events (agent_id, seq, place_id, visibility, kind, origin, source, idem, payload, status, created_at, done_at)
               SELECT id, seq, %s, 'direct', 'message', 'person', 'sim', %s, '{}', 1, %s, %s FROM a""",
            (life.agent, life.place, str(next(self._numbers)), at, at),
        )

    # What the bot does -------------------------------------------------------------------------------

    async def _tick(self, now: datetime) -> None:
        self.looks += await fire_due(self.db, now, self._initiative.on_due)
        rows = await (await self.owner.execute("SELECT DISTINCT agent_id FROM events WHERE status = 0")).fetchall()
        for row in rows:
            if row["agent_id"] not in self._waiting:
                # Mostly at once; sometimes the model is away for hours.
                delay = self._chance.choice((1, 2, 5, 20, 60, 9000)) if self._chance.random() < 0.3 else 1
                self._waiting.add(row["agent_id"])
                self._push(now + timedelta(seconds=delay), "turn", row["agent_id"])

    async def _turn(self, now: datetime, life: Life) -> None:
        claim = await turns.claim(self.db, life.agent, now, self._engine)
        assert isinstance(claim, Claim)
        gone = await self._initiative.refused(claim, now)
        if gone:
            claim = await turns.drop(self.db, claim, gone, now=now)
            if not claim.events:
                self.dropped += 1
                return
        async with turns.step(self.db, claim, now=now, finish="done") as step:
            await keep_words(step)
            speaks = await self._initiative.may_send(step.connection, claim, now)
            self._initiative.note(step, said=speaks)
            if speaks:
                await step.reply("Hello!")
        if speaks:
            life.spoken.append(now)
            self.said += 1
            if self._chance.random() < 0.5:
                self._push(now + timedelta(minutes=self._chance.uniform(1, 600)), "writes", life.agent)


_SPEAKING = "INSERT INTO speaking (agent_id, {0}) VALUES (%(agent)s, {1}) ON CONFLICT (agent_id) DO UPDATE SET {2}"
_CHANGES: dict[str, tuple[str, dict[str, Any]]] = {
    "timezone": ("UPDATE agents SET timezone = %(value)s WHERE id = %(agent)s", {}),
    "paused": ("UPDATE agents SET paused = %(value)s WHERE id = %(agent)s", {}),
    "unreachable": (
        "UPDATE identities SET unreachable_since = CASE WHEN %(value)s::boolean THEN %(at)s::timestamptz END WHERE user_id = %(user)s",
        {},
    ),
    "openers": (_SPEAKING.format("openers", "%(value)s", "openers = excluded.openers"), {}),
    "daily_cap": (_SPEAKING.format("daily_cap", "%(value)s", "daily_cap = excluded.daily_cap"), {}),
    "crisis": (_SPEAKING.format("crisis_at", "%(at)s", "crisis_at = excluded.crisis_at"), {}),
    "quiet": (
        _SPEAKING.format(
            "quiet_from, quiet_to", "%(from)s, %(to)s", "quiet_from = excluded.quiet_from, quiet_to = excluded.quiet_to"
        ),
        {},
    ),
}


# The judge -------------------------------------------------------------------------------------------


def offences(life: Life, rules: SpeakingRules) -> list[str]:
    """What each opener broke, judged by the life that was led."""
    found = []
    for index, now in enumerate(life.spoken):
        earlier = life.spoken[:index]
        found += [f"{life.user} {now}: {rule}" for rule in _broken(life, now, earlier, rules)]
    return found


def _broken(life: Life, now: datetime, earlier: Sequence[datetime], rules: SpeakingRules) -> Iterator[str]:
    if life.at("openers", now) != "yes":
        yield "no leave"
    if life.at("paused", now):
        yield "paused"
    if life.at("unreachable", now):
        yield "unreachable"
    local = now.astimezone(ZoneInfo(life.at("timezone", now)))
    begins, ends = life.at("quiet", now) or (rules.quiet_from, rules.quiet_to)
    minute, first, last = (clock.hour * 60 + clock.minute for clock in (local.time(), begins, ends))
    if (minute - first) % 1440 < (last - first) % 1440:
        yield "quiet hours"
    wrote = [at for at in life.wrote if at <= now]
    if wrote and now - wrote[-1] < rules.active:
        yield "active"
    cap = life.at("daily_cap", now)
    today: date = local.date()
    if 1 + sum(at.astimezone(local.tzinfo).date() == today for at in earlier) > (rules.cap if cap is None else cap):
        yield "daily cap"
    silent = [at for at in earlier if not wrote or at > wrote[-1]]
    if len(silent) >= rules.stop_after:
        yield "unanswered"
    if earlier and now - earlier[-1] < rules.gap * 2 ** len(silent):
        yield "gap"
    crises = [at for at, _ in life.settings.get("crisis", []) if at <= now]
    if crises and (now - crises[-1] < rules.crisis or not any(at > crises[-1] for at in wrote)):
        yield "crisis"
