"""Hosted endpoints."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, ClassVar

from tests.servers.model import Json, Status, _deltas
from tests.servers.vendors.base import Vendor, raw, whole_calls
from tests.servers.vendors.rules import (
    ENDS_IN_QUESTION,
    GEMINI_SCHEMA,
    NO_CONST,
    NO_EMPTY_OBJECT,
    NO_NULL_CONTENT,
    NO_PARTS,
    NO_USER_AFTER_RESULT,
    NOT_EMPTY,
    OPENAI_SCHEMA,
    PAIRED,
    PARAMETERS,
    SIGNATURES_BACK,
    SYSTEM_FIRST,
    THOUGHTS_BACK,
    UNIQUE_IDS,
    VALID_ARGUMENTS,
    ids,
    known_fields,
    refuses,
)

THOUGHT = "They want to know something, so I look."


class OpenAIChat(Vendor):
    """OpenAI's chat models: API reference "Create chat completion" and "Structured outputs, supported schemas"; ids of at most 40
    characters (langchain #24668); every call answered by its results at once (openai-python #1097)."""

    name = "OpenAI chat"
    model = "gpt-4.1"
    rules = (PAIRED, ids(r".{1,40}", "string too long. Expected a string with maximum length 40"), OPENAI_SCHEMA)


class OSeries(OpenAIChat):
    """OpenAI's reasoning models: "Unsupported parameter: 'max_tokens' is not supported with this model. Use 'max_completion_tokens'
    instead." and no temperature (OpenAI guide "Reasoning", langchain #25961)."""

    name = "OpenAI o-series"
    model = "o4-mini"
    rules = (
        refuses(
            "max_tokens",
            "Unsupported parameter: 'max_tokens' is not supported with this model. Use 'max_completion_tokens' instead.",
        ),
        refuses("temperature", "Unsupported value: 'temperature' does not support 0.7 with this model."),
        *OpenAIChat.rules,
    )

    def used(self, body: Json) -> Json:
        usage: Any = body["usage"]
        return body | {"usage": {**usage, "completion_tokens_details": {"reasoning_tokens": 64}}}


class Gpt5(OSeries):
    """gpt-5: as the o-series."""

    name = "OpenAI gpt-5"
    model = "gpt-5-mini"


class Azure(OpenAIChat):
    """Azure OpenAI: as OpenAI, with its filter's verdicts in every answer; a stream begins with a chunk without choices
    (Azure "Content filtering", "Asynchronous filter")."""

    name = "Azure"
    model = "azure-gpt-4.1"

    def dressed(self, body: Json) -> Json:
        made = super().dressed(body)
        choice: Any = made["choices"]
        choice[0]["content_filter_results"] = {"hate": {"filtered": False, "severity": "safe"}}
        return made | {"prompt_filter_results": [{"prompt_index": 0, "content_filter_results": {}}]}

    def opening(self) -> Iterator[Json]:
        yield {"choices": [], "model": "", "prompt_filter_results": [{"prompt_index": 0, "content_filter_results": {}}]}


class Anthropic(Vendor):
    """Anthropic's compatible endpoint: ids `^[a-zA-Z0-9_-]+$` and unique (ironclaw #1241), no empty text (vercel/ai #5576), each
    tool_use answered in the next message (Anthropic.SDK #184); platform.claude.com "OpenAI SDK compatibility"."""

    name = "Anthropic"
    model = "claude-sonnet-4-5"
    first_id = "toolu_"
    rules = (
        SYSTEM_FIRST,
        PAIRED,
        ids(r"[a-zA-Z0-9_-]+", "messages.1.content.0.tool_use.id: String should match pattern '^[a-zA-Z0-9_-]+$'"),
        UNIQUE_IDS,
        NOT_EMPTY,
        ENDS_IN_QUESTION,
        OPENAI_SCHEMA,
    )

    def deltas(self, message: Json) -> Iterator[Json]:
        return whole_calls(message)


class Gemini(Vendor):
    """Gemini's compatible endpoint: schemas (litellm #14155, langchainjs #9875, opencode #46676), thought signatures in the running
    turn with the documented stand-in (ai.google.dev/gemini-api/docs/thought-signatures); errors come in a list, a stream gives calls
    whole and without an index, and always the usage."""

    name = "Gemini"
    model = "gemini-3-flash-preview"
    rules = (PAIRED, SIGNATURES_BACK, GEMINI_SCHEMA, NO_EMPTY_OBJECT, NO_CONST, known_fields("extra_content"))

    def error(self, words: str) -> Status:
        return raw(400, [{"error": {"code": 400, "message": words, "status": "INVALID_ARGUMENT"}}])

    def call_id(self, name: str, number: int) -> str:
        return f"function-call-{self.answers}{number}" + "1234567890123456789"

    def think(self, message: dict[str, Any]) -> None:
        for call in (message.get("tool_calls") or ())[:1]:
            call |= self._signature()

    def given(self, call_number: int) -> dict[str, object]:
        return {} if call_number else self._signature()

    def _signature(self) -> dict[str, object]:
        return {"extra_content": {"google": {"thought_signature": "CiQB" + "x" * 60}}}

    def deltas(self, message: Json) -> Iterator[Json]:
        for delta in whole_calls(message):
            calls: Any = delta.get("tool_calls") or []
            yield {
                **delta,
                **({"tool_calls": [{k: v for k, v in one.items() if k != "index"} for one in calls]} if calls else {}),
            }

    def ending(self, usage: object, finish: object, asked: Json) -> Iterator[Json]:
        yield {"choices": [{"index": 0, "delta": {}, "finish_reason": finish}], "usage": usage}


class Mistral(Vendor):
    """Mistral: the order of roles (mistral-common, `instruct/validator.py`; code 3230; zed #37021, avante #2695), ids of nine
    letters and digits (opencode #1680), no unknown field (422), functions with parameters (mistral `client-python`)."""

    name = "Mistral"
    model = "mistral-small-latest"
    rules = (
        SYSTEM_FIRST,
        PAIRED,
        NO_USER_AFTER_RESULT,
        ENDS_IN_QUESTION,
        ids("[a-zA-Z0-9]{9}", "Tool call id was call_1 but must be a-z, A-Z, 0-9, with a length of 9."),
        known_fields(),
        PARAMETERS,
        VALID_ARGUMENTS,
    )

    def error(self, words: str) -> Status:
        return raw(
            400, {"object": "error", "message": words, "type": "invalid_request_message_order", "param": None, "code": "3230"}
        )

    def call_id(self, name: str, number: int) -> str:
        return f"D681Pev{self.answers % 10}{number}"

    def deltas(self, message: Json) -> Iterator[Json]:
        return whole_calls(message)

    def ending(self, usage: object, finish: object, asked: Json) -> Iterator[Json]:
        yield {"choices": [{"index": 0, "delta": {}, "finish_reason": finish}], "usage": usage}


class Thinking(Vendor):
    """Who gives a thought beside every answer and wants it back beside calls."""

    field: ClassVar[str] = "reasoning_content"
    rules = (PAIRED, THOUGHTS_BACK, OPENAI_SCHEMA)

    def think(self, message: dict[str, Any]) -> None:
        message[self.field] = self._thought()

    def given(self, call_number: int) -> dict[str, object]:
        return {} if call_number else {self.field: self._thought()}

    def _thought(self) -> object:
        return THOUGHT


class DeepSeek(Thinking):
    """DeepSeek, thinking: "The reasoning_content in the thinking mode must be passed back to the API" (api-docs.deepseek.com
    guides/thinking_mode; pi #3636); what was cached stands in `prompt_cache_hit_tokens`."""

    name = "DeepSeek"
    model = "deepseek-chat"

    def error(self, words: str) -> Status:
        thoughts = "The reasoning_content in the thinking mode must be passed back to the API."
        return Status(400, "invalid_request_error", thoughts if "reasoning_content" in words else words)

    def used(self, body: Json) -> Json:
        usage: Any = body["usage"]
        return body | {"usage": {**usage, "prompt_cache_hit_tokens": 8, "prompt_cache_miss_tokens": usage["prompt_tokens"] - 8}}


class Kimi(Thinking):
    """Kimi K2.5 and later: "thinking is enabled but reasoning_content is missing in assistant tool call message at index 2", an empty
    one too (opencode #10996); ids are `functions.NAME:NUMBER`; the usage of a stream stands in its last choice."""

    name = "Kimi"
    model = "kimi-k2.5"

    def call_id(self, name: str, number: int) -> str:
        return f"functions.{name}:{number}"

    def ending(self, usage: object, finish: object, asked: Json) -> Iterator[Json]:
        yield {"choices": [{"index": 0, "delta": {}, "finish_reason": finish, "usage": usage}]}


class Groq(Vendor):
    """Groq: unknown fields are refused, `reasoning_content` among them (freellmapi #1070); failures of its own parser come as
    `tool_use_failed`; the usage of a stream stands in `x_groq`."""

    name = "Groq"
    model = "openai/gpt-oss-120b"
    rules = (PAIRED, known_fields("reasoning"), OPENAI_SCHEMA, VALID_ARGUMENTS)

    def think(self, message: dict[str, Any]) -> None:
        message["reasoning"] = THOUGHT

    def ending(self, usage: object, finish: object, asked: Json) -> Iterator[Json]:
        yield {"choices": [{"index": 0, "delta": {}, "finish_reason": finish}], "x_groq": {"id": "req_1", "usage": usage}}


class OpenRouter(Thinking):
    """OpenRouter: hands `reasoning_details` through and wants them back unchanged (openrouter.ai "Preserving reasoning"); comments in
    the stream; refusals of the provider in `metadata.raw`."""

    name = "OpenRouter"
    model = "anthropic/claude-sonnet-4.5"
    field = "reasoning_details"
    first_id = "toolu_"
    rules = (SYSTEM_FIRST, PAIRED, UNIQUE_IDS, OPENAI_SCHEMA)

    def _thought(self) -> object:
        return [{"type": "reasoning.text", "text": THOUGHT, "signature": "sig", "index": 0, "format": "anthropic-claude-v1"}]

    def error(self, words: str) -> Status:
        error = {"message": "Provider returned error", "code": 400, "metadata": {"raw": words, "provider_name": "Anthropic"}}
        return raw(400, {"error": error, "user_id": "u"})

    def deltas(self, message: Json) -> Iterator[Json]:
        for start in range(0, len(THOUGHT), 9):
            yield {"content": "", self.field: [{"type": "reasoning.text", "text": THOUGHT[start : start + 9], "index": 0}]}
        yield {
            "content": "",
            self.field: [{"type": "reasoning.text", "signature": "sig", "index": 0, "format": "anthropic-claude-v1"}],
        }
        yield from _deltas(message)

    def ending(self, usage: object, finish: object, asked: Json) -> Iterator[Json]:
        yield {"choices": [{"index": 0, "delta": {}, "finish_reason": finish}], "usage": usage}


class XAI(Vendor):
    """xAI: any order of roles; `reasoning_content` is given and not wanted back; no empty message ("Each message must have at least one
    content element", docs.x.ai)."""

    name = "xAI"
    model = "grok-4-fast"
    rules = (PAIRED, NOT_EMPTY, OPENAI_SCHEMA)

    def think(self, message: dict[str, Any]) -> None:
        message["reasoning_content"] = THOUGHT

    def given(self, call_number: int) -> dict[str, object]:
        return {} if call_number else {"reasoning_content": THOUGHT}

    def deltas(self, message: Json) -> Iterator[Json]:
        return whole_calls(message)


class Cloudflare(Vendor):
    """Cloudflare Workers AI: every content is a string, also beside calls (zeroclaw #9493, goai #79, opencode #30381)."""

    name = "Cloudflare"
    model = "@cf/meta/llama-3.3-70b-instruct-fp8-fast"
    rules = (PAIRED, NO_NULL_CONTENT, NO_PARTS, PARAMETERS)

    def error(self, words: str) -> Status:
        return raw(400, {"errors": [{"message": words, "code": 5006}], "success": False, "result": {}, "messages": []})
