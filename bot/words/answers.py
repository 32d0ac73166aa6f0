"""A yes or no, read from a text as a whole. Pure: the words are in answers.yaml."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator, Sequence
from itertools import chain
from pathlib import Path

import yaml

from bot.words.level import level

_LISTS = yaml.safe_load(Path(__file__).with_name("answers.yaml").read_text(encoding="utf-8"))


_NAMED = _LISTS.pop("names")


_PHRASES = {tuple(phrase.split()): name for name, lists in _LISTS.items() for phrase in chain(*lists)}


_SIGNS = frozenset(words[0] for words in _PHRASES if len(words) == 1 and unicodedata.category(words[0][0])[0] == "S")


_LENGTHS = range(max(map(len, _PHRASES)), 0, -1)


_EMOJI = re.compile(r"<a?(:[\w+-]+:)\d+>|(:[\w+-]+:)")
"""An emoji by its name, as Discord and Slack write it into a text."""


LONGEST = 200
"""Characters of a plain answer. What is longer says more than yes or no."""


def unquoted(text: str) -> str:
    """A text without the lines that quote: somebody else's yes is no yes."""
    return "\n".join(line for line in text.split("\n") if not line.lstrip().startswith(">"))


def yes_or_no(text: str) -> bool | None:
    """What a text says that is a yes or a no as a whole, but for courtesies and emoji; None for everything else, a question too."""
    own = unquoted(text).strip()
    if len(own) > LONGEST or any(mark in own for mark in "?？؟"):
        return None
    said = set(_kinds(_words(own))) - {"polite"}
    return {frozenset({"yes"}): True, frozenset({"no"}): False}.get(frozenset(said))


def _words(text: str) -> list[str]:
    """The words and telling signs. Letters with their marks stay, whatever the script; punctuation and other signs go."""
    words = _EMOJI.sub(lambda named: _NAMED.get((named[1] or named[2]).strip(":"), " "), level(text))
    return "".join(_kept(character) for character in words).split()


def _kept(character: str) -> str:
    if character in _SIGNS:
        return f" {character} "
    if unicodedata.category(character) == "Cf" or "\ufe00" <= character <= "\ufe0f":
        return ""
    return " " if unicodedata.category(character)[0] in "PSC" and character != "'" else character


def _kinds(words: Sequence[str]) -> Iterator[str]:
    """What the phrases of an answer are, the longest first: yes, no, polite, or other."""
    at = 0
    while at < len(words):
        length = next((length for length in _LENGTHS if tuple(words[at : at + length]) in _PHRASES), 0)
        yield _PHRASES[tuple(words[at : at + length])] if length else "other"
        at += length or 1
