"""What vendors answer that is no plain error and no plain answer: failures under status 200, paces, templates, wrong addresses."""

from __future__ import annotations

import json
from typing import Any

import pytest

from bot.model.errors import ContentRefused, ModelError, ModelRejected, ModelUnavailable, from_body
from tests.bot.model.test_llm import LIST, SEND, Client, schema_reply
from tests.servers.model import Answer, Gate, Growing, Raw, Request, Scripted, ScriptedModel, Status, call, reply

UPSTREAM: dict[str, object] = {"code": 502, "message": "Provider returned error"}


def half(finish: str, **choice: object) -> Raw:
    """Half an answer with a failure beside it, not streamed."""
    made = {"message": {"role": "assistant", "content": "The answer is for"}, "finish_reason": finish, **choice}
    return Raw(json.dumps({"choices": [made]}))


HALVES: dict[str, Scripted] = {
    "OpenRouter, choices[0].error": half("error", error=UPSTREAM),
    "OpenRouter, error beside the choices": Raw(
        json.dumps({"error": UPSTREAM, "choices": [{"message": {"content": "The answer"}, "finish_reason": "error"}]})
    ),
    "OpenRouter, in the stream": Growing(reply("The answer is forty-two."), shown=14, failed=UPSTREAM),
    "finish_reason error": half("error"),
    "DeepSeek, overloaded": half("insufficient_system_resource"),
    "Gemini, malformed call": half("function_call_filter: MALFORMED_FUNCTION_CALL"),
    "Groq, its own bad call": Status(400, "tool_use_failed", "Failed to call a function. Please adjust your prompt."),
    "vLLM, aborted": Answer("The answer is", finish="abort"),
}


@pytest.mark.parametrize("fault", HALVES.values(), ids=HALVES.keys())
async def test_half_an_answer_is_asked_for_again(fault: Scripted) -> None:
    async with ScriptedModel([fault, reply("Forty-two.")]) as model, Client(model.base_url) as client:
        assert (await client.ask(SEND)).text == "Forty-two."
        assert len(model.requests) == 2


@pytest.mark.parametrize("fault", HALVES.values(), ids=HALVES.keys())
async def test_half_an_answer_is_never_an_answer(fault: Scripted) -> None:
    async with ScriptedModel(policy=lambda _: fault) as model, Client(model.base_url) as client:  # type: ignore[arg-type,return-value]
        with pytest.raises(ModelUnavailable):
            await client.ask()


async def test_a_model_that_fails_over_its_own_calls_answers_without_them() -> None:
    def groq(request: Request) -> Any:
        return Status(400, "tool_use_failed", "Failed to call a function.") if request.functions else reply("Plainly.")

    async with ScriptedModel(policy=groq) as model, Client(model.base_url) as client:
        assert (await client.ask(SEND)).text == "Plainly."
        assert [bool(request.functions) for request in model.requests] == [True, True, True, False]


@pytest.mark.parametrize("finish", ["content_filter", "content_filter: PROHIBITED_CONTENT", "SAFETY"])
async def test_an_answer_that_was_stopped_is_no_answer(finish: str) -> None:
    async with ScriptedModel([reply("The way to", finish=finish)]) as model, Client(model.base_url) as client:
        with pytest.raises(ContentRefused) as caught:
            await client.ask()
        assert caught.value.answer


# --- silence ----------------------------------------------------------------------------------------


async def test_a_slow_answer_may_take_longer_than_the_timeout() -> None:
    words = "A slow machine writes a long answer, piece by piece."
    async with ScriptedModel([Growing(reply(words), pace=0.2)]) as model, Client(model.base_url, timeout=0.8) as client:
        answer = await client.ask()
        assert answer.text == words
        assert answer.seconds > 0.8


async def test_a_stream_that_falls_silent_ends_at_the_timeout() -> None:
    async with (
        ScriptedModel([Growing(reply("And then it was silent for ever."), shown=7)]) as model,
        Client(model.base_url, timeout=0.3) as client,
    ):
        with pytest.raises(ModelUnavailable, match="within 0.3 s"):
            await client.ask()


async def test_a_first_word_that_never_comes_ends_at_the_timeout() -> None:
    async with ScriptedModel([Gate()]) as model, Client(model.base_url, timeout=0.2) as client:
        with pytest.raises(ModelUnavailable, match="within 0.2 s"):
            await client.ask()


# --- paces ------------------------------------------------------------------------------------------

GEMINI = (
    "You exceeded your current quota, please check your plan and billing details. * Quota exceeded for metric: "
    "generate_content_free_tier_requests, limit: {}, model: gemini-2.5-flash. Please retry in 27.5s."
)
RETRY = {"@type": "type.googleapis.com/google.rpc.RetryInfo", "retryDelay": "27s"}


@pytest.mark.parametrize(
    ("body", "wait"),
    [
        ([{"error": {"code": 429, "message": GEMINI.format(10), "status": "RESOURCE_EXHAUSTED", "details": [RETRY]}}], 27.5),
        ({"error": {"code": 429, "message": "Quota exceeded, see billing", "details": [RETRY]}}, 27),
        ({"error": {"code": "rate_limit_exceeded", "message": "Rate limit reached. Please try again in 1m30.5s."}}, 90.5),
        ({"error": {"message": "Rate limit reached for tokens per minute. Please try again in 300ms."}}, 0.3),
        ({"error": {"code": "rate_limit_exceeded", "message": "Upgrade at /settings/billing. Rate limit."}}, None),
    ],
)
def test_a_pace_is_no_empty_account(body: object, wait: float | None) -> None:
    error = from_body(429, body, "m")
    assert isinstance(error, ModelUnavailable)
    assert error.limited
    assert error.retry_after == (None if wait is None else pytest.approx(wait))


@pytest.mark.parametrize(
    "body",
    [
        {"error": {"code": "insufficient_quota", "message": "You exceeded your current quota, check your plan and billing."}},
        [{"error": {"code": 429, "message": GEMINI.format(0), "details": [RETRY]}}],
        {"error": {"message": "Your credit balance is too low"}},
    ],
)
def test_an_empty_account_is_no_pace(body: object) -> None:
    assert isinstance(from_body(429, body, "m"), ModelRejected)


# --- templates, calls -------------------------------------------------------------------------------

TEMPLATES = {
    "llama.cpp without --jinja": Status(500, None, "tools param requires --jinja flag"),
    "Gemma in llama.cpp": Status(
        500, None, "Conversation roles must alternate user/assistant/user/assistant/... at row 3, column 5"
    ),
    "Mistral in vLLM": Status(400, None, "After the optional system message, conversation roles must alternate user/assistant"),
    "LM Studio": Status(400, body='{"error": "Error rendering prompt with jinja template: Unexpected role"}'),
}


@pytest.mark.parametrize("fault", TEMPLATES.values(), ids=TEMPLATES.keys())
async def test_a_template_that_cannot_take_calls_is_asked_by_schema_at_once(fault: Status) -> None:
    async with (
        ScriptedModel([fault, schema_reply("fine", call("list_timers"))]) as model,
        Client(model.base_url, calls="auto") as client,
    ):
        assert (await client.ask(LIST)).text == "fine"
        assert client.pauses == []


@pytest.mark.parametrize("fault", TEMPLATES.values(), ids=TEMPLATES.keys())
async def test_a_template_that_refuses_is_no_outage(fault: Status) -> None:
    async with ScriptedModel([fault]) as model, Client(model.base_url) as client:
        with pytest.raises(ModelRejected, match=r"model\.calls to schema"):
            await client.ask(LIST)


# --- addresses and models ---------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("model", "other"),
    [
        ("gpt-5-pro", "set model.chat to gpt-5 "),
        ("gpt-5.1-codex-max", "set model.chat to gpt-5.1 "),
        ("odd", "name a model.chat"),
    ],
)
def test_a_model_of_responses_alone_is_named_as_such(model: str, other: str) -> None:
    words = "This model is only supported in v1/responses and not in v1/chat/completions."
    error = from_body(404, {"error": {"message": words, "code": None}}, model)
    assert isinstance(error, ModelRejected)
    assert "in /v1/responses alone" in str(error)
    assert other in f"{error} "


async def test_an_address_without_v1_is_completed() -> None:
    async with ScriptedModel([reply("Found."), reply("Still.")]) as model, Client(model.base_url.removesuffix("/v1")) as client:
        assert (await client.ask()).text == "Found."
        assert (await client.ask()).text == "Still."
        assert client.base_url == model.base_url


async def test_a_server_that_says_under_200_that_nothing_is_there_is_asked_below_v1() -> None:
    lost = Raw('{"error": "Unexpected endpoint or method. (POST /chat/completions)"}')
    async with ScriptedModel([lost, reply("Found.")], root=True) as model, Client(model.base_url.removesuffix("/v1")) as client:
        assert (await client.ask()).text == "Found."


# --- parameters of the operator's -------------------------------------------------------------------


async def test_a_parameter_refused_beside_calls_alone_is_left_out_beside_calls_alone() -> None:
    def picky(request: Request) -> Any:
        if request.functions and "seed" in request.body:
            return Status(400, "unsupported_parameter", "Unsupported parameter: 'seed' with tools.", param="seed")
        return reply("fine")

    async with ScriptedModel(policy=picky) as model, Client(model.base_url, extra={"seed": 7, "n": 1}) as client:
        for functions in ((LIST,), (LIST,), ()):
            await client.ask(*functions)
        assert [request.body.get("seed") for request in model.requests] == [7, None, None, 7]
        assert all(request.body["n"] == 1 for request in model.requests)


async def test_an_effort_that_the_endpoint_wants_beside_calls_is_remembered() -> None:
    def openai(request: Request) -> Any:
        if request.functions and request.body.get("reasoning_effort") != "none":
            words = "Function tools with reasoning_effort are not supported for m. Set reasoning_effort to 'none'."
            return Status(400, None, words, param="reasoning_effort")
        return reply("fine")

    async with ScriptedModel(policy=openai) as model, Client(model.base_url, extra={"reasoning_effort": "high"}) as client:
        for functions in ((LIST,), (LIST,), ()):
            await client.ask(*functions)
        assert [request.body.get("reasoning_effort") for request in model.requests] == ["high", "none", "none", "high"]


def test_no_error_is_taken_for_another() -> None:
    kinds: list[tuple[int, str, type[ModelError]]] = [
        (500, "internal error", ModelUnavailable),
        (400, "invalid temperature", ModelRejected),
        (429, "slow down", ModelUnavailable),
    ]
    assert [type(from_body(status, {"error": {"message": words}}, "m")) for status, words, _ in kinds] == [k for *_, k in kinds]
