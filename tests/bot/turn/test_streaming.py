"""Replies that grow while the model writes: what is shown, when, and how they end."""

from __future__ import annotations

import asyncio
import json
from dataclasses import dataclass, field, replace
from typing import Any

import pytest

from adapters.base import Changed, Outgoing, TryLater
from bot.app.runtime import engine_settings
from bot.config.sections import EngineSection
from bot.engine import turns
from bot.engine.changes import follow
from bot.engine.events import TryAgainLater
from bot.engine.outbox import STOPPED, OutboxSender
from bot.model.stream import Partial
from bot.turn.agent import Agent
from bot.turn.streaming import argument_so_far, certain
from memory.db import Database
from tests.bot.dialogue import Dialogue, dialogue
from tests.bot.engine.test_outbox import Platform
from tests.servers.model import Growing, Status, call, reply
from tests.waiting import until

LONG = "Once upon a time there was a dog called Biscuit who liked nothing better than the sea, and so on. " * 3


@dataclass
class Board(Platform):
    """A platform whose messages grow; `pages` is what each shows now, `history` everything each ever showed."""

    platform: str = "console"
    limit: int = 4000
    pace: float | None = 0.0
    pages: dict[str, str] = field(default_factory=dict)
    history: list[tuple[str, str]] = field(default_factory=list)
    trouble: list[Exception] = field(default_factory=list)

    def _show(self, page: str, text: str) -> None:
        assert len(text) <= self.limit
        self.pages[page] = text
        self.history.append((page, text))

    async def send(self, outgoing: Outgoing) -> str:
        page = await super().send(outgoing)
        self._show(page, outgoing.text)
        return page

    async def begin(self, outgoing: Outgoing) -> str:
        assert outgoing.streamed
        page = self.ids.setdefault(outgoing.outbox_id, f"page{len(self.ids)}")
        self._show(page, outgoing.text)
        return page

    async def extend(self, outgoing: Outgoing, platform_id: str) -> None:
        if self.trouble:
            raise self.trouble.pop(0)
        self._show(platform_id, outgoing.text)

    async def finish(self, outgoing: Outgoing, platform_id: str) -> str:
        self._show(platform_id, outgoing.text)
        return platform_id


def growing(d: Dialogue, board: Board) -> Agent:
    agent = d.agent
    agent._growing = {"console": board}
    agent._limits = {"console": board.limit}
    return agent


async def sent(d: Dialogue, board: Board) -> None:
    """Let the outbox send what waits."""
    sender = OutboxSender(d.db, board, engine_settings(EngineSection()), now=lambda: d.at)
    while await sender.flush():
        await asyncio.gather(*sender._sending)


async def states(d: Dialogue) -> list[object]:
    return [row["state"] for row in await d.rows("SELECT state FROM outbox ORDER BY id")]


@pytest.mark.parametrize(
    ("raw", "text"),
    [
        ("", ""),
        ('{"te', ""),
        ('{"text": ', ""),
        ('{"text": "Hel', "Hel"),
        ('{ "text" :"a\\', "a"),
        ('{"text": "a\\u00', "a"),
        ('{"text": "a\\ud83d', "a"),
        ('{"text": "a\\ud83d\\', "a"),
        ('{"text": "a\\ud83d\\ude00', "a😀"),
        ('{"text": "a\\nb\\"c', 'a\nb"c'),
        ('{"text": "done", "reason": "x', "done"),
        ('{"reason": "x", "request_heartbeat": false, "text": "aft', "aft"),
        ('{"reason": {"text": "inner"}, "other": 1', ""),
        ('{"text": 5}', ""),
        ("text: no object", ""),
    ],
)
def test_the_text_of_an_unfinished_call(raw: str, text: str) -> None:
    assert argument_so_far(raw, "text") == text


def test_every_beginning_of_a_call_shows_a_beginning_of_its_text() -> None:
    text = 'A "quoted" \\ path, a tab\t, two lines\nand 😀 é \u2028'
    for raw in (json.dumps({"reason": "r", "text": text}), json.dumps({"text": text}, ensure_ascii=False)):
        for end in range(len(raw) + 1):
            assert text.startswith(argument_so_far(raw[:end], "text"))
        assert argument_so_far(raw, "text") == text


def test_only_what_is_certain_to_be_a_reply_is_shown() -> None:
    said = ("send_message", '{"text": "Hello th')
    thought = ("working_context_append", '{"text": "secret')
    assert certain(Partial("thinking aloud", (said,)), plain=False) == "Hello th"
    assert certain(Partial("thinking", (thought, said)), plain=False) == "Hello th"
    assert certain(Partial("perhaps a thought", ()), plain=False) == ""
    package = ("send_message", '{"text": "{\\"type\\": \\"status\\", \\"time\\": ')
    assert certain(Partial("", (package,)), plain=False) == ""
    assert certain(Partial("perhaps a thought", (), plain=True), plain=False) == ""
    assert certain(Partial("perhaps a thought", ()), plain=True) == ""
    assert certain(Partial("the last words", (), plain=True), plain=True) == "the last words"
    assert certain(Partial("so: <tool_call>{", (), plain=True), plain=True) == "so: "
    assert certain(Partial("text", (thought,), plain=True), plain=True) == ""


async def test_a_reply_grows_and_is_finished_by_an_edit_of_its_message(db: Database) -> None:
    step = Growing(reply("private thought", call("send_message", text=LONG)), shown=120)
    async with dialogue(db, step) as d:
        board = Board()
        claim = await d.claim(await d.accept("tell me a story"))
        turn = asyncio.create_task(growing(d, board).turn(claim))
        await step.reached.wait()
        await until(lambda: board.pages)
        [row] = await until(lambda: d.rows("SELECT state, platform_id, body FROM outbox WHERE platform_id IS NOT NULL"))  # type: ignore[misc]
        assert row["state"] == "streaming"
        assert LONG.startswith(str(row["body"]))
        await sent(d, board)
        assert await states(d) == ["streaming"], "the outbox leaves it to its turn"
        step.release()
        await turn
        await sent(d, board)
        assert board.pages == {"page0": LONG.strip()}
        assert await states(d) == ["sent"]
        assert not any("thought" in text for _, text in board.history)
        assert all(LONG.startswith(text) for _, text in board.history)


async def test_a_short_reply_and_plain_text_do_not_grow(db: Database) -> None:
    async with dialogue(db, reply(None, call("send_message", text="Hi!")), reply(LONG)) as d:
        board = Board()
        for text in ("hello", "and now?"):
            claim = await d.claim(await d.accept(text))
            await growing(d, board).turn(claim)
            assert board.history == []
            assert len(await d.outbox(claim)) == 1


async def test_a_long_reply_goes_on_in_further_messages(db: Database) -> None:
    text = "\n\n".join(f"Paragraph {number}. " + "word " * 20 for number in range(6))
    step = Growing(reply(None, call("send_message", text=text)), shown=500)
    async with dialogue(db, step) as d:
        board = Board(limit=200)
        claim = await d.claim(await d.accept("at length"))
        turn = asyncio.create_task(growing(d, board).turn(claim))
        await step.reached.wait()
        await until(lambda: len(board.pages) >= 2)
        step.release()
        await turn
        await sent(d, board)
        whole = " ".join(board.pages.values())
        assert [whole.index(f"Paragraph {number}") for number in range(6)] == sorted(
            whole.index(f"Paragraph {number}") for number in range(6)
        )
        assert whole.count("Paragraph 0") == 1
        assert set(await states(d)) == {"sent"}


async def test_a_call_that_fails_after_its_text_was_shown_is_replaced_by_what_is_said_then(db: Database) -> None:
    wrong = replace(call("send_message", text=LONG), arguments=json.dumps({"text": LONG, "colour": "red"}))
    step = Growing(reply(None, wrong), shown=100)
    async with dialogue(db, step, reply(None, call("send_message", text="Short and right."))) as d:
        board = Board()
        claim = await d.claim(await d.accept("tell me"))
        turn = asyncio.create_task(growing(d, board).turn(claim))
        await step.reached.wait()
        await until(lambda: board.pages)
        step.release()
        await turn
        await sent(d, board)
        assert board.pages == {"page0": "Short and right."}


async def test_a_stopped_turn_leaves_its_beginning_marked_as_stopped(db: Database) -> None:
    step = Growing(reply(None, call("send_message", text=LONG)), shown=100)
    async with dialogue(db, step) as d:
        board = Board()
        claim = await d.claim(await d.accept("tell me"))
        turn = asyncio.create_task(growing(d, board).turn(claim))
        await step.reached.wait()
        await until(lambda: d.rows("SELECT 1 FROM outbox WHERE platform_id IS NOT NULL"))
        turn.cancel()
        await asyncio.wait({turn})
        await turns.end_cancelled(d.db, claim, now=d.at)
        shown = board.pages["page0"]
        await sent(d, board)
        assert board.pages == {"page0": shown + STOPPED}
        assert await states(d) == ["sent"]
        step.release()


async def test_who_goes_on_after_a_crash_finishes_the_same_message(db: Database) -> None:
    step = Growing(reply(None, call("send_message", text=LONG)), shown=100)
    async with dialogue(db, step, reply(None, call("send_message", text="The end."))) as d:
        board = Board()
        agent = await d.accept("tell me")
        claim = await d.claim(agent)
        turn = asyncio.create_task(growing(d, board).turn(claim))
        await step.reached.wait()
        await until(lambda: d.rows("SELECT 1 FROM outbox WHERE platform_id IS NOT NULL"))
        turn.cancel()
        await asyncio.wait({turn})
        step.release()
        # Another process, which lets nothing grow.
        again = await d.claim(agent)
        assert again.resumed
        await d.agent.turn(again)
        await sent(d, board)
        assert board.pages == {"page0": "The end."}
        assert await states(d) == ["sent"]


async def test_a_beginning_whose_id_nobody_learnt_is_looked_up_and_not_begun_twice(db: Database) -> None:
    step = Growing(reply(None, call("send_message", text=LONG)), shown=100)
    async with dialogue(db, step) as d:

        class Lost(Board):
            async def begin(self, outgoing: Outgoing) -> str:
                await super().begin(outgoing)
                raise ConnectionError

        board = Lost()
        claim = await d.claim(await d.accept("tell me"))
        turn = asyncio.create_task(growing(d, board).turn(claim))
        await step.reached.wait()
        await until(lambda: board.pages)
        step.release()
        await turn
        await sent(d, board)
        assert board.pages == {"page0": LONG.strip()}
        assert any(one.startswith("find") for one in board.calls)


async def test_trouble_with_an_edit_costs_nothing_but_the_sight_of_it(db: Database) -> None:
    step = Growing(reply(None, call("send_message", text=LONG)), shown=100)
    async with dialogue(db, step) as d:
        board = Board(trouble=[TryLater(0.0), ConnectionError(), ConnectionError(), ConnectionError()])
        claim = await d.claim(await d.accept("tell me"))
        turn = asyncio.create_task(growing(d, board).turn(claim))
        await step.reached.wait()
        await until(lambda: board.pages)
        step.release()
        await turn
        await sent(d, board)
        assert board.pages == {"page0": LONG.strip()}


async def test_a_stream_that_breaks_off_puts_the_turn_off_and_goes_on_in_the_same_message(db: Database) -> None:
    step = Growing(reply(None, call("send_message", text=LONG)), shown=100, cut=True)
    async with dialogue(db, step, reply(None, call("send_message", text="The end."))) as d:
        board = Board()
        agent = await d.accept("tell me")
        claim = await d.claim(agent)
        with pytest.raises(TryAgainLater):
            await growing(d, board).turn(claim)
        assert await d.rows("SELECT 1 FROM outbox WHERE state = 'waiting'") == [], "no line about waiting under a growing reply"
        await turns.release(d.db, claim, "away")
        await growing(d, board).turn(await d.claim(agent))
        await sent(d, board)
        assert list(board.pages.values())[0] == "The end."


@pytest.mark.parametrize(
    "refusal",
    [
        Status(400, "unsupported", "stream_options is not supported"),
        Status(400, "unsupported", "stream is not supported by this server"),
    ],
)
async def test_an_endpoint_that_does_not_stream_is_asked_without(db: Database, refusal: Any) -> None:
    async with dialogue(db, refusal, reply(None, call("send_message", text=LONG)), reply("again")) as d:
        board = Board()
        claim = await d.claim(await d.accept("tell me"))
        await growing(d, board).turn(claim)
        assert await d.outbox(claim) == [LONG.strip()]
        assert "stream_options" in d.model.requests[0].body
        assert "stream_options" not in d.model.requests[1].body
        await growing(d, board).turn(await d.claim(await d.accept("and on")))


async def test_the_usage_of_a_streamed_answer_is_counted(db: Database) -> None:
    async with dialogue(db, reply(None, call("send_message", text=LONG), prompt_tokens=4321)) as d:
        await growing(d, Board()).turn(await d.claim(await d.accept("tell me")))
        assert await d.rows("SELECT prompt_tokens FROM usage") == [{"prompt_tokens": 4321}]


async def test_a_question_that_is_edited_meanwhile_gets_its_answer_in_the_same_message(db: Database) -> None:
    step = Growing(reply(None, call("send_message", text=LONG)), shown=100)
    async with dialogue(db, step, reply(None, call("send_message", text="About tea, then."))) as d:
        board = Board()
        claim = await d.claim(await d.accept("tell me about tae"))
        turn = asyncio.create_task(growing(d, board).turn(claim))
        await step.reached.wait()
        await until(lambda: board.pages)
        asked = str(claim.events[0].payload["message_id"])
        assert await follow(db, d.cache, Changed("console", "", d.place.external_id, (asked,), "tell me about tea", d.at)) == 1
        step.release()
        await turn
        await sent(d, board)
        assert board.pages == {"page0": "About tea, then."}
        assert await states(d) == ["sent"]


async def test_nothing_grows_past_what_still_has_to_go_out_before_it(db: Database) -> None:
    first = reply("said first", call("send_message", text="First.", request_heartbeat=True))
    step = Growing(reply(None, call("send_message", text=LONG)), shown=100)
    async with dialogue(db, first, step) as d:
        board = Board()
        claim = await d.claim(await d.accept("two things"))
        turn = asyncio.create_task(growing(d, board).turn(claim))
        await step.reached.wait()
        step.release()
        await turn
        await sent(d, board)
        assert [text for _, text in board.history] == ["First.", LONG.strip()]
