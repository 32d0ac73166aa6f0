"""Replies of any shape read into values: null and missing parts, reasoning, calls with odd arguments. Pure."""

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, cast

from bot.model.calls import Call
from bot.model.errors import NO_ADDRESS, ContentRefused, ModelError, ModelUnavailable, from_body
from bot.model.thoughts import spoken
from memory.sanitise import clean
from memory.spending import Usage

Body = Mapping[str, object]
"""A decoded JSON object of an endpoint."""


@dataclass(frozen=True, slots=True)
class Reply:
    """One inference pass. `text` is None where nothing was said; `finish` is the endpoint's word; `seconds` its time."""

    text: str | None
    calls: tuple[Call, ...] = ()
    finish: str = "stop"
    usage: Usage = Usage()
    model: str = ""
    seconds: float = 0.0
    prompt_seen: int = 0
    """Prompt tokens of the last request alone, where a second one was needed and `usage` is the sum."""


def decoded(content: bytes, model: str) -> Body | ModelError:
    """The JSON object in an answer's body, or why there is none (some servers report faults under status 200)."""
    try:
        body = json.loads(content)
    except (ValueError, RecursionError):
        return _unreadable("the model endpoint's answer is no JSON or was cut off")
    if not isinstance(body, dict):
        return _unreadable("the model endpoint's answer is no JSON object")
    if body.get("error") and not body.get("data"):
        status = 404 if NO_ADDRESS.search(str(body["error"])) else number(mapping(body["error"]).get("code"))
        return from_body(status if 400 <= status < 600 else 502, body, model)
    choice = next(iter(dicts(body.get("choices"))), {})
    return failure_of(choice, model) or body


def _unreadable(message: str) -> ModelUnavailable:
    error = ModelUnavailable(message)
    error.unreadable = True
    return error


LARGEST = 100_000_000
"""Tokens of the largest call that a report is believed of."""
LONGEST = 200_000
"""Characters of a reply that are kept; more is no message to a person."""
_FAILED = re.compile(r"error|abort|malformed|insufficient_system_resource|cancel")
"""Ends under status 200 that are failures: OpenRouter's and GLM's errors, DeepSeek's overload, Gemini's unreadable calls."""
_STOPPED = re.compile(r"content.?filter|safety|prohibited|blocklist|recitation|sensitive")


def failure_of(choice: Body, model: str) -> ModelError | None:
    """What a choice under status 200 says of a failure: whatever text is beside it is half an answer."""
    error = choice.get("error")
    if error:
        status = number(mapping(error).get("code"))
        return from_body(status if 400 <= status < 600 else 502, {"error": error}, model)
    finish = str(choice.get("finish_reason") or "").casefold()
    if _FAILED.search(finish):
        failed = ModelUnavailable("the model endpoint broke its answer off")
        failed.miscalled, failed.status = "malformed" in finish, 200
        return failed
    if _STOPPED.search(finish):
        stopped = ContentRefused("the endpoint's content filter stopped the answer")
        stopped.answer = True
        return stopped
    return None


def text_of(message: Body) -> str:
    """What was said, without reasoning; a refusal in the model's own words counts as said."""
    text = spoken(said(message.get("content"))[:LONGEST])
    if not text.strip() and isinstance(message.get("refusal"), str):
        text = str(message["refusal"])
    return clean(text[:LONGEST])


def said(content: object) -> str:
    """The text of a message's content, which may come in parts, thoughts among them."""
    if isinstance(content, list):
        parts = [part.get("text") for part in dicts(content) if part.get("type") in ("text", "output_text")]
        return "".join(str(part) for part in parts if part)
    return content if isinstance(content, str) else ""


def native_calls(message: Body, names: frozenset[str]) -> tuple[Call, ...]:
    """The function calls of a message, with raw arguments; blank ones are no arguments."""
    items = dicts(message.get("tool_calls"))
    if not items and isinstance(message.get("function_call"), dict):
        items = [{"function": message["function_call"]}]
    calls = []
    for item in items:
        function = mapping(item.get("function"))
        name = clean(str(function.get("name") or "")).strip()
        tail = name.rsplit(".", 1)[-1]
        raw = function.get("arguments")
        arguments = raw if isinstance(raw, str) else json.dumps(raw if raw is not None else {}, ensure_ascii=False)
        calls.append(
            Call(
                id=str(item.get("id") or ""),
                name=name if name in names or tail not in names else tail,
                arguments=clean(arguments) if arguments.strip() else "{}",
            )
        )
    return tuple(calls)


def usage_of(value: object) -> Usage:
    """Usage from an answer's `usage`, whatever is missing in it."""
    usage = mapping(value)
    details = mapping(usage.get("prompt_tokens_details"))
    cached = details.get("cached_tokens") or usage.get("prompt_cache_hit_tokens")
    return Usage(number(usage.get("prompt_tokens")), number(cached), number(usage.get("completion_tokens")))


def number(value: object) -> int:
    """A whole number from 0 to `LARGEST`; 0 for anything else, which no endpoint means."""
    try:
        found = int(cast(Any, value))
    except (TypeError, ValueError, OverflowError):
        return 0
    return found if 0 <= found <= LARGEST else 0


def mapping(value: object) -> dict[str, object]:
    """`value` where it is an object, else an empty one."""
    return value if isinstance(value, dict) else {}


def dicts(value: object) -> list[dict[str, object]]:
    """The objects in `value` where it is a list, else none."""
    return [item for item in value if isinstance(item, dict)] if isinstance(value, list) else []
