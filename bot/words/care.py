"""Does somebody speak of harming themselves? A pure function over what they wrote, in many languages; the model is a second voice.

`plain` is acted upon at once: the persona's lines are given, openers pause. `perhaps` are words that may mean it or not ("I don't want to
be here any more"): the filter model is asked where the operator allows it, and may only add care, never take it away.
Figures of speech ("this traffic kills me"), talk of others' works and of the past at a distance are left out first. The aim is to miss
little and to cost a person with a good day no more than a kind line they did not need.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import Literal

import yaml

from bot.words.level import level

Finding = Literal["plain", "perhaps"]

FILE = Path(__file__).with_name("care.yaml")


def _patterns() -> dict[str, re.Pattern[str]]:
    found = yaml.safe_load(FILE.read_text(encoding="utf-8"))
    return {name: re.compile("|".join(f"(?:{one})" for one in patterns)) for name, patterns in found.items()}


_WORDS = _patterns()
_SENTENCES = re.compile(r"(?<=[.!?;\n。！？])\s*|\n+")
_ASIDE = re.compile(r"```.*?(?:```|\Z)|^[ \t]*>[^\n]*", re.DOTALL | re.MULTILINE)
"""Code, and lines that quote: hardly the person's own words of now."""
LONGEST = 20_000
"""Characters that are looked at; of more, the beginning and the end."""


def recognise(text: str) -> Finding | None:
    """Whether the words of a person speak of harming themselves or of wanting to die; None: they do not. Sentence by sentence."""
    if len(text) > LONGEST:
        text = f"{text[: LONGEST // 2]}\n{text[-LONGEST // 2 :]}"
    own = _recognised(_ASIDE.sub("\n", text))
    if own is None and _recognised("\n".join(_ASIDE.findall(text))):
        return "perhaps"
    return own


def _recognised(text: str) -> Finding | None:
    found: Finding | None = None
    for sentence in _SENTENCES.split(level(text)):
        rest = _WORDS["figures"].sub(" , ", _WORDS["denied"].sub(" , ", sentence))
        if _WORDS["plain"].search(rest):
            if not _WORDS["works"].search(rest):
                return "plain"
            found = "perhaps"
        elif _WORDS["perhaps"].search(rest):
            found = "perhaps"
    return found
