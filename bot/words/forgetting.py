"""Whether a person asks for something to be forgotten, and whether a reply says that it is. Pure: the words are in forgetting.yaml.

They forget nothing: they decide whether the model is offered `forget`, and whether the person is told that nothing is forgotten yet.
"""

from __future__ import annotations

import re
from pathlib import Path

import yaml

from bot.words.answers import unquoted
from bot.words.level import level

_LISTS = yaml.safe_load(Path(__file__).with_name("forgetting.yaml").read_text(encoding="utf-8"))
LONGEST = 2000
"""Characters of a text that are looked at."""


def _pattern(what: str) -> re.Pattern[str]:
    # No word's beginning is looked for in scripts that write without blanks.
    return re.compile("|".join(rf"(?<![a-z])(?:{one})" for lists in _LISTS.values() for one in lists[what]))


_NEVER = r"(?<!n't )(?<!never )(?<!not )(?<!nicht )(?<!nie )"
"""Who will never forget a thing does not ask for it; and each turn that is offered one function more has the whole prompt read again."""
_ASKS = re.compile(rf"{_NEVER}(?:{_pattern('asks').pattern})(?!\w* (?:bitte )?nicht\b)")
_CLAIMS = _pattern("claims")


def asks_forgetting(text: str) -> bool:
    """Whether somebody may be asking for something to be forgotten; rather too often than not."""
    return bool(_ASKS.search(level(unquoted(text)[:LONGEST])))


def claims_forgotten(text: str) -> bool:
    """Whether a reply says that something is forgotten, or that it will be."""
    return bool(_CLAIMS.search(level(text[:LONGEST])))
