"""The messages of a chat request: repaired before they leave, and rewritten where calls go by JSON schema.

`repair` is the last check before an endpoint: whatever rows were stored, what leaves is well formed, so that one
bad row never blocks a conversation. The second half asks for calls with `response_format: json_schema` and plain
messages, for endpoints that do function calls badly but constrain their output well. Pure.
"""

import hashlib
import json
import re
from collections import deque
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Literal

from bot.model.calls import Call, FunctionSchema, exact_value
from bot.model.schemas import common
from bot.model.shape import shaped, texts
from bot.model.vendor import Back, beside, needs, signed
from bot.prompts import examples
from memory.sanitise import clean, clean_json

ChatMessage = Mapping[str, object]
"""A message in OpenAI's chat format: role, content, and `tool_calls` or `tool_call_id`."""

ToolChoice = Literal["auto", "none", "required"]

ID_LENGTH = 9
"""Letters and digits of a call's id: what Mistral asks for and every other endpoint takes."""

NO_RESULT = "No result was kept for this call; whether it was run is unknown."

_SPEAKERS = ("system", "developer", "user")
_ID = re.compile(rf"[A-Za-z0-9]{{{ID_LENGTH}}}")
_DIGITS = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"
_NOT_IN_NAME = re.compile(r"[^A-Za-z0-9_-]")


def short_id(call_id: str) -> str:
    """`call_id` as `ID_LENGTH` letters and digits; the same id always gives the same one, and one that has this form stays."""
    if not call_id or _ID.fullmatch(call_id):
        return call_id
    left = int.from_bytes(hashlib.sha256(call_id.encode("utf-8", "replace")).digest()[:8], "big")
    found = ""
    for _ in range(ID_LENGTH):
        left, digit = divmod(left, len(_DIGITS))
        found += _DIGITS[digit]
    return found


def unique_ids(calls: Sequence[Call], taken: Collection[str]) -> tuple[Call, ...]:
    """The calls with ids that are short, not blank, and used neither twice nor in `taken`."""
    used = set(taken)
    found = []
    for number, call in enumerate(calls, 1):
        fresh = _fresh(call.id or f"call_{number}", used)
        used.add(fresh)
        found.append(replace(call, id=fresh))
    return tuple(found)


def _fresh(raw: str, used: Collection[str]) -> str:
    fresh, turn = short_id(raw), 1
    while fresh in used:
        turn += 1
        fresh = short_id(f"{raw} {turn}")
    return fresh


def ids_in(messages: Iterable[ChatMessage]) -> set[str]:
    """The shortened ids of all calls in `messages`."""
    return {short_id(str(call.get("id") or "")) for message in messages for call in _tool_calls(message)}


# --- repair -----------------------------------------------------------------------------------------


def repair(messages: Sequence[ChatMessage], back: Back | None = None) -> list[dict[str, object]]:
    """The messages in a form that no endpoint refuses; well-formed ones come back equal.

    Every call is followed by its result, in the order of the calls: a result that stands further on is brought
    up, a missing one is said to be missing, one without a call is dropped. Assistant messages without text and
    calls go. Ids are short and unique over the whole request, names and arguments valid, all text is clean, and
    the whole has the shape of `bot.model.shape`. `back`: whom the thoughts beside calls go back to.
    """
    return shaped(_paired(messages, back or Back()))


def _paired(messages: Sequence[ChatMessage], back: Back) -> list[dict[str, object]]:
    """Clean messages, each call followed by its result."""
    to = replace(back, missing=back.missing | needs(messages, back.model)) if back.model else back
    results: dict[str, deque[tuple[int, ChatMessage]]] = {}
    for position, message in enumerate(messages):
        if message.get("role") == "tool":
            results.setdefault(str(message.get("tool_call_id") or ""), deque()).append((position, message))
    used: set[str] = set()
    repaired: list[dict[str, object]] = []
    for position, message in enumerate(messages):
        if message.get("role") in _SPEAKERS:
            repaired.append(_spoken(message))
        elif message.get("role") == "assistant":
            repaired += _answered(message, position, results, used, to)
    return repaired


def without_images(messages: Sequence[ChatMessage]) -> list[dict[str, object]]:
    """The messages for a model that does not see: of those with pictures the words."""
    return [
        {**message, "content": texts(message["content"])} if isinstance(message.get("content"), list) else dict(message)
        for message in messages
    ]


def _spoken(message: ChatMessage) -> dict[str, object]:
    content = clean_json(message.get("content"))
    kept: dict[str, object] = {"role": message["role"], "content": content or "(empty)"}
    if name := _NOT_IN_NAME.sub("_", str(message.get("name") or ""))[:64]:
        kept["name"] = name
    return kept


def _answered(
    message: ChatMessage, position: int, results: Mapping[str, deque[tuple[int, ChatMessage]]], used: set[str], back: Back
) -> list[dict[str, object]]:
    text = clean_json(message.get("content")) or None
    calls = list(_tool_calls(message))
    if not calls:
        blank = text is None or (isinstance(text, str) and not text.strip())
        return [] if blank else [{"role": "assistant", "content": text}]
    sent: list[dict[str, object]] = []
    answers: list[dict[str, object]] = []
    for number, call in enumerate(calls, 1):
        raw_id = str(call.get("id") or "")
        fresh = _fresh(raw_id or f"call_{number}", used)
        used.add(fresh)
        sent.append({**_sent_call(call, fresh), **signed(call, back, first=number == 1)})
        answers.append({"role": "tool", "tool_call_id": fresh, "content": _result_after(position, raw_id, results)})
    return [{"role": "assistant", "content": text, **beside(message, back), "tool_calls": sent}, *answers]


def _result_after(position: int, raw_id: str, results: Mapping[str, deque[tuple[int, ChatMessage]]]) -> object:
    waiting = results.get(raw_id)
    while waiting:
        where, result = waiting.popleft()
        if where > position:
            content = clean_json(result.get("content"))
            return content if isinstance(content, str | list) and content else "(empty result)"
    return NO_RESULT


def _sent_call(call: Mapping[str, object], call_id: str) -> dict[str, object]:
    function = call.get("function")
    given = function if isinstance(function, Mapping) else {}
    name = _NOT_IN_NAME.sub("_", str(given.get("name") or "unknown"))[:64]
    arguments = given.get("arguments")
    raw = arguments if isinstance(arguments, str) else json.dumps(arguments or {})
    return {"id": call_id, "type": "function", "function": {"name": name, "arguments": _sendable(raw)}}


def _sendable(raw: str) -> str:
    """Arguments that are a JSON object: chat templates parse them and would fail on a broken one for ever."""
    raw = clean(raw)
    try:
        if isinstance(json.loads(raw), dict):
            return raw
    except (ValueError, RecursionError):
        pass
    return json.dumps({"unreadable_arguments": raw[:500]} if raw.strip() else {}, ensure_ascii=False)


def _tool_calls(message: ChatMessage) -> Iterable[Mapping[str, object]]:
    calls = message.get("tool_calls")
    return [call for call in calls if isinstance(call, Mapping)] if isinstance(calls, list | tuple) else []


# --- calls by JSON schema ---------------------------------------------------------------------------


def schema_format(functions: Sequence[FunctionSchema], tool_choice: ToolChoice) -> dict[str, object]:
    """The `response_format` under which a reply is an object of `calls` and `text`, in this order: who has written the answer first
    looks nothing up any more."""
    properties: dict[str, object] = {}
    if tool_choice != "none":
        calls: dict[str, object] = {"type": "array", "items": {"anyOf": [_call_schema(one) for one in functions]}}
        if tool_choice == "required":
            calls["minItems"] = 1
        properties["calls"] = calls
    properties["text"] = {"type": "string"}
    schema = {"type": "object", "properties": properties, "required": list(properties), "additionalProperties": False}
    # Not strict: that mode forbids optional arguments, and the arguments are validated here anyway.
    return {"type": "json_schema", "json_schema": {"name": "reply", "strict": False, "schema": schema}}


def _call_schema(function: FunctionSchema) -> dict[str, object]:
    return {
        "type": "object",
        "properties": {"function": {"type": "string", "enum": [function.name]}, "arguments": common(function.parameters)},
        "required": ["function", "arguments"],
        "additionalProperties": False,
    }


def schema_messages(messages: Sequence[ChatMessage], functions: Sequence[FunctionSchema]) -> list[dict[str, object]]:
    """Repaired messages without calls and results: both become JSON text, the functions a system text.

    The functions follow the first system message: what others say, such as the working context, changes more often.
    """
    names: dict[str, str] = {}
    written: list[dict[str, object]] = []
    for message in _paired(messages, Back()):
        calls = list(_tool_calls(message))
        if message["role"] == "tool":
            name = names.get(str(message["tool_call_id"]), "unknown")
            result = {"type": "function_result", "function": name, "result": message["content"]}
            written.append({"role": "user", "content": json.dumps(result, ensure_ascii=False)})
        elif message["role"] == "assistant":
            names |= {str(call["id"]): _function(call)[0] for call in calls}
            written.append({"role": "assistant", "content": _written_reply(message.get("content"), calls)})
        else:
            written.append(message)
    after_first = int(bool(written) and written[0]["role"] in ("system", "developer"))
    written.insert(after_first, {"role": "system", "content": _instructions(functions)})
    return shaped(written)


def _function(call: Mapping[str, object]) -> tuple[str, object]:
    function = call["function"]
    assert isinstance(function, Mapping)
    return str(function["name"]), json.loads(str(function["arguments"]))


def _written_reply(text: object, calls: Sequence[Mapping[str, object]]) -> str:
    pairs = [_function(call) for call in calls]
    made = [{"function": name, "arguments": arguments} for name, arguments in pairs]
    return json.dumps({"calls": made, "text": text or ""}, ensure_ascii=False)


def _instructions(functions: Sequence[FunctionSchema]) -> str:
    shown = examples([one.name for one in functions])
    return (
        'Answer with one JSON object {"calls": [{"function": "..", "arguments": {..}}], "text": ".."}. "calls" are the functions to run '
        'now, often none; their results arrive as "function_result". "text" is what you say, empty while you look something up. The '
        "functions (? may be left out):\n"
        + "\n".join(_signature(one) for one in functions)
        + (f"\nExamples, of other people:\n{shown}" if shown else "")
    )


def _signature(function: FunctionSchema) -> str:
    """A function in one line: a small model fills in every argument of a schema, and few of a signature."""
    required, properties = function.parameters.get("required", []), function.parameters.get("properties", {})
    assert isinstance(required, list)
    assert isinstance(properties, dict)
    arguments = (f"{name}{'' if name in required else '?'}: {_sort(schema)}" for name, schema in properties.items())
    return f"- {function.name}({', '.join(arguments)}): {function.description}"


def _sort(schema: Mapping[str, object]) -> str:
    choices = schema.get("enum")
    items = schema.get("items")
    sort = "|".join(map(str, choices)) if isinstance(choices, list) else str(schema.get("type", "string"))
    sort = f"[{_sort(items)}]" if isinstance(items, Mapping) else sort
    return f"{sort} ({schema['description']})" if schema.get("description") else sort


_REPLY = re.compile(r"""\s*(?:```(?:json)?\s*)?(\{\s*["'](?:text|calls)["']\s*:)""")


def meant_as_schema_reply(content: str) -> bool:
    """Whether a text begins as a reply under `schema_format` does; where it cannot be read it is nothing to show to a person."""
    return _REPLY.match(content) is not None


def read_schema_reply(content: str) -> tuple[str | None, tuple[Call, ...]] | None:
    """Text and calls of a reply made under `schema_format`, or None where it is something else (or cut off).

    An endpoint that does not hold its model to the schema gives a single call without its list, or prose after the object.
    """
    value = _reply_object(content)
    if not isinstance(value, dict) or not ({"text", "calls"} & value.keys()):
        return None
    given = value.get("calls")
    calls = []
    for number, item in enumerate([given] if isinstance(given, Mapping) else given if isinstance(given, list) else (), 1):
        if isinstance(item, Mapping):
            raw = json.dumps(item.get("arguments") or {}, ensure_ascii=False)
            calls.append(Call(f"schema_{number}", str(item.get("function") or ""), raw))
    return clean(str(value.get("text") or "")), tuple(calls)


def _reply_object(content: str) -> object:
    try:
        return exact_value(content.strip().removeprefix("```json").removesuffix("```").strip())
    except ValueError:
        pass
    if begin := _REPLY.match(content):
        try:
            return json.JSONDecoder(strict=False).raw_decode(content, begin.start(1))[0]
        except (ValueError, RecursionError):
            pass
    return None
