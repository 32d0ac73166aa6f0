"""Facts that nobody said go back to the model once; a duplicate is done and costs no second call."""

from __future__ import annotations

from memory.db import Database
from tests.bot.dialogue import dialogue, results
from tests.servers.model import call, reply

MADE_UP = call("working_context_append", section="key_facts", content="Owns a yacht in Monaco.")


async def test_what_nobody_said_is_not_stored_and_the_answer_comes_all_the_same(db: Database) -> None:
    async with dialogue(db, reply("Noted.", MADE_UP), reply("Nice.", MADE_UP)) as d:
        assert await d.hear("I also have a cat") == ["Nice."]
        assert "Not one of these words was said" in results(d.model.requests[1])[0]
        assert await d.entries() == []


async def test_a_duplicate_costs_no_second_call_and_drops_no_reply(db: Database) -> None:
    cat = call("working_context_append", section="key_facts", content="Has a cat.")
    async with dialogue(db, reply("Lovely.", cat), reply("You said so.", cat)) as d:
        assert await d.hear("I have a cat") == ["Lovely."]
        assert await d.hear("I have a cat, you know") == ["You said so."]
        assert len(d.model.requests) == 2
        assert await d.entries() == [("key_facts", "Has a cat.")]
