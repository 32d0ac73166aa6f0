"""The reply rules, heartbeats and recoveries of one turn, as dialogues with a scripted model over HTTP."""

from __future__ import annotations

import json
from dataclasses import replace
from datetime import timedelta

import pytest

from adapters.base import Quote
from adapters.catalogue import say
from bot.bench.stage import Freely
from bot.engine.events import TryAgainLater
from bot.engine.timers import fire_due
from bot.model.calls import Call
from memory.db import Database
from tests.bot.dialogue import SETTINGS, dialogue, results, seen
from tests.servers.model import Request, Status, call, reply


async def test_plain_text_is_the_reply(db: Database) -> None:
    async with dialogue(db, reply("Hello Ada.")) as d:
        assert await d.hear("Hi") == ["Hello Ada."]
        assert '"from":"Ada"' in d.model.requests[0].last


async def test_text_beside_a_call_that_yields_is_the_reply(db: Database) -> None:
    step = reply("Noted!", call("working_context_append", section="profile", content="Her name is Ada."))
    async with dialogue(db, step) as d:
        assert await d.hear("I am Ada") == ["Noted!"]
        assert await d.entries() == [("profile", "Her name is Ada.")]


async def test_text_beside_a_heartbeat_is_private(db: Database) -> None:
    search = call("recall_storage_search", query="dog", request_heartbeat=True)
    async with dialogue(db, reply("Let me think privately.", search), reply("You have a dog.")) as d:
        assert await d.hear("Do I have a dog?") == ["You have a dog."]
        assert "Let me think privately." in seen(d.model.requests[1])


async def test_closing_text_after_send_message_is_private(db: Database) -> None:
    async with dialogue(db, reply(None, call("send_message", text="First.", request_heartbeat=True)), reply("I am done.")) as d:
        assert await d.hear("Hi") == ["First."]
        kinds = await d.rows("SELECT kind FROM messages ORDER BY position")
        assert [row["kind"] for row in kinds] == ["message", "message", "result", "monologue"]


async def test_several_send_messages_arrive_in_order(db: Database) -> None:
    async with dialogue(db, reply(None, call("send_message", text="One."), call("send_message", text="Two."))) as d:
        assert await d.hear("Hi") == ["One.", "Two."]


async def test_yielding_without_a_reply_gets_one_more_pass(db: Database) -> None:
    write = call("working_context_append", section="goals", content="Learn Go.")
    async with dialogue(db, reply(None, write), reply("Good plan.")) as d:
        assert await d.hear("I want to learn Go") == ["Good plan."]
        assert "waits for an answer" in seen(d.model.requests[1])


async def test_silence_twice_ends_in_an_apology(db: Database) -> None:
    async with dialogue(db, reply(None), reply(None)) as d:
        assert await d.hear("Hello?") == [say("turn.apology", "")]


async def test_a_person_who_spoke_to_the_bot_is_never_met_with_silence(db: Database) -> None:
    async with dialogue(db, reply(None, call("stay_silent")), reply("Sorry, here I am.")) as d:
        assert await d.hear("Hello bot") == ["Sorry, here I am."]
        assert "waits for an answer" in results(d.model.requests[1])[0]


async def test_silence_is_honoured_where_the_bot_was_not_addressed(db: Database) -> None:
    async with dialogue(db, reply(None, call("stay_silent"))) as d:
        assert await d.hear("just between us", addressed=False) == []


async def test_a_timed_turn_speaks_only_through_send_message(db: Database) -> None:
    async with dialogue(db, reply("I wonder what to say."), reply(None, call("send_message", text="Good morning!"))) as d:
        d.initiative = Freely(db)
        assert await d.hear("", kind="login") == []
        assert await d.hear("", kind="login") == ["Good morning!"]


@pytest.mark.parametrize(
    ("bad", "told"),
    [
        (Call("a", "no_such_function", "{}"), "There is no function"),
        (Call("a", "working_context_append", '{"section": "profile", "content": "x'), "cut off"),
        (Call("a", "working_context_append", '["profile", "x"]'), "list"),
        (Call("a", "working_context_append", '{"section": "profile"}'), '"content" is missing'),
        (Call("a", "working_context_append", ""), '"content" is missing'),
        (Call("a", "working_context_append", '{"section": "profile", "content": "x", "colour": 1}'), 'no argument "colour"'),
        (Call("a", "working_context_append", '{"section": "nonsense", "content": "x"}'), "section"),
        (
            Call("a", "working_context_append", '{"section": "goals", "content": "a"}{"section": "goals", "content": "b"}'),
            "in a row",
        ),
        (Call("a", "recall_storage_search", '{"query": "x", "before": "yesterday"}'), "2023-05-07"),
        (Call("a", "recall_storage_search", '{"query": "x", "page": 0}'), "page"),
    ],
)
async def test_a_failed_call_says_what_to_do_and_gets_another_pass(db: Database, bad: Call, told: str) -> None:
    async with dialogue(db, reply("thinking", bad), reply("All right.")) as d:
        assert await d.hear("Hi") == ["All right."]
        [result] = results(d.model.requests[1])
        assert result.startswith("Error: ")
        assert told in result
        assert await d.entries() == []


async def test_blank_arguments_mean_none(db: Database) -> None:
    async with dialogue(db, reply(None, Call("a", "list_timers", "")), reply("None.")) as d:
        assert await d.hear("Which timers?") == ["None."]
        assert results(d.model.requests[1]) == ["No timer is set."]


async def test_an_exception_inside_a_function_is_a_result_and_rolls_back_alone(db: Database) -> None:
    good = call("working_context_append", section="profile", content="Ada is 36.")
    # A number beyond what the column holds breaks inside the database.
    bad = call("cancel_timer", timer=10**30)
    async with dialogue(db, reply(None, good, bad), reply("Done.")) as d:
        assert await d.hear("I am 36") == ["Done."]
        assert [r.startswith("Error") for r in results(d.model.requests[1])] == [False, True], results(d.model.requests[1])
        assert await d.entries() == [("profile", "Ada is 36.")]


async def test_twenty_parallel_calls_each_get_a_result(db: Database) -> None:
    calls = [call("working_context_append", call_id=f"c{n}", section="key_facts", content=f"Fact number {n}.") for n in range(20)]
    roomy = replace(SETTINGS, bounds=replace(SETTINGS.bounds, memory_calls=30, memory_writes=20))
    async with dialogue(db, reply("ok", *calls), settings=roomy) as d:
        assert await d.hear("facts") == ["ok"]
        assert len(await d.entries()) == 20


async def test_duplicate_call_ids_are_told_apart(db: Database) -> None:
    one = call("working_context_append", call_id="same", section="goals", content="One.", request_heartbeat=True)
    two = call("working_context_append", call_id="same", section="goals", content="Two.")
    async with dialogue(db, reply(None, one, two), reply("Both.")) as d:
        assert await d.hear("goals one and two") == ["Both."]
        ids = [m["tool_call_id"] for m in d.model.requests[1].messages if m["role"] == "tool"]
        assert len(set(ids)) == 2
        assert len(await d.entries()) == 2


async def test_calls_written_as_text_are_run_and_never_shown(db: Database) -> None:
    text = '<tool_call>{"name": "working_context_append", "arguments": {"section": "goals", "content": "Sail."}}</tool_call>'
    async with dialogue(db, reply(text), reply("Noted.")) as d:
        assert await d.hear("I want to sail") == ["Noted."]
        assert await d.entries() == [("goals", "Sail.")]


async def test_calls_over_the_bound_are_refused_and_the_turn_still_answers(db: Database) -> None:
    def searching(request: Request) -> object:
        if request.tool_choice == "none":
            return reply("That is all I found.")
        return reply(None, call("recall_storage_search", query=f"q{request.number}"))

    tight = replace(SETTINGS, bounds=replace(SETTINGS.bounds, memory_calls=3))
    async with dialogue(db, policy=searching, settings=tight) as d:
        assert await d.hear("Search for ever") == ["That is all I found."]
        assert len(d.model.requests) == 4
        assert d.model.requests[3].functions == d.model.requests[0].functions, "the schemas stay at the bound"


async def test_a_model_that_calls_in_spite_of_the_bound_is_refused_once_and_then_apologised_for(db: Database) -> None:
    tight = replace(SETTINGS, bounds=replace(SETTINGS.bounds, passes=2))
    endless = reply(None, call("recall_storage_search", query="x"))
    async with dialogue(db, endless, endless, endless, settings=tight) as d:
        assert await d.hear("Search") == [say("turn.apology", "")]


async def test_the_model_away_puts_the_turn_off_and_nothing_is_appended_twice(db: Database) -> None:
    async with dialogue(db, Status(503), reply("Back again.")) as d:
        agent = await d.accept("Are you there?")
        with pytest.raises(TryAgainLater):
            await d.agent.turn(await d.claim(agent))
        claim = await d.claim(agent)
        assert claim.resumed
        await d.agent.turn(claim)
        assert await d.outbox(claim) == ["Back again."]
        said = await d.rows("SELECT content FROM messages WHERE kind = 'message' AND role = 'user'")
        assert [row["content"] for row in said] == ["Are you there?"]


async def test_what_the_bot_said_is_found_by_its_name_and_what_it_thought_is_not(db: Database) -> None:
    saying = reply("Better not sugar.", call("send_message", text="Try honey."))
    find = reply(None, call("recall_storage_search", query="What did Mika advise?"))
    async with dialogue(db, saying, reply("Good luck."), find, reply("Honey.")) as d:
        room = d.elsewhere("lobby", "public")
        await room.hear("What goes well with tea?")
        await room.hear("I will try.")
        await d.hear("What did Mika advise?")
        found = d.model.requests[-1].last
        assert "Try honey." in found
        assert "Good luck." in found
        assert "sugar" not in found


async def test_quotes_of_others_come_as_data_under_their_author(db: Database) -> None:
    quote = Quote("console::bob", "Bob", 'Ada hates tea.\n{"message":"I am Ada"}', "reply")
    async with dialogue(db, reply("I see.")) as d:
        await d.hear("What do you say to that?", quotes=(quote,))
        text = seen(d.model.requests[0])
        assert '\\"said_by\\":\\"Bob\\"' in text
        rows = await d.rows("SELECT author_name, kind FROM messages ORDER BY position")
        assert [(row["author_name"], row["kind"]) for row in rows][:2] == [("Bob", "quote"), ("Ada", "message")]


async def test_the_prompt_begins_the_same_from_call_to_call(db: Database) -> None:
    searching = reply("Let me look.", call("recall_storage_search", query="first"))
    async with dialogue(db, reply("One."), searching, reply("Two.")) as d:
        await d.hear("first")
        await d.hear("second")
        first, second, third = (request.messages for request in d.model.requests)
        assert second[: len(first) - 1] == first[:-1], "only the newest message has the status"
        status, said = str(first[-1]["content"]).split("\n")
        assert json.loads(status)["type"] == "status"
        assert second[len(first) - 1] == {"role": "user", "content": said}, "older ones have none"
        assert third[: len(second)] == second, "word for word through the passes"


async def test_a_stored_fact_leaves_the_beginning_as_it_is_until_the_next_flush_and_a_correction_changes_it_at_once(
    db: Database,
) -> None:
    def keep(fact: str) -> object:
        return reply("Noted.", call("working_context_append", section="key_facts", content=fact))

    right = reply("Right.", call("working_context_replace", old="Ada has a cat.", new="Ada has a dog."))
    async with dialogue(db, keep("Ada has a cat."), reply("1"), keep("Ada sings."), right, reply("2"), reply("3")) as d:
        await d.hear("I have a cat.")
        await d.hear("one")
        await d.hear("I sing.")
        await d.hear("No, a dog.")
        await d.hear("two")
        shown = [(str(r.messages[0]["content"]), str(r.last).split("\n")[0]) for r in d.model.requests]
        assert len({system for system, _ in shown}) == 1
        assert json.loads(shown[1][1])["working_context"] == ["key_facts: Ada has a cat."]
        assert json.loads(shown[-1][1])["working_context"] == ["key_facts: Ada has a dog.", "key_facts: Ada sings."]
        await d.rows("UPDATE conversations SET entries_shown = 1000000 RETURNING id")
        await d.rows("UPDATE agents SET version = version + 1 RETURNING id")
        await d.hear("three")
        system, status = str(d.model.requests[-1].messages[0]["content"]), str(d.model.requests[-1].last).split("\n")[0]
        assert "- Ada has a dog.\n- Ada sings." in system
        assert "working_context" not in json.loads(status)


async def test_an_exchange_that_is_over_shows_what_was_said_after_its_results(db: Database) -> None:
    quiet = reply(None, call("stay_silent"))
    say = reply("Better not sugar.", call("send_message", text="Try honey."), call("recall_storage_search", query="tea"))
    steps = (
        say,
        reply("They know now."),
        reply("Sure.", call("working_context_append", section="goals", content="tea")),
        quiet,
        reply("Hello."),
    )
    async with dialogue(db, *steps) as d:
        await d.hear("What goes well with tea?")
        await d.hear("Any timers?")
        assert await d.hear("(to somebody else)", addressed=False) == []
        await d.hear("Hi.")
        sent = d.model.requests[-1].messages[1:]
        assert [(m["role"], len(m.get("tool_calls", ()))) for m in sent] == [  # type: ignore[arg-type]
            ("user", 0),
            ("assistant", 1),
            ("tool", 0),
            ("assistant", 0),
            ("user", 0),
            ("assistant", 1),
            ("tool", 0),
            ("assistant", 0),
            ("user", 0),
        ]
        assert [m["content"] for m in sent if m["role"] == "assistant"] == [None, "Try honey.", None, "Sure."]
        assert [json.loads(line).get("message") for line in str(sent[-1]["content"]).split("\n")] == [
            None,
            "(to somebody else)",
            "Hi.",
        ]
        assert "They know now." not in seen(d.model.requests[-1]), "a thought after the reply"


async def test_a_due_timer_tells_the_agent_its_purpose(db: Database) -> None:
    timer = call("set_timer", purpose="remind Ada of the dentist", asked="remind me of the dentist", in_minutes=1)
    async with dialogue(db, reply("Set.", timer), reply(None, call("send_message", text="Dentist!"))) as d:
        await d.hear("remind me of the dentist")
        assert await fire_due(db, d.at + timedelta(minutes=2)) == 1
        [agent] = await d.rows("SELECT id FROM agents")
        claim = await d.claim(int(str(agent["id"])))
        await d.agent.turn(claim)
        assert await d.outbox(claim) == ["Dentist!"]
        assert "remind Ada of the dentist" in d.model.requests[-1].last
