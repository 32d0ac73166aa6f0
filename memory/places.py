"""Places: where a conversation happens, and how widely what is said there can be read."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Literal

Visibility = Literal["direct", "private", "public"]
_STRICTNESS: dict[Visibility, int] = {"public": 0, "private": 1, "direct": 2}


@dataclass(frozen=True, slots=True)
class Place:
    """A row of `places`: `kind` is how its platform shows it now."""

    id: int
    platform: str
    realm: str
    workspace: str
    external_id: str
    kind: Visibility
    name: str

    @property
    def label(self) -> str:
        """The place in words for a prompt or a page: `direct message`, or the channel's name."""
        return place_label(self.kind, self.name)


def place_label(kind: str, name: str) -> str:
    """A place in words: `direct message`, or its name as a channel."""
    return "direct message" if kind == "direct" else f"#{name or 'channel'}"


def strictest(kinds: Iterable[Visibility]) -> Visibility:
    """The visibility of something made from several things: that of the most private of them (public when there is none)."""
    return max(kinds, key=_STRICTNESS.__getitem__, default="public")
