"""Pictures in the prompt: in the turn in which they arrive, within the budget, and never in what is kept."""

from __future__ import annotations

import json
from dataclasses import replace

from memory.db import Database
from tests.bot.dialogue import SETTINGS, Dialogue, dialogue, seen
from tests.servers.model import Request, call, reply


def shown(request: Request) -> list[str]:
    """The addresses of the pictures in a request; they stand in the newest message of the person."""
    content = [message["content"] for message in request.messages if message["role"] == "user"][-1]
    parts = content if isinstance(content, list) else []
    return [part["image_url"]["url"] for part in parts if part["type"] == "image_url"]


async def accept(d: Dialogue, text: str, pictures: int) -> int:
    """A message with so many pictures."""
    agent = await d.accept(text)
    images = [{"name": f"{number}.png", "url": f"data:image/png;base64,{number}"} for number in range(pictures)]
    statement = "UPDATE events SET payload = payload || %s::jsonb WHERE id = (SELECT max(id) FROM events)"
    await d.rows(f"{statement} RETURNING id", (json.dumps({"images": images}),))
    return agent


async def test_every_pass_of_the_turn_shows_them_and_the_next_turn_does_not(db: Database) -> None:
    save = reply("saving", call("working_context_append", section="goals", content="x", request_heartbeat=True))
    async with dialogue(db, save, reply("Two cats."), reply("ok")) as d:
        await d.agent.turn(await d.claim(await accept(d, "look", 2)))
        first, second = d.model.requests
        assert shown(first) == shown(second) == ["data:image/png;base64,0", "data:image/png;base64,1"]
        assert '"name":"1.png"' in str(first.messages[-1]["content"])
        await d.hear("and now?")
        assert shown(d.model.requests[-1]) == []
        assert "base64" not in seen(d.model.requests[-1])
        assert await d.rows("SELECT 1 FROM events WHERE payload ? 'images'") == []


async def test_no_more_of_them_than_leave_room_for_the_talk(db: Database) -> None:
    settings = replace(SETTINGS, budget=6000, image_tokens=1200)
    async with dialogue(db, reply("Some."), reply("All."), settings=settings) as d:
        await d.agent.turn(await d.claim(await accept(d, "look", 6)))
        assert shown(d.model.requests[0]) == ["data:image/png;base64,2"]
        d.settings, d.made = replace(SETTINGS), None
        await d.agent.turn(await d.claim(await accept(d, "look again", 6)))
        assert [one[-1] for one in shown(d.model.requests[1])] == ["2", "3", "4", "5"]


async def test_what_a_picture_costs_says_nothing_about_counting_text(db: Database) -> None:
    async with dialogue(db, reply("A cat.", prompt_tokens=9_000)) as d:
        agent = d.agent
        before = agent._pressure.margin.factor
        await agent.turn(await d.claim(await accept(d, "look", 1)))
        assert agent._pressure.margin.factor == before
