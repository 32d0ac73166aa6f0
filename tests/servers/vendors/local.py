"""Servers at home, with the checks of chat templates."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, ClassVar

from tests.servers.model import Json, Status
from tests.servers.vendors.base import Vendor, raw, whole_calls
from tests.servers.vendors.hosted import Mistral
from tests.servers.vendors.rules import (
    ALL_ALTERNATE,
    ENDS_IN_QUESTION,
    NO_RESULTS,
    NO_SYSTEM,
    NO_USER_AFTER_RESULT,
    NOT_EMPTY,
    PAIRED,
    ROLES_ALTERNATE,
    SYSTEM_FIRST,
    VALID_ARGUMENTS,
    ids,
    refuses_tools,
)


class Ollama(Vendor):
    """Ollama's compatible endpoint: arguments are parsed (ollama `openai/openai.go`), calls come whole, and a reply with calls ends with
    "stop" in some versions; usage in a stream only when asked for."""

    name = "Ollama"
    model = "qwen3:8b"
    rules = (SYSTEM_FIRST, VALID_ARGUMENTS, PAIRED)

    def deltas(self, message: Json) -> Iterator[Json]:
        return whole_calls(message)

    def dressed(self, body: Json) -> Json:
        made = super().dressed(body)
        choices: Any = made["choices"]
        choices[0]["finish_reason"] = "stop"
        return made


class LMStudio(Vendor):
    """LM Studio with Ministral: the template's check (mini-swe-agent #759), ids of nine digits; the error is a plain text."""

    name = "LM Studio"
    model = "ministral-3-8b"
    rules = (ROLES_ALTERNATE, NOT_EMPTY, PAIRED)

    def error(self, words: str) -> Status:
        return raw(400, {"error": f'Error rendering prompt with jinja template: "{words}"'})

    def call_id(self, name: str, number: int) -> str:
        return f"{self.answers:08}{number}"


class VLLM(Vendor):
    """vLLM with a template that takes all (Qwen's): ids of its own, thoughts in `reasoning_content`, which it ignores when sent back."""

    name = "vLLM"
    model = "Qwen/Qwen3-8B"
    first_id = "chatcmpl-tool-"
    rules = (SYSTEM_FIRST, PAIRED, VALID_ARGUMENTS)

    def error(self, words: str) -> Status:
        return raw(400, {"error": {"message": words, "type": "BadRequestError", "param": None, "code": 400}})

    def think(self, message: dict[str, Any]) -> None:
        message["reasoning_content"] = "Hm."

    def given(self, call_number: int) -> dict[str, object]:
        return {} if call_number else {"reasoning_content": "Hm."}


class VLLMMistral(VLLM):
    """vLLM with `--tokenizer-mode mistral`: Mistral's own validator (mistral-common #169)."""

    name = "vLLM, Mistral"
    model = "mistralai/Mistral-Small-3.2-24B-Instruct-2506"
    rules = (
        SYSTEM_FIRST,
        PAIRED,
        NO_USER_AFTER_RESULT,
        ENDS_IN_QUESTION,
        next(rule for rule in Mistral.rules if rule.name.startswith("call ids")),
    )

    def call_id(self, name: str, number: int) -> str:
        return f"D681Pev{self.answers % 10}{number}"


class VLLMGemma(VLLM):
    """vLLM with Gemma 3's own template: two roles that alternate and no calls (adk-python #1373, conversations #197); function calls
    need a parser that is not set: '"auto" tool choice requires --enable-auto-tool-choice'."""

    name = "vLLM, Gemma 3"
    model = "google/gemma-3-12b-it"
    rules = (
        refuses_tools('"auto" tool choice requires --enable-auto-tool-choice and --tool-call-parser to be set'),
        ALL_ALTERNATE,
    )

    def given(self, call_number: int) -> dict[str, object]:
        return {}


class LlamaCpp(Vendor):
    """llama.cpp with --jinja and a template that takes all; random ids of 32 characters."""

    name = "llama.cpp --jinja"
    model = "qwen3-8b"
    status = 500
    rules = (PAIRED, VALID_ARGUMENTS)

    def error(self, words: str) -> Status:
        return raw(self.status, {"error": {"code": self.status, "message": words, "type": "server_error"}})


class LlamaCppMinistral(LlamaCpp):
    """llama.cpp with --jinja and Devstral's or Ministral's template, whose exception is a 500 (opencode #5034)."""

    name = "llama.cpp, Ministral"
    model = "ministral-3-8b"
    rules = (
        SYSTEM_FIRST,
        ROLES_ALTERNATE,
        PAIRED,
        ids("[a-zA-Z0-9]{9}", "Tool call IDs should be alphanumeric strings with length 9!"),
    )


class LlamaCppGemma2(LlamaCpp):
    """llama.cpp with Gemma 2's template: no system role, two roles that alternate (llama-cpp-python #1580, mistral.rs #506)."""

    name = "llama.cpp, Gemma 2"
    model = "gemma-2-9b-it"
    rules = (NO_SYSTEM, NO_RESULTS, ALL_ALTERNATE)


class LlamaCppWithoutJinja(LlamaCpp):
    """llama.cpp without --jinja: "tools param requires --jinja flag" as 500 (LLMKube #126)."""

    name = "llama.cpp"
    model = "qwen2.5-1.5b"
    rules: ClassVar = (refuses_tools("tools param requires --jinja flag"), SYSTEM_FIRST)
