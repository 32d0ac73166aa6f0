"""What a refusal teaches about a model, so that the next request leaves it out or says it otherwise. Pure."""

import re
from collections.abc import Collection, Mapping
from dataclasses import dataclass, replace
from typing import Literal, cast

from bot.model import vendor


@dataclass(frozen=True, slots=True)
class Habits:
    """What one model was found to refuse."""

    token_argument: Literal["max_tokens", "max_completion_tokens"] = "max_tokens"
    token_argument_settled: bool = False
    native_calls: bool = True
    temperature: bool = True
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
    refused_extras: frozenset[tuple[str, bool]] = frozenset()
    """Parameters of the operator's that it refuses, and whether it did so beside functions."""
    effort_for_calls: str = ""
    """The `reasoning_effort` that it wants beside functions; empty: what the operator says."""

    def extras(self, given: Mapping[str, object], *, functions: bool) -> dict[str, object]:
        """The operator's parameters for a request, as far as the model takes them."""
        kept = {name: value for name, value in given.items() if (name, functions) not in self.refused_extras}
        wanted = functions and self.effort_for_calls and ("reasoning_effort", True) not in self.refused_extras
        return {**kept, "reasoning_effort": self.effort_for_calls} if wanted else kept


_NO_CALLS = re.compile(
    r"tools param requires|not support (?:tool|function)|(?:tool|function).{0,40}(?:not support|disabled)|auto-tool|endpoints found that support tool"
    r"|(?:unsupported|unrecognized|unknown|unexpected|not permitted).{0,60}\btools\b"
    r"|\btools\b.{0,60}(?:unsupported|unrecognized|unknown|not permitted|not allowed)",
    re.DOTALL,
)
_TEMPLATE = re.compile(
    r"roles must alternate|only user and assistant roles|unexpected role|raise_exception|chat.?template|templateerror"
)
"""A template that fails over calls and results may take plain messages."""
_WANTS_EFFORT = re.compile(r"set [\W_]*reasoning[_.]effort\W{1,4}to\W{1,4}(none|minimal|low|medium|high)\b")


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


def adapted(
    habits: Habits, request: Mapping[str, object], status: int, code: str, words: str, extras: Collection[str] = ()
) -> Habits | None:
    """The habits after a refusal of `request` with the endpoint's error code and words; None if nothing to learn.

    `extras` are the names of the parameters that the operator added.

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
        options = "stream_options" in request and re.search(r"stream_options|include_usage", said)
        return replace(habits, stream_options=False) if options else replace(habits, streams=False)
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
    with_functions = "tools" in request or "response_format" in request
    wanted = _WANTS_EFFORT.search(said)
    if wanted and with_functions and not habits.effort_for_calls:
        return replace(habits, effort_for_calls=wanted[1])
    for name in {*extras, *(("reasoning_effort",) if habits.effort_for_calls else ())}:
        if name in request and _named(name, said):
            return replace(habits, refused_extras=habits.refused_extras | {(name, with_functions)})
    if "tools" in request and (_NO_CALLS.search(said) or _TEMPLATE.search(said)):
        return replace(habits, native_calls=False)
    if "response_format" in request and re.search(r"response[_ ]format|json[_ ]schema", said):
        return replace(habits, response_format=False)
    return None


def _named(name: str, said: str) -> bool:
    """Whether a refusal speaks of a parameter, also as Responses does ("reasoning.effort")."""
    return bool(re.search(rf"\b{re.escape(name.lower())}\b", said)) or (name == "reasoning_effort" and "reasoning" in said)
