"""`bot bench throughput --data PATH`: a thousand agents in flight in one process, with a model that takes a second.

Every agent is asked again as soon as it has answered; the figure is turns a second of the whole bot in this process
(inbox, worker, agents, outbox). Beside it, from the same run and with the same prompts and model:

    plain   a bare asyncio program with as many requests and as many commits, which calls the openai library as documented
    lean    the same through the bot's own client
    two     the plain program with only the two commits a turn that it needs itself
    engine  the queue engine alone with turns that only keep what was said: events a second

The memory of a waiting turn is what the process grew by from rest to a thousand turns that wait for the model, by the thousand.
"""

from __future__ import annotations

import asyncio
import itertools
import json
import os
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import timedelta
from pathlib import Path
from typing import Any

import psutil

from adapters.base import Incoming, Person, PlaceOf
from bot.app.runtime import engine_settings
from bot.bench.bare import Bare, bare_pool, by_library, by_ours
from bot.bench.bulk import Owner, authored, person, texts_of, write_messages
from bot.bench.model import Apart, apart
from bot.bench.running import StopwatchAdapter, at_rest, running_bot
from bot.bench.sizes import Sizes
from bot.bench.stage import PLATFORM, ground, keep_words, owning, services_on, table
from bot.config.sections import EngineSection
from bot.embedded import Servers
from bot.engine import inbox, turns
from bot.engine.events import Claim
from bot.engine.queue import Queue
from bot.engine.worker import Worker
from memory.db import Database, value

AGENTS = 1_000
ROUNDS = 2
SLICES = 2
"""How often all programs take turns, so that whatever else the machine does hits all alike."""
LATENCY = 1.0
PROMPTS = {1_000: 6, 8_000: 116}
"""Tokens of the messages of a prompt, and how many earlier messages of LoCoMo make them."""
POOL = 20
SAID = "And what did you think of it when you heard it for the first time?"
GOAL, GOAL_KB = 0.60, 200


@dataclass(slots=True)
class Rates:
    """What one size of prompt came to."""

    prompt: int
    tokens: int = 0
    ours: float = 0.0
    commits: float = 0.0
    kilobytes: float = 0.0
    bare: dict[str, float] = field(default_factory=dict)


async def _commits(owner: Owner) -> int:
    """Transactions that wrote something so far, in the whole server."""
    return int(await value(owner, "SELECT pg_snapshot_xmax(pg_current_snapshot())::text::bigint"))


async def whole(adapter: StopwatchAdapter, users: Sequence[str], rounds: int) -> float:
    """Seconds in which the bot answers everybody so often."""

    async def person_asks(user: str) -> None:
        for _ in range(rounds):
            await adapter.ask(user, SAID)

    began = time.perf_counter()
    await asyncio.gather(*map(person_asks, users))
    return time.perf_counter() - began


async def waiting_memory(adapter: StopwatchAdapter, model: Apart, users: Sequence[str]) -> float:
    """Kilobytes that a turn takes while it waits for the model."""
    process = psutil.Process()
    await model.hold(True)
    before = process.memory_info().rss
    answers = [await adapter.say(user, SAID) for user in users]
    async with asyncio.timeout(300):
        while (await model.figures())["in_flight"] < len(users):  # noqa: ASYNC110  another process is asked
            await asyncio.sleep(0.1)
    grown = process.memory_info().rss - before
    await model.hold(False)
    await asyncio.gather(*answers)
    return grown / 1024 / len(users)


async def bare_time(bare: Bare, request: Mapping[str, Any], agents: int, rounds: int) -> float:
    """Seconds in which a bare program answers everybody so often."""

    async def person_asks(number: int) -> None:
        for _ in range(rounds):
            await bare.turn(number, SAID, request)

    began = time.perf_counter()
    await asyncio.gather(*map(person_asks, range(agents)))
    return time.perf_counter() - began


async def measure(
    running: Servers,
    model: Apart,
    owner: Owner,
    said: Sequence[str],
    prompt: int,
    agents: int,
    rounds: int,
    slices: int,
    latency: float,
) -> Rates:
    """Measure everything with prompts of one size."""
    rates = Rates(prompt)
    engine = engine_settings(EngineSection(debounce=0, concurrency=agents))
    sections: dict[str, dict[str, Any]] = {"database": {"pool": POOL}, "context": {"budget": 30_000}}
    async with (
        services_on(running, model.base_url, **sections) as services,
        bare_pool(owner, running.bot_url, POOL) as pool,
        by_library(model.base_url) as plain,
    ):
        users = [f"throughput-{prompt}-{number}" for number in range(agents)]
        stores = [await person(services.db, user) for user in users]
        earlier = PROMPTS.get(prompt, 6)
        await write_messages(owner, stores, authored(itertools.cycle(said)), earlier, queue=earlier)
        async with running_bot(services, engine) as adapter:
            await model.slow_down(0.0)
            some = users[: min(100, agents)]
            before = await _commits(owner)
            await whole(adapter, some, 1)  # connections and caches stand
            await at_rest(owner)
            rates.commits = (await _commits(owner) - before) / len(some)
            request = json.loads(await model.last())
            rates.tokens = Sizes().of(request).tokens
            rates.kilobytes = await waiting_memory(adapter, model, users)
            await at_rest(owner)
            await model.slow_down(latency)
            as_many = max(2, round(rates.commits))
            bares = {
                "plain": Bare(pool, plain, commits=as_many),
                "lean": Bare(pool, by_ours(services.model), commits=as_many),
                "two": Bare(pool, plain, commits=2),
            }
            seconds = dict.fromkeys(("ours", *bares), 0.0)
            for _ in range(slices):
                seconds["ours"] += await whole(adapter, users, rounds)
                await at_rest(owner)
                for name, bare in bares.items():
                    seconds[name] += await bare_time(bare, request, agents, rounds)
    made = agents * rounds * slices
    rates.ours = made / seconds.pop("ours")
    rates.bare = {name: made / took for name, took in seconds.items()}
    return rates


async def engine_rate(running: Servers, agents: int, rounds: int) -> float:
    """Events a second through inbox, wake-up, claim and finish, with nothing in between."""
    settings = replace(engine_settings(EngineSection(debounce=0, concurrency=agents)), coalesce=1)
    left, over = agents * rounds, asyncio.Event()
    async with Database(running.bot_url, size=POOL) as db, Queue(running.bot_url, settings) as queue:

        async def nothing(claim: Claim) -> None:
            nonlocal left
            async with turns.step(db, claim, now=db.now(), finish="done") as step:
                await keep_words(step)
            left -= len(claim.events)
            if not left:
                over.set()

        async def says(number: int) -> None:
            user = f"engine-{number}"
            for each in range(rounds):
                await inbox.accept(
                    db,
                    Incoming(
                        "message",
                        Person(PLATFORM, "", user, "Ada"),
                        PlaceOf(PLATFORM, "", "", user, "direct"),
                        f"{user}-{each}",
                        db.now(),
                        SAID,
                    ),
                    burst=timedelta(),
                    now=db.now(),
                )

        worker = asyncio.create_task(Worker(db, queue, nothing, settings).run())
        began = time.perf_counter()
        await asyncio.gather(*map(says, range(agents)))
        await over.wait()
        took = time.perf_counter() - began
        worker.cancel()
        await asyncio.wait([worker])
    return agents * rounds / took


async def run(
    running: Servers,
    said: Sequence[str],
    *,
    agents: int = AGENTS,
    rounds: int = ROUNDS,
    slices: int = SLICES,
    prompts: Sequence[int] = tuple(PROMPTS),
    latency: float = LATENCY,
    say: Callable[[str], None] = print,
) -> tuple[list[Rates], float]:
    """Measure at every size of prompt, and the engine alone."""
    async with apart() as model, owning(running) as owner:
        measured = []
        for prompt in prompts:
            measured.append(await measure(running, model, owner, said, prompt, agents, rounds, slices, latency))
            rates = measured[-1]
            bares = ", ".join(f"{name} {rate:.0f}/s" for name, rate in rates.bare.items())
            say(f"{prompt:,} tokens: ours {rates.ours:.0f}/s, {bares}; {rates.kilobytes:.0f} KB a waiting turn")
        return measured, await engine_rate(running, agents, rounds)


def report(measured: Sequence[Rates], engine: float, agents: int = AGENTS) -> str:
    """Turns a second and ratios."""
    rows = []
    for each in measured:
        row = [f"{each.prompt:,} ({each.tokens:,} with functions)", f"{each.ours:.0f}", f"{each.commits:.1f}"]
        for rate in each.bare.values():
            row += [f"{rate:.0f}", f"{each.ours / rate:.0%}"]
        rows.append([*row, f"{each.kilobytes:.0f}"])
    names = [column for name in measured[0].bare for column in (f"{name}/s", "ratio")]
    lines = table(("prompt tokens", "ours/s", "commits a turn", *names, "KB a waiting turn"), rows)
    return (
        f"{lines}\nGoals: at least {GOAL:.0%} of a bare program with as many commits; at most {GOAL_KB} KB. "
        f"{agents:,} agents with {LATENCY:g} s can do {agents / LATENCY:.0f}/s at the most. The engine alone: {engine:.0f} events/s."
    )


def main(data: Path) -> int:
    """Run on servers in a folder of their own. Returns the exit code."""
    said, agents = texts_of(data), int(os.environ.get("AGENTS", AGENTS))
    with ground(lasting=True) as running:
        measured, engine = asyncio.run(run(running, said, agents=agents))
    print(report(measured, engine, agents))
    return 0
