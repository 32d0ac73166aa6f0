"""Whether a person asks to be reminded, and whether a reply promises it, by words in six languages. Pure: the words are in reminding.yaml.

They decide nothing that is set: only whether the agent is asked once more, and the person told that nothing is set.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from pathlib import Path

import yaml

from bot.words.answers import unquoted
from bot.words.level import level

_LISTS = yaml.safe_load(Path(__file__).with_name("reminding.yaml").read_text(encoding="utf-8"))


def _pattern(*what: str, languages: Iterable[str] = _LISTS) -> re.Pattern[str]:
    words = (one for language in languages for each in what for one in _LISTS[language].get(each, ()))
    return re.compile("|".join(rf"\b(?:{one})" for one in words))


_ASKS, _PERHAPS, _NOT, _PROMISES = map(_pattern, ("asks", "perhaps", "not", "promises"))
_IN = {language: _pattern("asks", "perhaps", languages=(language,)) for language in _LISTS}
LONGEST = 2000
"""Characters of a text that are looked at."""


def asks_reminder(text: str, has_time: Callable[[str], bool]) -> bool:
    """Whether somebody asks to be reminded of something. `has_time`: whether a text names a time; asked where the words leave it open."""
    own = unquoted(text)[:LONGEST]
    said = level(own)
    if _NOT.search(said):
        return False
    return bool(_ASKS.search(said)) or (bool(_PERHAPS.search(said)) and has_time(own))


def promises_reminder(text: str) -> bool:
    """Whether a reply says that its reader will be reminded."""
    return bool(_PROMISES.search(level(text[:LONGEST])))


def language_of(text: str) -> str:
    """The one language in whose words somebody asks to be reminded, as a locale; empty: none, or it cannot be told."""
    said = level(unquoted(text)[:LONGEST])
    found = [language for language, words in _IN.items() if words.search(said)]
    return found[0] if len(found) == 1 else ""
