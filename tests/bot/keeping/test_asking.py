"""Sensitive things are stored after the person's own yes alone; secrets and others' words never as the person's facts."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace
from datetime import timedelta

import pytest

from adapters.base import Quote
from bot.keeping.decision import KINDS, Rules
from bot.keeping.keeper import Keeper
from memory.db import Database
from memory.redaction import TAKEN_BACK
from tests.bot.commands.test_forgetting import everywhere
from tests.bot.dialogue import SETTINGS, Dialogue, dialogue, results, seen
from tests.conftest import Urls
from tests.servers.model import call, reply

ASKING = replace(SETTINGS, rules=Rules(KINDS))
FACT = "Has type 1 diabetes."
STORE = reply(None, call("working_context_append", section="profile", content=FACT))
QUESTION = reply("May I remember that you have diabetes?")


@asynccontextmanager
async def asked(db: Database, *more: object, store: object = STORE) -> AsyncIterator[tuple[Dialogue, int]]:
    """A person who has spoken of their diabetes and was asked; gives the request's number."""
    async with dialogue(db, store, QUESTION, *more, settings=ASKING) as d:
        assert await d.hear("I have type 1 diabetes") == ["May I remember that you have diabetes?"]
        assert "needs the person's yes" in results(d.model.requests[1])[-1]
        [request] = await d.rows("SELECT id FROM memory_requests")
        assert await d.entries() == []
        yield d, int(str(request["id"]))


def answer(agreed: bool, request: int) -> object:
    return reply("Done.", call("answer_memory_request", request=request, agreed=agreed))


async def test_a_yes_stores_what_was_asked(db: Database) -> None:
    async with asked(db) as (d, request):
        d.model.add(answer(True, request))
        assert await d.hear("Yes, please do.") == ["Done."]
        assert await d.entries() == [("profile", FACT)]
        assert await d.rows("SELECT id FROM memory_requests") == []
        [logged] = await d.rows("SELECT action, actor FROM memory_log")
        assert logged == {"action": "working_context_append", "actor": "agent"}


async def test_a_no_takes_the_words_back(db: Database, urls: Urls) -> None:
    async with asked(db) as (d, request):
        d.model.add(answer(False, request), reply("Hello again."))
        assert await d.hear("no") == ["Done."]
        assert await d.entries() == []
        assert await everywhere(urls.owner, "diabetes") == []
        await d.hear("What did I tell you?")
        assert "diabetes" not in seen(d.model.requests[-1])
        assert TAKEN_BACK in seen(d.model.requests[-1])


@pytest.mark.parametrize("said", ["What is the weather like?", "yes and no, I am not sure about it", "Tell me about insulin"])
async def test_the_model_cannot_say_yes_for_the_person(db: Database, said: str) -> None:
    async with asked(db) as (d, request):
        d.model.add(answer(True, request), reply("I see."))
        await d.hear(said)
        assert "has not plainly said" in results(d.model.requests[-1])[-1]
        assert await d.entries() == []


async def test_a_no_is_no_yes(db: Database) -> None:
    async with asked(db) as (d, request):
        d.model.add(answer(True, request), reply("I see."))
        await d.hear("No.")
        assert "said the opposite" in results(d.model.requests[-1])[-1]
        assert await d.entries() == []


async def test_a_yes_to_something_else_before_the_question_does_not_count(db: Database) -> None:
    """The model asks and answers in the same turn, whose message begins with yes."""
    async with dialogue(db, STORE, settings=ASKING) as d:
        d.model.add(lambda request: answer(True, int(results(request)[-1].rpartition(" ")[2].rstrip("."))), reply("I see."))
        await d.hear("Yes")
        assert "has not plainly said" in results(d.model.requests[-1])[-1]
        assert await d.entries() == []


async def test_a_yes_after_its_time_is_none(db: Database) -> None:
    async with asked(db) as (d, request):
        d.clock[0] += timedelta(days=2)
        d.model.add(answer(True, request), reply("I see."))
        await d.hear("Yes")
        assert "no such request any more" in results(d.model.requests[-1])[-1]
        assert await d.entries() == []


async def test_another_persons_yes_and_number_do_nothing(db: Database) -> None:
    from adapters.base import Person

    async with asked(db) as (d, request):
        bob = d.elsewhere("bob", "direct", workspace="", person=Person("console", "", "bob", "Bob"))
        d.model.add(answer(True, request), reply("I see."))
        await bob.hear("Yes")
        assert "no such request" in results(d.model.requests[-1])[-1]
        assert await d.rows("SELECT id FROM memory_requests") == [{"id": request}]


async def test_asking_twice_makes_one_request(db: Database) -> None:
    async with asked(db, STORE, QUESTION) as (d, request):
        await d.hear("As I said, type 1 diabetes")
        assert await d.rows("SELECT id FROM memory_requests") == [{"id": request}]


async def test_archival_storage_asks_too(db: Database) -> None:
    store = reply(None, call("archival_storage_insert", content=FACT, tags=["body"]))
    async with asked(db, store=store) as (d, request):
        d.model.add(answer(True, request))
        await d.hear("ja")
        assert await d.rows("SELECT content, tags FROM passages") == [{"content": FACT, "tags": ["body"]}]


async def test_a_correction_that_brings_in_something_sensitive_asks_and_replaces(db: Database) -> None:
    async with dialogue(
        db, reply("ok", call("working_context_append", section="profile", content="Feels tired.")), settings=ASKING
    ) as d:
        await d.hear("I am tired")
        d.model.add(reply(None, call("working_context_replace", old="tired", new=FACT)), QUESTION)
        await d.hear("It is the diabetes")
        [request] = await d.rows("SELECT id FROM memory_requests")
        d.model.add(answer(True, int(str(request["id"]))))
        await d.hear("yes")
        assert await d.entries() == [("profile", FACT)]


async def test_the_filter_model_is_asked_where_the_operator_wants_it(db: Database) -> None:
    store = reply(None, call("working_context_append", section="profile", content="Hears badly on the left."))
    async with dialogue(db, store, reply('[{"worth": true, "sensitive": "health"}]'), QUESTION, settings=ASKING) as d:
        d.keeper = Keeper(d.processor, len)
        await d.hear("My left ear is bad")
        assert "never instructions" in seen(d.model.requests[1])
        assert await d.entries() == []
        assert [row["purpose"] for row in await d.rows("SELECT purpose FROM usage ORDER BY id")] == ["chat", "filter", "chat"]


async def test_without_the_filter_model_words_decide(db: Database) -> None:
    from tests.servers.model import Status

    async with dialogue(db, STORE, Status(503, "away"), QUESTION, settings=ASKING) as d:
        d.keeper = Keeper(d.processor, len)
        await d.hear("I have type 1 diabetes")
        assert await d.entries() == []


@pytest.mark.parametrize("function", ["working_context_append", "archival_storage_insert", "set_timer"])
async def test_secrets_are_never_stored(db: Database, urls: Urls, function: str) -> None:
    text = "The card is 4111 1111 1111 1111."
    arguments = {"working_context_append": {"section": "key_facts", "content": text}, "archival_storage_insert": {"content": text},
                 "set_timer": {"purpose": text, "in_minutes": 5}}[function]  # fmt: skip
    async with dialogue(db, reply(None, call(function, **arguments)), reply("ok")) as d:
        await d.hear("Remember my card")
        assert "card number" in results(d.model.requests[-1])[-1]
        assert set(await everywhere(urls.owner, "4111 1111")) == {"messages"}, (
            "in the call as the model made it, and nowhere else"
        )


async def test_what_others_said_is_stored_by_their_name_or_not_at_all(db: Database) -> None:
    quote = Quote("console::bob", "Bob", "I broke my leg skiing in Davos last winter", "context")
    as_fact = call("working_context_append", section="key_facts", content="Broke a leg skiing in Davos last winter.")
    named = call("archival_storage_insert", content="Bob broke his leg skiing in Davos last winter.")
    async with dialogue(db, reply(None, as_fact), reply(None, named), reply("Poor Bob.")) as d:
        room = d.elsewhere("lobby", "public")
        assert await room.hear("What happened to Bob?", quotes=(quote,)) == ["Poor Bob."]
        assert "Bob said this, not the person" in results(d.model.requests[1])[-1]
        assert await d.entries() == []
        assert await d.rows("SELECT author_id FROM passages") == [{"author_id": "console::bob"}]


async def test_a_yes_to_another_question_is_no_yes_to_an_earlier_request(db: Database) -> None:
    async with asked(db, reply("Do you like pizza?")) as (d, request):
        await d.hear("What shall I eat?")
        d.model.add(answer(True, request), reply("Noted, pizza. And may I remember your diabetes?"))
        await d.hear("yes")
        assert "may be to something else" in results(d.model.requests[-1])[-1]
        assert await d.entries() == []
        # Asked again, the yes is one.
        d.model.add(answer(True, request))
        await d.hear("yes")
        assert await d.entries() == [("profile", FACT)]


async def test_one_yes_is_for_the_last_of_two_questions(db: Database) -> None:
    faith = "Goes to the mosque every Friday."
    more = (
        reply(None, call("working_context_append", section="profile", content=faith)),
        reply("And the mosque on Fridays, may I?"),
    )
    async with asked(db, *more) as (d, request):
        await d.hear("I go to the mosque every Friday")
        both = (
            call("answer_memory_request", request=request + 1, agreed=True),
            call("answer_memory_request", request=request, agreed=True),
        )
        d.model.add(reply(None, *both), reply("Kept the one."))
        await d.hear("yes")
        assert await d.entries() == [("profile", faith)]


@pytest.mark.parametrize("said", ["> yes", "> yes\nwho said that?"])
async def test_a_quoted_yes_is_somebody_elses(db: Database, said: str) -> None:
    async with asked(db) as (d, request):
        d.model.add(answer(True, request), reply("I see."))
        await d.hear(said)
        assert "has not plainly said" in results(d.model.requests[-1])[-1]
        assert await d.entries() == []


async def test_a_yes_beneath_the_quoted_question_is_one(db: Database) -> None:
    async with asked(db) as (d, request):
        d.model.add(answer(True, request))
        await d.hear("> May I remember that you have diabetes?\nyes, please do")
        assert await d.entries() == [("profile", FACT)]
