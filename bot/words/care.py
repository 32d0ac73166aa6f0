"""Does somebody speak of an emergency: harming themselves, a medical one, violence, abuse? Pure functions over what they wrote, in many
languages; the model is a second voice.

`plain` is acted upon at once: the persona's lines are given, openers pause. `perhaps` are words that may mean it or not ("I don't want to
be here any more"): the filter model is asked where the operator allows it, and may only add care, never take it away.
Figures of speech ("this traffic kills me"), talk of others' works and of the past at a distance are left out first. The aim is to miss
little and to cost a person with a good day no more than a kind line they did not need.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Any, Literal

import yaml

from bot.words.level import level

Finding = Literal["plain", "perhaps"]
Kind = Literal["harm", "medical", "violence", "abuse"]
"""What an emergency is of: harming oneself, somebody dying or badly hurt, hurting others, being mistreated."""

_NEVER = re.compile(r"(?!)")
_PARTS = ("plain", "perhaps", "figures", "works", "denied")


def _patterns() -> dict[Kind, Mapping[str, re.Pattern[str]]]:
    folder = Path(__file__).parent
    harm, others = (yaml.safe_load((folder / name).read_text(encoding="utf-8")) for name in ("care.yaml", "emergencies.yaml"))
    told: dict[Kind, dict[str, Any]] = {"harm": harm, **others}
    for kind in others:
        # What tells of a book or a film does so whatever it is about.
        told[kind]["works"] = [*told[kind].get("works", ()), *harm["works"]]
    return {kind: {part: _joined(words.get(part, ())) for part in _PARTS} for kind, words in told.items()}


def _joined(patterns: Sequence[str]) -> re.Pattern[str]:
    return re.compile("|".join(f"(?:{one})" for one in patterns)) if patterns else _NEVER


_WORDS = _patterns()
_SENTENCES = re.compile(r"(?<=[.!?;\n。！？])\s*|\n+")
_ASIDE = re.compile(r"```.*?(?:```|\Z)|^[ \t]*>[^\n]*", re.DOTALL | re.MULTILINE)
"""Code, and lines that quote: hardly the person's own words of now."""
LONGEST = 20_000
"""Characters that are looked at; of more, the beginning and the end."""


def recognise(text: str, kind: Kind = "harm") -> Finding | None:
    """Whether the words of a person speak of an emergency of this kind; None: they do not. Sentence by sentence."""
    text = _bounded(text)
    own = _recognised(_ASIDE.sub("\n", text), kind)
    if own is None and _recognised("\n".join(_ASIDE.findall(text)), kind):
        return "perhaps"
    return own


def speaks_of(text: str, words: Sequence[str]) -> bool:
    """Whether a person's own words have one of these, whole and however written: what an operator watches for."""
    return bool(words) and _listed(tuple(words)).search(level(_ASIDE.sub("\n", _bounded(text)))) is not None


@cache
def _listed(words: tuple[str, ...]) -> re.Pattern[str]:
    return _joined([rf"(?<!\w){re.escape(level(word.strip()))}(?!\w)" for word in words if word.strip()])


def _bounded(text: str) -> str:
    return f"{text[: LONGEST // 2]}\n{text[-LONGEST // 2 :]}" if len(text) > LONGEST else text


def _recognised(text: str, kind: Kind) -> Finding | None:
    words = _WORDS[kind]
    found: Finding | None = None
    for sentence in _SENTENCES.split(level(text)):
        rest = words["figures"].sub(" , ", words["denied"].sub(" , ", sentence))
        if words["plain"].search(rest):
            if not words["works"].search(rest):
                return "plain"
            found = "perhaps"
        elif words["perhaps"].search(rest):
            found = "perhaps"
    return found
