"""A person's yes or no: what counts as one, and which question it answers. All that needs a yes in words asks here.

The bot itself asks, in fixed words, as the last message of a turn (`Draft.asks`). A yes or no counts only when all that the person writes
back is one, and only for the question that was the last thing said: whatever the bot says or asks later takes its place.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import chain
from pathlib import Path

import yaml

from bot.engine.events import Claim
from bot.speaking.care import level
from memory.db import Connection
from memory.messages import Asks

FOLDER = Path(__file__).parent.parent / "prompts"
_LISTS = yaml.safe_load((FOLDER / "answers.yaml").read_text(encoding="utf-8"))
_NAMED = _LISTS.pop("names")
_PHRASES = {tuple(phrase.split()): name for name, lists in _LISTS.items() for phrase in chain(*lists)}
_SIGNS = frozenset(words[0] for words in _PHRASES if len(words) == 1 and unicodedata.category(words[0][0])[0] == "S")
_LENGTHS = range(max(map(len, _PHRASES)), 0, -1)
_EMOJI = re.compile(r"<a?(:[\w+-]+:)\d+>|(:[\w+-]+:)")
"""An emoji by its name, as Discord and Slack write it into a text."""
_QUESTIONS = yaml.safe_load((FOLDER / "questions.yaml").read_text(encoding="utf-8"))
LONGEST = 200
"""Characters of a plain answer. What is longer says more than yes or no."""
SHOWN = 500
"""Characters of something to be remembered that are shown in the question about it."""


@dataclass(frozen=True, slots=True)
class Answer:
    """A plain yes or no to a question of the bot's; `turn`: the turn that asked it."""

    turn: int
    yes: bool


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


async def answer(connection: Connection, claim: Claim, asks: Asks) -> Answer | None:
    """What the person's messages of this turn, taken together, say to a question of this kind; None: none was open, or nothing plain."""
    if not claim.addressed:
        return None
    # The last that was said before this turn, by either: what the person wrote about something else meanwhile closes a question too.
    cursor = await connection.execute(
        """SELECT asks, turn_id, created_at FROM messages
           WHERE conversation_id = %s AND kind = 'message' AND turn_id IS DISTINCT FROM %s ORDER BY position DESC LIMIT 1""",
        (claim.conversation, claim.turn),
    )
    last = await cursor.fetchone()
    if last is None or last["asks"] != asks or last["turn_id"] is None:
        return None
    since = [event for event in claim.events if event.kind == "message" and event.created_at > last["created_at"]]
    yes = yes_or_no("\n".join(str(event.payload.get("text", "")) for event in since))
    return None if yes is None else Answer(last["turn_id"], yes)


def question(asks: Asks, what: Sequence[str], locale: str) -> str:
    """The bot's own question about something, in the person's language where it is among those that there are words for."""
    texts = _QUESTIONS[asks]
    whole = locale.replace("_", "-").casefold()
    text: str = next(texts[name] for name in (whole.split("-")[0], "en") if name in texts)
    return text.replace("{}", "; ".join(f"“{one[:SHOWN]}{'…' if len(one) > SHOWN else ''}”" for one in what))
