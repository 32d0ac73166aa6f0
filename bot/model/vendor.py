"""What a vendor gives beside a call and wants back with it: the thoughts that led to the call, in the clear or signed.

DeepSeek and Kimi refuse a call without its `reasoning_content`, Gemini 3 one of the running turn without its thought signature
(`extra_content` of the first call of a step), OpenRouter hands `reasoning_details` through to whoever wants them. Others refuse fields
that they did not give. So what came goes back to the model that gave it, and to no other; a call that another model made gets what the
vendor documents for that, once the endpoint is seen to want it. Sources: api-docs.deepseek.com/guides/thinking_mode,
ai.google.dev/gemini-api/docs/thought-signatures, openrouter.ai/docs "Preserving reasoning", opencode #10996, freellmapi #1070. Pure.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

from bot.model.calls import Call
from memory.main_context import SPEAKING
from memory.sanitise import clean_json

THOUGHTS = ("reasoning_content", "reasoning_details")
"""Fields of a message."""
SIGNED = "extra_content"
"""A field of a call."""
STAND_INS: Mapping[str, object] = {
    # Kimi takes no empty text.
    "reasoning_content": "(Another model's thought, which is not known.)",
    SIGNED: {"google": {"thought_signature": "skip_thought_signature_validator"}},
}
LONGEST = 200_000
"""Characters of a thought that are kept; more is left to the stand-in."""


@dataclass(frozen=True, slots=True)
class Back:
    """What a model gets back: its own thoughts, and stand-ins for `missing` ones. `wanted` False: it refuses such fields."""

    model: str = ""
    missing: frozenset[str] = frozenset()
    wanted: bool = True


def stamped(calls: Sequence[Call], message: Mapping[str, object], model: str) -> tuple[Call, ...]:
    """The calls of a model's message, each with what came with it.

    What the message itself has stands with the first call that stays in view when the exchange is over, else with the first.
    """
    items = message.get("tool_calls")
    extras = [item.get(SIGNED) if isinstance(item, Mapping) else None for item in items] if isinstance(items, list) else []
    holder = next((number for number, call in enumerate(calls) if call.name not in SPEAKING), 0)
    found = []
    for number, call in enumerate(calls):
        given = {name: clean_json(message[name]) for name in THOUGHTS if number == holder and message.get(name)}
        if number < len(extras) and extras[number]:
            given[SIGNED] = clean_json(extras[number])
        kept = given and len(str(given)) <= LONGEST
        found.append(replace(call, vendor={"model": model, **given}) if kept else call)
    return tuple(found)


def gather(message: dict[str, object], delta: Mapping[str, object]) -> None:
    """Put the thoughts of a piece of a stream to those of the message."""
    if isinstance(piece := delta.get("reasoning_content"), str) and piece:
        message["reasoning_content"] = str(message.get("reasoning_content") or "") + piece
    pieces = delta.get("reasoning_details")
    for detail in pieces if isinstance(pieces, list) else []:
        if isinstance(detail, Mapping):
            known = message.setdefault("reasoning_details", [])
            assert isinstance(known, list)
            _join(known, detail)


def _join(known: list[dict[str, object]], detail: Mapping[str, object]) -> None:
    """Pieces of one thought have one index and one type; their texts are put together, anything else is the newest."""
    last = known[-1] if known else {}
    if not known or (last.get("index"), last.get("type")) != (detail.get("index"), detail.get("type")):
        known.append(dict(detail))
        return
    for name, value in detail.items():
        grows = name in ("text", "summary", "data") and isinstance(value, str)
        last[name] = str(last.get(name) or "") + str(value) if grows else value or last.get(name)


def needs(messages: Iterable[Mapping[str, object]], model: str) -> frozenset[str]:
    """Which fields a model has given in these messages: it wants them with every call, also with another model's."""
    return frozenset(
        name for message in messages for given in _given(message) if given.get("model") == model for name in given
    ) & set(STAND_INS)


def _given(message: Mapping[str, object]) -> list[Mapping[str, object]]:
    calls = message.get("tool_calls")
    each = [call.get("vendor") for call in calls if isinstance(call, Mapping)] if isinstance(calls, list | tuple) else []
    return [one for one in (*each, message.get("vendor")) if isinstance(one, Mapping)]


def beside(message: Mapping[str, object], back: Back) -> dict[str, object]:
    """The fields that a message with calls gets for the model of `back`."""
    if not back.wanted:
        return {}
    own = [given for given in _given(message) if given.get("model") == back.model]
    fields = {name: given[name] for name in THOUGHTS for given in own if name in given}
    if "reasoning_content" in back.missing and "reasoning_content" not in fields:
        fields["reasoning_content"] = STAND_INS["reasoning_content"]
    return fields


def signed(call: Mapping[str, object], back: Back, *, first: bool) -> dict[str, object]:
    """The fields that a call gets for the model of `back`; the first one of a message never goes unsigned to who wants it."""
    given = call.get("vendor")
    own = isinstance(given, Mapping) and given.get("model") == back.model and SIGNED in given
    if not back.wanted:
        return {}
    if own:
        assert isinstance(given, Mapping)
        return {SIGNED: given[SIGNED]}
    return {SIGNED: STAND_INS[SIGNED]} if first and SIGNED in back.missing else {}


def missed(said: str) -> str | None:
    """Which field an endpoint's refusal says is missing."""
    if "thought_signature" in said or "thought signature" in said:
        return SIGNED
    if "reasoning_content" in said and ("missing" in said or "must be passed" in said or "required" in said):
        return "reasoning_content"
    return None


def sent(request: Mapping[str, object]) -> bool:
    """Whether a request holds any such field."""
    messages = request.get("messages")
    return isinstance(messages, list) and any(
        any(name in message for name in THOUGHTS) or any(SIGNED in call for call in message.get("tool_calls") or ())
        for message in messages
    )
