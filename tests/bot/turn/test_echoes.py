"""What small models give back instead of an answer is neither sent nor stored."""

from __future__ import annotations

import pytest

from adapters.catalogue import say
from bot.prompts import load
from bot.turn.echoes import echo, sentences, unpacked
from memory.db import Database
from tests.bot.dialogue import dialogue
from tests.servers.model import call, reply

STATUS = '{"type":"status","time":"Mon 2026-11-30 09:01 +00:00","place":"direct","recall_storage":"3 messages"}'
LINE = next(line for line in load("gpt-4o").system.splitlines() if len(line.split()) > 8)
ASKED = "What should I cook for my sister tonight?"


@pytest.mark.parametrize("text", [STATUS, f"{STATUS}\nHello!", ASKED, ASKED.upper(), LINE, "Friendly, warm and never a lecture."])
async def test_a_reply_that_only_repeats_is_asked_for_once_more_and_then_apologised_for(db: Database, text: str) -> None:
    async with dialogue(db, reply(text), reply("Pasta."), reply(text), reply(text), reply("Fine.")) as d:
        d.persona = d.persona.model_copy(update={"tone": "Friendly, warm and never a lecture."})
        assert await d.hear(ASKED) == ["Pasta."]
        assert "was not sent" in str(d.model.requests[1].messages)
        assert text not in str(d.model.requests[1].messages[2:]).replace(ASKED, "", 1)
        assert await d.hear(ASKED) == [say("turn.apology", "")]
        assert await d.hear("And you?") == ["Fine."]
        said = await d.rows("SELECT content FROM messages WHERE role = 'assistant' ORDER BY position")
        assert [row["content"] for row in said] == ["Pasta.", say("turn.apology", ""), "Fine."]


async def test_a_message_sent_by_call_is_checked_the_same(db: Database) -> None:
    async with dialogue(db, reply(None, call("send_message", text=STATUS)), reply("Pasta.")) as d:
        assert await d.hear(ASKED) == ["Pasta."]


async def test_what_is_saved_beside_an_echo_stays_saved(db: Database) -> None:
    keep = call("working_context_append", section="key_facts", content="Has a sister.")
    async with dialogue(db, reply(STATUS, keep), reply("Pasta.")) as d:
        assert await d.hear(ASKED) == ["Pasta."]
        assert await d.entries() == [("key_facts", "Has a sister.")]


async def test_own_words_in_the_form_of_a_package_are_said(db: Database) -> None:
    async with dialogue(db, reply('{"from":"Mika","time":"09:02","message":"Pasta, of course."}')) as d:
        assert await d.hear(ASKED) == ["Pasta, of course."]


@pytest.mark.parametrize(
    ("said", "answer"),
    [
        ("Good night!", "Good night!"),
        ("Show me JSON", '{"name": "Ada", "type": "person"}'),
        ("What is a status?", 'It is a line such as {"type":"status"} in a log.'),
        ("Say it", "Older ones become a summary, as my instructions say, but that is not all there is to it."),
    ],
)
async def test_an_ordinary_answer_is_no_echo(db: Database, said: str, answer: str) -> None:
    async with dialogue(db, policy=lambda _: reply(answer)) as d:
        assert await d.hear(said) == [answer]


def test_what_is_known_of_the_person_may_be_named() -> None:
    instructions = sentences("You are a companion.")
    assert echo("- Likes sailing in the bay.\n- Lives in Lisbon.", instructions, []) is None
    assert unpacked('{"message": "x"}') == '{"message": "x"}'
