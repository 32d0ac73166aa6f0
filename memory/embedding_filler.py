"""The background filling of `embeddings`: rows get their vectors after the commit that stored them; until
then words find them.

`unembedded` names the rows that lack a vector of the current model (a trigger fills it). A pass reads texts
agent by agent, embeds them with no connection held, and stores the vectors of those rows that still stand
unchanged.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Sequence
from typing import Any

import psycopg
from psycopg.types.json import Jsonb
from psycopg_pool import PoolTimeout

from memory.db import Database, value
from memory.embedding import Embedder, EmbeddingError, EmbeddingRefusedError, Meaning, Vector, literal

log = logging.getLogger(__name__)

BATCH = 64
"""Texts of one call of the embedder."""
POLL = 30.0
"""Seconds between looks without a wake-up: rows of other processes, or of a crash."""
GATHER = 0.2
"""Seconds that a wake-up waits for more: what one turn stores is embedded together, and a busy bot looks five times a second at most."""
BACKOFF = (1.0, 2.0, 4.0, 8.0, 16.0, 32.0, 60.0)
"""Seconds of rest after the first, second, … failure in a row."""
IN_A_ROW = 4
"""Batches of one agent before the others have their turn: a long document keeps nobody's messages waiting."""
AGENTS = 50
"""Agents taken from the list at once."""

_TEXTS = """
SELECT u.message_id, u.passage_id, m.content, m.author_name
FROM unembedded u JOIN messages m ON m.id = u.message_id
UNION ALL
SELECT u.message_id, u.passage_id, p.content, coalesce(nullif(p.heading, ''), p.author_name)
FROM unembedded u JOIN passages p ON p.id = u.passage_id
LIMIT %s"""

# The rows are locked against deletion, and only those are stored whose text is still the one that was embedded.
_STORE = """
WITH given AS (
  SELECT * FROM jsonb_to_recordset(%(rows)s::jsonb) AS g (message_id bigint, passage_id bigint, content text, vector text)
), standing AS (
  SELECT g.*, m.place_id, m.created_at FROM given g JOIN messages m ON m.id = g.message_id AND m.content = g.content FOR KEY SHARE OF m
), archived AS (
  SELECT g.*, p.place_id, p.created_at FROM given g JOIN passages p ON p.id = g.passage_id AND p.content = g.content FOR KEY SHARE OF p
), both_kinds AS (
  SELECT * FROM standing UNION ALL SELECT * FROM archived
), done AS (
  DELETE FROM unembedded u USING both_kinds b WHERE u.message_id = b.message_id OR u.passage_id = b.passage_id RETURNING 1
), stored AS (
  INSERT INTO embeddings (agent_id, message_id, passage_id, place_id, said_at, model_id, embedding)
  SELECT current_agent(), message_id, passage_id, place_id, created_at, %(model)s, vector::halfvec FROM both_kinds WHERE vector IS NOT NULL
  ON CONFLICT DO NOTHING
)
SELECT count(*) AS dealt_with FROM done"""

_OUTDATED = "DELETE FROM embeddings WHERE model_id = %s AND (message_id = ANY (%s) OR passage_id = ANY (%s))"


async def use_model(db: Database, embedder: Embedder | None) -> Meaning:
    """Make the embedder's model the current one: known to the database, with an index, and every row without
    its vector queued.

    Raises psycopg.Error when a model of that name has other dimensions.
    """
    if embedder is None:
        return Meaning(None)
    async with db.bare() as connection:
        return Meaning(
            embedder, int(await value(connection, "SELECT use_embedding_model(%s, %s)", (embedder.name, embedder.dims)))
        )


def spoken(row: dict[str, Any]) -> str:
    """The text that is embedded: with its author's name, because questions name people (LoCoMo: 0.35 against
    0.21 of the evidence in 10).
    """
    return f"{row['author_name']}: {row['content']}" if row["author_name"] else str(row["content"])


class EmbeddingFiller:
    """Fills vectors until cancelled. `wake` after a commit makes it look after `gather` seconds; any number of
    processes may run one.
    """

    def __init__(
        self,
        db: Database,
        meaning: Meaning,
        *,
        batch: int = BATCH,
        poll: float = POLL,
        gather: float = GATHER,
        backoff: Sequence[float] = BACKOFF,
    ) -> None:
        self._db = db
        self._meaning = meaning
        self._batch = batch
        self._poll = poll
        self._gather = gather
        self._backoff = backoff
        self._wake = asyncio.Event()
        self._failures = 0

    def wake(self) -> None:
        """There may be new rows."""
        self._wake.set()

    async def run(self) -> None:
        """Fill whenever there is something, rest after failures, and otherwise wait."""
        while self._meaning.embedder is not None:
            self._wake.clear()
            try:
                stored = await self.fill()
            except (EmbeddingError, PoolTimeout, psycopg.OperationalError) as error:
                await self._rest(error)
                continue
            self._failures = 0
            if not stored:
                await self._idle()

    async def fill(self) -> int:
        """Rounds over the agents that wait until nothing is left. Returns how many rows were dealt with. Raises EmbeddingError
        and psycopg.OperationalError.
        """
        dealt_with, more = 0, True
        while more:
            agents = [int(row["agent"]) for row in await self._db.once("SELECT * FROM unembedded_agents(%s) AS agent", (AGENTS,))]
            rounds = [await self._fill_agent(agent) for agent in agents]
            dealt_with += sum(stored for stored, _ in rounds)
            more = any(left for _, left in rounds)
        return dealt_with

    async def _fill_agent(self, agent: int) -> tuple[int, bool]:
        """Some batches of one agent. Returns how many rows were dealt with, and whether more wait that can be."""
        dealt_with = 0
        for _ in range(IN_A_ROW):
            rows = await self._db.as_agent(agent, None, _TEXTS, (self._batch,), everything=True)
            if not rows:
                return dealt_with, False
            stored = await self._store(agent, rows, await self._vectors([spoken(row) for row in rows]))
            dealt_with += stored
            if not stored or stored == len(rows) < self._batch:  # rows that cannot be stored now must not keep this loop spinning
                return dealt_with, False
        return dealt_with, True

    async def _vectors(self, texts: list[str]) -> list[Vector]:
        """A vector a text, an empty one for a text that the embedder will never take."""
        assert self._meaning.embedder is not None
        try:
            return await self._meaning.embedder.embed(texts)
        except EmbeddingRefusedError:
            if len(texts) == 1:
                return [()]
            return [vector for text in texts for vector in await self._vectors([text])]

    async def _store(self, agent: int, rows: list[dict[str, Any]], vectors: list[Vector]) -> int:
        given = [
            {
                "message_id": row["message_id"],
                "passage_id": row["passage_id"],
                "content": row["content"],
                "vector": literal(vector),
            }
            for row, vector in zip(rows, vectors, strict=True)
        ]
        ids = [[row[kind] for row in rows if row[kind] is not None] for kind in ("message_id", "passage_id")]
        async with self._db.agent(agent, everything=True) as connection:
            async with connection.pipeline():
                await connection.execute(_OUTDATED, (self._meaning.model, *ids))
                done = await connection.execute(_STORE, {"rows": Jsonb(given), "model": self._meaning.model})
            row = await done.fetchone()
            return int(row["dealt_with"]) if row else 0

    async def _rest(self, error: Exception) -> None:
        seconds = self._backoff[min(self._failures, len(self._backoff) - 1)]
        if self._failures == 0:
            log.warning("embedding failed (%s): searching with words only until it works", type(error).__name__)
        self._failures += 1
        await asyncio.sleep(seconds)

    async def _idle(self) -> None:
        try:
            async with asyncio.timeout(self._poll):
                await self._wake.wait()
        except TimeoutError:
            return
        await asyncio.sleep(self._gather)
