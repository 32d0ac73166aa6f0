"""What a turn knows while it runs, and what the operator set for all turns."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import timedelta

from bot.engine.events import Claim
from bot.functions import SCHEMAS
from bot.keeping.decision import KeepingRules
from bot.model.calls import FunctionSchema
from bot.speaking.reminders import due_in
from bot.turn.executor import Bounds, Used
from bot.turn.streaming import Stream
from memory.agent_state import AgentState
from memory.fifo_queue import answering
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
    name: str = ""
    """What the bot is called: what it said is found by its name, as what a person said is by theirs."""
    image_tokens: int = 1200
    """What a picture counts."""
    rules: KeepingRules = KeepingRules()
    """What needs the person's yes before it is stored."""
    small: bool = False
    """The chat model is small: it gets compact instructions and fewer functions."""


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
    status: str = ""
    """The time, the place and what storage held when the state was read: word for word the same through all passes."""
    set_aside: int = 0
    """How many things were withheld from the model in this turn."""

    offered: tuple[FunctionSchema, ...] = SCHEMAS
    """What the model may call, the same through the turn."""
    seen_anew: bool = False
    """Its prompt was built again of a memory that had changed."""
    timers: set[int] = field(default_factory=set)
    """The timers that it set, for the bot's own line at its end."""
    settled: bool = False
    """It dealt with timers in another way."""
    reminded: bool = False
    """The agent was told that the person asked for a timer and none is set."""
    held: str = ""
    """Its reply before that, which is said if no other one follows."""

    @property
    def images(self) -> tuple[Mapping[str, str], ...]:
        """The pictures that came with the events of this turn, the newest if there are too many."""
        return tuple(image for event in self.claim.events for image in event.payload.get("images", ()))[-IMAGES:]

    @property
    def heard(self) -> tuple[str, ...]:
        """The person's words that are being answered."""
        queue = self.state.queue
        return tuple(queue[at].content for at in answering(queue) if queue[at].role == "user" and queue[at].kind == "message")

    @property
    def reminds(self) -> bool:
        """Whether a due reminder still waits to be said."""
        return not self.replied and bool(due_in(self.claim))
