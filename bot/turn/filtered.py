"""What to do when an endpoint's content filter refuses a prompt: find what it refuses, set that aside for good, and tell the person.

Found is it by halving: prompts that show a part of what the agent has before its eyes, until one thing is left. Set aside, a thing stays
where it is and can be seen, corrected and forgotten by its person; it is shown to no model any more. Else one word in a message or an
entry would keep every later message from being answered.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, replace
from typing import Literal

from adapters.catalogue import say
from memory import queue_manager
from memory.agent_state import AgentState
from memory.db import Connection
from memory.fifo_queue import answering
from memory.messages import Message

MOST = 3
"""Things that one turn sets aside: each costs up to a dozen small calls."""


@dataclass(frozen=True, slots=True)
class Part:
    """One thing in a prompt that may be what the filter refuses. `number`: the row's id, 0 for the summary."""

    kind: Literal["message", "entry", "summary"]
    number: int


Refuses = Callable[[frozenset[Part]], Awaitable[bool]]
"""Whether a prompt that shows these parts alone, beside the instructions, is refused."""


def groups(state: AgentState) -> tuple[Sequence[Part], Sequence[Part]]:
    """The parts of a prompt: what is being answered, which it mostly is, and everything else."""
    now = set(answering(state.queue))
    newest = [Part("message", m.id) for at, m in enumerate(state.queue) if at in now and not m.withheld]
    rest = [Part("message", m.id) for at, m in enumerate(state.queue) if at not in now and not m.withheld]
    entries = [Part("entry", entry.id) for entry in state.entries if not entry.withheld]
    return newest, [*entries, *([Part("summary", 0)] if state.slot0 else []), *rest]


async def culprit(state: AgentState, refuses: Refuses) -> Part | None:
    """The one thing that is refused by itself; None: it is several together, or the instructions. At most about a dozen questions."""
    for group in groups(state):
        suspects = list(group)
        if not suspects or not await refuses(frozenset(suspects)):
            continue
        while len(suspects) > 1:
            half = suspects[: len(suspects) // 2]
            suspects = half if await refuses(frozenset(half)) else suspects[len(half) :]
        alone = len(group) == 1 or await refuses(frozenset(suspects))
        return suspects[0] if alone and not await refuses(frozenset()) else None
    return None


def only(state: AgentState, parts: frozenset[Part]) -> AgentState:
    """The state with everything set aside but these parts."""
    shown = Part("summary", 0) in parts
    return replace(
        state,
        queue=tuple(m if Part("message", m.id) in parts else replace(m, withheld=True) for m in state.queue),
        entries=tuple(e if Part("entry", e.id) in parts else replace(e, withheld=True) for e in state.entries),
        summary=state.summary if shown else "",
        summary_tail=state.summary_tail if shown else "",
    )


async def set_aside(connection: Connection, state: AgentState, part: Part, **when: object) -> AgentState:
    """Mark a part, in the step of the caller. `when` is `at` and `turn`, for the log of a summary, which is given up."""
    if part.kind == "summary":
        return await queue_manager.resummarise(connection, state, [], "", **when)  # type: ignore[arg-type]
    table = "messages" if part.kind == "message" else "working_context"
    await connection.execute(f"UPDATE {table} SET withheld = true WHERE id = %s", (part.number,))  # noqa: S608 - one of two names
    return replace(
        state,
        queue=tuple(replace(m, withheld=True) if Part("message", m.id) == part else m for m in state.queue),
        entries=tuple(replace(e, withheld=True) if Part("entry", e.id) == part else e for e in state.entries),
    )


def unanswerable(state: AgentState) -> Message | None:
    """The message that was set aside, where nothing is left of what is to be answered."""
    asked = [state.queue[at] for at in answering(state.queue)]
    return asked[-1] if asked and all(message.withheld or message.kind == "quote" for message in asked) else None


def told(state: AgentState, part: Part) -> str:
    """What the person hears where the turn goes on without the part."""
    looked_up = any(m.id == part.number and m.role == "tool" for m in state.queue)
    gone = "result" if looked_up and part.kind == "message" else part.kind
    return say(f"turn.without_{gone}", state.locale, number=part.number)
