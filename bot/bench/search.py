"""`bot bench search --data PATH`: how fast a search is in a large recall storage, and what the vector index misses.

One agent with 10,000, 100,000 and (with BIG=1 in the environment) 1,000,000 messages: the LoCoMo conversations, word for word and
with their real vectors, behind a crowd of messages put together from halves of theirs, whose vectors are mixtures of the real ones
with some noise, because random directions would be unlike any language. Asked are LoCoMo's questions, as they stand, under the bot's
role and row-level security. Up to 20,000 messages the product scans an agent's vectors one by one; beyond, it uses the HNSW index.

    p50 / p95   one search by words and meaning, its transaction included, the query's vector made before; milliseconds
    no word     the same for a query that shares no word with any message
    index@10    how many of the ten nearest messages the index finds, an exact scan under the same role being the measure
    R@10        the share of a question's evidence among the first ten messages, by the product's search
    exact R@10  the same when every vector is scanned
"""

from __future__ import annotations

import asyncio
import itertools
import os
import statistics
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from bot.bench.bulk import PER_BLOCK, Owner, Store, Vectors, chats_of, person, unit, write_messages, write_vectors
from bot.bench.retrieval import Chat
from bot.bench.stage import ground, owning, percentile, table
from bot.embedded import Servers
from memory.db import Connection, Database
from memory.embedding import Embedder, LocalEmbedder, Meaning, QueryVector
from memory.embedding_filler import use_model
from memory.search import Query, search_messages

SIZES = (10_000, 100_000)
BIG = 1_000_000
QUESTIONS = 100
COMPARED = 40
"""Questions whose results are compared with an exact scan."""
NOISE = 0.35
_NEAREST = """SELECT message_id FROM embeddings e WHERE model_id = %(model)s AND message_id IS NOT NULL
  ORDER BY e.embedding::halfvec({dims}) <=> %(vector)s::halfvec({dims}) LIMIT 10"""


@dataclass(frozen=True, slots=True)
class Found:
    """The figures of one size; times in seconds, shares from 0 to 1."""

    messages: int
    both: Sequence[float]
    no_word: Sequence[float]
    index: float
    result: float
    exact: float
    megabytes: float


@dataclass(frozen=True, slots=True)
class Source:
    """The real conversations: what was said (speaker, text), its ids and vectors, and the questions."""

    said: Sequence[tuple[str, str]]
    ids: Sequence[str]
    vectors: Vectors
    questions: Sequence[tuple[str, frozenset[str]]]


async def source_of(chats: Sequence[Chat], embedder: Embedder, questions: int) -> Source:
    """Everything of the conversations; ids are unique over all of them."""
    turns = [(chat.name, turn) for chat in chats for session in chat.sessions for turn in session]
    said = [(turn.speaker, turn.text) for _, turn in turns]
    asked = [
        (question.text, frozenset(f"{chat.name} {id_}" for id_ in question.evidence))
        for chat in chats
        for question in chat.questions
    ]
    vectors = unit(np.array(await embedder.embed([f"{speaker}: {text}" for speaker, text in said])))
    return Source(
        said, [f"{name} {turn.id}" for name, turn in turns], vectors, asked[:: max(1, len(asked) // questions)][:questions]
    )


def crowd(said: Sequence[tuple[str, str]], seed: int) -> Iterator[tuple[str, str]]:
    """Halves of two texts each, without end; the same pairs as `mixed_vectors` takes."""
    random = np.random.default_rng(seed)
    while True:
        for first, second in random.integers(0, len(said), (PER_BLOCK, 2)):
            head, tail = said[first][1].split(), said[second][1].split()
            yield said[first][0], " ".join(head[: len(head) // 2 + 1] + tail[len(tail) // 2 :])


def mixed_vectors(real: Vectors, count: int, seed: int) -> Iterator[Vectors]:
    """Blocks of mixtures of two real vectors each, with noise."""
    pairs, noise = np.random.default_rng(seed), np.random.default_rng(seed + 1)
    for start in range(0, count, PER_BLOCK):
        chosen = pairs.integers(0, len(real), (PER_BLOCK, 2))[: count - start]
        made = real[chosen[:, 0]] + real[chosen[:, 1]]
        yield unit(unit(made) + NOISE * unit(noise.standard_normal(made.shape)))


async def fill(owner: Owner, store: Store, source: Source, count: int, model: int) -> dict[int, str]:
    """An agent with so many messages and vectors; returns the source's id of each real message. The index is made over all of them."""
    others = max(0, count - len(source.said))
    dims = source.vectors.shape[1]
    await owner.execute("TRUNCATE messages CASCADE")
    await owner.execute(f"DROP INDEX IF EXISTS embeddings_hnsw_{model}".encode())
    await write_messages(owner, [store], itertools.chain(itertools.islice(crowd(source.said, count), others), source.said), count)
    await write_vectors(owner, store, itertools.chain(mixed_vectors(source.vectors, others, count), [source.vectors]), model)
    await owner.execute(f"SET maintenance_work_mem = '{max(64, min(4000, count * 2 // 1000))}MB'".encode())
    await owner.execute("SET max_parallel_maintenance_workers = 2")
    await owner.execute(
        f"""CREATE INDEX embeddings_hnsw_{model} ON embeddings USING hnsw ((embedding::halfvec({dims})) halfvec_cosine_ops)
            WHERE model_id = {model}""".encode()
    )
    await owner.execute("VACUUM ANALYZE")
    cursor = await owner.execute("SELECT id FROM messages WHERE position > %s ORDER BY position", (others,))
    return {int(row["id"]): id_ for row, id_ in zip(await cursor.fetchall(), source.ids, strict=False)}


async def timed(db: Database, store: Store, queries: Sequence[str], vectors: Sequence[QueryVector]) -> list[float]:
    """Seconds of each search, its transaction included."""
    seconds = []
    for text, vector in zip(queries, vectors, strict=True):
        began = time.perf_counter()
        async with db.agent(store.agent, store.place) as connection:
            await search_messages(connection, Query(text), vector)
        seconds.append(time.perf_counter() - began)
    return seconds


async def nearest(connection: Connection, vector: QueryVector, dims: int, *, index: bool) -> set[int]:
    """The ten nearest messages of the agent, by the index with the search's settings or by an exact scan."""
    chosen = {"enable_indexscan": "on" if index else "off", "hnsw.iterative_scan": "relaxed_order", "hnsw.ef_search": "200"}
    for name, setting in (
        chosen | ({"enable_seqscan": "off", "enable_sort": "off", "enable_bitmapscan": "off"} if index else {})
    ).items():
        await connection.execute("SELECT set_config(%s, %s, true)", (name, setting))
    cursor = await connection.execute(_NEAREST.format(dims=dims).encode(), {"vector": vector.literal, "model": vector.model})
    return {int(row["message_id"]) for row in await cursor.fetchall()}


async def whole(connection: Connection, text: str, vector: QueryVector, exact_limit: int) -> set[int]:
    """The first ten messages of a search that scans exactly up to so many messages."""
    cursor = await connection.execute(
        "SELECT id FROM search_messages(%s, %s::halfvec, %s, floor => %s, exact_limit => %s)",
        (text, vector.literal, vector.model, vector.floor, exact_limit),
    )
    return {int(row["id"]) for row in await cursor.fetchall() if row["id"] is not None}


async def measure(db: Database, owner: Owner, source: Source, meaning: Meaning, count: int) -> Found:
    """Fill an agent and search it."""
    store = await person(db, f"search-{count}")
    ids = await fill(owner, store, source, count, meaning.model)
    queries = [text for text, _ in source.questions]
    vectors = [vector for text in queries if (vector := await meaning.of(text, seconds=60.0))]
    await timed(db, store, queries[:10], vectors[:10])  # what is on disk comes into memory
    times = await timed(db, store, queries, vectors)
    strange = [f"qx{number}zvkj" for number in range(len(vectors[:COMPARED]))]
    no_word = await timed(db, store, strange, vectors[:COMPARED])
    index: list[float] = []
    usual: list[float] = []
    exactly: list[float] = []
    for (text, evidence), vector in list(zip(source.questions, vectors, strict=True))[:COMPARED]:
        async with db.agent(store.agent, store.place) as connection:
            exact = await nearest(connection, vector, source.vectors.shape[1], index=False)
        async with db.agent(store.agent, store.place) as connection:
            index.append(len(exact & await nearest(connection, vector, source.vectors.shape[1], index=True)) / len(exact))
        for shares, limit in ((usual, 20_000), (exactly, 10**9)):
            async with db.agent(store.agent, store.place) as connection:
                found = await whole(connection, text, vector, limit)
            shares.append(len(evidence & {ids[id_] for id_ in found if id_ in ids}) / len(evidence))
    row = await (await owner.execute("SELECT pg_database_size(current_database()) AS size")).fetchone()
    assert row is not None
    return Found(
        count, times, no_word, statistics.fmean(index), statistics.fmean(usual), statistics.fmean(exactly), row["size"] / 1e6
    )


async def run(
    running: Servers,
    chats: Sequence[Chat],
    embedder: Embedder,
    *,
    sizes: Sequence[int],
    questions: int = QUESTIONS,
    say: Callable[[str], None] = print,
) -> list[Found]:
    """Measure at every size."""
    say(f"making the vectors of the conversations with {embedder.name} ...")
    source = await source_of(chats, embedder, questions)
    async with Database(running.bot_url, size=4) as db, owning(running) as owner:
        meaning = await use_model(db, embedder)
        found = []
        for count in sizes:
            began = time.perf_counter()
            found.append(await measure(db, owner, source, meaning, count))
            say(f"{count:,} messages: done in {time.perf_counter() - began:.0f} s")
    return found


def report(found: Sequence[Found]) -> str:
    """A line a size."""
    rows = []
    for each in found:
        times = [f"{percentile(part, share) * 1000:.1f}" for part in (each.both, each.no_word) for share in (0.5, 0.95)]
        rows.append(
            (
                f"{each.messages:,}",
                f"{times[0]} / {times[1]}",
                f"{times[2]} / {times[3]}",
                f"{each.index:.1%}",
                f"{each.result:.3f}",
                f"{each.exact:.3f}",
                f"{each.megabytes:,.0f}",
            )
        )
    return table(("messages", "p50 / p95 ms", "no word", "index@10", "R@10", "exact R@10", "database MB"), rows)


def main(data: Path, embedder: Embedder | None = None) -> int:
    """Run on servers in a folder of their own. Returns the exit code."""
    sizes = [*SIZES, *([BIG] if os.environ.get("BIG") == "1" else [])]
    chats = chats_of(data)
    with ground() as running:
        print(report(asyncio.run(run(running, chats, embedder or LocalEmbedder(), sizes=sizes))))
    return 0
