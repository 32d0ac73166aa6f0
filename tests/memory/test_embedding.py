"""Vectors: made in the background, never in the way of a search."""

import asyncio
import math
from collections.abc import Sequence

import pytest

from memory.db import Database, value
from memory.embedding import EmbeddingError, EmbeddingRefusedError, EndpointEmbedder, LocalEmbedder, Meaning, Vector, literal
from memory.embedding_filler import IN_A_ROW, EmbeddingFiller, use_model
from tests.memory.people import ByTopic, Person, texts, understand
from tests.waiting import until


@pytest.fixture
async def ana(db: Database) -> Person:
    return await Person.of(db)


async def count(person: Person, table: str) -> int:
    async with person.here() as connection:
        return int(await value(connection, f"SELECT count(*) FROM {table}"))


async def until_filled(person: Person) -> None:
    async def filled() -> bool:
        return not await count(person, "unembedded")

    await until(filled)


class Counted(EmbeddingFiller):
    """Counts its looks that are over."""

    looks = 0

    async def fill(self) -> int:
        found = await super().fill()
        self.looks += 1
        return found


class Moody(ByTopic):
    """Fails `failures` times, refuses texts with `bad` in them, and counts its calls."""

    def __init__(self, failures: int = 0, bad: str = "\n") -> None:
        self.failures = failures
        self.bad = bad
        self.calls = 0

    async def embed(self, texts: Sequence[str]) -> list[Vector]:
        self.calls += 1
        if self.failures:
            self.failures -= 1
            raise EmbeddingError("down")
        if any(self.bad in text for text in texts):
            raise EmbeddingRefusedError("bad")
        return await super().embed(texts)


async def test_messages_and_passages_get_vectors_and_the_list_empties(ana: Person) -> None:
    await ana.say(*[f"Message {n}" for n in range(5)])
    await ana.store("A passage")
    await ana.say("not searchable", kind="monologue")
    await understand(ana.db, ByTopic())
    assert (await count(ana, "embeddings"), await count(ana, "unembedded")) == (6, 0)


async def test_every_agent_is_filled_and_each_only_reads_its_own(ana: Person) -> None:
    bruno = await Person.of(ana.db, "bruno", "dm-bruno")
    await ana.say("puppy one", "puppy two")
    await bruno.say("puppy three")
    meaning = await use_model(ana.db, ByTopic())
    filler = EmbeddingFiller(ana.db, meaning, batch=1)
    assert await filler.fill() == 3
    assert (await count(ana, "embeddings"), await count(bruno, "embeddings")) == (2, 1)


async def test_a_long_document_keeps_nobody_else_waiting(ana: Person) -> None:
    class Heard(ByTopic):
        def __init__(self) -> None:
            self.order: list[str] = []

        async def embed(self, texts: Sequence[str]) -> list[Vector]:
            self.order += texts
            return await super().embed(texts)

    bruno = await Person.of(ana.db, "bruno", "dm-bruno")
    await ana.say(*[f"page {n}" for n in range(20)])
    await bruno.say("hello")
    embedder = Heard()
    filler = EmbeddingFiller(ana.db, await use_model(ana.db, embedder), batch=2)
    assert await filler.fill() == 21
    [at] = [n for n, text in enumerate(embedder.order) if text.endswith("hello")]
    assert at <= 2 * IN_A_ROW
    assert await count(ana, "unembedded") == 0


async def test_a_wake_up_is_enough(ana: Person) -> None:
    meaning = await use_model(ana.db, ByTopic())
    filler = Counted(ana.db, meaning, poll=60)
    running = asyncio.create_task(filler.run())
    try:
        for number, text in enumerate(("puppy one", "puppy two"), 1):
            await until(lambda number=number: filler.looks >= number)  # type: ignore[misc]
            await ana.say(text)
            filler.wake()
            await until_filled(ana)
    finally:
        running.cancel()
    assert await count(ana, "embeddings") == 2


async def test_many_wake_ups_are_few_looks(ana: Person) -> None:
    filler = Counted(ana.db, await use_model(ana.db, ByTopic()), poll=60, gather=0.2)
    running = asyncio.create_task(filler.run())
    loop = asyncio.get_running_loop()
    try:
        end = loop.time() + 1.0
        while loop.time() < end:
            filler.wake()
            await asyncio.sleep(0)
    finally:
        running.cancel()
    assert 2 <= filler.looks <= 7


async def test_without_a_wake_up_the_poll_finds_new_rows(ana: Person) -> None:
    meaning = await use_model(ana.db, ByTopic())
    filler = Counted(ana.db, meaning, poll=0.05)
    running = asyncio.create_task(filler.run())
    try:
        await until(lambda: filler.looks)
        await ana.say("puppy")
        await until_filled(ana)
    finally:
        running.cancel()


async def test_a_failing_embedder_leaves_words_and_is_tried_again(ana: Person, caplog: pytest.LogCaptureFixture) -> None:
    await ana.say("The secret puppy")
    embedder = Moody(failures=3)
    meaning = await use_model(ana.db, embedder)
    assert await meaning.of("puppy") is None
    assert texts(await ana.recall("puppy", await meaning.of("puppy"))) == ["The secret puppy"]
    running = asyncio.create_task(EmbeddingFiller(ana.db, meaning, backoff=(0.01,)).run())
    try:
        await until_filled(ana)
    finally:
        running.cancel()
    assert (await count(ana, "embeddings"), await meaning.of("puppy") is not None) == (1, True)
    assert "secret" not in caplog.text


async def test_a_refused_text_does_not_hold_up_the_others(ana: Person) -> None:
    await ana.say("puppy one", "poison", "puppy two")
    meaning = await use_model(ana.db, Moody(bad="poison"))
    assert await EmbeddingFiller(ana.db, meaning).fill() == 3
    assert (await count(ana, "embeddings"), await count(ana, "unembedded")) == (2, 0)
    assert texts(await ana.recall("poison")) == ["poison"]


async def test_a_row_erased_meanwhile_gets_no_vector_and_a_changed_one_the_new_text(ana: Person) -> None:
    [erased, _] = await ana.say("puppy erased", "puppy kept")
    stored = await ana.store("bread and cake")

    class Meanwhile(ByTopic):
        first = True

        async def embed(self, texts: Sequence[str]) -> list[Vector]:
            if self.first:
                self.first = False
                async with ana.here() as connection:
                    await connection.execute("DELETE FROM messages WHERE id = %s", (erased,))
                    await connection.execute("UPDATE passages SET content = 'sailing at sea' WHERE id = %s", (stored.id,))
            return await super().embed(texts)

    meaning = await use_model(ana.db, Meanwhile())
    await EmbeddingFiller(ana.db, meaning).fill()
    assert (await count(ana, "embeddings"), await count(ana, "unembedded")) == (2, 0)
    assert texts(await ana.archive("coast", await meaning.of("coast"))) == ["sailing at sea"]


async def test_an_edited_passage_gets_a_new_vector(ana: Person) -> None:
    stored = await ana.store("bread and cake")
    await ana.store("piano concert")
    meaning = await understand(ana.db, ByTopic())
    async with ana.here() as connection:
        await connection.execute("UPDATE passages SET content = 'sailing at sea' WHERE id = %s", (stored.id,))
    await EmbeddingFiller(ana.db, meaning).fill()
    assert texts(await ana.archive("coast", await meaning.of("coast"))) == ["sailing at sea"]
    assert texts(await ana.archive("oven", await meaning.of("oven"))) == []


async def test_another_model_fills_anew_and_the_old_vectors_do_no_harm(ana: Person) -> None:
    await ana.say("puppy", "beach")
    old = await understand(ana.db, ByTopic())

    class Other(ByTopic):
        name = "other"
        dims = 9

        async def embed(self, texts: Sequence[str]) -> list[Vector]:
            return [[*vector, 0.0] for vector in await super().embed(texts)]

    new = await understand(ana.db, Other())
    assert (old.model != new.model, await count(ana, "embeddings")) == (True, 4)
    assert texts(await ana.recall("dog", await new.of("dog"))) == ["puppy"]
    assert texts(await ana.recall("dog", await old.of("dog"))) == ["puppy"]


async def test_no_embedder_means_words_only(ana: Person) -> None:
    await ana.say("puppy")
    meaning = await use_model(ana.db, None)
    assert await meaning.of("puppy") is None
    async with asyncio.timeout(1):
        await EmbeddingFiller(ana.db, meaning).run()


async def test_a_slow_embedder_does_not_hold_up_a_search() -> None:
    class Slow(ByTopic):
        async def embed(self, texts: Sequence[str]) -> list[Vector]:
            await asyncio.Event().wait()
            return []

    assert await Meaning(Slow(), 1).of("puppy", seconds=0.05) is None


async def test_the_pages_of_one_search_share_one_vector() -> None:
    embedder = Moody()
    meaning = Meaning(embedder, 1)
    assert await meaning.of("puppy") == await meaning.of("puppy")
    assert embedder.calls == 1


async def test_an_endpoints_faults_become_embedding_errors() -> None:
    async def endpoint(texts: Sequence[str]) -> list[list[float]]:
        if "timeout" in texts:
            raise ConnectionError
        if "bad" in texts:
            raise PermissionError
        return [[1.0, 0.0]] * (len(texts) if "few" not in texts else 0)

    embedder = EndpointEmbedder("e", 2, endpoint, failures=(ConnectionError,), refusals=(PermissionError,))
    assert await embedder.embed(["one", "two\ud800"]) == [[1.0, 0.0], [1.0, 0.0]]
    for text, error in (("timeout", EmbeddingError), ("few", EmbeddingError), ("bad", EmbeddingRefusedError)):
        with pytest.raises(error):
            await embedder.embed([text])
    with pytest.raises(EmbeddingError):
        await EndpointEmbedder("e", 3, endpoint).embed(["other dimensions"])


@pytest.mark.parametrize("vector", [[0.0, 0.0], [math.nan, 1.0], [math.inf, 1.0], []])
def test_a_vector_without_direction_is_no_vector(vector: Vector) -> None:
    assert literal(vector) is None


def test_a_vector_is_stored_with_length_one() -> None:
    assert literal([3.0, 4.0]) == literal([3e5, 4e5]) == "[0.60009765625,0.7998046875]"


async def test_the_local_embedder_understands_across_languages() -> None:
    embedder = LocalEmbedder()
    try:
        vectors = await embedder.embed(
            ["I love my dog", "J'adore mon chien", "我爱我的狗", "The train was late", "", "\ud800\x00", "x" * 100_000]
        )
    finally:
        embedder.close()
    assert {len(vector) for vector in vectors} == {embedder.dims}
    english, french, chinese, train = (vectors[n] for n in range(4))

    def cosine(a: Vector, b: Vector) -> float:
        return sum(x * y for x, y in zip(a, b, strict=True)) / math.dist(a, [0] * 512) / math.dist(b, [0] * 512)

    assert min(cosine(english, french), cosine(english, chinese)) > 0.6
    assert cosine(english, train) < 0.4
