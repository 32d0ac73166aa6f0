"""What can go wrong between us and a model's endpoint, by who can do something about it.

    ModelError
    ├── ModelUnavailable   nobody: try again later
    ├── ModelRejected      the operator: the message says what to change
    ├── ContextOverflow    the queue manager: flush and ask again
    └── ContentRefused     the person: the endpoint will not process or give this content

The end of the file is what a refusal teaches about a model, so that the next request leaves it out.
No error holds message text or a key: an endpoint's own words may quote either, so only the HTTP status, the
error code and the model's name are kept.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from typing import Literal, cast

import openai

from bot.logs import Tellable
from bot.model import vendor


class ModelError(Tellable):
    """The model gave no usable answer. `status` is the HTTP status of an endpoint that answered with an error."""

    status: int | None = None


class ModelUnavailable(ModelError):
    """The endpoint cannot answer now; the same request may work later.

    `retry_after` is the wait in seconds the endpoint asked for, None if it named none. `unreached`: no connection came about.
    """

    unreached = False

    def __init__(self, message: str, retry_after: float | None = None) -> None:
        super().__init__(message)
        self.retry_after = retry_after


class ModelRejected(ModelError):
    """The endpoint refuses requests like this one for good; the message tells the operator what to do."""


class ContextOverflow(ModelError):
    """The request is longer than the model's context window, in spite of our own count."""


class ContentRefused(ModelError):
    """The endpoint's content filter stopped the request or the answer."""


_OVERFLOW_CODES = ("context_length", "context_size", "string_above_max_length", "max_prompt_tokens", "input_too_long")
_OVERFLOW = re.compile(
    r"maximum context|context[ _-]?(?:length|window|size|limit)|(?:prompt|input|request) (?:is |was )?too (?:long|large)"
    r"|too many (?:input |prompt )?tokens|reduce (?:the )?(?:length|size) of (?:the |your )?(?:messages|prompt|input)"
    r"|(?:input|prompt) tokens?\b.{0,60}(?:exceed|must be|maximum)|tokens?.{0,40}exceeds? the (?:maximum|limit|model)"
    r"|exceeds? (?:the )?(?:model'?s? )?(?:maximum|max)[ _](?:number of )?(?:input |prompt )?(?:tokens|length)"
    r"|max_new_tokens.{0,20}must be|range of input length",
    re.IGNORECASE | re.DOTALL,
)
_FILTERED = re.compile(
    r"content[ _-]?(?:filter|management)|content_policy|responsible_?ai|moderation|data_inspection|safety system"
    r"|(?:prohibited|sensitive|inappropriate)[ _]content",
    re.IGNORECASE,
)
_NO_MONEY = re.compile(r"insufficient_quota|billing|insufficient (?:balance|credits)|credit balance", re.IGNORECASE)
_TEMPORARY = frozenset((408, 409, 425, 429))
UNSENT = frozenset(("ConnectError", "ConnectTimeout", "PoolTimeout"))
"""Causes of a connection error before the request left: only these are safe to try again."""


def from_openai(error: openai.OpenAIError, model: str, timeout: float) -> ModelError:
    """Our error for one of the client library's. `timeout` in seconds is only told in the text."""
    if isinstance(error, openai.APIStatusError):
        return from_body(error.status_code, error.body, model, retry_after(error.response.headers))
    if isinstance(error, openai.APITimeoutError):
        return ModelUnavailable(f"the model endpoint did not answer within {timeout:g} s")
    if isinstance(error, openai.APIConnectionError):
        cause = type(error.__cause__).__name__ if error.__cause__ else "no connection"
        failure = ModelUnavailable(f"the model endpoint could not be reached or broke off ({cause})")
        failure.unreached = cause in UNSENT
        return failure
    return ModelUnavailable(f"the model client failed ({type(error).__name__})")


def from_body(status: int, body: object, model: str, wait: float | None = None) -> ModelError:
    """Our error for an HTTP status of 400 and above and its decoded body, whichever server wrote it."""
    error = _from_words(status, body, model, wait)
    error.status = status
    return error


def _from_words(status: int, body: object, model: str, wait: float | None) -> ModelError:
    words, code = _words(body), _code(body)
    what = f"status {status}" + (f", {code}" if code else "")
    if status == 413 or any(one in code for one in _OVERFLOW_CODES) or (status < 500 and _OVERFLOW.search(words)):
        return ContextOverflow(f"the request is longer than {model} takes ({what})")
    if _FILTERED.search(code) or (status in (400, 403, 422) and _FILTERED.search(words)):
        return ContentRefused(f"the endpoint's content filter refused the request ({what})")
    if status == 402 or _NO_MONEY.search(f"{code} {words}" if status in (403, 429) else code):
        return ModelRejected(f"the account at the model endpoint has no credit left ({what}): top it up")
    if status in _TEMPORARY or status >= 500:
        return ModelUnavailable(f"the model endpoint cannot answer now ({what})", wait)
    return ModelRejected(_remedy(status, what, words, model))


def _remedy(status: int, what: str, words: str, model: str) -> str:
    if status == 401:
        return f"the model endpoint refuses the key ({what}): check the environment variable that holds it"
    if status == 403:
        return f"the key may not use {model} ({what}): allow it at the endpoint, or use another key or model"
    if status == 404 or re.search(r"model\b.{0,80}(?:not (?:found|exist)|does not exist|unknown)", words, re.I | re.S):
        return f"the endpoint knows no model {model} or no such address ({what}): check both in config.yaml"
    if "tool" in words:
        return f"the endpoint does no function calls with {model} ({what}): ask for calls by JSON schema instead"
    return f"the endpoint refuses the request for {model} ({what}): run `bot doctor`"


def error_code(error: openai.APIStatusError) -> str:
    """The endpoint's error code and parameter, in lower case."""
    return f"{_code(error.body)} {str(error.param or '')[:64].lower()}"


def error_words(error: openai.APIStatusError) -> str:
    """The endpoint's own words: to decide by, never to log or raise."""
    return _words(error.body)


def _inner(body: object) -> object:
    """The error in a body: as it is, under `error`, or the first of a list of them (Gemini, Cloudflare)."""
    if isinstance(body, list) and body:
        return _inner(body[0])
    if isinstance(body, Mapping):
        given = cast(Mapping[str, object], body)
        inner = given.get("error") or given.get("errors")
        return _inner(inner) if isinstance(inner, list | Mapping) else body if inner is None else inner
    return body


def _words(body: object) -> str:
    inner = _inner(body)
    if isinstance(inner, Mapping):
        parts = [inner.get(key) for key in ("message", "msg", "detail", "type", "param", "metadata")]
        return " ".join(str(part) for part in parts if part)[:4000].lower()
    return str(inner or "")[:4000].lower()


def _code(body: object) -> str:
    """A code such as `rate_limit_exceeded`; free text in its place is not let through."""
    inner = _inner(body)
    if not isinstance(inner, Mapping):
        return ""
    for key in ("code", "type"):
        value = str(inner.get(key) or "").lower()
        if re.fullmatch(r"[a-z][a-z0-9_.-]{2,63}", value) and not value.startswith("sk-"):
            return value
    return ""


def retry_after(headers: Mapping[str, str]) -> float | None:
    """Seconds to wait by `retry-after-ms` or `Retry-After` (seconds or a date), None without a usable one."""
    try:
        if "retry-after-ms" in headers:
            return max(0.0, float(headers["retry-after-ms"]) / 1000)
        value = headers.get("retry-after")
        if value is None:
            return None
        if re.fullmatch(r"\s*\d+(\.\d+)?\s*", value):
            return float(value)
        # Measured by the endpoint's own clock where it tells the time, ours may differ.
        now = parsedate_to_datetime(headers["date"]) if "date" in headers else datetime.now(UTC)
        return max(0.0, (parsedate_to_datetime(value) - now).total_seconds())
    except (ValueError, TypeError):
        return None


# --- what a refusal teaches -------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Habits:
    """What one model was found to refuse."""

    token_argument: Literal["max_tokens", "max_completion_tokens"] = "max_tokens"
    token_argument_settled: bool = False
    native_calls: bool = True
    temperature: bool = True
    reasoning_effort: bool = True
    response_format: bool = True
    streams: bool = True
    stream_options: bool = True
    images: bool = True
    refused_choices: frozenset[str] = frozenset()
    missing_thoughts: frozenset[str] = frozenset()
    """What it wants with every call, whoever made it (`bot.model.vendor`)."""
    thoughts: bool = True
    """Whether it takes back what it gave beside its calls."""
    system_role: bool = True
    null_content: bool = True
    """Whether a message of calls alone may have no content instead of an empty one."""
    largest_reply: int | None = None


_NO_CALLS = re.compile(
    r"requires --jinja|roles must alternate|only user and assistant roles|not support (?:tool|function)"
    r"|(?:tool|function).{0,40}(?:not support|disabled)|auto-tool|endpoints found that support tool"
    r"|(?:unsupported|unrecognized|unknown|unexpected|not permitted).{0,60}\btools\b"
    r"|\btools\b.{0,60}(?:unsupported|unrecognized|unknown|not permitted|not allowed)",
    re.DOTALL,
)


_NO_SYSTEM = re.compile(r"system role (?:is )?not supported|got system|(?:role|'system').{0,40}unsupported role.{0,20}system")
_NO_NULL = re.compile(r"null.? not in|content.{0,60}(?:string|null|none)|expected (?:a )?string")
_NO_IMAGES = re.compile(
    r"'array' not in|image|vision|multi-?modal|content type|must be a string|valid string|should be a string|expected str"
)


def _shows_images(request: Mapping[str, object]) -> bool:
    messages = request.get("messages")
    return isinstance(messages, list) and any(isinstance(message.get("content"), list) for message in messages)


def _has_null(request: Mapping[str, object]) -> bool:
    messages = request.get("messages")
    return isinstance(messages, list) and any(message.get("content", "") is None for message in messages)


def adapted(habits: Habits, request: Mapping[str, object], status: int, code: str, words: str) -> Habits | None:
    """The habits after a refusal of `request` with the endpoint's error code and words; None if nothing to learn.

    Every change leaves something out that was in the request, or settles something, so it cannot go on for ever.
    """
    if status not in (400, 404, 422, 500, 501):
        return None
    said = f"{code} {words}"
    missed = vendor.missed(said)
    if missed and missed not in habits.missing_thoughts:
        return replace(habits, missing_thoughts=habits.missing_thoughts | {missed}, thoughts=True)
    if habits.thoughts and vendor.sent(request) and any(name in said for name in (*vendor.THOUGHTS, vendor.SIGNED)):
        return replace(habits, thoughts=False)
    if habits.system_role and _NO_SYSTEM.search(said):
        return replace(habits, system_role=False)
    if habits.null_content and _NO_NULL.search(said) and _has_null(request) and not (habits.images and _shows_images(request)):
        return replace(habits, null_content=False)
    if habits.images and _NO_IMAGES.search(said) and _shows_images(request):
        return replace(habits, images=False)
    if "stream" in request and "stream" in said:
        return replace(habits, stream_options=False) if "stream_options" in request else replace(habits, streams=False)
    limit = re.search(r"at most (\d+) completion tokens", said)
    if limit and habits.largest_reply is None and int(limit[1]) > 0:
        return replace(habits, largest_reply=int(limit[1]))
    refused = re.search(r"unsupported|not support|unrecognized|unknown|unexpected|not permitted|deprecated|not allowed", said)
    if refused and habits.token_argument in said and not habits.token_argument_settled:
        other = "max_completion_tokens" if habits.token_argument == "max_tokens" else "max_tokens"
        return replace(
            habits, token_argument=cast(Literal["max_tokens", "max_completion_tokens"], other), token_argument_settled=True
        )
    if "temperature" in request and "temperature" in said:
        return replace(habits, temperature=False)
    choice = request.get("tool_choice")
    if isinstance(choice, str) and re.search(r"tool[_ ]choice", said):
        return replace(habits, refused_choices=habits.refused_choices | {choice})
    if "reasoning_effort" in request and "reasoning" in said:
        return replace(habits, reasoning_effort=False)
    if "tools" in request and _NO_CALLS.search(said):
        return replace(habits, native_calls=False)
    if "response_format" in request and re.search(r"response[_ ]format|json[_ ]schema", said):
        return replace(habits, response_format=False)
    return None
