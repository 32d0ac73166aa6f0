"""Reminders by words in six languages: whether a person asks for one, whether a reply promises it, what a short answer to one says. Pure.

The words are in reminding.yaml. Those of asking and promising set nothing: they decide whether the agent is asked once more, and the person
told that nothing is set.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from datetime import timedelta
from pathlib import Path
from typing import Literal

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
ANSWER = 60
"""Characters of an answer to a reminder that is nothing else."""


def _whole(*what: str) -> str:
    return "|".join(one for words in _LISTS.values() for each in what for one in words[each])


_DONE, _STOP = (re.compile(_whole(what)) for what in ("done", "stop"))
_LATER = re.compile(rf"\b(?:{_whole('later')})(?!\w)")
_WITH_LENGTH = re.compile(rf"\b(?:{_whole('with_length')})(?!\w)")
_POLITE = re.compile(rf"^(?:(?:{_whole('polite')})\b[,.! ]*)+|(?:[,.! ]*\b(?:{_whole('polite')}))+$")
_TICKS = "✅✔☑\ufe0f"
_FOR = re.compile(r"^(?:for|fur|um|pour|de|por|per|di|by)\s")


def asks_reminder(text: str, has_time: Callable[[str], bool]) -> bool:
    """Whether somebody asks to be reminded of something. `has_time`: whether a text names a time; asked where the words leave it open."""
    own = unquoted(text)[:LONGEST]
    said = _NOT.sub(" ", level(own))
    return bool(_ASKS.search(said)) or (bool(_PERHAPS.search(said)) and has_time(own))


def promises_reminder(text: str) -> bool:
    """Whether a reply says that its reader will be reminded."""
    return bool(_PROMISES.search(level(text[:LONGEST])))


def language_of(text: str) -> str:
    """The one language in whose words somebody asks to be reminded, as a locale; empty: none, or it cannot be told."""
    said = level(unquoted(text)[:LONGEST])
    found = [language for language, words in _IN.items() if words.search(said)]
    return found[0] if len(found) == 1 else ""


def answer_to_reminder(
    text: str, length: Callable[[str], timedelta | None]
) -> tuple[Literal["snooze", "done", "stop"], int | None] | None:
    """What a short answer to a reminder says, with the minutes of a snooze (None: no length was said); None: something else.

    `length`: the length of time that a text names and nothing else.
    """
    written = level(text).strip(" .!…👍🙏")
    if len(written) > ANSWER or "?" in written:
        return None
    said = written.strip(f" .!…{_TICKS}")
    bare = _POLITE.sub("", said).strip(" .,!…")
    if any(_DONE.fullmatch(each) for each in (said, bare)) or (written and not said):
        return "done", None
    if any(_STOP.fullmatch(each) for each in (said, bare)):
        return "stop", None
    left, later = _LATER.subn(" ", bare)
    left, beside = _WITH_LENGTH.subn(" ", left)
    left = " ".join(left.split()).strip(" ,")
    if not left:
        return ("snooze", None) if later else None
    forms = [left, f"in {left}", f"in {_FOR.sub('', left)}"] if later or beside else [left]
    span = next((found for form in forms if (found := length(form)) is not None), None)
    return None if span is None else ("snooze", max(1, round(span.total_seconds() / 60)))
