"""What a reader gives of a file, and what it says of a file that cannot be read. Nothing here knows a format."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

from adapters.catalogue import say
from memory.things import brief

Fault = Literal[
    "unknown",
    "macros",
    "wrong_ending",
    "encrypted",
    "broken",
    "no_text",
    "too_many_pages",
    "too_much",
    "too_slow",
    "too_heavy",
    "too_large",
    "not_there",
]
"""Why a file is not read: a line `documents.<fault>` of the catalogue."""


class Unreadable(Exception):
    """The file cannot be read, for one of the reasons that people are told."""

    def __init__(self, fault: Fault) -> None:
        super().__init__(fault)
        self.fault: Fault = fault

    def told(self, name: str, locale: str | None) -> str:
        """What the person is told of a file of that name, in a line."""
        return say(f"documents.{self.fault}", locale, name=brief(name, 100))


@dataclass(frozen=True, slots=True)
class Block:
    """A heading, a paragraph or a row of a table, in the order of the text.

    `page` counts from 1; 0: the format has no pages. `level` is that of a heading (1 the highest), 0 for everything else. `row`: a row of
    a table, its cells parted by ` | `.
    """

    text: str
    page: int = 0
    level: int = 0
    row: bool = False


@dataclass(frozen=True, slots=True)
class Limits:
    """How much one file may cost: bytes as uploaded, bytes when unpacked, characters of text, pages, seconds (of one core, and twice that
    by the clock), bytes of memory of the process that reads it."""

    file: int = 25_000_000
    unpacked: int = 200_000_000
    text: int = 10_000_000
    pages: int = 3_000
    seconds: int = 120
    memory: int = 1_000_000_000


Tell = Callable[[int, int], None]
"""Told how many pages of how many are read."""


def cells(values: list[str]) -> str:
    """A row of a table as text; empty when no cell holds anything."""
    shown = [" ".join(each.split()) for each in values]
    while shown and not shown[-1]:
        shown.pop()
    return " | ".join(shown)
