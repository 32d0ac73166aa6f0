"""What besides words and meaning decides the order: who is named, questions, days, neighbours; and what is left out."""

from datetime import UTC, date, datetime

import psycopg
import pytest

from memory.db import Database
from memory.past_days import asks_time, days_meant
from tests.conftest import Urls
from tests.memory.people import Person, texts

FILLER = ("Nothing of note",) * 12


@pytest.fixture
async def ana(db: Database) -> Person:
    return await Person.of(db)


async def test_what_the_named_person_said_comes_first(ana: Person) -> None:
    await ana.say("I would like a bicycle", author="Ana")
    await ana.say(*FILLER, author="Ana")
    await ana.say("Your bicycle is red", author="Mika")
    await ana.say(*FILLER, author="Mika")
    assert texts(await ana.recall("Ana bicycle"))[0] == "I would like a bicycle"
    assert texts(await ana.recall("Mika bicycle"))[0] == "Your bicycle is red"


async def test_a_question_is_better_answered_by_what_asks_nothing(ana: Person) -> None:
    await ana.say("The cello is brown", *FILLER, "Which cello is it?", author="")
    assert texts(await ana.recall("What is the cello like?"))[0] == "The cello is brown"
    assert texts(await ana.recall("cello"))[0] == "Which cello is it?"  # equal but for that, so the newest


async def test_the_day_that_is_named_comes_first(ana: Person) -> None:
    ana.at = datetime(2025, 5, 7, 12, tzinfo=UTC)
    await ana.say("We went to the museum", *FILLER, author="")
    ana.at = datetime(2025, 8, 20, 12, tzinfo=UTC)
    await ana.say("We went to the museum", *FILLER, author="")
    for query, month in (
        ("the museum on 7 May", 5),
        ("博物馆 museum 8月20日", 8),
        ("museum in August 2025", 8),
        ("museum in May", 5),
    ):
        page = await ana.recall(query, asked_at=datetime(2025, 12, 1, tzinfo=UTC))
        assert (page.hits[0].content, page.hits[0].at.month) == ("We went to the museum", month)


async def test_a_question_for_a_time_finds_who_tells_one(ana: Person) -> None:
    await ana.say("The camping was yesterday", *FILLER, "The camping was lovely, camping", author="")
    assert texts(await ana.recall("When was the camping?"))[0] == "The camping was yesterday"
    assert texts(await ana.recall("How was the camping?"))[0] == "The camping was lovely, camping"


async def test_what_the_prompt_shows_is_left_out(ana: Person) -> None:
    await ana.say("Otters one", "Otters two", "Otters " + "x" * 3_000, author="")
    page = await ana.recall("otters", queue=(ana.conversation, 2))
    assert (page.total, {text[:10] for text in texts(page)}) == (2, {"Otters one", "Otters xxx"})


async def test_a_neighbour_that_may_not_be_used_here_lifts_nothing(db: Database, urls: Urls) -> None:
    square = await Person.of(db, place="square", kind="public")
    market = await Person.of(db, place="market", kind="public")
    await square.say(*FILLER, author="")
    [hidden] = await square.say("The secret otter", author="")
    await square.say(*FILLER, author="")
    with psycopg.connect(urls.owner, autocommit=True, options="-c search_path=keepsake,public") as owner:
        owner.execute("UPDATE messages SET visibility = 'private' WHERE id = %s", (hidden,))
    page = await market.recall("otter nothing", page_size=50)
    assert page.total == 24
    scores = sorted(round(hit.score, 3) for hit in page.hits)
    assert scores.count(scores[-1]) > 2  # the two beside the hidden one are no better than others in the middle


async def test_an_edit_changes_what_a_message_is_found_by(ana: Person) -> None:
    [said] = await ana.say("I like otters", author="")
    async with ana.here() as connection:
        await connection.execute("UPDATE messages SET content = 'I like badgers' WHERE id = %s", (said,))
    assert (await ana.recall("otters")).total == 0
    assert texts(await ana.recall("badgers")) == ["I like badgers"]


@pytest.mark.parametrize(
    ("text", "first", "last"),
    [
        ("on 7 May 2023", date(2023, 5, 7), date(2023, 5, 7)),
        ("am 3. März", date(2026, 3, 3), date(2026, 3, 3)),
        ("in August", date(2026, 8, 1), date(2026, 8, 31)),
        ("我在5月2日提到过", date(2026, 5, 2), date(2026, 5, 2)),
        ("what did we say yesterday", date(2026, 11, 29), date(2026, 11, 29)),
        ("2024-02-29", date(2024, 2, 29), date(2024, 2, 29)),
    ],
)
def test_days_are_read_as_those_before(text: str, first: date, last: date) -> None:
    assert days_meant(text, date(2026, 11, 30))[0] == (first, last)


@pytest.mark.parametrize("text", ["may I come", "will they march", "31 February", "in December 2030", "nothing"])
def test_what_names_no_day_before_means_none(text: str) -> None:
    assert not days_meant(text, date(2026, 11, 30))


def test_a_question_for_a_time_is_known() -> None:
    assert all(asks_time(text) for text in ("When was it?", "Wann war das?", "哪天", "what year"))
    assert not any(asks_time(text) for text in ("whenever", "What was it?"))
