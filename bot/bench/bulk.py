"""Large stores in short time: agents with thousands of messages and vectors, copied in as the administrator.

Neither row-level security nor the background filler of vectors has to do with them.
"""

from __future__ import annotations

import itertools
import struct
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import numpy as np
import psycopg

from bot.bench import retrieval
from bot.bench.retrieval import Chat
from bot.bench.stage import PLATFORM, START
from bot.config.findings import StartError
from memory.db import Database, value

Owner = psycopg.AsyncConnection[dict[str, Any]]
Vectors = np.ndarray[tuple[int, int], np.dtype[np.float32]]
"""One vector a row, each of length one."""

_POSTGRES_EPOCH = datetime(2000, 1, 1, tzinfo=UTC)
"""What PostgreSQL counts its microseconds from."""
PER_BLOCK = 2_000
"""Vectors that are written at once."""


@dataclass(frozen=True, slots=True)
class Store:
    """One agent's direct message."""

    agent: int
    place: int
    conversation: int


def chats_of(data: Path) -> list[Chat]:
    """The LoCoMo conversations of a file or folder. Raises StartError."""
    paths = sorted(data.rglob("locomo*.json")) if data.is_dir() else [data]
    try:
        chats = [chat for path in paths for chat in retrieval.read(path)]
    except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
        raise StartError(
            f"--data: {data} is no LoCoMo file ({type(error).__name__}). Name locomo*.json or a folder with it."
        ) from error
    if not chats:
        raise StartError(f"--data: no LoCoMo file (locomo*.json) at {data}. Name one, or a folder with it.")
    return chats


def texts_of(data: Path) -> list[str]:
    """What is said in the LoCoMo conversations of a file or folder. Raises StartError."""
    return [turn.text for chat in chats_of(data) for session in chat.sessions for turn in session]


def authored(said: Iterable[str]) -> Iterator[tuple[str, str]]:
    """Texts with their authors: the person and the bot, in turn."""
    return zip(itertools.cycle(("Ada", "")), said)


async def person(db: Database, user: str, name: str = "Ada") -> Store:
    """The agent, place and conversation of a person, as the inbox makes them."""
    async with db.bare() as connection:
        agent = await value(connection, "SELECT agent_of(%s, '', %s, %s, NULL, 'UTC')", (PLATFORM, user, name))
        place = await value(connection, "SELECT place_of(%s, '', '', %s, 'direct', %s, NULL, %s)", (PLATFORM, user, name, agent))
        conversation = await value(connection, "SELECT conversation_of(%s, %s)", (agent, place))
    return Store(int(agent), int(place), int(conversation))


async def write_messages(
    owner: Owner, stores: Sequence[Store], said: Iterable[tuple[str, str]], each: int, *, queue: int = 0
) -> None:
    """Give every store the same `each` messages (author, text); the newest `queue` of them make its FIFO queue.

    The messages end now, a minute apart. No vectors are made of them, now or later.
    """
    rows = list(itertools.islice(said, each))
    first = START - timedelta(minutes=each)
    async with owner.transaction():
        await owner.execute("SET LOCAL session_replication_role = replica")  # no triggers
        async with owner.cursor().copy(
            """COPY messages (agent_id, conversation_id, place_id, visibility, position, role, kind, author_name, content, searchable,
                 created_at) FROM STDIN"""
        ) as copy:
            for store in stores:
                for row in _rows(store, rows, first):
                    await copy.write_row(row)
        await owner.execute(
            "UPDATE conversations SET next_position = %s, fifo_start = %s WHERE id = ANY (%s)",
            (each + 1, each + 1 - queue, [store.conversation for store in stores]),
        )
    await owner.execute("VACUUM ANALYZE")  # as autovacuum would have done by the time there is so much


def _rows(store: Store, said: Sequence[tuple[str, str]], first: datetime) -> Iterator[tuple[object, ...]]:
    for number, (author, text) in enumerate(said):
        role = "user" if number % 2 == 0 else "assistant"
        yield (
            store.agent,
            store.conversation,
            store.place,
            "direct",
            number + 1,
            role,
            "message",
            author,
            text,
            True,
            first + timedelta(minutes=number),
        )


async def write_vectors(owner: Owner, store: Store, vectors: Iterable[Vectors], model: int = 1) -> None:
    """Give an agent's messages, in the order of their ids, the rows of blocks of vectors."""
    cursor = await owner.execute("SELECT id, created_at FROM messages WHERE agent_id = %s ORDER BY id", (store.agent,))
    rows = iter([(int(row["id"]), row["created_at"]) for row in await cursor.fetchall()])
    async with owner.cursor().copy(
        "COPY embeddings (agent_id, message_id, place_id, said_at, model_id, embedding) FROM STDIN (FORMAT binary)"
    ) as copy:
        await copy.write(b"PGCOPY\n\xff\r\n\0" + struct.pack("!ii", 0, 0))
        for block in vectors:
            await copy.write(
                b"".join(_binary(store, id_, at, model, row) for row, (id_, at) in zip(block.astype(">f2"), rows, strict=False))
            )
        await copy.write(struct.pack("!h", -1))
    await owner.execute("ANALYZE embeddings")


def _binary(store: Store, message: int, at: datetime, model: int, vector: np.ndarray[Any, Any]) -> bytes:
    """One row in PostgreSQL's binary COPY format; a halfvec is its number of dimensions, a zero, and the numbers."""
    body = struct.pack("!hh", len(vector), 0) + vector.tobytes()
    micros = (at - _POSTGRES_EPOCH) // timedelta(microseconds=1)
    return struct.pack("!hiqiqiqiqiii", 6, 8, store.agent, 8, message, 8, store.place, 8, micros, 4, model, len(body)) + body


def unit(vectors: np.ndarray[Any, Any]) -> Vectors:
    """The vectors at length one."""
    made: Vectors = (vectors / np.linalg.norm(vectors, axis=1, keepdims=True)).astype(np.float32)
    return made


def random_vectors(count: int, dims: int, seed: int = 1) -> Iterator[Vectors]:
    """Blocks of vectors that mean nothing, where only their number matters."""
    random = np.random.default_rng(seed)
    for start in range(0, count, PER_BLOCK):
        yield unit(random.standard_normal((min(PER_BLOCK, count - start), dims)))
