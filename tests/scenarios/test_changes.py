"""People edit and delete what they wrote: corrected while it waits or runs, never answered twice, erased with what came from it."""

from __future__ import annotations

import asyncio

import pytest

from adapters.base import Changed, Person, Quote
from bot.engine import turns
from bot.engine.changes import follow
from bot.engine.events import TurnCancelled
from memory import agent_state, queue_manager
from memory.db import Database
from memory.search import Query, search_messages
from tests.bot.commands.test_pausing import pause
from tests.bot.dialogue import Dialogue, dialogue, seen
from tests.servers.model import Gate, call, reply


async def last_id(d: Dialogue) -> str:
    rows = await d.rows("SELECT payload->>'message_id' AS id FROM events ORDER BY seq DESC LIMIT 1")
    return str(rows[0]["id"])


async def change(d: Dialogue, text: str | None, *ids: str, mark: bool = False) -> int:
    named = ids or (await last_id(d),)
    return await follow(d.db, d.cache, Changed("console", "", d.place.external_id, named, text, d.at, mark))


async def test_an_edit_of_a_waiting_message_is_what_gets_answered(db: Database) -> None:
    async with dialogue(db, reply("ok")) as d:
        agent = await d.accept("I like tae")
        assert await change(d, "I like tea") == 1
        claim = await d.claim(agent)
        await d.agent.turn(claim)
        assert "I like tea" in seen(d.model.requests[0])
        assert "tae" not in seen(d.model.requests[0])


async def test_an_edit_during_the_turn_reaches_it_and_is_answered_once(db: Database) -> None:
    gate = Gate(reply("Tae it is."))
    async with dialogue(db, gate, reply("Tea it is.")) as d:
        agent = await d.accept("I like tae")
        claim = await d.claim(agent)
        turn = asyncio.create_task(d.agent.turn(claim))
        await gate.reached.wait()
        assert await change(d, "I like tea") == 1
        gate.release()
        await turn
        assert await d.outbox(claim) == ["Tea it is."]
        assert "I like tea" in seen(d.model.requests[1])


async def test_an_edit_of_an_answered_message_corrects_memory_and_is_not_answered_again(db: Database) -> None:
    async with dialogue(db, reply("ok")) as d:
        await d.hear("I like tae")
        assert await change(d, "I like tea") == 1
        [agent] = await d.rows("SELECT id FROM agents")
        assert await turns.claim(db, int(str(agent["id"])), d.at, d.engine) is None
        async with db.agent(int(str(agent["id"])), everything=True) as connection:
            assert [hit.content for hit in (await search_messages(connection, Query("tea"))).hits] == ["I like tea"]
            assert not (await search_messages(connection, Query("tae"))).total
        [log] = await d.rows(
            "SELECT c.before, c.after FROM memory_log l JOIN memory_log_content c ON c.log_id = l.id WHERE action = 'edit'"
        )
        assert log == {"before": "I like tae", "after": "I like tea"}


async def test_a_deletion_before_the_turn_cancels_it(db: Database) -> None:
    async with dialogue(db) as d:
        agent = await d.accept("never mind")
        assert await change(d, None) == 1
        assert await turns.claim(db, agent, d.at, d.engine) is None
        assert await d.rows("SELECT id FROM events WHERE payload ? 'text'") == []


async def test_a_deletion_during_the_turn_stops_it_and_nothing_is_said(db: Database) -> None:
    gate = Gate(reply("too late"))
    async with dialogue(db, gate) as d:
        agent = await d.accept("never mind")
        claim = await d.claim(agent)
        turn = asyncio.create_task(d.agent.turn(claim))
        await gate.reached.wait()
        assert await change(d, None) == 1
        gate.release()
        with pytest.raises(TurnCancelled):
            await turn
        await turns.end_cancelled(db, claim, now=d.at)
        assert await d.outbox(claim) == []
        assert await d.rows("SELECT id FROM messages WHERE position('never mind' IN content) > 0") == []


async def test_a_deleted_message_takes_along_what_was_made_of_it(db: Database) -> None:
    store = reply("Noted: 4711.", call("working_context_append", section="key_facts", content="The code is 4711."))
    async with dialogue(db, store, reply("hm")) as d:
        await d.hear("the code is 4711")
        assert await change(d, None) == 1
        assert await d.entries() == []
        for table, column in (("messages", "content"), ("memory_log_content", "after"), ("messages", "calls::text")):
            assert await d.rows(f"SELECT 1 FROM {table} WHERE position('4711' IN {column}) > 0") == [], table
        await d.hear("what do you know?")
        assert "4711" not in seen(d.model.requests[-1])


async def test_a_bulk_deletion_and_a_deletion_of_something_unknown(db: Database) -> None:
    async with dialogue(db, reply("a"), reply("b")) as d:
        await d.hear("first")
        one = await last_id(d)
        await d.hear("second")
        two = await last_id(d)
        assert await change(d, None, one, two, "unknown") == 2
        assert await change(d, None, one, two, "unknown") == 0
        assert await d.rows("SELECT content FROM messages WHERE role = 'user'") == []


async def test_an_operator_may_have_deleted_messages_marked_instead(db: Database) -> None:
    store = reply("Noted.", call("working_context_append", section="key_facts", content="The code is 4711."))
    async with dialogue(db, store, reply("hm")) as d:
        await d.hear("the code is 4711")
        for _ in range(2):
            assert await change(d, None, mark=True) == 1
        assert await d.entries() == [("key_facts", "The code is 4711.")]
        await d.hear("what do you know?")
        assert "[deleted] the code is 4711" in seen(d.model.requests[-1])
        assert "[deleted] [deleted]" not in seen(d.model.requests[-1])


async def test_a_marked_message_that_waited_is_not_answered_either(db: Database) -> None:
    async with dialogue(db) as d:
        agent = await d.accept("never mind")
        assert await change(d, None, mark=True) == 1
        assert await turns.claim(db, agent, d.at, d.engine) is None


async def test_new_words_of_somebody_paused_are_not_taken_where_they_are_quoted(db: Database) -> None:
    async with dialogue(db, reply("Hello Ben."), reply("Under the pot."), reply("hm")) as d:
        ben = d.elsewhere("ben", "direct", workspace="", person=Person("console", "", "ben", "Ben"))
        await ben.hear("Hi")
        await d.hear("where is the key?", quotes=QUOTES)
        await d.accept("and what else?", quotes=QUOTES)
        await pause(ben, True)
        assert await changed_there(d, "the safe is behind the mirror") == 2
        for table in ("messages", "events"):
            assert await d.rows(f"SELECT 1 FROM {table} t WHERE t::text LIKE '%%mirror%%'") == []
            assert await d.rows(f"SELECT 1 FROM {table} t WHERE t::text LIKE '%%the key is under%%'") == []
        [agent] = await d.rows("SELECT id FROM agents")
        await d.agent.turn(await d.claim(int(str(agent["id"]))))
        assert "and what else?" in seen(d.model.requests[-1])


QUOTES = (
    Quote("console::ben", "Ben", "the key is under the pot", "context", "garden/7"),
    Quote("console::eve", "Eve", "hi", "context"),
)


async def changed_there(d: Dialogue, text: str | None, *, mark: bool = False) -> int:
    """Ben's message, in the place where he wrote it."""
    return await follow(d.db, d.cache, Changed("console", "", "garden", ("7",), text, d.at, mark))


async def test_deleted_words_go_where_somebody_elses_agent_has_them_as_a_quote(db: Database) -> None:
    async with dialogue(db, reply("Under the pot."), reply("hm")) as d:
        await d.hear("where is the key?", quotes=QUOTES)
        assert await changed_there(d, None) == 1
        assert await changed_there(d, None) == 0
        rows = await d.rows("SELECT kind, content FROM messages WHERE kind IN ('quote', 'message', 'result') ORDER BY id")
        assert [(row["kind"], row["content"]) for row in rows] == [
            ("quote", "hi"),
            ("message", "where is the key?"),
        ]  # the reply repeated them
        [event] = await d.rows("SELECT status, payload FROM events")
        assert event["status"] == 1
        await d.hear("and now?")
        assert "the key is under the pot" not in seen(d.model.requests[-1])


async def test_deleted_words_go_from_what_waits_and_edited_ones_change_there(db: Database) -> None:
    async with dialogue(db, reply("ok")) as d:
        agent = await d.accept("where is the key?", quotes=QUOTES)
        assert await changed_there(d, "the key is under the mat") == 1
        [row] = await d.rows("SELECT payload->'quotes' AS quotes FROM events")
        assert [one["text"] for one in row["quotes"]] == ["the key is under the mat", "hi"]  # type: ignore[attr-defined]
        assert await changed_there(d, None, mark=True) == 1
        [row] = await d.rows("SELECT payload->'quotes' AS quotes FROM events")
        assert [one["text"] for one in row["quotes"]] == ["[deleted] the key is under the mat", "hi"]  # type: ignore[attr-defined]
        assert await changed_there(d, None) == 1
        await d.agent.turn(await d.claim(agent))
        assert "pot" not in seen(d.model.requests[0])
        assert "mat" not in seen(d.model.requests[0]).replace("format", "")
        assert "where is the key?" in seen(d.model.requests[0])


async def test_edited_words_are_corrected_where_they_are_quoted_and_marked_ones_marked(db: Database) -> None:
    async with dialogue(db, reply("ok"), reply("ok")) as d:
        await d.hear("where is the key?", quotes=QUOTES)
        assert await changed_there(d, "the key is under the mat") == 1
        assert await changed_there(d, None, mark=True) == 1
        await d.hear("well?")
        assert "[deleted] the key is under the mat" in seen(d.model.requests[-1])
        assert "the key is under the pot" not in seen(d.model.requests[-1])


async def test_a_deletion_elsewhere_with_the_same_number_touches_nothing(db: Database) -> None:
    async with dialogue(db, reply("ok")) as d:
        await d.hear("where is the key?", quotes=QUOTES)
        for other in (Changed("console", "", "shed", ("7",), None, d.at), Changed("slack", "", "garden", ("7",), None, d.at)):
            assert await follow(d.db, d.cache, other) == 0


async def test_a_summary_goes_back_behind_a_quote_that_was_deleted(db: Database) -> None:
    async with dialogue(db, reply("ok"), reply("They spoke of a key."), reply("hm")) as d:
        await d.hear("where is the key?", quotes=QUOTES)
        claim = await d.claim(await d.accept("and now?"))
        state = await agent_state.load(
            db,
            d.cache,
            agent=claim.agent,
            conversation=claim.conversation,
            place=claim.place,
            version=claim.fence.version,
            policy_version=claim.fence.policy_version,
        )
        async with db.agent(claim.agent, claim.place) as connection:
            await queue_manager.flush(
                connection, state, len(state.queue), "Ben said the key is under the pot.", at=d.at, turn=claim.turn
            )
        assert await changed_there(d, None) == 1
        await d.agent.turn(await d.claim(claim.agent))
        assert [request for request in d.model.requests[1:] if "under the pot" in seen(request)] == []
        assert await d.rows("SELECT 1 FROM conversations WHERE summary LIKE '%%pot%%'") == []
        assert await d.rows("SELECT 1 FROM memory_log_content WHERE after LIKE '%%pot%%' OR before LIKE '%%pot%%'") == []
