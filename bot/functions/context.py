"""What a function is closed over: one agent, one turn, one transaction. No function takes an agent or a place as an argument."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from bot.engine.events import Claim
from bot.keeping.decision import Around, Candidate, Judged, KeepingRules, Said, decide, sensitive_kind, unfounded
from bot.words.secrets import masked
from memory import log, sources
from memory.agent_state import AgentState
from memory.db import Connection
from memory.embedding import QueryVector
from memory.fifo_queue import answering
from memory.messages import Asks
from memory.places import Visibility, strictest

PAUSED = "The person has paused memory: nothing new may be stored. Do not try again; say so if they ask for it."


class Refused(Exception):
    """A call that cannot be done; the text is written for the model and says what to do instead."""


class Settled(Refused):
    """As `Refused`, but there is nothing left to do about it: the model is not run again for its sake."""


UNFOUNDED = "Not one of these words was said. Keep it as the person said it, in their own words and language, or store nothing."


@dataclass(slots=True)
class CallContext:
    """One step of a turn while its calls run. `state` is replaced as calls change it; the caller keeps the last one."""

    connection: Connection
    claim: Claim
    state: AgentState
    now: datetime
    vectors: Mapping[str, QueryVector]
    page_size: int
    reason: str = ""
    seen: list[Visibility] = field(default_factory=list)
    said: list[str] = field(default_factory=list)
    silent: bool = False
    rules: KeepingRules = field(default_factory=KeepingRules)
    judged: Mapping[str, Judged] = field(default_factory=dict)
    asks: set[Asks] = field(default_factory=set)
    """What the bot itself is to ask below the reply that ends the turn."""
    may_ask: bool = False
    """The person may be asked for leave to be written to first."""
    unfinished: bool = False
    """Set by a function whose result the model must act on, whatever it asked for."""
    timers: set[int] = field(default_factory=set)
    """The timers that this turn set."""
    settled: bool = False
    """The turn was about timers that are set already: they were listed or cancelled."""
    replied: bool = False
    """The turn said something before this step."""

    async def rows(self, statement: str, *parameters: object) -> list[dict[str, Any]]:
        """The rows of a statement."""
        return await (await self.connection.execute(statement.encode(), parameters)).fetchall()

    @property
    def visibility(self) -> Visibility:
        """Of what this turn makes: the strictest of what it was made from."""
        return strictest([self.state.visibility, *self.seen])

    @property
    def why(self) -> str:
        """The reason that the model gave, as it may be kept: what is stored may have had a yes, what the model says about it had none."""
        return "" if self.state.unkept or sensitive_kind(self.reason, self.rules.sensitive) else masked(self.reason)

    async def log(
        self,
        action: str,
        target: log.Target,
        target_id: int,
        *,
        before: str | None = None,
        after: str | None = None,
        row: Mapping[str, Any] | None = None,
    ) -> None:
        """Write a change of this turn into the memory log, with the reason the model gave; `row`: as `log.record` takes it."""
        await log.record(
            self.connection,
            agent=self.claim.agent,
            place=self.claim.place,
            at=self.now,
            actor="agent",
            action=action,
            target=target,
            target_id=target_id,
            turn=self.claim.turn,
            reason=self.why,
            before=before,
            after=after,
            row=row,
            message=self.source,
        )

    @property
    def source(self) -> int | None:
        """The message that this turn answers: the newest of the person's, else what else woke it."""
        said = [m for m in self.state.queue if m.role == "user" and m.kind in ("message", "event")]
        return said[-1].id if said else None

    def may_store(self) -> None:
        """Raises Refused while memory is paused."""
        if self.state.unkept:
            raise Refused(PAUSED)

    def weigh(self, text: str, *, tags: Sequence[str] = (), without: int | None = None, fact: bool = True) -> Candidate:
        """What becomes of a text that is to be stored with its tags. Raises Refused.

        `without`: the entry that it takes the place of. `fact`: it is about the person and not a note of the agent's own, so some of it
        must have been said; what was made up goes back to the model once.
        """
        self.may_store()
        if fact and unfounded(text, self._could_come_from()):
            raise Settled("Not stored: none of it was said.") if self._went_back(text) else Refused(UNFOUNDED)
        queue = self.state.queue
        around = Around(
            [entry.content for entry in self.state.entries if entry.id != without],
            [Said(m.content) for m in queue if m.role == "user" and m.kind == "message"],
            [Said(m.content, m.author_id, m.author_name) for m in queue if m.kind == "quote"],
        )
        decision = decide(text, around, self.rules, self.judged.get(text), tags)
        if not decision.keep:
            raise Refused(decision.why)
        return decision

    def _could_come_from(self) -> list[str]:
        """All that the agent has before its eyes, without its own calls and what it wrote in this turn."""
        state, own = self.state, set(answering(self.state.queue))
        begun = min(own, default=len(state.queue))
        said = [m.content for at, m in enumerate(state.queue) if m.role != "assistant" or (at < begun and m.kind == "message")]
        results = [each for each in said if not each.startswith("Error:")]
        return [*results, *(entry.content for entry in state.entries), state.slot0]

    def _went_back(self, text: str) -> bool:
        """Whether the same text was refused in this conversation as unfounded before."""
        refused = {m.call_id for m in self.state.queue if m.role == "tool" and UNFOUNDED in m.content}
        form = json.dumps(text, ensure_ascii=False)[1:-1]
        raw = (call["arguments"] for m in self.state.queue for call in m.calls if call["id"] in refused)
        return any(form in arguments or json.dumps(text)[1:-1] in arguments for arguments in raw)

    async def derive(self, derived: sources.Derived, derived_id: int, *, author: str = "") -> None:
        """Note where a derived row came from: what this turn answers, and the quotes in view of the `author` whose words it repeats."""
        said = [m for m in self.state.queue if m.kind in ("message", "quote", "event")]
        newest = next((i for i in range(len(said) - 1, -1, -1) if said[i].role == "assistant"), -1)
        await sources.add(
            self.connection,
            self.claim.agent,
            derived,
            derived_id,
            trigger=[m.id for m in said[newest + 1 :] if m.kind != "quote"],
            quotes=[m.id for m in said if m.kind == "quote" and author and m.author_id == author],
        )

    async def fetched(self, found: sources.Fetched, ids: Sequence[int]) -> None:
        """Note what a search of this turn brought into its prompt."""
        await sources.fetched(self.connection, self.claim.agent, self.claim.turn, found, ids)
