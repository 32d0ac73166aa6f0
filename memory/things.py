"""How people name what is remembered: a letter and a number. m message, w working context, a archival storage, t timer."""

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

from memory.log import Target

Letter = Literal["m", "w", "a", "t"]
TARGETS: Mapping[Letter, Target] = {"m": "message", "w": "working_context", "a": "passage", "t": "timer"}
LETTERS: Mapping[str, Letter] = {target: letter for letter, target in TARGETS.items()}
LONGEST = 300
"""Characters of one thing that are shown in a list."""


@dataclass(frozen=True, slots=True, order=True)
class Thing:
    """One thing that is remembered."""

    letter: Letter
    number: int

    @property
    def target(self) -> Target:
        """What it is called in the memory log."""
        return TARGETS[self.letter]

    def __str__(self) -> str:
        return f"{self.letter}{self.number}"


def thing(word: str) -> Thing | None:
    """`w3`, however it is capitalised; None when the word names nothing."""
    found = re.fullmatch(r"([mwat])(\d{1,18})", word.casefold())
    return Thing(found[1], int(found[2])) if found else None  # type: ignore[arg-type]


def things(words: Sequence[str]) -> list[Thing] | None:
    """What all the words name, each once; None when one of them names nothing, or there is none."""
    found = [thing(word.rstrip(",")) for word in words]
    named = [each for each in found if each is not None]
    return list(dict.fromkeys(named)) if named and len(named) == len(found) else None


def brief(text: str, longest: int = LONGEST) -> str:
    """A text on one line; where it is cut, with how many more characters it has."""
    line = " ".join(text.split())
    return line if len(line) <= longest else f"{line[:longest]} … (+{len(line) - longest})"


def listed(numbers: Iterable[Thing], most: int = 12) -> str:
    """`w1, w2 … (+3)`."""
    every = sorted(numbers)
    shown = ", ".join(map(str, every[:most]))
    return shown if len(every) <= most else f"{shown} … (+{len(every) - most})"
