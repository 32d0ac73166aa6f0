"""Sensitive things are stored after the person's own yes alone; secrets and others' words never as the person's facts."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace
from datetime import timedelta

import pytest

from adapters.base import Quote
from bot.config.keeping import KINDS
from bot.keeping.consent import question
from bot.keeping.decision import KeepingRules
from bot.keeping.keeper import Keeper
from memory.db import Database
from memory.forgetting import TAKEN_BACK
from tests.bot.commands.test_forgetting import everywhere
from tests.bot.dialogue import SETTINGS, Dialogue, dialogue, results, seen
from tests.conftest import Urls
from tests.servers.model import call, reply

ASKING = replace(SETTINGS, rules=KeepingRules(KINDS))
FACT = "Has type 1 diabetes."
STORE = reply(None, call("working_context_append", section="profile", content=FACT))
TALK = reply("That is a lot to live with.")
QUESTION = question("memory", [FACT], "")


@asynccontextmanager
async def asked(
    db: Database, *more: object, store: object = STORE, question: str = QUESTION
) -> AsyncIterator[tuple[Dialogue, int]]:
    """A person who has spoken of their diabetes and was asked; gives the request's number."""
    async with dialogue(db, store, TALK, *more, settings=ASKING) as d:
        assert await d.hear("I have type 1 diabetes") == ["That is a lot to live with.", question]
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


NO_YES = [
    "What is the weather like?",
    "yes and no, I am not sure about it",
    "Tell me about insulin",
    "ok, but please don't store it",
    "sure, sure. But do not save that!",
    "ja, aber merk dir das nicht",
    "yes? what was the question?",
    "fine, I have to go now",
    "why not, but only if it's private",
    "Yes, please remember that I like tea",
]


@pytest.mark.parametrize("said", NO_YES)
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
        assert await d.hear(f"Yes. {FACT}") == ["I see.", QUESTION]
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


async def test_asking_twice_makes_one_request(db: Database, urls: Urls) -> None:
    async with asked(db, STORE, TALK) as (d, request):
        assert (await d.hear("As I said, type 1 diabetes"))[-1] == QUESTION
        assert await d.rows("SELECT id FROM memory_requests") == [{"id": request}]
        # Both times are taken back.
        d.model.add(answer(False, request))
        await d.hear("no")
        assert await everywhere(urls.owner, "diabetes") == []


async def test_archival_storage_asks_too(db: Database) -> None:
    store = reply(None, call("archival_storage_insert", content=FACT, tags=["body"]))
    async with asked(db, store=store, question=question("memory", [f"{FACT} (body)"], "")) as (d, request):
        d.model.add(answer(True, request))
        await d.hear("ja")
        assert await d.rows("SELECT content, tags FROM passages") == [{"content": FACT, "tags": ["body"]}]


async def test_a_correction_that_brings_in_something_sensitive_asks_and_replaces(db: Database) -> None:
    async with dialogue(
        db, reply("ok", call("working_context_append", section="profile", content="Feels tired.")), settings=ASKING
    ) as d:
        await d.hear("I am tired")
        d.model.add(reply(None, call("working_context_replace", old="tired", new=FACT)), TALK)
        await d.hear("It is the diabetes")
        [request] = await d.rows("SELECT id FROM memory_requests")
        d.model.add(answer(True, int(str(request["id"]))))
        await d.hear("yes")
        assert await d.entries() == [("profile", FACT)]


async def test_the_filter_model_is_asked_where_the_operator_wants_it(db: Database) -> None:
    store = reply(None, call("working_context_append", section="profile", content="Hears badly on the left."))
    async with dialogue(db, store, reply('[{"worth": true, "sensitive": "health"}]'), TALK, settings=ASKING) as d:
        d.keeper = Keeper(d.processor, len)
        await d.hear("My left ear is bad")
        assert "never instructions" in seen(d.model.requests[1])
        assert await d.entries() == []
        assert [row["purpose"] for row in await d.rows("SELECT purpose FROM usage ORDER BY id")] == ["chat", "filter", "chat"]


async def test_without_the_filter_model_words_decide(db: Database) -> None:
    from tests.servers.model import Status

    async with dialogue(db, STORE, Status(503, "away"), TALK, settings=ASKING) as d:
        d.keeper = Keeper(d.processor, len)
        await d.hear("I have type 1 diabetes")
        assert await d.entries() == []


@pytest.mark.parametrize("function", ["working_context_append", "archival_storage_insert", "set_timer"])
async def test_secrets_are_never_stored(db: Database, urls: Urls, function: str) -> None:
    text = "The card is 4111 1111 1111 1111."
    arguments = {
        "working_context_append": {"section": "key_facts", "content": text},
        "archival_storage_insert": {"content": text},
        "set_timer": {"purpose": text, "in_minutes": 5},
    }[function]
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


@pytest.mark.parametrize(
    "later", ["Do you like pizza?", "Which type of music do you like?", "Ada, is that all?", "May I remember your diabetes?"]
)
async def test_a_later_question_takes_the_place_of_an_open_one(db: Database, later: str) -> None:
    async with asked(db, reply(later)) as (d, request):
        await d.hear("What shall I eat?")
        d.model.add(answer(True, request), reply("Noted."))
        await d.hear("yes")
        assert "something else was said since" in results(d.model.requests[-1])[-1]
        assert await d.entries() == []
        # Asked again by the bot itself, the yes is one.
        d.model.add(STORE, TALK)
        assert (await d.hear("Do keep it in mind, about the diabetes"))[-1] == QUESTION
        d.model.add(answer(True, request))
        await d.hear("yes")
        assert await d.entries() == [("profile", FACT)]


async def test_what_the_model_asks_in_the_same_turn_is_not_what_is_answered(db: Database) -> None:
    async with dialogue(db, STORE, reply("Would you like to hear a joke?"), settings=ASKING) as d:
        # The last thing said is the bot's own question, which says what it is about.
        assert await d.hear("I have type 1 diabetes") == ["Would you like to hear a joke?", QUESTION]


async def test_a_yes_that_was_under_way_before_the_question_is_none_to_it(db: Database) -> None:
    async with dialogue(db, settings=ASKING) as d:

        async def meanwhile(_: object) -> object:
            await d.accept("yes")
            d.clock[0] += timedelta(minutes=1)
            return TALK

        d.model.add(STORE, meanwhile)
        assert (await d.hear("I have type 1 diabetes"))[-1] == QUESTION
        [request] = await d.rows("SELECT id FROM memory_requests")
        [agent] = await d.rows("SELECT id FROM agents")
        d.model.add(answer(True, int(str(request["id"]))), reply("I see."))
        await d.agent.turn(await d.claim(int(str(agent["id"]))))
        assert "has not plainly said" in results(d.model.requests[-1])[-1]
        assert await d.entries() == []


async def test_a_burst_is_answered_and_answers_as_a_whole(db: Database, urls: Urls) -> None:
    async with dialogue(db, STORE, TALK, settings=ASKING) as d:
        await d.accept("I have type 1 diabetes")
        assert (await d.hear("but never mind, how are you?"))[-1] == QUESTION
        [request] = await d.rows("SELECT id FROM memory_requests")
        d.model.add(answer(True, int(str(request["id"]))), reply("I see."))
        await d.accept("but please do not keep it")
        await d.hear("ok")
        assert "has not plainly said" in results(d.model.requests[-1])[-1]
        d.model.add(STORE, TALK)
        await d.hear("So?")
        d.model.add(answer(False, int(str(request["id"]))))
        await d.accept("no")
        await d.hear("please")
        assert await d.entries() == []
        assert await everywhere(urls.owner, "diabetes") == []
        assert await everywhere(urls.owner, "never mind") == []


async def test_nobody_is_asked_who_is_not_there(db: Database) -> None:
    async with dialogue(db, STORE, reply(None, call("stay_silent")), settings=ASKING) as d:
        assert await d.elsewhere("lobby", "public").hear("I have type 1 diabetes", addressed=False) == []
        assert "not talking to you now" in results(d.model.requests[-1])[-1]
        assert await d.rows("SELECT id FROM memory_requests") == []


async def test_two_things_of_one_turn_are_asked_for_together(db: Database) -> None:
    faith = "Goes to the mosque every Friday."
    both = reply(
        None,
        call("working_context_append", section="profile", content=FACT),
        call("working_context_append", section="profile", content=faith),
    )
    async with dialogue(db, both, TALK, settings=ASKING) as d:
        assert (await d.hear("I have type 1 diabetes and go to the mosque on Fridays"))[-1] == question(
            "memory", [FACT, faith], ""
        )
        numbers = [int(str(row["id"])) for row in await d.rows("SELECT id FROM memory_requests ORDER BY id")]
        d.model.add(reply("Kept.", *(call("answer_memory_request", request=number, agreed=True) for number in numbers)))
        await d.hear("yes")
        assert await d.entries() == [("profile", FACT), ("profile", faith)]


async def test_one_yes_is_for_the_last_of_two_questions(db: Database) -> None:
    faith = "Goes to the mosque every Friday."
    more = (reply(None, call("working_context_append", section="profile", content=faith)), TALK)
    async with asked(db, *more) as (d, request):
        assert (await d.hear("I go to the mosque every Friday"))[-1] == question("memory", [faith], "")
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
        await d.hear(f"> {QUESTION}\nyes, please do")
        assert await d.entries() == [("profile", FACT)]


async def test_tags_purposes_and_reasons_are_looked_at_like_the_text(db: Database, urls: Urls) -> None:
    calls = (
        call("archival_storage_insert", content="Sees Dr Weiss on Mondays.", tags=["epilepsy"]),
        call("archival_storage_insert", content="The door of the house.", tags=["pin 4711", "pin: 4711"]),
        call("set_timer", purpose="Take the pills for your epilepsy", in_minutes=10),
        call(
            "set_timer",
            purpose="Take the tablets",
            asked="Remind me of my tablets in ten minutes",
            in_minutes=10,
            reason="They have epilepsy.",
        ),
    )
    async with dialogue(db, reply(None, *calls), TALK, settings=ASKING) as d:
        said = await d.hear("I see Dr Weiss on Mondays, the door of the house is new. Remind me of my tablets in ten minutes.")
        tagged, secret, told, neutral = results(d.model.requests[-1])[-4:]
        assert "needs the person's yes" in tagged
        assert said[-1] == question("memory", ["Sees Dr Weiss on Mondays. (epilepsy)"], ""), "they see what they say yes to"
        assert "holds a secret" in secret
        assert "not stored without the person's yes" in told
        assert "is set for" in neutral
        assert await d.rows("SELECT id FROM passages") == []
        assert [row["purpose"] for row in await d.rows("SELECT purpose FROM timers")] == ["Take the tablets"]
        assert await d.rows("SELECT reason FROM memory_log_content") == [{"reason": ""}]
