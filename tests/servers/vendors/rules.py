"""What endpoints check before a model sees a request: one small function a rule, with the request that breaks it.

`broken` takes a good request (with a system message, a call, its result, a reply and a newest message) and returns it with the rule broken.
"""

from __future__ import annotations

import itertools
import json
import re
from collections.abc import Callable, Iterator
from copy import deepcopy
from dataclasses import dataclass
from typing import Any

Body = dict[str, Any]


@dataclass(frozen=True)
class Rule:
    """`check` gives the words of the refusal, None where the request is fine. `learned`: a client finds out and goes on."""

    name: str
    check: Callable[[Body], str | None]
    broken: Callable[[Body], Body]
    learned: bool = False


def messages_of(body: Body) -> list[Body]:
    return list(body["messages"])


def calls_in(body: Body) -> Iterator[Body]:
    for message in messages_of(body):
        yield from message.get("tool_calls") or ()


def schemas_in(body: Body) -> Iterator[tuple[str, Body]]:
    """Every schema in the request's functions, with where it stands."""

    def walk(schema: Body, where: str) -> Iterator[tuple[str, Body]]:
        yield where, schema
        for name, one in (schema.get("properties") or {}).items():
            yield from walk(one, f"{where}.properties.{name}")
        if isinstance(schema.get("items"), dict):
            yield from walk(schema["items"], f"{where}.items")
        for option in schema.get("anyOf") or ():
            yield from walk(option, f"{where}.anyOf")

    for tool in body.get("tools") or ():
        function = tool["function"]
        if "parameters" in function:
            yield from walk(function["parameters"], f"function {function['name']}")


def _with(change: Callable[[Body], object]) -> Callable[[Body], Body]:
    def broken(body: Body) -> Body:
        made = deepcopy(body)
        change(made)
        return made

    return broken


def _call(body: Body) -> Body:
    return next(calls_in(body))


def _after_result(body: Body) -> int:
    roles = [message["role"] for message in body["messages"]]
    return roles.index("tool") + 1


def _rename(body: Body, call_id: str) -> None:
    old = _call(body)["id"]
    _call(body)["id"] = call_id
    for message in body["messages"]:
        if message.get("tool_call_id") == old:
            message["tool_call_id"] = call_id


# --- messages -----------------------------------------------------------------------------------------


def _system_first(body: Body) -> str | None:
    late = [n for n, message in enumerate(messages_of(body)) if message["role"] in ("system", "developer") and n]
    return f"Unexpected role 'system' at message {late[0]}: a system message must come first" if late else None


SYSTEM_FIRST = Rule(
    "one system message, first", _system_first, _with(lambda b: b["messages"].append({"role": "system", "content": "x"}))
)


def _paired(body: Body) -> str | None:
    awaited: list[str] = []
    for message in messages_of(body):
        if message["role"] == "tool":
            if message.get("tool_call_id") not in awaited:
                return "messages with role 'tool' must be a response to a preceding message with 'tool_calls'"
            awaited.remove(message["tool_call_id"])
            continue
        if awaited:
            return f"An assistant message with 'tool_calls' must be followed by tool messages responding to each: {awaited}"
        awaited = [call["id"] for call in message.get("tool_calls") or ()]
    return "tool_calls without results at the end" if awaited else None


PAIRED = Rule(
    "each call with its result",
    _paired,
    _with(lambda b: b["messages"].insert(_after_result(b) - 1, {"role": "user", "content": "x"})),
)


def _no_user_after_result(body: Body) -> str | None:
    pairs = itertools.pairwise(message["role"] for message in messages_of(body))
    return "Unexpected role 'user' after role 'tool'" if ("tool", "user") in pairs else None


NO_USER_AFTER_RESULT = Rule(
    "no user message after a result",
    _no_user_after_result,
    _with(lambda b: b["messages"].insert(_after_result(b), {"role": "user", "content": "x"})),
)


def _ends_in_question(body: Body) -> str | None:
    last = messages_of(body)[-1]["role"]
    words = f"Expected last role User or Tool (or Assistant with prefix True) for serving but got {last}"
    return None if last in ("user", "tool") else words


ENDS_IN_QUESTION = Rule(
    "the last word is not the model's",
    _ends_in_question,
    _with(lambda b: b["messages"].append({"role": "assistant", "content": "x"})),
)

ALTERNATE = "Conversation roles must alternate user/assistant/user/assistant/..."


def _alternating(roles: list[str]) -> str | None:
    wrong = any((role == "user") != (number % 2 == 0) for number, role in enumerate(roles))
    return ALTERNATE if wrong else None


def _template_alternates(body: Body) -> str | None:
    """As the templates of Ministral and Devstral: calls and their results aside."""
    chat = [m for m in messages_of(body) if m["role"] not in ("system", "tool") and not m.get("tool_calls")]
    return _alternating([m["role"] for m in chat])


ROLES_ALTERNATE = Rule(
    "roles alternate, calls and results aside",
    _template_alternates,
    _with(lambda b: b["messages"].append({"role": "user", "content": "x"})),
)


def _all_alternate(body: Body) -> str | None:
    """As Gemma's template, which knows neither calls nor results."""
    return _alternating([m["role"] for m in messages_of(body) if m["role"] != "system"])


ALL_ALTERNATE = Rule(
    "roles alternate, and there are two", _all_alternate, _with(lambda b: b["messages"].append({"role": "user", "content": "x"}))
)
NO_RESULTS = Rule(
    "no results: calls go by JSON schema",
    lambda b: "Only user and assistant roles are supported!" if any(m["role"] == "tool" for m in messages_of(b)) else None,
    _with(lambda b: b["messages"].append({"role": "tool", "content": "x"})),
    learned=True,
)
NO_SYSTEM = Rule(
    "no system role",
    lambda b: "System role not supported" if messages_of(b)[0]["role"] == "system" else None,
    _with(lambda b: b["messages"].insert(0, {"role": "system", "content": "x"})),
    learned=True,
)


def _not_empty(body: Body) -> str | None:
    for number, message in enumerate(messages_of(body)):
        content = message.get("content")
        parts = content if isinstance(content, list) else [] if content is None else [{"type": "text", "text": content}]
        empty = any(part["type"] == "text" and not str(part["text"]).strip() for part in parts)
        if empty or (content is None and not message.get("tool_calls")):
            return f"messages.{number}: text content blocks must be non-empty"
    return None


NOT_EMPTY = Rule("no empty text", _not_empty, _with(lambda b: b["messages"][-1].update(content=" ")))


def _strings(kind: str, unwanted: object, example: object) -> Rule:
    def check(body: Body) -> str | None:
        for number, message in enumerate(messages_of(body)):
            if isinstance(message.get("content"), type(unwanted)):
                return f"AiError: Bad input: Error: Type mismatch of '/messages/{number}/content', '{kind}' not in 'string'"
        return None

    return Rule(f"no {kind} as content", check, _with(lambda b: b["messages"][-1].update(content=example)), learned=True)


NO_NULL_CONTENT = _strings("null", None, None)
NO_PARTS = _strings("array", [], [{"type": "text", "text": "x"}])


def ids(pattern: str, words: str) -> Rule:
    """Call ids have a form."""

    def check(body: Body) -> str | None:
        return words if any(not re.fullmatch(pattern, str(call["id"])) for call in calls_in(body)) else None

    return Rule(f"call ids like {pattern}", check, _with(lambda b: _rename(b, "call.of/another:vendor" + "x" * 40)))


def _unique(body: Body) -> str | None:
    found = [call["id"] for call in calls_in(body)]
    return "`tool_use` ids must be unique" if len(set(found)) < len(found) else None


def _twice(body: Body) -> None:
    at = _after_result(body)
    body["messages"][at:at] = deepcopy(body["messages"][at - 2 : at])


UNIQUE_IDS = Rule("call ids are unique", _unique, _with(_twice))


def known_fields(*allowed: str) -> Rule:
    """A message has no other fields than these; `tool_calls` no others than their three."""

    def check(body: Body) -> str | None:
        for number, message in enumerate(messages_of(body)):
            for name in message:
                if name not in ("role", "content", "name", "tool_calls", "tool_call_id", *allowed):
                    return f"'messages.{number}' : for 'role:{message['role']}' property '{name}' is unsupported"
        extra = [name for call in calls_in(body) for name in call if name not in ("id", "type", "function", *allowed)]
        return f"property '{extra[0]}' is unsupported" if extra else None

    return Rule("no unknown field in a message", check, _with(lambda b: b["messages"][-1].update(vendor={"model": "other"})))


def _valid_arguments(body: Body) -> str | None:
    for call in calls_in(body):
        try:
            if not isinstance(json.loads(call["function"]["arguments"]), dict):
                return "tool call arguments must be an object"
        except ValueError:
            return "Value looks like object, but can't find closing '}' symbol"
    return None


VALID_ARGUMENTS = Rule(
    "arguments are a JSON object", _valid_arguments, _with(lambda b: _call(b)["function"].update(arguments='{"a": '))
)


# --- thoughts -----------------------------------------------------------------------------------------


def _thinking(body: Body) -> str | None:
    for number, message in enumerate(messages_of(body)):
        if message.get("tool_calls") and not message.get("reasoning_content"):
            return f"thinking is enabled but reasoning_content is missing in assistant tool call message at index {number}"
    return None


def _forget(body: Body, name: str) -> None:
    for message in body["messages"]:
        message.pop(name, None)
        for call in message.get("tool_calls") or ():
            call.pop(name, None)


THOUGHTS_BACK = Rule("thoughts beside every call", _thinking, _with(lambda b: _forget(b, "reasoning_content")), learned=True)


def _signed(body: Body) -> str | None:
    """The running turn begins with the last message of the user; the first call of each of its steps is signed."""
    last = max((n for n, message in enumerate(messages_of(body)) if message["role"] == "user"), default=0)
    for message in messages_of(body)[last:]:
        calls = message.get("tool_calls") or ()
        if calls and not (calls[0].get("extra_content") or {}).get("google", {}).get("thought_signature"):
            return "Function call is missing a thought_signature in functionCall parts."
    return None


def _unsigned(body: Body) -> None:
    del body["messages"][_after_result(body) :]
    _forget(body, "extra_content")


SIGNATURES_BACK = Rule("signed calls in the running turn", _signed, _with(_unsigned), learned=True)


# --- functions and parameters -------------------------------------------------------------------------

SUBSET = frozenset({"type", "description", "properties", "required", "items", "enum", "nullable", "format"})


def _gemini_schema(body: Body) -> str | None:
    for where, schema in schemas_in(body):
        if unknown := set(schema) - SUBSET:
            return f'Invalid JSON payload received. Unknown name "{unknown.pop()}" at {where}: Cannot find field.'
        if "" in schema.get("enum", ()):
            return f"GenerateContentRequest.tools[0].{where}.enum[0]: cannot be empty"
        if schema.get("type") == "object" and not schema.get("properties"):
            return f"GenerateContentRequest.tools[0].{where}.properties: should be non-empty for OBJECT type"
    return None


def _first_properties(body: Body) -> Body:
    properties: Body = body["tools"][0]["function"]["parameters"]["properties"]
    return properties


GEMINI_SCHEMA = Rule(
    "schemas in the common subset",
    _gemini_schema,
    _with(lambda b: _first_properties(b).update(x={"type": "string", "enum": [""]})),
)
NO_EMPTY_OBJECT = Rule(
    "no object without properties", _gemini_schema, _with(lambda b: b["tools"][0]["function"]["parameters"].update(properties={}))
)
NO_CONST = Rule("no const", _gemini_schema, _with(lambda b: _first_properties(b).update(x={"const": 1})))


def _openai_schema(body: Body) -> str | None:
    for tool in body.get("tools") or ():
        function = tool["function"]
        if not re.fullmatch(r"[a-zA-Z0-9_-]{1,64}", function["name"]):
            return "Invalid 'tools[0].function.name': string does not match pattern"
        if len(function.get("description") or "") > 1024:
            return "Invalid 'tools[0].function.description': string too long"
    for where, schema in schemas_in(body):
        if schema.get("type") == "object" and "properties" not in schema:
            return f"Invalid schema for {where}: object schema missing properties"
        if schema.get("type") == "array" and "items" not in schema:
            return f"Invalid schema for {where}: array schema missing items"
    return None


OPENAI_SCHEMA = Rule(
    "object schemas have properties",
    _openai_schema,
    _with(lambda b: b["tools"][0]["function"].update(parameters={"type": "object"})),
)
PARAMETERS = Rule(
    "functions have parameters",
    lambda b: (
        "body.tools[0].function.parameters: Field required"
        if any("parameters" not in tool["function"] for tool in b.get("tools") or ())
        else None
    ),
    _with(lambda b: b["tools"][0]["function"].pop("parameters")),
)


def refuses(name: str, words: str) -> Rule:
    """A parameter that is not taken."""
    return Rule(f"no {name}", lambda b: words if name in b else None, _with(lambda b: b.update({name: 1})), learned=True)


def refuses_tools(words: str) -> Rule:
    """No function calls."""
    return Rule(
        "no functions: calls go by JSON schema",
        lambda b: words if b.get("tools") else None,
        _with(lambda b: b.update(tools=[{"type": "function"}])),
        learned=True,
    )
