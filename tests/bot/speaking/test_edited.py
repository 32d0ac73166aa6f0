"""A message that is edited into a crisis gets the emergency lines as one that was written so, once, by no model."""

from __future__ import annotations

from datetime import timedelta

import pytest

from adapters.base import Changed
from bot.config.persona import Emergency
from bot.engine.changes import follow
from bot.speaking.listening import Listener
from memory.db import Database
from tests.bot.dialogue import Dialogue, dialogue, seen
from tests.servers.model import reply

LISTENING = Listener(
    lines=tuple(Emergency(when="somebody may harm themselves", kind="harm", say=line) for line in ("Call 112.", "I am here."))
)
CRISIS = "I want to kill myself"


async def edit(d: Dialogue, text: str, number: int = -1) -> None:
    """The person edits one of their messages, the newest by default, as their platform tells it."""
    rows = await d.rows("SELECT platform_id FROM messages WHERE role = 'user' AND platform_id IS NOT NULL ORDER BY id")
    changed = Changed("console", "", d.place.external_id, (str(rows[number]["platform_id"]),), text, d.at)
    for _ in range(2):  # platforms tell things twice
        assert await follow(d.db, d.cache, changed, LISTENING.edited) == 1


async def lines(d: Dialogue) -> list[object]:
    return [row["body"] for row in await d.rows("SELECT body FROM outbox WHERE step <= -10 ORDER BY id")]


async def test_an_edit_after_its_turn_gets_the_lines_once_and_openers_pause(db: Database) -> None:
    async with dialogue(db, reply("Nice."), reply("Ok."), reply("I am with you.")) as d:
        d.listening = LISTENING
        await d.hear("I had a fine day")
        await d.hear("And a walk")
        d.clock[0] += timedelta(minutes=3)
        await edit(d, CRISIS)
        assert await lines(d) == ["Call 112.", "I am here."]
        assert await d.rows("SELECT crisis_at, care_at FROM speaking") == [{"crisis_at": d.at, "care_at": d.at}]
        await edit(d, "I want to end my life", 0)
        await edit(d, f"{CRISIS} today")
        assert await lines(d) == ["Call 112.", "I am here."], "not again within the hour"
        # The model knows that they were given, whenever it speaks next.
        await d.hear("Are you there?")
        assert "Call 112." in seen(d.model.requests[-1])
        assert "Do not repeat them" in seen(d.model.requests[-1])


async def test_an_edit_while_its_turn_runs(db: Database) -> None:
    async with dialogue(db) as d:
        d.listening = LISTENING

        async def edited(_: object) -> object:
            await edit(d, CRISIS)
            return reply("Nice.")

        d.model.add(edited, reply("I am with you."))
        assert await d.hear("I had a fine day") == ["Call 112.", "I am here.", "I am with you."]
        assert "Do not repeat them" in seen(d.model.requests[-1])


@pytest.mark.parametrize(("before", "after"), [("I had a fine day", "This traffic kills me"), (CRISIS, f"{CRISIS}!")])
async def test_what_is_no_crisis_or_was_one_before_gives_nothing_more(db: Database, before: str, after: str) -> None:
    async with dialogue(db, reply("Ok.")) as d:
        d.listening = LISTENING
        await d.hear(before)
        given = await lines(d)
        d.clock[0] += timedelta(hours=2)
        await edit(d, after)
        assert await lines(d) == given


async def test_in_a_channel_only_who_spoke_to_the_bot_is_answered(db: Database) -> None:
    async with dialogue(db, reply("Ok."), reply("Ok.")) as d:
        room = d.elsewhere("lobby", "public")
        await room.hear("I had a fine day", addressed=False)
        await edit(room, CRISIS)
        assert await lines(d) == []
        await room.hear("And you?")
        await edit(room, CRISIS)
        assert await lines(d) == ["Call 112.", "I am here."]
