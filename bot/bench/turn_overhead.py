"""`bot bench turn_overhead --data PATH`: how much longer an answer takes than it must.

Ours is the whole path of a message to an idle bot: inbox, wake-up, claim, the turn of an agent with 10,000 recall messages, outbox;
the clock stops when the adapter is called. The bare program inserts and commits what it heard, asks the model, inserts and commits
the answer; "plain" calls the openai library as its documentation does, "lean" through the bot's own client, which spares the library
its walk through every message. All send the same request to an instant model in another process; rounds alternate, so that whatever
else the machine does hits all alike. Debounce is 0. Prompts are given as the tokens of their messages; the functions go along in all.
"""

from __future__ import annotations

import asyncio
import itertools
import json
import os
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from bot.app.runtime import engine_settings
from bot.app.services import Services
from bot.bench.bare import Bare, bare_pool, by_library, by_ours
from bot.bench.bulk import Owner, Store, authored, person, random_vectors, texts_of, write_messages, write_vectors
from bot.bench.model import Apart, apart
from bot.bench.running import StopwatchAdapter, at_rest, running_bot
from bot.bench.sizes import OTHER, Sizes
from bot.bench.stage import ground, owning, percentile, services_on, table
from bot.config.sections import EngineSection
from bot.embedded import Servers
from memory import agent_state, tokens
from memory.cache import Cache

RECALL = 10_000
PROMPTS = (1_000, 8_000)
"""Tokens of the messages of the prompt."""
ROUNDS = 400
WARM_UP = 20
SAID = "And what did you think of it when you heard it for the first time?"
POOL = 20


@dataclass(frozen=True, slots=True)
class Timed:
    """Seconds of all programs' turns at one size of prompt."""

    prompt: int
    whole: int
    ours: Sequence[float]
    bare: Mapping[str, Sequence[float]]


async def steady(services: Services, owner: Owner, store: Store, target: int) -> None:
    """Bring the queue back to the size that makes a prompt of `target` tokens, in the database and in the cache, at the same version."""
    row = await (await owner.execute("SELECT version FROM agents WHERE id = %s", (store.agent,))).fetchone()
    assert row is not None
    version = int(row["version"])
    state = await agent_state.load(
        services.db,
        Cache(None),
        agent=store.agent,
        conversation=store.conversation,
        place=store.place,
        version=version,
        policy_version=0,
    )
    room, kept = target, 0
    for message in reversed(state.queue):
        room -= tokens.count(message.content, OTHER) + (45 if message.role == "user" else 4)
        if room < 0:
            break
        kept += 1
    kept += kept % 2  # whole exchanges
    queue = state.queue[len(state.queue) - kept :]
    start = queue[0].position if queue else state.fifo_start
    await owner.execute("UPDATE conversations SET fifo_start = %s WHERE id = %s", (start, store.conversation))
    await agent_state.store(services.cache, replace(state, queue=queue, fifo_start=start), version, 0)


async def measure(
    services: Services,
    owner: Owner,
    adapter: StopwatchAdapter,
    model: Apart,
    bares: Mapping[str, Bare],
    prompt: int,
    said: Sequence[str],
    *,
    recall: int,
    rounds: int,
    warm_up: int,
) -> Timed:
    """Alternate rounds of all programs with prompts of one size."""
    user = f"overhead-{prompt}"
    store = await person(services.db, user)
    queue = min(recall, max(2, prompt // 30))
    await write_messages(owner, [store], authored(itertools.cycle(said)), recall, queue=queue)
    await write_vectors(owner, store, random_vectors(recall, services.meaning.embedder.dims if services.meaning.embedder else 1))
    ours: list[float] = []
    others: dict[str, list[float]] = {name: [] for name in bares}
    fixed, whole = 0, 0
    for number in range(-warm_up, rounds):
        await steady(services, owner, store, prompt - fixed)
        seconds = await adapter.ask(user, SAID)
        await at_rest(owner)
        sent = await model.last()
        body = json.loads(sent)
        if not fixed:
            # Nothing but the queue can vary: what the first prompt had beside its queue is what all have.
            with_all = Sizes().of({"messages": body["messages"]}).tokens
            fixed = with_all - Sizes().of({"messages": body["messages"][1:-1]}).tokens + 60
        if number >= 0:
            ours.append(seconds)
            whole = Sizes().of(body).tokens
        for name, bare in bares.items():
            began = time.perf_counter()
            await bare.turn(store.agent, SAID, body)
            took = time.perf_counter() - began
            if json.loads(await model.last()) != body:
                raise AssertionError(f"the {name} program did not send the same request")
            if number >= 0:
                others[name].append(took)
    return Timed(prompt, whole, ours, others)


async def run(
    running: Servers,
    said: Sequence[str],
    *,
    recall: int = RECALL,
    rounds: int = ROUNDS,
    prompts: Sequence[int] = PROMPTS,
    warm_up: int = WARM_UP,
    say: Callable[[str], None] = print,
) -> list[Timed]:
    """Measure at every size of prompt."""
    timed = []
    async with (
        apart() as model,
        services_on(running, model.base_url, database={"pool": POOL}, context={"budget": 30_000}) as services,
        owning(running) as owner,
        bare_pool(owner, running.bot_url, POOL) as pool,
        by_library(model.base_url) as plain,
        running_bot(services, engine_settings(EngineSection(debounce=0))) as adapter,
    ):
        bares = {"plain": Bare(pool, plain), "lean": Bare(pool, by_ours(services.model))}
        for prompt in prompts:
            timed.append(
                await measure(services, owner, adapter, model, bares, prompt, said, recall=recall, rounds=rounds, warm_up=warm_up)
            )
            say(f"{prompt:,} tokens: {len(timed[-1].ours)} rounds")
    return timed


def report(timed: Sequence[Timed]) -> str:
    """Milliseconds of both and their ratio."""
    rows = []
    for each in timed:
        for share, name in ((0.5, "p50"), (0.99, "p99")):
            ours = percentile(each.ours, share) * 1000
            row = [f"{each.prompt:,} ({each.whole:,} with functions)", name, f"{ours:.1f}"]
            for bare in each.bare.values():
                theirs = percentile(bare, share) * 1000
                goal = (3.0 if each.prompt <= 1000 else 1.5) if name == "p50" else (2 * theirs + 20) / theirs
                row += [f"{theirs:.1f}", f"{ours / theirs:.2f}", f"{goal:.2f}"]
            rows.append(row)
    bares = [column for name in timed[0].bare for column in (f"{name} ms", "ratio", "goal")]
    return table(("prompt tokens", "", "ours ms", *bares), rows)


def main(data: Path) -> int:
    """Run on servers in a folder of their own. Returns the exit code."""
    said = texts_of(data)
    rounds = int(os.environ.get("ROUNDS", ROUNDS))
    with ground(lasting=True) as running:
        timed = asyncio.run(run(running, said, rounds=rounds))
    print(report(timed))
    return 0
