"""What can go wrong between us and a model's endpoint, by who can do something about it.

    ModelError
    ├── ModelUnavailable   nobody: try again later
    ├── ModelRejected      the operator: the message says what to change
    ├── ContextOverflow    the queue manager: flush and ask again
    └── ContentRefused     the person: the endpoint will not process or give this content

What a refusal teaches about a model is in `bot.model.habits`.
No error holds message text or a key: an endpoint's own words may quote either, so only the HTTP status, the
error code and the model's name are kept.
"""

import re
from collections.abc import Mapping
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from typing import cast

import openai

from bot.logs import Tellable


class ModelError(Tellable):
    """The model gave no usable answer. `status` is the HTTP status of an endpoint that answered with an error."""

    status: int | None = None


class ModelUnavailable(ModelError):
    """The endpoint cannot answer now; the same request may work later.

    `retry_after` is the wait in seconds the endpoint asked for, None if it named none. `unreached`: no connection came about.
    `unreadable`: what came is no answer of such an endpoint, a web page say. `limited`: it answers no more than so often.
    `miscalled`: the model wrote a call that its own endpoint could not read.
    """

    unreached = False
    unreadable = False
    limited = False
    miscalled = False

    def __init__(self, message: str, retry_after: float | None = None) -> None:
        super().__init__(message)
        self.retry_after = retry_after


class ModelRejected(ModelError):
    """The endpoint refuses requests like this one for good; the message tells the operator what to do."""


class ContextOverflow(ModelError):
    """The request is longer than the model's context window, in spite of our own count."""


class ContentRefused(ModelError):
    """The endpoint's content filter stopped the request or (`answer`) what the model wrote."""

    answer = False


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
_EMPTY = re.compile(r"insufficient_quota|insufficient (?:balance|credits)|credit balance|\blimit: 0\b", re.IGNORECASE)
"""What a full stop says, also where a pace is named beside it: Gemini's free plan has models of which it gives none."""
_PACE = re.compile(r"rate.?limit|per.?(?:second|minute|hour|day)|(?:try again|retry) in \d|retry.?delay", re.IGNORECASE)
"""What a limit that passes says. Gemini writes "quota" and "billing" into it, too."""
_WAIT = re.compile(
    r"(?:try again|retry) in (?:about )?((?:\d+(?:\.\d+)?(?:ms|h|m|s|\b)\s?)+)|retry.?delay\W{1,6}((?:\d+(?:\.\d+)?(?:ms|h|m|s)))",
    re.I,
)
_MISCALLED = re.compile(
    r"tool_use_failed|failed to call a function|malformed_?function_?call|failed to parse (?:tool|function) call"
)
_TEMPLATE = re.compile(
    r"chat.?template|jinja|raise_exception|templateerror|roles must alternate|unexpected role|system role (?:is )?not supported"
    r"|only (?:user|system|tool|assistant).{0,60}roles are supported|no user query found|expected last role"
)
"""What the exceptions of chat templates say. Servers give them as 400 or as 500."""
_ELSEWHERE = re.compile(
    r"(?:only|not).{0,40}supported.{0,40}v1/responses|not a chat model|v1/responses.{0,60}(?:instead|only)", re.DOTALL
)
_RELATIVE = re.compile(r"-(?:pro|codex|deep-research)\b.*")
NO_ADDRESS = re.compile(r"unexpected endpoint|invalid url|unknown (?:request )?(?:url|endpoint)", re.I)
"""What LM Studio says under status 200 where nothing is found."""
_TEMPORARY = frozenset((408, 409, 425, 429))
UNSENT = frozenset(("ConnectError", "ConnectTimeout", "PoolTimeout"))
"""Causes of a connection error before the request left: only these are safe to try again."""


def from_openai(error: openai.OpenAIError, model: str, timeout: float) -> ModelError:
    """Our error for one of the client library's. `timeout` in seconds is only told in the text."""
    if isinstance(error, openai.APIStatusError):
        return from_body(error.status_code, error.body, model, retry_after(error.response.headers))
    if isinstance(error, openai.APITimeoutError):
        return silent(timeout)
    if isinstance(error, openai.APIConnectionError):
        cause = type(error.__cause__).__name__ if error.__cause__ else "no connection"
        failure = ModelUnavailable(f"the model endpoint could not be reached or broke off ({cause})")
        failure.unreached = cause in UNSENT
        return failure
    return ModelUnavailable(f"the model client failed ({type(error).__name__})")


def silent(seconds: float) -> ModelUnavailable:
    """Nothing came for so long."""
    return ModelUnavailable(f"the model endpoint did not answer within {seconds:g} s")


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
    said = f"{code} {words}"
    if _MISCALLED.search(said):
        return _unavailable(f"the model wrote a call that its endpoint could not read ({what})", miscalled=True)
    if status == 429 and _PACE.search(said) and not _EMPTY.search(said):
        return _unavailable(
            f"the model endpoint limits how often it answers ({what})", wait or _asked_to_wait(body), limited=True
        )
    if status == 402 or _NO_MONEY.search(said if status in (403, 429) else code):
        return ModelRejected(f"the account at the model endpoint has no credit left ({what}): top it up")
    if _TEMPLATE.search(words):
        return ModelRejected(_template(what, words, model))
    if status in _TEMPORARY or status >= 500:
        return _unavailable(f"the model endpoint cannot answer now ({what})", wait, limited=status == 429)
    return ModelRejected(_remedy(status, what, words, model))


def _unavailable(message: str, wait: float | None = None, *, limited: bool = False, miscalled: bool = False) -> ModelUnavailable:
    error = ModelUnavailable(message, wait)
    error.limited, error.miscalled = limited, miscalled
    return error


def _template(what: str, words: str, model: str) -> str:
    if "jinja" in words:
        return f"the endpoint does no function calls with {model} ({what}): start llama-server with --jinja, or set model.calls to schema"
    return f"the chat template of {model} refuses the request ({what}): set model.calls to schema, or use another model"


def _remedy(status: int, what: str, words: str, model: str) -> str:
    if status == 401:
        return f"the model endpoint refuses the key ({what}): check the environment variable that holds it"
    if _ELSEWHERE.search(words):
        return f"{model} answers in /v1/responses alone, which is not spoken here ({what}): {instead(model)}"
    if status == 403:
        return f"the key may not use {model} ({what}): allow it at the endpoint, or use another key or model"
    if status == 404 or re.search(r"model\b.{0,80}(?:not (?:found|exist)|does not exist|unknown)", words, re.I | re.S):
        return f"the endpoint knows no model {model} or no such address ({what}): check both in config.yaml"
    if "tool" in words:
        return f"the endpoint does no function calls with {model} ({what}): ask for calls by JSON schema instead"
    return f"the endpoint refuses the request for {model} ({what}): run `bot doctor`"


def not_for_chats(model: str) -> bool:
    """Whether a name is like those of models that do not answer in /v1/chat/completions."""
    return _RELATIVE.search(model) is not None


def instead(model: str) -> str:
    """Which model to name where one cannot be used: its relative that chats, where the name tells."""
    if not_for_chats(model):
        return f"set model.chat to {_RELATIVE.sub('', model)}"
    return "name a model.chat that answers in /v1/chat/completions"


def wrong_address(error: openai.APIStatusError) -> bool:
    """Whether a refusal is about the address and not about the model: no such page."""
    words = _words(error.body)
    return error.status_code in (404, 405) and not (
        _ELSEWHERE.search(words) or re.search(r"model|deployment", f"{_code(error.body)} {words}")
    )


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
        parts = [inner.get(key) for key in ("message", "msg", "detail", "type", "param", "metadata", "details", "status")]
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


def _asked_to_wait(body: object) -> float | None:
    """Seconds to wait by an error's words: "try again in 1m30s", "retryDelay": "27s"."""
    found = _WAIT.search(_words(body))
    if found is None:
        return None
    units = {"ms": 0.001, "s": 1.0, "": 1.0, "m": 60.0, "h": 3600.0}
    parts = re.findall(r"(\d+(?:\.\d+)?)(ms|h|m|s|)", found[1] or found[2])
    return sum(float(number) * units[unit] for number, unit in parts)


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
