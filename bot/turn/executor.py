"""The function executor: parses and validates calls, runs them, and turns every failure into a result the model can act on.

`plan` and `decide` are pure; `run` acts, each call in a savepoint of the step's transaction, so that a failed one leaves nothing.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal

import psycopg

from bot.engine.events import Claim
from bot.functions import BY_NAME
from bot.functions.context import CallContext, Refused, Settled
from bot.functions.registry import Function
from bot.model.calls import Call, CallFault, parse_arguments
from bot.turn.echoes import NOTICES, Echo, unpacked
from memory.messages import Draft
from memory.spending import Usage

log = logging.getLogger(__name__)

NUDGE = "The person still waits for an answer. Reply now in plain text."
NAME_LIMIT = 64
"""Characters of a function's name that endpoints take."""


@dataclass(frozen=True, slots=True)
class Bounds:
    """What one turn may use: passes (model calls), memory calls, memory writes, seconds, tokens."""

    passes: int
    memory_calls: int
    memory_writes: int
    seconds: float
    tokens: int


@dataclass(frozen=True, slots=True)
class Used:
    """What a turn has used so far."""

    passes: int = 0
    memory_calls: int = 0
    memory_writes: int = 0
    tokens: int = 0

    def exhausted(self, bounds: Bounds, seconds: float) -> bool:
        """Whether the next pass must be the last, without functions."""
        return (
            self.passes >= bounds.passes - 1
            or self.memory_calls >= bounds.memory_calls
            or self.tokens >= bounds.tokens
            or seconds >= bounds.seconds
        )


@dataclass(frozen=True, slots=True)
class Planned:
    """One call as it will run. `fault` is the result of a call that will not."""

    call: Call
    function: Function | None
    arguments: dict[str, Any]
    heartbeat: bool
    reason: str
    fault: str | None
    echo: Echo | None = None
    """What the message that it wanted to send only repeats."""


@dataclass(frozen=True, slots=True)
class Ran:
    """One call and what came of it."""

    planned: Planned
    result: str
    ok: bool


def plan(calls: Sequence[Call], used: Used, bounds: Bounds) -> list[Planned]:
    """Parse and validate calls, and refuse those over the turn's bounds. Nothing is run and nothing guessed."""
    planned = []
    memory_calls, memory_writes = used.memory_calls, used.memory_writes
    for call in calls:
        function = BY_NAME.get(call.name)
        if function is None:
            known = ", ".join(BY_NAME)
            planned.append(_faulty(call, None, f"There is no function {call.name[:60]!r}. There are: {known}."))
            continue
        arguments = parse_arguments(call.arguments, function.takes)
        if isinstance(arguments, CallFault):
            planned.append(_faulty(call, function, arguments.message))
            continue
        if function.kind != "reply":
            memory_calls += 1
            memory_writes += function.kind == "write"
            if memory_calls > bounds.memory_calls or memory_writes > bounds.memory_writes:
                what = "writes to memory" if memory_calls <= bounds.memory_calls else "memory calls"
                planned.append(
                    _faulty(call, function, f"Not run: the {what} of this turn are used up. Answer now with what you have.")
                )
                continue
        values = dict(arguments)
        wanted = values.pop("request_heartbeat", None)
        heartbeat = function.heartbeat if wanted is None else bool(wanted)
        planned.append(Planned(call, function, values, heartbeat, str(values.pop("reason", None) or ""), None))
    return planned


def without_echoes(planned: Sequence[Planned], of: Callable[[str], Echo | None]) -> list[Planned]:
    """The plan without messages that only repeat something (`of` tells what); sent is what one says in the form of a package."""
    checked = []
    for each in planned:
        if each.call.name == "send_message" and each.fault is None:
            text = unpacked(str(each.arguments.get("text")))
            echo = of(text)
            fault = NOTICES[echo] if echo else None
            each = replace(each, arguments={**each.arguments, "text": text}, fault=fault, echo=echo)
        checked.append(each)
    return checked


def _faulty(call: Call, function: Function | None, fault: str) -> Planned:
    return Planned(call, function, {}, True, "", fault)


def queries(planned: Sequence[Planned]) -> list[str]:
    """The texts that searches will look for, so that they are embedded before a connection is held."""
    return [
        each.arguments["query"]
        for each in planned
        if each.function and each.function.kind == "search" and each.arguments.get("query")
    ]


async def run(planned: Sequence[Planned], context: CallContext) -> list[Ran]:
    """Run calls in order. A failed one is rolled back alone and its result says what to do next.

    Raises psycopg.OperationalError (the database is away): that is no failure of a call but of the step.
    """
    done = []
    for each in planned:
        if each.fault is not None or each.function is None:
            done.append(Ran(each, f"Error: {each.fault}", ok=False))
            continue
        before, said = context.state, len(context.said)
        context.reason, context.unfinished = each.reason, False
        try:
            async with context.connection.transaction():
                result = await each.function.run(context, **each.arguments)
            done.append(Ran(each, result, ok=not context.unfinished))
        except Refused as refused:
            context.state = before
            del context.said[said:]
            settled = isinstance(refused, Settled)
            done.append(Ran(each, str(refused) if settled else f"Error: {refused}", ok=settled))
        except psycopg.OperationalError:
            raise
        except Exception as error:  # noqa: BLE001  the model gets a result whatever a function does
            context.state = before
            del context.said[said:]
            log.warning("function %s failed: %s", each.call.name, type(error).__name__)
            done.append(
                Ran(each, "Error: this failed inside; nothing was changed. Go on without it, or try another way.", ok=False)
            )
    return done


Ending = Literal["go on", "yield", "nudge", "apologise", "remind"]


@dataclass(frozen=True, slots=True)
class Outcome:
    """What a pass comes to: what the person reads, what stays private, and how the turn goes on."""

    say: tuple[str, ...]
    monologue: str
    ending: Ending
    notice: str = NUDGE
    """What the model is told where it is asked once more."""


def decide(
    text: str,
    ran: Sequence[Ran],
    said: Sequence[str],
    *,
    silent: bool,
    claim: Claim,
    replied: bool,
    nudged: bool,
    last: bool,
    reminds: bool = False,
    echo: Echo | None = None,
) -> Outcome:
    """The reply rules of the design, section 5.

    `said`: what `send_message` sent in this pass; `replied`: the turn sent something before; `last`: the turn is at its bounds;
    `reminds`: a due reminder still waits to be said. `echo`: what the text only repeats; such a text, or message, is no reply: the model
    is asked once more, and another one ends in the apology.
    """
    text = "" if echo else text.strip()
    echo = echo or next((each.planned.echo for each in ran if each.planned.echo), None)
    goes_on = any(not each.planned.echo and (each.planned.heartbeat or not each.ok) for each in ran)
    if goes_on and not last:
        return Outcome(tuple(said), text, "go on")
    speaks = bool(text) and (claim.origin == "person" or reminds) and not (goes_on or silent or said or replied)
    say, monologue = ((text,), "") if speaks else (tuple(said), text)
    if reminds and not say:
        return Outcome((), monologue, "remind")
    if say or replied or silent or not claim.addressed:
        return Outcome(say, monologue, "yield")
    return Outcome((), monologue, "apologise" if nudged else "nudge", NOTICES[echo] if echo else NUDGE)


def again(outcome: Outcome, said: Sequence[str]) -> Outcome:
    """The pass as one that goes on: what it would have said as its reply stays a thought, what it sent stays sent."""
    thought = "" if said else "\n\n".join(outcome.say)
    return Outcome(tuple(said), outcome.monologue or thought, "go on")


def drafts_of(calls: Sequence[Call], ran: Sequence[Ran], outcome: Outcome, *, said: Sequence[str], own: str) -> list[Draft]:
    """The rows of one pass: what was said or thought, with its calls, and each call's result right after it.

    `own`: what the bot says itself at the end.
    """
    given = tuple(
        {"id": call.id, "name": call.name[:NAME_LIMIT], "arguments": call.arguments}
        | ({"vendor": call.vendor} if call.vendor else {})
        for call in calls
    )
    drafts: list[Draft] = []
    if said:
        drafts += [Draft("assistant", "monologue", outcome.monologue)] if outcome.monologue else []
        drafts.append(Draft("assistant", "message", "\n\n".join(said), calls=given))
    elif outcome.say:
        drafts.append(Draft("assistant", "message", "\n\n".join(outcome.say), calls=given))
    elif given:
        drafts.append(Draft("assistant", "call", outcome.monologue, calls=given))
    elif outcome.monologue:
        drafts.append(Draft("assistant", "monologue", outcome.monologue))
    drafts += [Draft("tool", "result", each.result, call_id=each.planned.call.id) for each in ran]
    if outcome.ending == "nudge":
        drafts.append(Draft("user", "alert", outcome.notice))
    if own:
        drafts.append(Draft("assistant", "message", own))
    return drafts


def after(used: Used, spent: Usage, ran: Sequence[Ran]) -> Used:
    """What a turn has used after a pass that cost `spent`."""
    memory = [each.planned.function for each in ran if each.planned.function and each.planned.function.kind != "reply"]
    return Used(
        used.passes + 1,
        used.memory_calls + len(memory),
        used.memory_writes + sum(function.kind == "write" for function in memory),
        used.tokens + spent.prompt_tokens + spent.completion_tokens,
    )


ARGUMENT = {"working_context_append": "content", "working_context_replace": "new", "archival_storage_insert": "content"}
"""Where a call has the text that it stores."""


def candidates(planned: Sequence[Planned]) -> list[str]:
    """The texts that calls want to store, as the functions will weigh them."""
    found = (
        each.arguments.get(ARGUMENT[each.call.name]) for each in planned if each.fault is None and each.call.name in ARGUMENT
    )
    return list(dict.fromkeys(text.strip() for text in found if isinstance(text, str) and text.strip()))
