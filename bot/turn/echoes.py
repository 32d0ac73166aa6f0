"""Replies that are none: small models give back what they read. Pure.

What is given back may be one of our own packages (the JSON around messages), lines of the instructions, or the person's own words. Such a
text is neither sent nor stored: stored once, it is imitated from then on. Entries of the working context are no instructions; to name
them is what they are for.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Sequence
from typing import Literal

Echo = Literal["package", "instructions", "own words"]

NOTICES: dict[Echo, str] = {
    "package": "Your last text repeated data of this conversation and was not sent. Answer the person now, in plain words of your own.",
    "instructions": "Your last text repeated your instructions and was not sent. Answer the person now, in plain words of your own.",
    "own words": "Your last text only repeated the person's words and was not sent. Answer them now, in words of your own.",
}
TYPES = frozenset(("status", "summary", "quote", "event", "alert", "notice", "image", "function_result", "message"))
"""The types of our packages."""
FIELDS = frozenset(("type", "from", "place", "time", "message", "note", "said_by", "text"))
"""What a package of a message may hold."""
SHORTEST = 4
"""Words of the shortest text that is a repetition and no greeting returned."""
_SENTENCES = re.compile(r"(?<=[.!?。！？])\s+|\n+")
_DECODER = json.JSONDecoder(strict=False)


def unpacked(text: str) -> str:
    """What a model says in the form of a message's package, else the text: the form is imitated, the words may be its own."""
    value = _object(text)
    if value is None or not FIELDS.issuperset(value) or value.get("type") not in (None, "message"):
        return text
    said = value.get("message")
    return said if isinstance(said, str) and said.strip() and len(value) > 1 else text


def echo(text: str, instructions: frozenset[str], heard: Sequence[str]) -> Echo | None:
    """What a text only repeats, if anything. `instructions` as `sentences` gives them; `heard`: what is being answered."""
    if _packages(text):
        return "package"
    said = sentences(text)
    if said and said <= instructions and any(len(each.split()) >= SHORTEST for each in said):
        return "instructions"
    plain = _plain(text)
    if len(plain.split()) >= SHORTEST and plain in {_plain(each) for each in heard}:
        return "own words"
    return None


def sentences(*texts: str) -> frozenset[str]:
    """The lines and sentences of texts, in a form for comparing."""
    return frozenset(plain for text in texts for each in _pieces(text) if (plain := _plain(each)))


def _pieces(text: str) -> Iterable[str]:
    return _SENTENCES.split(text)


def _plain(text: str) -> str:
    return " ".join(re.findall(r"\w+", text.casefold()))


def _object(text: str) -> dict[str, object] | None:
    try:
        value, end = _DECODER.raw_decode(text := text.strip())
    except (ValueError, RecursionError):
        return None
    return value if isinstance(value, dict) and not text[end:].strip() else None


def _packages(text: str) -> bool:
    """Whether a text begins with a package, whatever follows: what stands behind it goes on in the same vein."""
    begun = text.lstrip()
    if not begun.startswith("{"):
        return False
    try:
        value = _DECODER.raw_decode(begun)[0]
    except (ValueError, RecursionError):
        return bool(re.match(rf"""\{{\s*"type"\s*:\s*"(?:{"|".join(sorted(TYPES))})"\s*[,}}]""", begun))
    if not isinstance(value, dict):
        return False
    ours = value.get("type") in TYPES and bool({"time", "note", "message", "result", "summary"} & value.keys())
    return ours or ("message" in value and len(value) > 1 and FIELDS.issuperset(value))
