"""Searching recall and archival storage, on the real database under the bot's role."""

import re
from datetime import UTC, datetime, timedelta
from random import Random
from zoneinfo import ZoneInfo

import psycopg
import pytest
from hypothesis import given
from hypothesis import strategies as st

from memory.db import Database, value
from memory.embedding import LocalEmbedder, QueryVector, literal
from memory.search import Page, Query, pages_of, period, search_messages
from tests.conftest import Urls
from tests.memory.people import NOON, ByTopic, Person, texts, understand

BERLIN = ZoneInfo("Europe/Berlin")


@pytest.fixture
async def ana(db: Database) -> Person:
    return await Person.of(db)


async def test_an_inflected_word_is_found_and_the_richer_message_comes_first(ana: Person) -> None:
    await ana.say("I went hiking in the Alps", "We hiked with my brother on Sunday", "The weather is nice", author="")
    assert texts(await ana.recall("hikes with a brother"))[0] == "We hiked with my brother on Sunday"
    assert (await ana.recall("hikes")).total == 2


async def test_a_rare_word_weighs_more_than_common_ones(ana: Person) -> None:
    await ana.say(
        *[f"My friend told me about the trip number {n}" for n in range(8)], "Otters live there", "Good night", author=""
    )
    assert texts(await ana.recall("what did my friend tell about otters on the trip"))[0] == "Otters live there"


async def test_the_name_of_who_spoke_finds_a_message(ana: Person) -> None:
    await ana.say("That was delicious", author="Bruno")
    await ana.say("It was", author="Ana")
    assert texts(await ana.recall("What did Bruno say?"))[0] == "That was delicious"


async def test_a_quoted_text_is_first(ana: Person) -> None:
    await ana.say(
        "The red, the blue: a bicycle and a purple scarf",
        "A bicycle, purple",
        "My purple bicycle was stolen",
        "bicycle bicycle purple",
    )
    assert texts(await ana.recall('do you remember "purple bicycle"'))[0] == "My purple bicycle was stolen"
    assert texts(await ana.recall("purple bicycle"))[0] == "My purple bicycle was stolen"


@pytest.mark.parametrize(
    ("said", "query"),
    [
        ("to be or not to be", "to be or not"),  # only stop words
        ("so happy 🎉", "🎉"),
        ("wait ... what?!", "?!"),
        ("the code is abc-XY77-zz", "XY77"),
        ("antidisestablishmentarianism", "establishment"),  # a part of a word
        ("see C:\\temp\\o'brien & 100%", "o'brien & 100%"),
        ("Çok güzel, Müller’s café", "cafe muller"),  # accents and typographic apostrophes
        ("we met on 2023-05-07", "05"),
    ],
)
async def test_odd_texts_are_found(ana: Person, said: str, query: str) -> None:
    await ana.say("Good morning", said, "Good night", author="")
    page = await ana.recall(query)
    assert (texts(page), page.total) == ([said], 1)


@pytest.mark.parametrize(
    ("said", "query"),
    [
        ("我去的是绿禾公园，看到了樱花和松鼠！", "公园里的樱花"),
        ("我家有一只猫。", "猫"),
        ("昨日は友達とラーメンを食べました", "ラーメン"),
        ("어제 서울에서 친구를 만났어요", "서울"),
        ("ฉันชอบกินข้าวผัด", "ข้าวผัด"),
        ("Меня зовут Алёна, я люблю книги", "книги Алена"),
    ],
)
async def test_other_scripts_are_found_by_their_words(ana: Person, said: str, query: str) -> None:
    await ana.say("今天天气很好，我们走吧", said, "おやすみなさい", "Good night", author="")
    assert texts(await ana.recall(query))[0] == said


async def test_a_hundred_thousand_characters_are_stored_and_found(ana: Person) -> None:
    await ana.say(
        "x" * 100_000, "".join(map(chr, range(0x4E00, 0x9F00))) * 5, " ".join(f"{n:05}" for n in range(16_000)), author=""
    )
    assert (await ana.recall("x" * 100_000)).total == 1
    assert (await ana.recall("一丁七")).total == 1
    assert (await ana.recall("00042")).total == 1
    assert (await ana.recall("nothing like it " * 6_000)).total == 0


@pytest.mark.parametrize(
    "query", ["\x00", "\ud800", "<|endoftext|>", "'; DROP TABLE messages; --", "a & | ! ( :*", "\\", "%", '"', "“”"]
)
async def test_a_hostile_query_does_no_harm(ana: Person, query: str) -> None:
    await ana.say("Good morning", author="")
    assert (await ana.recall(query)).total <= 1
    assert texts(await ana.recall("morning")) == ["Good morning"]


async def test_every_match_is_on_exactly_one_page(ana: Person) -> None:
    for number in range(124):
        await ana.store(f"Record {number}: a Nobel laureate of physics" if number % 2 else f"Physics record {number}")
    await ana.store("Buy milk")
    seen: list[int] = []
    for number in range(1, 14):
        page = await ana.archive("nobel physics record", page=number)
        assert page.headline == f"Showing {4 if number == 13 else 10} of 124 results (page {number}/13)"
        seen += [hit.id for hit in page.hits]
    assert len(seen) == len(set(seen)) == 124
    beyond = await ana.archive("nobel physics record", page=14)
    assert (beyond.hits, beyond.total, beyond.headline) == ((), 124, "There is no page 14: 124 results on 13 pages.")
    assert (await ana.archive("nobel", page=2**40)).total == 62


async def test_every_match_is_on_one_page_with_meaning_too(ana: Person) -> None:
    for number in range(60):
        await ana.store(f"The puppy number {number}" if number % 2 else f"A retriever with the name {number}")
    meaning = await understand(ana.db, ByTopic())
    vector = await meaning.of("my dog puppy")
    pages = [await ana.archive("my dog puppy", vector, page=number) for number in range(1, 8)]
    ids = [hit.id for page in pages for hit in page.hits]
    assert len(ids) == len(set(ids)) == pages[0].total
    assert len({page.total for page in pages}) == 1
    assert sum("puppy" in text for page in pages for text in texts(page)) == 30
    assert any("retriever" in text for page in pages for text in texts(page))


async def test_meaning_finds_what_shares_no_word(ana: Person) -> None:
    await ana.say("Our retriever had a bath", "We were sailing all day", "The oven is broken", author="")
    meaning = await understand(ana.db, ByTopic())
    vector = await meaning.of("any pet ?")
    assert texts(await ana.recall("any pet ?", vector)) == ["Our retriever had a bath"]
    assert (await ana.recall("any pet ?")).total == 0


async def test_a_row_without_a_vector_yet_is_found_by_its_words(ana: Person) -> None:
    await ana.say("Our retriever had a bath", author="")
    meaning = await understand(ana.db, ByTopic())
    await ana.say("I bought a puppy", author="")
    found = await ana.recall("puppy", await meaning.of("puppy"))
    assert set(texts(found)) == {"I bought a puppy", "Our retriever had a bath"}


async def test_before_any_vector_exists_words_find(ana: Person) -> None:
    await ana.say("I bought a puppy", author="")
    meaning = await understand(ana.db, ByTopic())
    async with ana.here() as connection:
        await connection.execute("DELETE FROM embeddings")
    assert texts(await ana.recall("puppy", await meaning.of("puppy"))) == ["I bought a puppy"]
    assert (await ana.recall("beach", await meaning.of("beach"))).total == 0


async def test_the_answer_beside_a_matching_question_rises(ana: Person) -> None:
    await ana.say("Which instrument do you play?", "The cello, since I was six", *[f"Filler {n}" for n in range(10)], author="")
    await ana.say("I play football", *[f"Stuffing {n}" for n in range(10)], author="")
    before = await ana.recall("cello instrument play")
    assert set(texts(before)[:2]) == {"Which instrument do you play?", "The cello, since I was six"}


async def test_time_and_roles_narrow(ana: Person) -> None:
    await ana.say("bread one", author="")
    await ana.say("bread two", role="assistant", author="")
    await ana.say("bread three", kind="quote", author="Bruno")
    await ana.say("bread four", author="")
    minute = timedelta(minutes=1)
    assert set(texts(await ana.recall("bread", after=NOON + minute, before=NOON + 3 * minute))) == {"bread two", "bread three"}
    assert texts(await ana.recall("bread", roles=("assistant",))) == ["bread two"]
    assert texts(await ana.recall("bread", roles=("quote",))) == ["bread three"]
    assert set(texts(await ana.recall("bread", roles=("user",)))) == {"bread one", "bread four"}


async def test_a_blank_query_lists_the_newest_first(ana: Person) -> None:
    await ana.say(*[f"Message {n}" for n in range(25)], author="")
    page = await ana.recall("  ", page=2, after=NOON + timedelta(minutes=5))
    assert page.headline == "Showing 10 of 20 results (page 2/2)"
    assert texts(page) == [f"Message {n}" for n in range(14, 4, -1)]


async def test_tags_narrow_archival_storage(ana: Person) -> None:
    await ana.store("Bread needs flour", tags=["Baking"])
    await ana.store("Bread was eaten in the park", tags=["trips"])
    assert texts(await ana.archive("bread", tags=("baking", "other"))) == ["Bread needs flour"]
    assert texts(await ana.archive("", tags=("trips",))) == ["Bread was eaten in the park"]


async def test_calls_results_and_monologue_are_not_found(ana: Person) -> None:
    await ana.say("I should search for bread", role="assistant", kind="monologue", author="")
    await ana.say('{"results": "bread"}', role="tool", kind="result", author="")
    assert (await ana.recall("bread")).total == 0


async def test_no_search_finds_another_persons_memory(ana: Person) -> None:
    bruno = await Person.of(ana.db, "bruno", "dm-bruno")
    await ana.say("The safe code is 4711", author="")
    await ana.store("The safe code is 4711")
    meaning = await understand(ana.db, ByTopic())
    for query in ("safe code 4711", "4711", "", "puppy"):
        vector = await meaning.of(query)
        assert (await bruno.recall(query, vector)).total == 0
        assert (await bruno.archive(query, vector)).total == 0


async def test_what_was_private_is_not_found_in_a_channel_and_does_not_count(ana: Person) -> None:
    channel = await Person.of(ana.db, "ana", "general", "public")
    await ana.say("My salary is low", author="")
    await ana.store("My salary is low")
    await ana.store("Salary talk is fine", shareable=True)
    await channel.say("Salary is a public topic here", author="")
    meaning = await understand(ana.db, ByTopic())
    vector = await meaning.of("salary")
    assert texts(await channel.recall("salary", vector)) == ["Salary is a public topic here"]
    assert texts(await channel.archive("salary", vector)) == ["Salary talk is fine"]
    assert (await ana.recall("salary", vector)).total == 2


async def test_search_finds_nothing_where_no_agent_is_named(ana: Person) -> None:
    await ana.say("Good morning", author="")
    async with ana.db.bare() as connection:
        assert await value(connection, "SELECT total FROM search_messages('morning')") == 0


async def test_of_many_vectors_the_nearest_are_found_by_their_signatures(ana: Person, urls: Urls) -> None:
    """More than are compared one by one: ten lie near the query, the others in no direction."""
    random = Random(1)
    asked = [random.gauss(0, 1) for _ in range(128)]
    with psycopg.connect(urls.owner, autocommit=True, options="-c search_path=keepsake,public") as owner:
        owner.execute("INSERT INTO embedding_models (id, name, dims) VALUES (7, 'signs', 128)")
        fill(owner, ana, "Nothing of note %s", 10_500, 1)
        owner.execute(
            """INSERT INTO embeddings (agent_id, message_id, place_id, said_at, model_id, embedding)
               SELECT agent_id, id, place_id, created_at, 7, l2_normalize((
                 SELECT array_agg(CASE WHEN position %% 1000 = 7 THEN %s[n] + 1.2 * random() - 0.6 ELSE 2 * random() - 1 END)
                 FROM generate_series(1, 128) n)::vector::halfvec)
               FROM messages WHERE agent_id = %s""",
            (asked, ana.agent),
        )
    vector = QueryVector(str(literal(asked)), 7, 0.6)
    async with ana.here() as connection:
        page = await search_messages(connection, Query("", page_size=20), vector)
    assert {int(text.split()[-1]) for text in texts(page)} == set(range(7, 10_500, 1_000))


def fill(owner: psycopg.Connection, person: Person, content: str, count: int, first: int, visibility: str = "direct") -> None:
    owner.execute(
        """INSERT INTO messages (agent_id, conversation_id, place_id, visibility, position, role, kind, content, searchable, created_at)
           SELECT %s, %s, %s, %s, n, 'user', 'message', format(%s::text, n), true, timestamptz '2025-01-01' + n * interval '1 minute'
           FROM generate_series(%s::bigint, %s::bigint) n""",
        (person.agent, person.conversation, person.place, visibility, content, first, first + count - 1),
    )


async def test_a_common_word_makes_no_match_beside_a_rare_one(ana: Person, urls: Urls) -> None:
    with psycopg.connect(urls.owner, autocommit=True, options="-c search_path=keepsake,public") as owner:
        fill(owner, ana, "A note on the weather, number %s", 6_000, 1)
        fill(owner, ana, "Otters and their weather %s", 30, 6_001)
    first, second = [await ana.recall("weather otters", page_size=20, page=page) for page in (1, 2)]
    assert len({hit.id for hit in first.hits + second.hits}) == first.total == 30
    assert all("Otters" in text for text in texts(first) + texts(second))
    assert (await ana.recall("weather")).headline == "Showing 10 of more than 1,000 results (page 1)"
    assert texts(await ana.recall("number 4711"))[0].endswith("number 4711")


@pytest.mark.parametrize(
    ("count", "headline"),
    [(1_000, "Showing 10 of 1000 results (page 1/100)"), (1_001, "Showing 10 of more than 1,000 results (page 1)")],
)
async def test_totals_are_exact_up_to_a_thousand(ana: Person, urls: Urls, count: int, headline: str) -> None:
    with psycopg.connect(urls.owner, autocommit=True, options="-c search_path=keepsake,public") as owner:
        fill(owner, ana, "A note on otters, number %s", count, 1)
    assert (await ana.recall("otters")).headline == headline
    assert (await ana.recall("")).headline == headline
    pages = [await ana.recall("otters", page=page, page_size=50) for page in range(1, 21)]
    assert len({hit.id for page in pages for hit in page.hits}) == 1_000


async def test_among_many_rows_one_next_to_a_good_one_ranks_higher(ana: Person, urls: Urls) -> None:
    with psycopg.connect(urls.owner, autocommit=True, options="-c search_path=keepsake,public") as owner:
        fill(owner, ana, "Nothing of note %s", 300, 1)
        fill(owner, ana, "We saw the aquarium", 1, 301)
        fill(owner, ana, "And an otter, an otter in the aquarium", 1, 302)
        fill(owner, ana, "Nothing of note %s", 100, 303)
        fill(owner, ana, "Yesterday I closed the aquarium", 1, 450)
    assert texts(await ana.recall("otter aquarium")) == [
        "And an otter, an otter in the aquarium",
        "We saw the aquarium",
        "Yesterday I closed the aquarium",
    ]


async def test_many_rows_of_elsewhere_are_neither_shown_nor_counted(db: Database, urls: Urls) -> None:
    direct = await Person.of(db)
    public = await Person.of(db, place="square", kind="public")
    with psycopg.connect(urls.owner, autocommit=True, options="-c search_path=keepsake,public") as owner:
        fill(owner, direct, "A secret otter %s", 300, 1)
        fill(owner, public, "An open otter %s", 3, 1, "public")
    found = await public.recall("otter")
    assert found.total == 3
    assert all("open" in text for text in texts(found))
    assert not any("secret" in text for text in texts(await public.recall('"secret otter"')))


async def test_under_the_bots_role_the_search_uses_the_index_of_words(ana: Person, urls: Urls) -> None:
    """The plan that really runs inside the function, as the server reports it to the bot's own session."""
    with psycopg.connect(urls.owner, autocommit=True, options="-c search_path=keepsake,public") as owner:
        owner.execute(
            """INSERT INTO messages (agent_id, conversation_id, place_id, visibility, position, role, kind, content, searchable, created_at)
               SELECT %s, %s, %s, 'direct', n, 'user', 'message', 'word' || n || ' and rare' || n %% 97, true, now()
               FROM generate_series(1, 5000) n""",
            (ana.agent, ana.conversation, ana.place),
        )
        owner.execute("ANALYZE messages")
    database = urls.bot.split("@/")[1].split("?")[0]
    settings = {
        "session_preload_libraries": "auto_explain",
        "auto_explain.log_min_duration": "0",
        "auto_explain.log_nested_statements": "on",
        "client_min_messages": "log",
    }
    with psycopg.connect(urls.admin, autocommit=True) as admin:
        for name, chosen in settings.items():
            admin.execute(f"ALTER ROLE keepsake_bot IN DATABASE {database} SET {name} = '{chosen}'".encode())
    plans: list[str] = []
    async with Database(urls.bot, size=2) as db, db.agent(ana.agent, ana.place) as connection:
        connection.add_notice_handler(lambda notice: plans.append(notice.message_primary or ""))
        assert (await search_messages(connection, Query("rare7"))).total == 52
    assert "Bitmap Index Scan on messages_words" in "".join(plans)
    assert "Seq Scan on messages" not in "".join(plans)


@pytest.mark.parametrize("place", ["2026-05-07", "0001-01-01", "9999-12-31"])
async def test_any_day_can_be_asked_for(ana: Person, place: str) -> None:
    start, end = period(place, place, BERLIN)
    assert (await ana.recall("", after=start, before=end)).total == 0


async def test_translations_are_found_by_the_local_embedder(ana: Person) -> None:
    await ana.say("我去的是绿禾公园，看到了樱花和松鼠！", "Ich habe einen Hund namens Rex", "The train was late again", author="")
    embedder = LocalEmbedder()
    try:
        meaning = await understand(ana.db, embedder)
        assert texts(await ana.recall("Which pet do I have?", await meaning.of("Which pet do I have?")))[0].startswith(
            "Ich habe einen Hund"
        )
        assert texts(await ana.recall("squirrel, cherry", await meaning.of("a park with a squirrel")))[0].startswith("我去的是")
    finally:
        embedder.close()


@given(st.integers(0, 10_000), st.integers(1, 50))
def test_pages_hold_everything_and_none_is_empty(total: int, size: int) -> None:
    pages = pages_of(total, size)
    assert (pages - 1) * size < max(total, 1) <= pages * size


def test_the_headline_of_nothing_says_so() -> None:
    assert Page((), 0, 1, 1).headline == "No results found."


@pytest.mark.parametrize(
    ("after", "before", "start", "end"),
    [
        ("", "", None, None),
        ("2026-05-07", "", datetime(2026, 5, 6, 22, tzinfo=UTC), None),
        ("2026-05-07", "2026-05-07", datetime(2026, 5, 6, 22, tzinfo=UTC), datetime(2026, 5, 7, 22, tzinfo=UTC)),
        ("", "2026-12-24T18:30", None, datetime(2026, 12, 24, 17, 30, tzinfo=UTC)),
        (
            "2026-05-07T10:00Z",
            "2026-05-08T10:00+05:00",
            datetime(2026, 5, 7, 10, tzinfo=UTC),
            datetime(2026, 5, 8, 5, tzinfo=UTC),
        ),
    ],
)
def test_a_period_is_read_in_the_persons_zone(after: str, before: str, start: datetime | None, end: datetime | None) -> None:
    assert period(after, before, BERLIN) == (start, end)


@pytest.mark.parametrize(
    ("after", "before", "remedy"),
    [
        ("yesterday", "", "`after` must be a date like 2023-05-07"),
        ("", "2026-13-01", "`before` must be a date"),
        ("2026-05-08", "2026-05-07", "`after` must be earlier than `before`"),
    ],
)
def test_a_wrong_period_says_what_to_write(after: str, before: str, remedy: str) -> None:
    with pytest.raises(ValueError, match=re.escape(remedy)):
        period(after, before, BERLIN)
