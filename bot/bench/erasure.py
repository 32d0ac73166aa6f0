"""`bot bench erasure`: how long it takes to erase a person with 100,000 messages, and what is left when turns run meanwhile.

The person has a turn, an event, a sent reply and a usage row for every two messages, a vector for each, and another agent quotes them.
Beside it, with an identical person: the bare `DELETE FROM agents` that cascades, which leaves quotes, jobs, event hashes and proof undone.
Under load: people talk with the whole bot, and each is erased in the middle of it; then every table and Redis are looked through.
No data is needed. MESSAGES=n chooses another number of messages.
"""

from __future__ import annotations

import asyncio
import itertools
import os
import random
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

import numpy as np

from bot.app.runtime import engine_settings
from bot.bench.bulk import PER_BLOCK, Owner, Store, authored, person, unit, write_messages, write_vectors
from bot.bench.model import apart
from bot.bench.running import StopwatchAdapter, at_rest, running_bot
from bot.bench.stage import PLATFORM, ground, owning, services_on, table
from bot.config.sections import EngineSection
from bot.embedded import Servers
from memory import erasure, proof
from memory.cache import Cache
from memory.db import Database, value

MESSAGES = 100_000
OTHERS = 20
"""People beside, each with a tenth as many messages, so that no table is the person's alone."""
DIMS = 512
TALKING = 60
SEED = 6
SAID = (
    "The harbour was full of boats this morning.",
    "Which of them was yours?",
    "The blue one with the torn sail.",
    "I remember it.",
)
KEY = b"k" * 32


@dataclass(frozen=True, slots=True)
class Times:
    """Seconds, and what the erasure found left. `words`: choosing and searching for the rarest word sequences alone."""

    messages: int
    erase: float
    proof: float
    words: float
    bare: float
    left: int


async def fill(owner: Owner, db: Database, user: str, count: int, *, vectors: bool) -> Store:
    """A person with messages and everything that usually hangs on them."""
    store = await person(db, user)
    await write_messages(owner, [store], authored(itertools.cycle(SAID)), count)
    values = (store.agent, store.conversation, store.place)
    await owner.execute(
        """INSERT INTO turns (agent_id, conversation_id, place_id, epoch, origin, state, started_at)
           SELECT %s, %s, %s, i, 'person', 'done', now() FROM generate_series(1, %s) i""",
        (*values, count // 2),
    )
    await owner.execute(
        """INSERT INTO events (agent_id, seq, place_id, visibility, kind, origin, source, idem, payload, status, turn_id, created_at)
           SELECT agent_id, row_number() OVER (ORDER BY id), place_id, 'direct', 'message', 'person', %s, %s || '-' || id, '{}', 1, id, now()
           FROM turns WHERE agent_id = %s""",
        (PLATFORM, user, store.agent),
    )
    await owner.execute(
        # The ids of one statement follow each other.
        """UPDATE messages SET turn_id = t.first + (position - 1) / 2, event_id = CASE role WHEN 'user' THEN e.first + (position - 1) / 2 END
           FROM (SELECT min(id) AS first FROM turns WHERE agent_id = %s) t, (SELECT min(id) AS first FROM events WHERE agent_id = %s) e
           WHERE agent_id = %s""",
        (store.agent,) * 3,
    )
    await owner.execute(
        """INSERT INTO outbox (agent_id, place_id, platform, channel, turn_id, step, part, body, state, created_at)
           SELECT agent_id, place_id, %s, %s, id, 1, 0, 'I remember it.', 'sent', now() FROM turns WHERE agent_id = %s""",
        (PLATFORM, user, store.agent),
    )
    await owner.execute(
        """INSERT INTO usage (agent_id, turn_id, purpose, model, prompt_tokens, cached_tokens, completion_tokens, at)
           SELECT agent_id, id, 'chat', 'm', 1, 0, 1, now() FROM turns WHERE agent_id = %s""",
        (store.agent,),
    )
    if vectors:
        rng = np.random.default_rng(SEED)
        blocks = (unit(rng.standard_normal((PER_BLOCK, DIMS)).astype(np.float32)) for _ in range(-(-count // PER_BLOCK)))
        await write_vectors(owner, store, blocks)
    return store


async def quoted_by(owner: Owner, store: Store, user: str, count: int) -> None:
    """Somebody else's agent holds so many quotes of a person."""
    await owner.execute(
        """INSERT INTO messages (agent_id, conversation_id, place_id, visibility, position, role, kind, author_id, author_name, content, searchable,
             created_at)
           SELECT %s, %s, %s, 'direct', (SELECT max(position) FROM messages) + i, 'user', 'quote', %s, 'Ada', 'The blue one, number ' || i, true,
             now() FROM generate_series(1, %s) i""",
        (store.agent, store.conversation, store.place, f"{PLATFORM}::{user}", count),
    )


async def measure(running: Servers, count: int) -> Times:
    """Time an erasure and the bare statement on two identical people."""
    async with Database(running.bot_url, size=4) as db, owning(running) as owner:
        others = [await fill(owner, db, f"other-{number}", count // 10, vectors=False) for number in range(OTHERS)]
        first = await fill(owner, db, "first", count, vectors=True)
        second = await fill(owner, db, "second", count, vectors=True)
        for user in ("first", "second"):
            await quoted_by(owner, others[0], user, min(count, 1_000))
        await owner.execute("VACUUM ANALYZE")
        await owner.execute("CHECKPOINT")
        began = time.perf_counter()
        await owner.execute("DELETE FROM agents WHERE id = %s", (second.agent,))
        bare = time.perf_counter() - began
        await owner.execute("VACUUM ANALYZE")
        await owner.execute("CHECKPOINT")
        cache = Cache(running.redis_url)
        author = f"{PLATFORM}::first"
        began = time.perf_counter()
        async with db.bare() as connection:
            sought = await proof.traces(connection, first.agent, [author])
        words = time.perf_counter() - began
        began = time.perf_counter()
        counts, *_ = await erasure._rows(db, cache, first.agent, "person", KEY, datetime.now(UTC))
        rows = time.perf_counter() - began
        began = time.perf_counter()
        async with db.bare() as connection:
            left = await value(connection, "SELECT residue(%s, %s)", (first.agent, [author]))
        proven = time.perf_counter() - began
        began = time.perf_counter()
        async with db.bare() as connection:
            found = await proof.search(connection, cache, sought, None)
        words += time.perf_counter() - began
        await cache.close()
        quotes = await value(owner, "SELECT count(*) FROM messages WHERE kind = 'quote' AND author_id = %s", (author,))
        assert counts["messages"] == count
        return Times(count, rows, proven, words, bare, sum(left.values()) + sum(found.tables.values()) + int(quotes))


async def under_load(running: Servers, people: int, seed: int = SEED) -> dict[str, int]:
    """Erase everybody while their turns run; returns what is left of anybody, by table."""
    chance = random.Random(seed)
    async with (
        apart() as model,
        owning(running) as owner,
        services_on(running, model.base_url) as services,
        running_bot(services, engine_settings(EngineSection(debounce=0, concurrency=50))) as adapter,
    ):
        await model.slow_down(0.05)
        talkers = [asyncio.create_task(_talk(adapter, f"load-{number}")) for number in range(people)]
        agents: list[int] = []
        for number in chance.sample(range(people), people):
            agent = None
            while agent is None:
                await asyncio.sleep(chance.uniform(0.0, 0.05))
                agent = await value(owner, "SELECT known_agent(%s, '', %s)", (PLATFORM, f"load-{number}"))
            talkers[number].cancel()
            await erasure.erase(
                services.db, services.cache, agent, actor="person", key=services.erasure_key, now=services.db.now()
            )
            agents.append(agent)
        await asyncio.wait(talkers)
        await at_rest(owner)
        left: dict[str, int] = {}
        for agent in agents:
            for name, number in {
                **await value(owner, "SELECT residue(%s)", (agent,)),
                "redis": await services.cache.left(agent),
            }.items():
                left[name] = left.get(name, 0) + int(number)
        return left


async def _talk(adapter: StopwatchAdapter, user: str) -> None:
    with suppress(asyncio.CancelledError):
        for said in itertools.cycle(SAID):
            answered = await adapter.say(user, said)
            await answered


async def run(
    running: Servers, *, count: int = MESSAGES, people: int = TALKING, say: Callable[[str], None] = print
) -> tuple[Times, dict[str, int]]:
    """Both measurements."""
    say(f"erasing {people} people while their turns run ...")
    left = await under_load(running, people)
    say(f"writing people with {count:,} messages ...")
    return await measure(running, count), left


def report(times: Times, left: dict[str, int]) -> str:
    """The times and what was left."""
    rows = [
        ("erased: rows, quotes, hashes, Redis", f"{times.erase:.2f}", f"{times.erase / times.bare:.2f}"),
        (
            "with the proof by ids and authors",
            f"{times.erase + times.proof:.2f}",
            f"{(times.erase + times.proof) / times.bare:.2f}",
        ),
        ("the proof by words alone", f"{times.words:.2f}", f"{times.words / times.bare:.2f}"),
        ("bare DELETE with cascade", f"{times.bare:.2f}", "1.00"),
    ]
    return (
        f"{table((f'{times.messages:,} messages', 'seconds', 'ratio'), rows)}\n"
        f"Left after it: {times.left}. Left of people erased under load: {sum(left.values())} in {len(left)} tables and Redis."
    )


def main(data: Path) -> int:  # noqa: ARG001 - every benchmark is called so
    """Run on servers in a folder of their own. Returns 1 when anything is left."""
    with ground(lasting=True) as running:
        times, left = asyncio.run(run(running, count=int(os.environ.get("MESSAGES", MESSAGES))))
    print(report(times, left))
    return 1 if times.left or sum(left.values()) else 0
