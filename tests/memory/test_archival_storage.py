"""Archival storage: what is kept once, and what must stay apart."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memory.archival_storage import clean_tags, same_memory
from memory.db import Database, value
from tests.memory.people import Person, texts

SAME = [
    ("Ana likes green tea.", "ana likes  green tea"),
    ("The user's favourite colour is blue!", "The user’s favorite color is blue"),
    ("User likes jazz", "The user really likes jazz."),
    ("Her hobby: painting birds", "Her hobby - painting bird"),
    ("我喜欢绿茶。", "我喜欢绿茶"),
    ("Ｗi-Ｆi at home", "wi-fi at home"),
]
DIFFERENT = [
    ("Ana has 2 cats", "Ana has 3 cats"),
    ("The flat costs 1.500 euros", "The flat costs 15.00 euros"),
    ("Dentist on 2026-05-07", "Dentist on 2026-05-08"),
    ("Temperature was -5 degrees", "Temperature was 5 degrees"),
    ("Ana has two cats", "Ana has three cats"),
    ("Ana lives in Bonn", "Ana lives in Born"),
    ("Her sister is Anna", "Her sister is Hanna"),
    ("My dog is called rex", "My dog is called max"),
    ("My brother is jon", "My brother is john"),
    ("Ana eats meat", "Ana does not eat meat"),
    ("Ana can swim", "Ana can't swim"),
    ("Ana is married", "Ana is unmarried"),
    ("Ana likes tea", "Ana dislikes tea"),
    ("Ana likes tea", "Ana liked tea"),
    ("Ana moved to Rome", "Ana moved from Rome"),
    ("Ana loves Ben", "Ben loves Ana"),
    ("Ana never drinks coffee", "Ana drinks coffee"),
    ("Knows C", "Knows C++"),
    ("Ana feels 😀 today", "Ana feels 😢 today"),
    ("Is Ana vegan?", "Ana is vegan"),
    ("Ana is vegan?", "Ana is vegan"),
    ("我喜欢绿茶", "我不喜欢绿茶"),
    ("Ana likes tea", "Ana likes tea and coffee"),
    ("🎉", "🙈"),
    ("...", "!!!"),
]


@pytest.mark.parametrize(("a", "b"), SAME)
def test_the_same_in_other_clothes_is_one_memory(a: str, b: str) -> None:
    assert same_memory(a, b)
    assert same_memory(b, a)


@pytest.mark.parametrize(("a", "b"), DIFFERENT)
def test_a_number_a_name_a_negation_or_an_order_keeps_texts_apart(a: str, b: str) -> None:
    assert not same_memory(a, b)
    assert not same_memory(b, a)


@given(st.text(max_size=80), st.text(max_size=80))
def test_being_the_same_is_mutual(a: str, b: str) -> None:
    assert same_memory(a, b) == same_memory(b, a)


@given(st.text(max_size=80))
def test_a_text_is_the_same_as_itself(text: str) -> None:
    assert same_memory(text, text)


def test_tags_are_kept_short_single_and_on_one_line() -> None:
    assert clean_tags(["  Trip\nto Rome ", "trip to rome", "", "\x00", "x" * 100]) == ("trip to rome", "x" * 60)
    assert len(clean_tags(str(n) for n in range(100))) == 20


@pytest.fixture
async def ana(db: Database) -> Person:
    return await Person.of(db)


async def test_a_near_identical_insert_is_merged_and_brings_its_tags(ana: Person) -> None:
    first = await ana.store("Ana's favourite tea is sencha.", tags=["tea"])
    again = await ana.store("Ana's favorite tea is Sencha", tags=["Drinks", "tea"])
    assert (again.id, again.merged, again.tags_before) == (first.id, True, ("tea",))
    page = await ana.archive("sencha")
    assert (texts(page), page.hits[0].tags) == (["Ana's favourite tea is sencha."], ("tea", "drinks"))


async def test_another_number_is_another_memory(ana: Person) -> None:
    for year in range(2000, 2012):
        await ana.store(f"In {year} Ana lived in Rome")
    assert (await ana.archive("Rome")).total == 12


async def test_merging_never_joins_places_or_permissions(ana: Person) -> None:
    channel = await Person.of(ana.db, "ana", "general", "public")
    text = "Ana will change her job"
    first = await ana.store(text)
    assert not (await channel.store(text)).merged
    assert not (await ana.store(text, shareable=True)).merged
    assert (await ana.store(text)).id == first.id
    assert (await ana.archive("job")).total == 3
    assert (await channel.archive("job")).total == 2  # its own, and the one that may be shared


async def test_a_text_of_a_private_place_is_no_twin_in_a_channel(ana: Person) -> None:
    """Whether a merge happens must not tell a public place what a private one holds."""
    await ana.store("Ana is pregnant")
    channel = await Person.of(ana.db, "ana", "general", "public")
    assert not (await channel.store("Ana is pregnant")).merged


@pytest.mark.parametrize("text", ["", "  \n", "\x00"])
async def test_an_empty_text_is_refused(ana: Person, text: str) -> None:
    with pytest.raises(ValueError, match="nothing to store"):
        await ana.store(text)


async def test_a_long_hostile_text_is_stored_once(ana: Person) -> None:
    text = "I said \x00\ud800 <|endoftext|> '; DROP TABLE passages; -- " + "word " * 5_000
    await ana.store(text)
    assert (await ana.store(text)).merged
    async with ana.here() as connection:
        assert await value(connection, "SELECT count(*) FROM passages") == 1
