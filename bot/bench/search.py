"""`bot bench search --data PATH`: how fast a search is, alone and in a crowd, and what looking at signatures first misses.

One agent with 10,000, 100,000 and (with BIG=1 in the environment) 1,000,000 messages: the LoCoMo conversations, word for word and
with their real vectors, behind a crowd of messages put together from halves of theirs, whose vectors are mixtures of the real ones
with some noise, because random directions would be unlike any language. Asked are LoCoMo's questions, as they stand, under the bot's
role and row-level security, first with nobody else in the tables, then beside 200 other agents (with BIG=1: 1,000) with 500 messages each.

    alone, crowd  p50 / p95 of one search by words and meaning, its transaction included, the query's vector made before; milliseconds
    ratio         crowd p50 : alone p50
    no word       in the crowd, for a query that shares no word with any message
    filtered      in the crowd, for what the person said in the latter half of the time
    page 13       in the crowd
    nearest       how many of the ten nearest messages, by a scan of all vectors, are among those that a search by meaning alone finds
    R@10          the share of a question's evidence among the first ten messages
    index MB      of words, and of signatures, for a million rows; and how long making them takes
"""

from __future__ import annotations

import asyncio
import itertools
import os
import statistics
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import timedelta
from pathlib import Path

import numpy as np

from bot.bench.bulk import PER_BLOCK, Owner, Store, Vectors, chats_of, person, unit, write_messages, write_vectors
from bot.bench.retrieval import Chat
from bot.bench.stage import START, ground, owning, percentile, table
from bot.embedded import Servers
from memory.db import Connection, Database
from memory.embedding import Embedder, LocalEmbedder, Meaning, QueryVector
from memory.embedding_filler import use_model
from memory.search import MAX_PAGE_SIZE, Query, search_messages

SIZES = (10_000, 100_000)
BIG = 1_000_000
QUESTIONS = 100
COMPARED = 40
"""Questions whose results are compared with an exact scan."""
OTHERS, BIG_OTHERS, EACH = 200, 1_000, 500
"""Other agents, and what each of them has said."""
NOISE = 0.35
_NEAREST = """SELECT message_id FROM embeddings e WHERE agent_id = current_agent() AND model_id = %(model)s AND message_id IS NOT NULL
  ORDER BY e.embedding <=> %(vector)s::halfvec LIMIT 10"""
_INDEXES = ("messages_words", "embeddings_messages")


@dataclass(frozen=True, slots=True)
class Found:
    """The figures of one size; times in seconds, shares from 0 to 1."""

    messages: int
    alone: Sequence[float]
    crowd: Sequence[float]
    no_word: Sequence[float]
    filtered: Sequence[float]
    page_13: Sequence[float]
    nearest: float
    result: float


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
    """An agent with so many messages and vectors, and nobody else; returns the source's id of each real message."""
    others = max(0, count - len(source.said))
    await owner.execute("TRUNCATE messages CASCADE")
    await write_messages(owner, [store], itertools.chain(itertools.islice(crowd(source.said, count), others), source.said), count)
    await write_vectors(owner, store, itertools.chain(mixed_vectors(source.vectors, others, count), [source.vectors]), model)
    await owner.execute("VACUUM ANALYZE")
    cursor = await owner.execute("SELECT id FROM messages WHERE position > %s ORDER BY position", (others,))
    return {int(row["id"]): id_ for row, id_ in zip(await cursor.fetchall(), source.ids, strict=False)}


async def surround(db: Database, owner: Owner, source: Source, model: int, others: int) -> None:
    """Other agents, with messages and vectors of the same kind."""
    stores = [await person(db, f"other-{number}") for number in range(others)]
    await write_messages(owner, stores, crowd(source.said, others), EACH)
    for number, store in enumerate(stores):
        await write_vectors(owner, store, mixed_vectors(source.vectors, EACH, number), model)
    await owner.execute("VACUUM ANALYZE")


async def timed(db: Database, store: Store, queries: Sequence[Query], vectors: Sequence[QueryVector]) -> list[float]:
    """Seconds of each search, its transaction included."""
    seconds = []
    for query, vector in zip(queries, vectors, strict=True):
        began = time.perf_counter()
        async with db.agent(store.agent, store.place) as connection:
            await search_messages(connection, query, vector)
        seconds.append(time.perf_counter() - began)
    return seconds


async def nearest(connection: Connection, vector: QueryVector) -> set[int]:
    """The ten nearest messages of the agent, all of its vectors compared."""
    cursor = await connection.execute(_NEAREST, {"vector": vector.literal, "model": vector.model})
    return {int(row["message_id"]) for row in await cursor.fetchall()}


async def measure(db: Database, owner: Owner, source: Source, meaning: Meaning, count: int, others: int) -> Found:
    """Fill an agent, search it, surround it, and search it again."""
    store = await person(db, f"search-{count}")
    ids = await fill(owner, store, source, count, meaning.model)
    asked = [Query(text) for text, _ in source.questions]
    vectors = [vector for query in asked if (vector := await meaning.of(query.text, seconds=60.0))]
    await timed(db, store, asked[:10], vectors[:10])  # what is on disk comes into memory
    alone = await timed(db, store, asked, vectors)
    await surround(db, owner, source, meaning.model, others)
    await timed(db, store, asked[:10], vectors[:10])
    crowded = await timed(db, store, asked, vectors)
    some, half = vectors[:COMPARED], START - timedelta(minutes=count // 2)
    no_word = await timed(db, store, [Query(f"qx{number}zvkj") for number in range(len(some))], some)
    filtered = await timed(db, store, [replace(query, after=half, roles=("user",)) for query in asked[:COMPARED]], some)
    page_13 = await timed(db, store, [replace(query, page=13) for query in asked[:COMPARED]], some)
    near: list[float] = []
    result: list[float] = []
    for (_, evidence), query, vector in list(zip(source.questions, asked, vectors, strict=True))[:COMPARED]:
        async with db.agent(store.agent, store.place) as connection:
            exact = await nearest(connection, vector)
            by_meaning = await search_messages(connection, Query("", page_size=MAX_PAGE_SIZE), vector)
            found = await search_messages(connection, query, vector)
        near.append(len(exact & {hit.id for hit in by_meaning.hits}) / len(exact))
        result.append(len(evidence & {ids[hit.id] for hit in found.hits if hit.id in ids}) / len(evidence))
    return Found(count, alone, crowded, no_word, filtered, page_13, statistics.fmean(near), statistics.fmean(result))


async def indexes(owner: Owner) -> str:
    """Size and time of making of the two indexes, for a million rows."""
    row = await (await owner.execute("SELECT count(*) AS rows FROM messages")).fetchone()
    assert row is not None
    millions, told = row["rows"] / 1e6, []
    for name in _INDEXES:
        began = time.perf_counter()
        await owner.execute(f"REINDEX INDEX {name}".encode())
        seconds = time.perf_counter() - began
        sized = await (await owner.execute("SELECT pg_relation_size(%s::regclass) AS size", (name,))).fetchone()
        assert sized is not None
        told.append(f"{name} {sized['size'] / 1e6 / millions:,.0f} MB, made in {seconds / millions:.0f} s")
    return "for a million rows: " + "; ".join(told)


async def run(
    running: Servers,
    chats: Sequence[Chat],
    embedder: Embedder,
    *,
    sizes: Sequence[int],
    others: int = OTHERS,
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
            found.append(await measure(db, owner, source, meaning, count, others))
            say(f"{count:,} messages: done in {time.perf_counter() - began:.0f} s")
        say(await indexes(owner))
    return found


def report(found: Sequence[Found]) -> str:
    """A line a size."""
    rows = []
    for each in found:
        parts = (each.alone, each.crowd, each.no_word, each.filtered, each.page_13)
        times = [f"{percentile(part, 0.5) * 1000:.0f} / {percentile(part, 0.95) * 1000:.0f}" for part in parts]
        ratio = f"{percentile(each.crowd, 0.5) / percentile(each.alone, 0.5):.2f}"
        rows.append((f"{each.messages:,}", *times[:2], ratio, *times[2:], f"{each.nearest:.1%}", f"{each.result:.3f}"))
    head = ("messages", "alone ms", "crowd ms", "ratio", "no word", "filtered", "page 13", "nearest", "R@10")
    return table(head, rows)


def main(data: Path, embedder: Embedder | None = None) -> int:
    """Run on servers in a folder of their own. Returns the exit code."""
    big = os.environ.get("BIG") == "1"
    chats = chats_of(data)
    with ground() as running:
        found = run(
            running,
            chats,
            embedder or LocalEmbedder(),
            sizes=[*SIZES, BIG] if big else SIZES,
            others=BIG_OTHERS if big else OTHERS,
        )
        print(report(asyncio.run(found)))
    return 0
