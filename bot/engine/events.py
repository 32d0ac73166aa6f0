"""The values of the engine: an event, and a claim on an agent's turn."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, Literal

from memory.places import Visibility

Origin = Literal["person", "timed", "admin"]


@dataclass(frozen=True, slots=True)
class Event:
    """What wakes an agent. `visibility` is that of its place when it came in.

    `payload` is JSON: for a message `text`, `author_id`, `author_name`, `message_id`, `addressed`, `quotes` and perhaps `images`.
    """

    id: int
    seq: int
    kind: str
    origin: Origin
    payload: Mapping[str, Any]
    created_at: datetime
    visibility: Visibility = "direct"


def as_said(events: Sequence[Event]) -> tuple[Event, ...]:
    """Events of one place, given in the order in which they were taken in, with their messages in the order in which they were said.

    Two connections to a platform keep no order between them, and what is caught up comes after what was said since. The platform's ids of
    the messages in one place are numbers that rise; where they are none, and for everything else, the order stays.
    """
    said = iter(sorted((event for event in events if _number(event)), key=_number))
    return tuple(next(said) if _number(event) else event for event in events)


def _number(event: Event) -> tuple[int, ...]:
    """The platform's number of a message: Discord's `123`, Slack's `123.000100`; empty without one."""
    parts = str(event.payload.get("message_id") or "").split(".")
    return tuple(map(int, parts)) if event.kind == "message" and all(map(str.isdecimal, parts)) else ()


@dataclass(slots=True)
class Fence:
    """What every step of a turn is checked against. Read with the claim, moved on by each committed step.

    `version` and `policy_version` are those of the memory and places that the turn's prompt is built from (cache keys too);
    `step` is the number of the next step; `more` is None until the turn is finished, then whether more waits for its agent.
    """

    epoch: int = 0
    version: int = 0
    policy_version: int = 0
    step: int = 0
    more: bool | None = None


@dataclass(frozen=True, slots=True)
class Claim:
    """The right to run one turn of one agent, until a claim with a higher epoch is made.

    `passes`, `memory_calls`, `memory_writes` and `tokens` are what an earlier, crashed run of the same turn has used.
    `platform` and `channel` are the place in its platform's own ids.
    `cancel_requested`: the person asked to stop before the claim. `fence` alone changes while the turn runs.
    """

    agent: int
    epoch: int
    turn: int
    step: int
    conversation: int
    place: int
    platform: str
    channel: str
    origin: Origin
    events: tuple[Event, ...]
    started_at: datetime
    passes: int
    memory_calls: int
    memory_writes: int
    tokens: int
    replied: bool
    nudged: bool
    resumed: bool
    cancel_requested: bool = False
    fence: Fence = field(default_factory=Fence, compare=False)

    @property
    def addressed(self) -> bool:
        """Whether a person spoke to the bot itself, so that the turn may not end in silence."""
        return self.origin == "person" and any(event.payload.get("addressed", True) for event in self.events)

    @property
    def said(self) -> list[str]:
        """The texts of the person's messages, in order."""
        return [str(event.payload.get("text", "")) for event in self.events if event.kind == "message"]

    @property
    def reply_to(self) -> str | None:
        """The platform's id of the newest message that is being answered."""
        ids = [event.payload.get("message_id") for event in self.events]
        return next((each for each in reversed(ids) if each), None)


@dataclass(frozen=True, slots=True)
class Wait:
    """A burst is being waited for: claim again at `until`."""

    until: datetime


class StaleTurn(Exception):
    """Somebody else runs this agent's turn now, or the person was erased: nothing of the step was kept; stop silently."""


class ContextChanged(Exception):
    """Memory or place policy changed while the model was thinking: nothing of the step was kept; build the prompt anew."""


class TurnCancelled(Exception):
    """The person asked to stop."""


class TryAgainLater(Exception):
    """The turn cannot go on now through no fault of its own (the model is away); `seconds` is the suggested wait, if known."""

    def __init__(self, reason: str, seconds: float | None = None) -> None:
        super().__init__(reason)
        self.reason = reason
        self.seconds = seconds


class Setback(Exception):
    """What the queue is told of a turn that has to be run again, instead of the error itself, whose text it would log.

    `times`: how often this turn has failed before in this process; `seconds` as in `TryAgainLater`.
    """

    def __init__(self, reason: str, times: int, seconds: float | None = None) -> None:
        super().__init__(reason)
        self.times = times
        self.seconds = seconds
