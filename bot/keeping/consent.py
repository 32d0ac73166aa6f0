"""Leave to speak first, as people give it in words: a plain yes or no to the question, in many languages. Pure.

Anything longer or doubtful is for the agent, which has `set_speaking_leave` for it.
"""

from __future__ import annotations

import unicodedata
from itertools import chain
from pathlib import Path

import yaml

from bot.speaking.care import level

FILE = Path(__file__).parent.parent / "prompts" / "answers.yaml"
_WORDS = {name: frozenset(chain(*lists)) for name, lists in yaml.safe_load(FILE.read_text(encoding="utf-8")).items()}
LONGEST = 5
"""Words of an answer that can still be plain."""


def unquoted(text: str) -> str:
    """A text without the lines that quote: somebody else's yes is no yes."""
    return "\n".join(line for line in text.split("\n") if not line.lstrip().startswith(">"))


def yes_or_no(text: str) -> bool | None:
    """What a short answer says; None where it is not plainly one of the two."""
    # Punctuation and signs go; letters with their marks stay, whatever the script.
    plain = "".join(c if unicodedata.category(c)[0] not in "PS" or c == "'" else " " for c in level(unquoted(text)[:200]))
    words = plain.split()
    if not words or len(words) > LONGEST:
        return None
    while len(words) > 1 and words[-1] in _WORDS["polite"]:
        words.pop()
    said = " ".join(words)
    for name, verdict in (("yes", True), ("no", False)):
        if said in _WORDS[name] or all(word in _WORDS[name] for word in words):
            return verdict
    return None
