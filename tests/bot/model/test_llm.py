"""The model client against a real HTTP server that does what endpoints do."""

import asyncio
import contextlib
import itertools
import json
import logging
import re
import traceback
from collections.abc import AsyncIterator, Callable
from datetime import UTC, datetime, timedelta
from email.utils import format_datetime
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bot.model.calls import Call, FunctionSchema
from bot.model.client import ModelClient
from bot.model.errors import ContentRefused, ContextOverflow, ModelError, ModelRejected, ModelUnavailable, from_body, retry_after
from bot.model.habits import Habits, adapted
from bot.model.messages import NO_RESULT, ToolChoice, repair, short_id, unique_ids, without_images
from bot.model.replies import Reply
from bot.model.schemas import common
from bot.model.shape import ANSWER, GOES_ON, NOTICE
from tests.servers.model import (
    EMPTY_CHOICES,
    MALFORMED,
    NULL_CHOICES,
    Answer,
    Delay,
    Drip,
    Gate,
    Raw,
    Request,
    Reset,
    Scripted,
    ScriptedModel,
    Status,
    Truncated,
    call,
    reply,
    unused_port,
)

SECRET = "sk-secret-key-123456"
PRIVATE = "my private words"
SEND = FunctionSchema(
    "send_message", "Sends.", {"type": "object", "properties": {"text": {"type": "string"}}, "required": ["text"]}
)
LIST = FunctionSchema("list_timers", "Lists.", {"type": "object", "properties": {}})
HELLO: list[dict[str, object]] = [{"role": "system", "content": "Be kind."}, {"role": "user", "content": PRIVATE}]


class Client(ModelClient):
    """A client that notes its pauses instead of making them."""

    def __init__(self, base_url: str, **options: Any) -> None:
        self.pauses: list[float] = []
        options = {"timeout": 5.0, "chance": lambda: 0.5, **options}
        super().__init__(base_url, SECRET, sleep=self._note, **options)

    async def _note(self, seconds: float) -> None:
        self.pauses.append(seconds)

    async def ask(self, *functions: FunctionSchema, tool_choice: ToolChoice = "auto", temperature: float | None = None) -> Reply:
        return await self.complete("m", HELLO, functions, tool_choice=tool_choice, max_tokens=100, temperature=temperature)


@pytest.fixture
async def model() -> AsyncIterator[ScriptedModel]:
    async with ScriptedModel() as server:
        yield server


@pytest.fixture
async def client(model: ScriptedModel) -> AsyncIterator[Client]:
    async with Client(model.base_url) as made:
        yield made


def assert_tells_nothing(error: BaseException) -> None:
    shown = "".join(traceback.format_exception(error))
    assert PRIVATE not in shown
    assert SECRET not in shown


# --- a good endpoint --------------------------------------------------------------------------------


async def test_text_calls_and_usage_come_back(model: ScriptedModel, client: Client) -> None:
    usage: dict[str, Any] = {"prompt_tokens": 50, "completion_tokens": 7, "prompt_tokens_details": {"cached_tokens": 40}}
    made = call("send_message", "call00001", text="hi")
    model.add(reply("thinking aloud", made, **usage))
    answer = await client.ask(SEND)
    assert answer.text == "thinking aloud"
    assert answer.calls == (made,)
    assert answer.finish == "tool_calls"
    assert (answer.usage.prompt_tokens, answer.usage.cached_tokens, answer.usage.completion_tokens) == (50, 40, 7)
    assert answer.model == "m"
    assert answer.seconds > 0
    request = model.requests[0]
    assert request.headers["Authorization"] == f"Bearer {SECRET}"
    assert request.functions == ["send_message"]
    assert request.body["messages"] == HELLO
    assert request.body["max_tokens"] == 100
    assert "temperature" not in request.body
    assert "tool_choice" not in request.body


async def test_no_functions_means_no_tools(model: ScriptedModel, client: Client) -> None:
    model.add(reply("ok"))
    await client.ask(tool_choice="none")
    assert not {"tools", "tool_choice"} & model.requests[0].body.keys()


async def test_options_reach_the_endpoint(model: ScriptedModel) -> None:
    model.add(reply("ok"))
    async with Client(model.base_url, extra={"reasoning_effort": "low", "top_k": 5}) as client:
        await client.ask(SEND, tool_choice="required", temperature=0.3)
    body = model.requests[0].body
    assert (body["reasoning_effort"], body["top_k"], body["tool_choice"], body["temperature"]) == ("low", 5, "required", 0.3)


async def test_embeddings_keep_their_order(model: ScriptedModel, client: Client) -> None:
    texts = [f"text {number}" for number in range(300)] + ["", "\ud800"]
    vectors = await client.embed("e", texts)
    assert len(vectors) == len(texts)
    assert vectors[7] == (await client.embed("e", ["text 7"]))[0]
    assert "" not in model.embedded
    assert await client.embed("e", []) == []


async def test_models_are_listed(client: Client) -> None:
    assert await client.models() == ["scripted"]


async def test_many_calls_run_side_by_side(model: ScriptedModel, client: Client) -> None:
    gates = [Gate(reply(str(number))) for number in range(20)]
    model.add(*gates)
    async with asyncio.TaskGroup() as tasks:
        asked = [tasks.create_task(client.ask()) for _ in gates]
        await model.wait_for(20)
        assert model.in_flight == 20
        for gate in gates:
            gate.release()
    assert {task.result().text for task in asked} == {str(number) for number in range(20)}


# --- replies of odd shapes --------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("message", "text"),
    [
        ({"content": None}, None),
        ({"content": "  \n"}, None),
        ({"content": None, "reasoning_content": "secret thought", "reasoning": "x"}, None),
        ({"content": "<think>secret thought</think>\nHello."}, "Hello."),
        ({"content": "secret thought</think>Hello."}, "Hello."),
        ({"content": "<think>never ends"}, None),
        ({"content": [{"type": "text", "text": "Hel"}, {"type": "thinking"}, {"type": "text", "text": "lo."}]}, "Hello."),
        ({"content": None, "refusal": "I cannot help with that."}, "I cannot help with that."),
        ({"content": "a\x00b\ud800"}, "ab\ufffd"),
        ({"content": 17, "tool_calls": "nonsense"}, None),
    ],
)
async def test_only_what_was_said_is_text(
    model: ScriptedModel, client: Client, message: dict[str, object], text: str | None
) -> None:
    model.add(Answer(message=message))
    answer = await client.ask(SEND)
    assert answer.text == text
    assert answer.calls == ()


async def test_odd_calls_are_read(model: ScriptedModel, client: Client) -> None:
    calls = [
        {"id": "same", "function": {"name": "send_message", "arguments": {"text": "a"}}},
        {"id": "same", "function": {"name": "functions.send_message", "arguments": '{"text": "b"}'}},
        {"id": None, "function": {"name": "list_timers", "arguments": ""}},
        {"id": "x" * 60, "function": {"name": "list_timers", "arguments": None}},
        {"id": "n", "function": None},
        "nonsense",
    ]
    model.add(Answer(message={"tool_calls": calls}))
    answer = await client.ask(SEND, LIST)
    assert [one.name for one in answer.calls] == ["send_message", "send_message", "list_timers", "list_timers", ""]
    assert [one.arguments for one in answer.calls] == ['{"text": "a"}', '{"text": "b"}', "{}", "{}", "{}"]
    assert len({one.id for one in answer.calls}) == 5
    assert all(re.fullmatch("[A-Za-z0-9]{9}", one.id) for one in answer.calls)


async def test_a_call_id_used_before_is_not_used_again(model: ScriptedModel, client: Client) -> None:
    model.add(reply(None, call("list_timers", "call_0")))
    before: list[dict[str, object]] = [
        {"role": "assistant", "content": None, "tool_calls": [wire("call_0", "list_timers")]},
        {"role": "tool", "tool_call_id": "call_0", "content": "none"},
    ]
    answer = await client.complete("m", [*HELLO, *before], [LIST], max_tokens=9)
    assert answer.calls[0].id not in (short_id("call_0"), "call_0")
    assert repair(HELLO + before)[-2]["tool_calls"] == [wire(short_id("call_0"), "list_timers")]


async def test_a_call_written_as_text_is_a_call(model: ScriptedModel, client: Client) -> None:
    model.add(reply('Wait. <tool_call>{"name": "send_message", "arguments": {"text": "hi"}}</tool_call>'))
    answer = await client.ask(SEND)
    assert answer.text == "Wait."
    assert [(one.name, one.arguments) for one in answer.calls] == [("send_message", '{"text": "hi"}')]


@pytest.mark.parametrize("usage", ["none", {"prompt_tokens": None}, {"prompt_tokens": -3, "prompt_tokens_details": None}])
async def test_missing_usage_is_zero(model: ScriptedModel, client: Client, usage: object) -> None:
    body = {"choices": [{"message": {"content": "ok"}}], "usage": usage}
    model.add(Raw(json.dumps(body)))
    answer = await client.ask()
    assert answer.usage.prompt_tokens == 0
    assert answer.finish == "stop"


@pytest.mark.parametrize("empty", [EMPTY_CHOICES, NULL_CHOICES, Raw("{}"), Raw('{"choices": [null]}')])
async def test_empty_choices_are_asked_for_once_more(model: ScriptedModel, client: Client, empty: Raw) -> None:
    model.add(empty, reply("now"), empty, empty)
    assert (await client.ask()).text == "now"
    with pytest.raises(ModelUnavailable, match="without a choice"):
        await client.ask()


async def test_a_cap_eaten_by_reasoning_is_raised_once(model: ScriptedModel, client: Client) -> None:
    model.add(reply(None, finish="length", completion_tokens=100), reply("there", completion_tokens=5))
    answer = await client.ask()
    assert answer.text == "there"
    assert answer.usage.completion_tokens == 105
    assert [request.body["max_tokens"] for request in model.requests] == [100, 400]


async def test_a_cap_that_stays_too_small_is_told(model: ScriptedModel, client: Client) -> None:
    model.add(reply("", finish="length"), reply("", finish="length"))
    answer = await client.ask()
    assert (answer.text, answer.finish) == (None, "length")
    model.add(reply("", finish="length"), Status(400, "context_length_exceeded"))
    assert (await client.ask()).finish == "length"


async def test_length_with_text_is_a_reply(model: ScriptedModel, client: Client) -> None:
    model.add(reply("half a sent", finish="length"))
    assert (await client.ask()).text == "half a sent"


async def test_a_filtered_answer_is_refused_content(model: ScriptedModel, client: Client) -> None:
    model.add(reply("par", finish="content_filter"))
    with pytest.raises(ContentRefused):
        await client.ask()


# --- faults -----------------------------------------------------------------------------------------


@pytest.mark.parametrize("status", [429, 500, 502, 503, 504, 529])
async def test_short_trouble_is_waited_out(model: ScriptedModel, client: Client, status: int) -> None:
    model.add(Status(status), Status(status), reply("back"))
    assert (await client.ask()).text == "back"
    assert client.pauses == [0.5, 1.0]


async def test_long_trouble_is_handed_on(model: ScriptedModel, client: Client) -> None:
    model.add(*[Status(503)] * 3)
    with pytest.raises(ModelUnavailable) as caught:
        await client.ask()
    assert caught.value.retry_after is None
    assert len(model.requests) == 3


async def test_a_short_retry_after_is_kept_to_and_a_long_one_handed_on(model: ScriptedModel, client: Client) -> None:
    model.add(Status(429, headers={"Retry-After": "2"}), reply("back"), Status(429, headers={"Retry-After": "90"}))
    await client.ask()
    assert client.pauses == [pytest.approx(2.1)]
    with pytest.raises(ModelUnavailable) as caught:
        await client.ask()
    assert caught.value.retry_after == 90
    assert len(model.requests) == 3


def test_retry_after_is_read_in_every_form() -> None:
    now = datetime(2026, 1, 1, tzinfo=UTC)
    later = format_datetime(now + timedelta(seconds=7), usegmt=True)
    assert retry_after({"retry-after": later, "date": format_datetime(now, usegmt=True)}) == 7
    assert retry_after({"retry-after-ms": "1500", "retry-after": "9"}) == 1.5
    assert retry_after({"retry-after": "soon"}) is None
    assert retry_after({"retry-after": format_datetime(now, usegmt=True)}) == 0
    assert retry_after({}) is None


@pytest.mark.parametrize(
    "fault", [Reset(), Reset(after=True), Truncated(), MALFORMED, Raw("<html>", "text/html"), Raw("[1]"), Raw("")]
)
async def test_a_broken_answer_may_have_been_processed_and_is_not_repeated(
    model: ScriptedModel, client: Client, fault: Scripted
) -> None:
    model.add(fault)
    with pytest.raises(ModelUnavailable) as caught:
        await client.ask()
    assert_tells_nothing(caught.value)
    assert model.left() == 0
    assert client.pauses == []
    model.add(reply("next"))
    assert (await client.ask()).text == "next"


async def test_an_endpoint_that_is_down_is_tried_again_and_then_unavailable() -> None:
    async with Client(f"http://127.0.0.1:{unused_port()}/v1") as client:
        with pytest.raises(ModelUnavailable, match="could not be reached"):
            await client.ask()
        assert len(client.pauses) == 2


@pytest.mark.parametrize("hang", [Gate(), Drip()], ids=["silent", "dripping"])
async def test_a_hang_ends_at_the_timeout(model: ScriptedModel, hang: Scripted) -> None:
    model.add(hang)
    async with Client(model.base_url, timeout=0.1) as client:
        with pytest.raises(ModelUnavailable, match="within 0.1 s"):
            await client.ask()


async def test_a_cancelled_call_leaves_nothing_behind(model: ScriptedModel, client: Client) -> None:
    gate = Gate()
    model.add(gate, reply("next"))
    asked = asyncio.create_task(client.ask())
    await gate.reached.wait()
    asked.cancel()
    with pytest.raises(asyncio.CancelledError):
        await asked
    assert (await client.ask()).text == "next"


@pytest.mark.parametrize(
    ("fault", "kind", "told"),
    [
        (Status(401, "invalid_api_key", f"Incorrect API key provided: {SECRET}"), ModelRejected, "environment variable"),
        (Status(403, "forbidden"), ModelRejected, "may not use m"),
        (Status(404, "model_not_found"), ModelRejected, "knows no model m"),
        (Status(400, None, "Model m does not exist"), ModelRejected, "knows no model m"),
        (Status(402, None, "pay"), ModelRejected, "top it up"),
        (Status(429, "insufficient_quota", "You exceeded your current quota"), ModelRejected, "top it up"),
        (Status(400, "invalid_request_error", f"bad: {PRIVATE}"), ModelRejected, "bot doctor"),
        (Status(400, None, '"auto" tool needs --enable-auto-tool-choice'), ModelRejected, "JSON schema"),
        (Status(400, f"{PRIVATE}", PRIVATE), ModelRejected, "status 400"),
        (Status(413, body=PRIVATE), ContextOverflow, "longer than m takes"),
        (Status(400, "content_filter", PRIVATE), ContentRefused, "content filter"),
        (Status(400, None, "The response was filtered due to the content management policy"), ContentRefused, "filter"),
        (Raw('{"error": {"code": 401, "message": "no auth"}}'), ModelRejected, "refuses the key"),
    ],
)
async def test_lasting_faults_are_told_apart(
    model: ScriptedModel, client: Client, fault: Scripted, kind: type[ModelError], told: str
) -> None:
    model.add(fault)
    with pytest.raises(kind, match=told) as caught:
        await client.ask(SEND)
    assert_tells_nothing(caught.value)
    assert client.pauses == []


@pytest.mark.parametrize(
    "words",
    [
        "This model's maximum context length is 8192 tokens. However, your messages resulted in 9000 tokens.",
        "the request exceeds the available context size, try increasing it",
        "prompt is too long: 210000 tokens > 200000 maximum",
        "The input token count (40000) exceeds the maximum number of tokens allowed (32768).",
        "Input is too long for requested model.",
        "`inputs` tokens + `max_new_tokens` must be <= 4096",
        "Please reduce the length of the messages or completion.",
        "Range of input length should be [1, 30720]",
        "Your input exceeds the context window of this model.",
        "Too many tokens in the request",
        "Requested tokens (9000) exceed context window of 4096",
    ],
)
def test_overflow_is_known_by_its_many_words(words: str) -> None:
    assert isinstance(from_body(400, {"error": {"message": words}}, "m"), ContextOverflow)
    assert isinstance(from_body(400, {"message": words}, "m"), ContextOverflow)
    assert isinstance(from_body(422, {"detail": words}, "m"), ContextOverflow)


@pytest.mark.parametrize("code", ["context_length_exceeded", "exceed_context_size_error", "string_above_max_length"])
def test_overflow_is_known_by_its_code(code: str) -> None:
    assert isinstance(from_body(500, {"error": {"code": None, "type": code}}, "m"), ContextOverflow)
    assert not isinstance(from_body(429, {"error": {"code": "rate_limit_exceeded"}}, "m"), ContextOverflow)


async def test_a_key_revoked_in_the_middle_is_rejected_and_may_come_back(model: ScriptedModel, client: Client) -> None:
    model.add(reply("fine"), Status(401), reply("again"))
    assert (await client.ask()).text == "fine"
    with pytest.raises(ModelRejected):
        await client.ask()
    assert (await client.ask()).text == "again"


async def test_nothing_private_is_logged(model: ScriptedModel, client: Client, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG)
    model.add(Status(500, message=PRIVATE), Status(400, None, f"temperature is no {PRIVATE}"), reply(PRIVATE))
    await client.ask(SEND, temperature=1.0)
    assert caplog.records
    assert PRIVATE not in caplog.text
    assert SECRET not in caplog.text


# --- what a model refuses ---------------------------------------------------------------------------


def refuses(field: str, words: str, *, code: str | None = "unsupported_parameter") -> Callable[[Request], Scripted]:
    def answer(request: Request) -> Any:
        return Status(400, code, words, param=field) if field in request.body else reply("fine")

    return answer


@pytest.mark.parametrize(
    ("field", "words", "options"),
    [
        ("temperature", "Unsupported value: 'temperature' does not support 0.2 with this model.", {"temperature": 0.2}),
        ("max_tokens", "Unsupported parameter: 'max_tokens'. Use 'max_completion_tokens' instead.", {}),
        ("tool_choice", "tool_choice is not supported here", {"tool_choice": "none"}),
        ("reasoning_effort", "Function tools with reasoning_effort are not supported.", {}),
    ],
)
async def test_a_refused_argument_is_left_out_from_then_on(field: str, words: str, options: dict[str, Any]) -> None:
    async with (
        ScriptedModel(policy=refuses(field, words)) as model,  # type: ignore[arg-type]
        Client(model.base_url, extra={"reasoning_effort": "low"}) as client,
    ):
        assert (await client.ask(SEND, **options)).text == "fine"
        assert (await client.ask(SEND, **options)).text == "fine"
        assert [field in request.body for request in model.requests] == [True, False, False]
        assert model.requests[-1].functions == ["send_message"]
        assert client.pauses == []


async def test_what_one_request_learns_serves_those_on_their_way() -> None:
    """The first minute after a start: many people ask at once, and every request is refused for the same thing."""
    refusing = refuses("temperature", "Unsupported value: 'temperature' does not support 0.2 with this model.")
    async with ScriptedModel(policy=refusing, latency=0.05) as model, Client(model.base_url) as client:  # type: ignore[arg-type]
        replies = await asyncio.gather(*(client.ask(SEND, temperature=0.2) for _ in range(8)))
        assert [each.text for each in replies] == ["fine"] * 8
        assert (await client.ask(SEND, temperature=0.2)).text == "fine"
        assert "temperature" not in model.requests[-1].body


async def test_answers_come_whole_where_the_operator_wants_no_stream(model: ScriptedModel) -> None:
    model.add(reply("fine"))
    async with Client(model.base_url, streams=False) as client:
        asked = [{"role": "user", "content": "Hello"}]
        assert (await client.complete("m", asked, max_tokens=9, watch=lambda _: None)).text == "fine"
    assert "stream" not in model.requests[0].body


async def test_a_tool_choice_nobody_serves_is_left_out(model: ScriptedModel, client: Client) -> None:
    model.add(Status(404, None, "No endpoints found that support the provided 'tool_choice' value."), reply("fine"))
    assert (await client.ask(SEND, tool_choice="none")).text == "fine"


async def test_an_old_endpoint_gets_max_tokens_only_once_settled(model: ScriptedModel, client: Client) -> None:
    model.add(Status(400, None, "unsupported: max_tokens"), Status(400, None, "unknown: max_completion_tokens"))
    with pytest.raises(ModelRejected):
        await client.ask()
    assert len(model.requests) == 2


async def test_a_smaller_reply_limit_is_learned(model: ScriptedModel, client: Client) -> None:
    words = "max_tokens is too large: 100. This model supports at most 64 completion tokens."
    model.add(Status(400, "invalid_value", words), reply("fine"))
    assert (await client.ask()).text == "fine"
    assert model.requests[1].body["max_tokens"] == 64


def test_nothing_is_learned_from_other_refusals() -> None:
    assert adapted(Habits(), {"max_tokens": 1}, 401, "", "temperature") is None
    assert adapted(Habits(), {"max_tokens": 1}, 400, "invalid", "temperature is bad") is None
    assert adapted(Habits(), {"max_tokens": 1}, 400, "", "this model's maximum context length") is None


# --- calls by JSON schema ---------------------------------------------------------------------------


@pytest.fixture
async def by_schema(model: ScriptedModel) -> AsyncIterator[Client]:
    async with Client(model.base_url, calls="schema") as made:
        yield made


def schema_reply(text: str, *calls: Call) -> Answer:
    made = [{"function": one.name, "arguments": json.loads(one.arguments)} for one in calls]
    return reply(json.dumps({"text": text, "calls": made}))


async def test_functions_are_asked_for_by_schema(model: ScriptedModel, by_schema: Client) -> None:
    model.add(schema_reply("One moment.", call("send_message", text="hi"), call("list_timers")))
    answer = await by_schema.ask(SEND, LIST)
    assert answer.text == "One moment."
    assert [(one.name, json.loads(one.arguments)) for one in answer.calls] == [
        ("send_message", {"text": "hi"}),
        ("list_timers", {}),
    ]
    body: Any = model.requests[0].body
    assert not {"tools", "tool_choice"} & body.keys()
    schema = body["response_format"]["json_schema"]["schema"]
    offered = schema["properties"]["calls"]["items"]["anyOf"]
    assert [one["properties"]["function"]["enum"] for one in offered] == [["send_message"], ["list_timers"]]
    assert offered[0]["properties"]["arguments"] == common(SEND.parameters)
    assert list(schema["properties"]) == ["calls", "text"], "who has written the answer first looks nothing up any more"
    assert "- send_message(" in body["messages"][0]["content"], "a line each, not a schema"


async def test_history_becomes_plain_messages(model: ScriptedModel, by_schema: Client) -> None:
    model.add(schema_reply("done"))
    history: list[dict[str, object]] = [
        *HELLO,
        {"role": "assistant", "content": None, "tool_calls": [wire("a", "list_timers")]},
        {"role": "tool", "tool_call_id": "a", "content": "none"},
    ]
    await by_schema.complete("m", history, [LIST], max_tokens=9)
    sent = model.requests[0].messages
    assert [message["role"] for message in sent] == ["system", "user", "assistant", "user"]
    assert json.loads(str(sent[2]["content"])) == {"text": "", "calls": [{"function": "list_timers", "arguments": {}}]}
    assert json.loads(model.requests[0].last) == {"type": "function_result", "function": "list_timers", "result": "none"}


@pytest.mark.parametrize(("choice", "calls"), [("none", None), ("required", 1)])
async def test_the_choice_is_in_the_schema(
    model: ScriptedModel, by_schema: Client, choice: ToolChoice, calls: int | None
) -> None:
    model.add(schema_reply("done"))
    await by_schema.ask(LIST, tool_choice=choice)
    body: Any = model.requests[0].body
    made = body["response_format"]["json_schema"]["schema"]["properties"].get("calls")
    assert (made["minItems"] if made else None) == calls


async def test_a_schema_reply_that_is_cut_off_is_never_shown(model: ScriptedModel, by_schema: Client) -> None:
    cut = reply('{"text": "I was say', finish="length")
    model.add(cut, cut)
    answer = await by_schema.ask(LIST)
    assert (answer.text, answer.calls, answer.finish) == (None, (), "length")


@pytest.mark.parametrize(
    ("given", "text", "calls"),
    [
        ('{"text": "hi", "calls": true}', "hi", []),
        ('{"text": "hi", "calls": 5}', "hi", []),
        ('{"text": "hi", "calls": [3, "list_timers"]}', "hi", []),
        ('{"text": "", "calls": {"function": "list_timers", "arguments": {}}}', None, ["list_timers"]),
        ('```json\n{"text": "hi", "calls": []}\n```\nThat is my answer.', "hi", []),
        ('{"text": "hi", "calls": [}', None, []),
        ('{"text": "she said "hi" to me", "calls": []}', None, []),
        ('{"text": "", "calls": [{"function": "list_timers", "arguments": {', None, ["list_timers"]),
        ('{"text": "{\\"text\\": 1}", "calls": []}', '{"text": 1}', []),
    ],
)
async def test_a_schema_reply_of_another_shape_is_read_or_hidden(
    model: ScriptedModel, by_schema: Client, given: str, text: str | None, calls: list[str]
) -> None:
    model.add(reply(given))
    answer = await by_schema.ask(LIST)
    assert (answer.text, [one.name for one in answer.calls]) == (text, calls)


async def test_an_endpoint_without_response_format_still_works(model: ScriptedModel, by_schema: Client) -> None:
    model.add(Status(400, None, "response_format is not supported"), schema_reply("fine"), reply("plain"))
    assert (await by_schema.ask(LIST)).text == "fine"
    assert (await by_schema.ask(LIST)).text == "plain"
    assert "response_format" not in model.requests[-1].body


@pytest.mark.parametrize(
    "words",
    ["m does not support tools", '"auto" tool choice requires --enable-auto-tool-choice', "Function calling is not supported"],
)
async def test_an_endpoint_without_function_calls_is_asked_by_schema_from_then_on(model: ScriptedModel, words: str) -> None:
    model.add(Status(400, None, words), schema_reply("fine", call("list_timers")), schema_reply("still"))
    async with Client(model.base_url, calls="auto") as client:
        answer = await client.ask(LIST)
        assert (answer.text, [one.name for one in answer.calls]) == ("fine", ["list_timers"])
        assert (await client.ask(LIST)).text == "still"
    assert [request.functions for request in model.requests] == [["list_timers"], [], []]


# --- repair -----------------------------------------------------------------------------------------


def wire(call_id: str, name: str, arguments: str = "{}") -> dict[str, object]:
    return {"id": call_id, "type": "function", "function": {"name": name, "arguments": arguments}}


def result(call_id: str, content: str) -> dict[str, object]:
    return {"role": "tool", "tool_call_id": call_id, "content": content}


def calling(*calls: dict[str, object], text: str | None = None) -> dict[str, object]:
    return {"role": "assistant", "content": text, "tool_calls": list(calls)}


USER: dict[str, object] = {"role": "user", "content": "hi"}


A, B = "Aaaaaaaa1", "Bbbbbbbb2"
AGAIN = short_id(f"{A} 2")
OPEN: dict[str, object] = {"role": "user", "content": GOES_ON}
TURN: dict[str, object] = {"role": "user", "content": ANSWER}


def test_a_good_conversation_is_left_alone() -> None:
    good: list[dict[str, object]] = [
        *HELLO,
        calling(wire(A, "f"), wire(B, "g")),
        result(A, "1"),
        result(B, "2"),
        {"role": "assistant", "content": "ok"},
        USER,
    ]
    assert repair(good) == good


@pytest.mark.parametrize(
    ("messages", "repaired"),
    [
        ([USER, result(A, "orphan")], [USER]),
        ([USER, calling(wire(A, "f"))], [USER, calling(wire(A, "f")), result(A, NO_RESULT)]),
        (
            [USER, calling(wire(A, "f")), TURN, result(A, "1")],
            [USER, calling(wire(A, "f")), result(A, f"1\n\n{NOTICE}\n{ANSWER}")],
        ),
        ([USER, result(A, "0"), calling(wire(A, "f"))], [USER, calling(wire(A, "f")), result(A, NO_RESULT)]),
        (
            [USER, calling(wire(A, "f"), wire(B, "f")), result(B, "2"), result(A, "1")],
            [USER, calling(wire(A, "f"), wire(B, "f")), result(A, "1"), result(B, "2")],
        ),
        (
            [USER, calling(wire(A, "f"), wire(A, "g")), result(A, "1"), result(A, "2")],
            [USER, calling(wire(A, "f"), wire(AGAIN, "g")), result(A, "1"), result(AGAIN, "2")],
        ),
        (
            [USER, calling(wire(A, "f")), result(A, "1"), calling(wire(A, "f")), result(A, "2")],
            [USER, calling(wire(A, "f")), result(A, "1"), calling(wire(AGAIN, "f")), result(AGAIN, "2")],
        ),
        ([USER, {"role": "assistant", "content": None}, {"role": "assistant", "content": " "}], [USER]),
        ([{"role": "assistant", "content": "x", "tool_calls": []}], [OPEN, {"role": "assistant", "content": "x"}, TURN]),
        ([{"role": "user", "content": "a\x00\ud800b"}], [{"role": "user", "content": "a\ufffdb"}]),
        ([{"role": "user", "content": None}], [{"role": "user", "content": "(empty)"}]),
        ([{"role": "narrator", "content": "x"}, USER], [USER]),
        (
            [USER, calling(wire(A, "a b", "{bad"))],
            [USER, calling(wire(A, "a_b", '{"unreadable_arguments": "{bad"}')), result(A, NO_RESULT)],
        ),
        ([USER, calling(wire(A, "f", "")), result(A, "")], [USER, calling(wire(A, "f")), result(A, "(empty result)")]),
        ([USER, USER], [{"role": "user", "content": "hi\nhi"}]),
        ([USER, {"role": "system", "content": "late"}], [{"role": "user", "content": "hi\nlate"}]),
        (
            [USER, {"role": "assistant", "content": "x"}, calling(wire(A, "f")), result(A, "1")],
            [USER, calling(wire(A, "f"), text="x"), result(A, "1")],
        ),
        (
            [USER, calling(wire(A, "f")), {"role": "assistant", "content": "x"}, result(A, "1"), USER],
            [USER, calling(wire(A, "f")), result(A, "1"), {"role": "assistant", "content": "x"}, USER],
        ),
    ],
)
def test_bad_rows_are_repaired(messages: list[dict[str, object]], repaired: list[dict[str, object]]) -> None:
    assert repair(messages) == repaired


def test_ids_have_nine_letters_and_digits_and_are_the_same_on_both_sides() -> None:
    long = "tool/" + "x" * 80
    _, call_message, answer = repair([USER, calling(wire(long, "f")), result(long, "1")])
    assert call_message["tool_calls"] == [wire(short_id(long), "f")]
    assert answer == result(short_id(long), "1")
    assert re.fullmatch("[A-Za-z0-9]{9}", short_id(long))
    assert short_id(short_id(long)) == short_id(long) != short_id(long + "y")


def test_neighbours_with_pictures_become_one_message() -> None:
    picture = {"type": "image_url", "image_url": {"url": "data:"}}
    shown: dict[str, object] = {"role": "user", "content": [{"type": "text", "text": "cat.png"}, picture]}
    [joined] = repair([USER, shown, TURN])
    parts = [{"type": "text", "text": text} for text in ("hi", "cat.png", ANSWER)]
    assert joined == {"role": "user", "content": [*parts[:2], picture, parts[2]]}
    assert without_images([joined]) == [{"role": "user", "content": f"hi\n{ANSWER}"}], "without the pictures' names"


ROWS = st.lists(
    st.fixed_dictionaries(
        {"role": st.sampled_from(["system", "user", "assistant", "tool", "odd"])},
        optional={
            "content": st.none() | st.text(st.characters(categories=None), max_size=5) | st.integers(),
            "tool_call_id": st.sampled_from(["a", "b", "", "z" * 50]) | st.none(),
            "tool_calls": st.none()
            | st.lists(
                st.builds(wire, st.sampled_from(["a", "b", "", "z" * 50]), st.text(max_size=3), st.text(max_size=3)), max_size=3
            ),
        },
    ),
    max_size=8,
)


@given(ROWS)
def test_whatever_is_stored_leaves_well_formed(rows: list[dict[str, object]]) -> None:
    sent = repair(rows)
    json.dumps(sent, ensure_ascii=False).encode()
    assert repair(sent) == sent
    awaited: list[object] = []
    seen: set[object] = set()
    for message in sent:
        if message["role"] == "tool":
            assert awaited.pop(0) == message["tool_call_id"]
            continue
        assert awaited == []
        calls: Any = message.get("tool_calls", [])
        awaited = [one["id"] for one in calls]
        assert not seen & set(awaited)
        seen |= set(awaited)
        assert message["role"] != "assistant" or message["content"] or calls
        assert all(isinstance(json.loads(one["function"]["arguments"]), dict) for one in calls)
    assert awaited == []
    turns = [message["role"] for message in sent if message["role"] != "tool"]
    begin = turns[:1] == ["system"]
    assert "system" not in turns[begin:]
    assert turns[begin : begin + 1] in ([], ["user"])
    roles = [message["role"] for message in sent]
    assert not {("user", "user"), ("tool", "user")} & set(itertools.pairwise(roles))
    plain = [(before, after) for before, after in itertools.pairwise(sent) if before["role"] == after["role"] == "assistant"]
    assert not plain, "an assistant's words follow its results or the user"
    assert not roles or roles[-1] in ("user", "tool")


@given(st.lists(st.builds(Call, st.text(max_size=60), st.just("f"), st.just("{}")), max_size=9), st.sets(st.text(max_size=3)))
def test_ids_end_up_unique_and_short(calls: list[Call], taken: set[str]) -> None:
    ids = [one.id for one in unique_ids(calls, taken)]
    assert len(set(ids)) == len(ids) == len(calls)
    assert not set(ids) & taken
    assert all(0 < len(one) <= 40 for one in ids)


# --- the scripted server itself ---------------------------------------------------------------------


async def run(script: list[Scripted], requests: int) -> None:
    async with ScriptedModel(script) as model, Client(model.base_url) as client:
        for _ in range(requests):
            with contextlib.suppress(ModelError):
                await client.ask()


async def test_the_script_fails_on_too_many_and_too_few_requests() -> None:
    await run([reply("one")], 1)
    with pytest.raises(AssertionError, match="unexpected request 1"):
        await run([], 1)
    with pytest.raises(AssertionError, match="nobody asked for"):
        await run([reply("never")], 0)


async def test_agents_have_scripts_of_their_own() -> None:
    async with (
        ScriptedModel(scripts={"m": [reply("one"), Delay(0.0, reply("two"))]}, key=lambda request: request.model) as model,
        Client(model.base_url) as client,
    ):
        assert [(await client.ask()).text for _ in range(2)] == ["one", "two"]
