"""The one shape of a request that the strictest endpoint takes, whatever the messages are.

One system message, first. Then the roles alternate, beginning with the user's: neighbours of one role are one message, and what would
speak between a function's result and the model's next words stands in that result, labelled. The last word is the user's or a result's.
Sources: Mistral's validator (mistral-common, `instruct/validator.py`; code 3230), the chat templates of Gemma, Ministral and Devstral
(crush #279, adk-python #1373), Anthropic's compatible endpoint, which takes a trailing assistant message for the begin of its own. Pure.
"""

from __future__ import annotations

from collections.abc import Sequence

Shaped = dict[str, object]

NOTICE = "Notice from the system, not part of the result:"
GOES_ON = "(The conversation goes on.)"
ANSWER = "(It is your turn.)"
_SYSTEM = ("system", "developer")


def shaped(messages: Sequence[Shaped]) -> list[Shaped]:
    """Messages with their results in place, in the one shape; well-shaped ones come back equal."""
    made: list[Shaped] = []
    for message in messages:
        last = made[-1] if made else None
        role = str(message["role"])
        if role in _SYSTEM and last is not None and last["role"] not in _SYSTEM:
            role, message = "user", {**message, "role": "user"}
        if role == "assistant" and (last is None or last["role"] in _SYSTEM):
            # What stood before it was forgotten, or is in no prompt any more.
            made.append({"role": "user", "content": GOES_ON})
            last = made[-1]
        if role == "user" and last is not None and last["role"] == "tool":
            made[-1] = {**last, "content": f"{last['content']}\n\n{NOTICE}\n{texts(message['content'])}"}
        elif last is not None and _same(last, role):
            made[-1] = _joined(last, message)
        else:
            made.append(message)
    if made and made[-1]["role"] in ("assistant", *_SYSTEM):
        made.append({"role": "user", "content": ANSWER})
    return made


def _same(last: Shaped, role: str) -> bool:
    """Whether a message of a role goes on with the last one; after calls and their results a new one begins."""
    if role in _SYSTEM:
        return last["role"] in _SYSTEM
    return last["role"] == role and role != "tool" and "tool_calls" not in last


def _joined(first: Shaped, second: Shaped) -> Shaped:
    """Both as one; a name that both do not have is nobody's."""
    name = {"name": first["name"]} if "name" in first and first.get("name") == second.get("name") else {}
    rest = {key: value for each in (first, second) for key, value in each.items() if key not in ("role", "content", "name")}
    between = "\n" if first["role"] == "user" else "\n\n"
    return {"role": first["role"], "content": _both(first["content"], second["content"], between), **name, **rest}


def _both(one: object, other: object, between: str) -> object:
    if not one or not other:
        return one or other
    if isinstance(one, str) and isinstance(other, str):
        return f"{one}{between}{other}"
    return [*_parts(one), *_parts(other)]


def _parts(content: object) -> list[object]:
    return list(content) if isinstance(content, list) else [{"type": "text", "text": content}]


def texts(content: object) -> str:
    """The words of a content, without its pictures and their names."""
    if not isinstance(content, list):
        return str(content or "")
    kinds = [part.get("type") if isinstance(part, dict) else None for part in content]
    said = [
        str(part.get("text"))
        for number, part in enumerate(content)
        if kinds[number] == "text" and "image_url" not in kinds[number + 1 : number + 2]
    ]
    return "\n".join(said) or "(a picture that cannot be shown)"


def without_system(messages: Sequence[Shaped]) -> list[Shaped]:
    """Shaped messages for a template without a system role: the user's first message begins with it."""
    if len(messages) < 2 or messages[0]["role"] not in _SYSTEM:
        return list(messages)
    return [_joined({"role": "user", "content": messages[0]["content"]}, messages[1]), *messages[2:]]


def without_null(messages: Sequence[Shaped]) -> list[Shaped]:
    """Messages of calls alone with an empty content instead of none."""
    return [{**message, "content": ""} if message.get("content", "") is None else message for message in messages]
