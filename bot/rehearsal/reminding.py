"""What the rehearsal model understands of reminders: what for, and when (`memory.dates` reads that). Pure."""

from __future__ import annotations

import re
from dataclasses import dataclass
from datetime import datetime

from memory.dates import When, when_in

_ASKS = re.compile(
    r"\b(?:please |bitte |can you |could you |kannst du |peux-tu |puedes |puoi |podes )*(?:(?<!not )(?<!n't )remind me|wake me(?: up)?"
    r"|don't let me forget"
    r"|(?:set|make|start|create|add)(?: me)? (?:an? |the )?(?:timer|alarm|reminder)(?: for me)?|timer"
    r"|erinner(?:e|st du)? mich|wecke? mich|stelle?(?: mir)? (?:eine[nr]? )?(?:timer|wecker|erinnerung)|rappelle[- ]moi|recu[eé]rdame|ricordami"
    r"|lembra-me|me lembra|lembre-me)\b",
    re.IGNORECASE,
)
_BARE = re.compile(r"\s*(?:for|at|um|à|a las|alle|às)\s[^:]{1,40}:\s*\S", re.IGNORECASE)
"""`for 5 pm: tea`."""
_SMALL = "to|that|about|of|for|and|i have to|i should|an das|an den|an die|ans|an|daran|dass ich|zu|de la|de|d'|que|à|a|du|di|da|para|per|pour"
_FILLER = re.compile(rf"^(?:(?:{_SMALL})\b[\s:,]*)+", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class Request:
    """A request to be reminded: `when` None where it names no time."""

    purpose: str
    when: When | None


def request_in(text: str, now: datetime) -> Request | None:
    """What a message asks to be reminded of; None: it does not ask. `now`: naive, on the person's clock."""
    asks = _ASKS.search(text)
    if asks is None and not _BARE.match(text):
        return None
    when = when_in(text, now)
    if asks is None and when is None:
        return None
    left = when.rest if when else text
    purpose = _FILLER.sub("", " ".join(_ASKS.sub(" ", left).split()).strip(" ,.:;!?")).strip(" ,.:;!?")
    return Request(purpose or "what you asked for", when)
