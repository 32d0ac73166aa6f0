"""What a turn knows while it runs, and what the operator set for all turns."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import timedelta

from bot.engine.events import Claim
from bot.keeping.decision import KeepingRules
from bot.speaking.reminders import due_in
from bot.turn.executor import Bounds, Used
from bot.turn.streaming import Stream
from memory.agent_state import AgentState
from memory.messages import Asks

IMAGES = 4
"""Pictures that one turn shows."""


@dataclass(frozen=True, slots=True)
class AgentSettings:
    """What the operator set for every agent. Shares are of the window; token numbers count the tokenizer's tokens."""

    chat_model: str
    summary_model: str
    budget: int
    warning: float
    flush: float
    evict: float
    reply_reserve: int
    bounds: Bounds
    page_size: int
    patience: timedelta
    """After how long without an answer the person hears that it takes longer."""
    waiting_line: str
    apology: str
    refused_line: str
    spent_line: str
    """What a person hears once a day when the budget is spent."""
    name: str = ""
    """What the bot is called: what it said is found by its name, as what a person said is by theirs."""
    image_tokens: int = 1200
    """What a picture counts."""
    rules: KeepingRules = KeepingRules()
    """What needs the person's yes before it is stored."""


@dataclass(slots=True)
class RunningTurn:
    """What one turn keeps while it runs; the database has the same after each step."""

    claim: Claim
    state: AgentState
    used: Used
    replied: bool
    nudged: bool
    started: float
    stream: Stream
    asks: set[Asks] = field(default_factory=set)
    """What the bot itself is to ask when the turn ends."""
    timers: set[int] = field(default_factory=set)
    """The timers that it set, for the bot's own line at its end."""
    settled: bool = False
    """It dealt with timers in another way."""
    reminded: bool = False
    """The agent was told that the person asked for a timer and none is set."""

    @property
    def images(self) -> tuple[Mapping[str, str], ...]:
        """The pictures that came with the events of this turn, the newest if there are too many."""
        return tuple(image for event in self.claim.events for image in event.payload.get("images", ()))[-IMAGES:]

    @property
    def reminds(self) -> bool:
        """Whether a due reminder still waits to be said."""
        return not self.replied and bool(due_in(self.claim))
