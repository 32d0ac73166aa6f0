"""Commands as plain words: slash commands do not exist in Slack's threads, and in direct messages nobody types them. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

MOST_WORDS = 5
"""Words of a message that begins with a one-word command which takes words, to be that command and no talk."""


@dataclass(frozen=True, slots=True)
class Slash:
    """A command by its one or two words, and an example of what may follow it (empty: nothing)."""

    name: str
    example: str = ""


def command_in(text: str, slashes: Sequence[Slash]) -> str | None:
    """The command line that a message is, None for talk.

    `stop` alone is one and `stop it` is talk; `memory view` and `memory search birthday` are; `settings timezone Europe/Berlin` is, as
    it is short and its command takes words.
    """
    text = text.strip()
    if text.startswith("/"):
        return text
    if "\n" in text:
        return None
    words = text.split()
    folded = [word.casefold() for word in words]
    for slash in slashes:
        name = slash.name.split()
        if folded[: len(name)] != name:
            continue
        # Two words are hardly said by chance; one is.
        if len(words) == len(name) or len(name) > 1 or (slash.example and len(words) <= MOST_WORDS):
            return "/" + " ".join([*name, *words[len(name) :]])
    return "/memory" if folded == ["memory"] else None
