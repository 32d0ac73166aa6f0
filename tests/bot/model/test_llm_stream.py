"""Streamed answers come to the same as whole ones, whatever the endpoint does."""

from __future__ import annotations

from dataclasses import replace

import pytest

from bot.functions import SCHEMAS
from bot.model.client import ModelClient
from bot.model.errors import ContextOverflow, ModelError, ModelUnavailable
from bot.model.replies import Reply
from bot.model.stream import Assembly, Partial
from tests.servers.model import EMPTY_CHOICES, MALFORMED, Growing, Reset, ScriptedModel, Status, Step, Truncated, call, reply

MESSAGES = [{"role": "user", "content": "hello"}]


async def asked(client: ModelClient, seen: list[Partial] | None) -> Reply:
    watch = None if seen is None else seen.append
    answer = await client.complete("m", MESSAGES, SCHEMAS, max_tokens=100, watch=watch)
    return replace(answer, seconds=0.0, model="")


@pytest.mark.parametrize(
    "answer",
    [
        reply("Hello, you. Ünïcödé 😀"),
        reply("Noted.", call("working_context_append", section="goals", content="x")),
        reply(None, call("send_message", text="a"), call("set_timer", text="b", when="tomorrow")),
        reply('<tool_call>{"name": "send_message", "arguments": {"text": "hi"}}</tool_call>'),
        reply("<think>hm</think>Hello"),
        reply("hm</think>Hello"),
        reply("cut", finish="length"),
    ],
    ids=range(7),
)
async def test_the_same_reply_streamed_or_whole(answer: Step) -> None:
    unknown = Status(400, "unknown_parameter", "Unknown parameter: 'stream'.")
    async with (
        ScriptedModel([unknown, answer, answer]) as model,
        ModelClient(model.base_url, "key", attempts=1) as whole_only,
        ModelClient(model.base_url, "key", attempts=1) as client,
    ):
        seen: list[Partial] = []
        whole, streamed = await asked(whole_only, None), await asked(client, seen)
        assert streamed.text == whole.text
        assert streamed.calls == whole.calls
        assert streamed.finish == whole.finish
        assert streamed.usage.prompt_tokens > 0
        assert seen
        assert ["stream" in request.body for request in model.requests] == [True, False, True]


@pytest.mark.parametrize(
    ("steps", "kind"),
    [
        ([Status(429), reply("Hello.")], None),
        ([Status(503), reply("Hello.")], None),
        ([EMPTY_CHOICES, reply("Hello.")], None),
        ([reply(None, finish="length"), reply("Hello.")], None),
        ([MALFORMED], ModelUnavailable),
        ([Truncated()], ModelUnavailable),
        ([Reset(after=True)], ModelUnavailable),
        ([Growing(reply("Hello, this is cut off."), shown=7, cut=True)], ModelUnavailable),
        ([Status(400, "context_length_exceeded")], ContextOverflow),
    ],
    ids=range(9),
)
async def test_every_fault_is_met_as_without_a_stream(steps: list[Step], kind: type[ModelError] | None) -> None:
    async def no_time(_: float) -> None: ...

    async with ScriptedModel(steps) as model, ModelClient(model.base_url, "key", attempts=2, sleep=no_time) as client:
        if kind is None:
            assert (await asked(client, [])).text == "Hello."
        else:
            with pytest.raises(kind):
                await asked(client, [])


async def test_thoughts_in_the_text_are_remembered_of_a_model() -> None:
    answers = [reply("first"), reply("second"), reply("<think>hm</think>third"), reply("fourth")]
    async with ScriptedModel(answers) as model, ModelClient(model.base_url, "key") as client:
        plain = []
        for _ in answers:
            seen: list[Partial] = []
            await asked(client, seen)
            plain.append(seen[-1].plain)
        assert plain == [False, True, True, False]


@pytest.mark.parametrize(
    ("events", "body"),
    [
        (["{}", "[DONE]"], b'{"choices": []}'),
        (['{"choices": [{"delta": {"content": "a"}}]}'], b""),
        (['{"error": {"message": "x", "code": 503}}', "[DONE]"], b'{"error": {"message": "x", "code": 503}}'),
        (["no json"], b"no json"),
    ],
)
def test_what_is_no_whole_answer(events: list[str], body: bytes) -> None:
    assembly = Assembly()
    for event in events:
        assembly.take(event)
    assert assembly.body() == body


def test_calls_are_told_apart_without_an_index() -> None:
    assembly = Assembly()
    for piece in (
        '{"id": "a", "function": {"name": "one", "arguments": "{\\"x\\""}}',
        '{"function": {"arguments": ": 1}"}}',
        '{"id": "b", "function": {"name": "two", "arguments": {"y": 2}}}',
    ):
        assembly.take('{"choices": [{"delta": {"tool_calls": [%s]}}]}' % piece)  # noqa: UP031
    assert assembly.partial(plain=False).calls == (("one", '{"x": 1}'), ("two", '{"y": 2}'))
