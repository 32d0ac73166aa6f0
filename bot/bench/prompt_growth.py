"""`bot bench prompt_growth --data PATH`: does a prompt stay as small in a long conversation as it is in a short one?

5,000 messages of LoCoMo, one conversation after the other, are told to one agent with the default budget. Every call counts, the
summaries' too, and with every twentieth answer the model stores a fact. The server sizes each prompt with another tokenizer and finds
how much of it began as an earlier prompt did (what a prompt cache can hold). Beside it stands full context, the program that sends the
whole conversation every time: its prompt is cached but for the newest words, yet grows without end.
"""

from __future__ import annotations

import asyncio
import itertools
import json
import os
import statistics
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path

from bot.bench.bulk import texts_of
from bot.bench.eviction import Teller
from bot.bench.model import Answer, ModelServer, Request
from bot.bench.sizes import OTHER, PER_MESSAGE, Sized, Sizes
from bot.bench.stage import Talk, ground, hand_driven, table
from bot.embedded import Servers
from bot.model.calls import Call
from memory import tokens

MESSAGES = 5_000
EARLY = 500
"""The message around which prompts count as early; at the end as many messages are averaged."""
GOAL, GOAL_SEEN = 1.05, 0.95
FACT = 20
"""Every so many answers the model stores a fact."""


@dataclass(frozen=True, slots=True)
class Measured:
    """One model call: how many messages had been exchanged, its size, and full context's size at the same point."""

    message: int
    sized: Sized
    full: int
    full_unseen: int
    after_fact: bool = False
    """The first call since a fact was stored."""


async def run(
    running: Servers,
    said: Sequence[str],
    *,
    messages: int = MESSAGES,
    budget: int | None = None,
    say: Callable[[str], None] = print,
) -> list[Measured]:
    """Tell one agent so many messages; returns its model calls."""
    teller = Teller()
    at: list[int] = []
    after: list[bool] = []
    stored = False
    exchanged = 0
    context = {"budget": budget} if budget else {}

    def policy(request: Request) -> Answer:
        nonlocal stored
        at.append(exchanged)
        after.append(stored and not request.for_summary)
        stored = stored and request.for_summary
        answer = teller(request)
        if request.for_summary or exchanged // 2 % FACT or not exchanged // 2:
            return answer
        stored = True
        content = f"Fact {exchanged}: {' '.join(teller.next.split()[:12])}"
        arguments = json.dumps({"section": "key_facts", "content": content})
        return Answer(answer.text, [Call(f"fact_{exchanged}", "working_context_append", arguments)])

    async with ModelServer(policy, sizes=Sizes()) as model, hand_driven(running, model, context=context) as (services, queue):
        talk = Talk(services, queue, "growth")
        full: list[tuple[int, int]] = []
        whole, before = 0, ""
        words = itertools.cycle(said)
        while exchanged < messages:
            heard, teller.next = next(words), next(words)
            talk.at += timedelta(minutes=7)
            exchanged += 1
            await talk.hear(heard)
            await talk.turn()
            exchanged += 1
            new = sum(tokens.count(text, OTHER) + PER_MESSAGE for text in (before, heard) if text)
            whole, before = whole + new, teller.next
            full += [(whole, new)] * (len(model.sized) - len(full))
            if exchanged % 1000 == 0:
                say(f"{exchanged:,} messages, {len(model.sized):,} calls, {talk.pressure.flushes} flushes")
        sized = model.sized
    fixed = min(size.tokens for size in sized if not size.for_summary)
    return [
        Measured(message, size, fixed + everything, new, fact)
        for message, size, (everything, new), fact in zip(at, sized, full, after, strict=True)
    ]


def around(calls: Sequence[Measured], first: int, last: int) -> list[Measured]:
    """The calls between two messages."""
    return [call for call in calls if first <= call.message < last]


def growth(calls: Sequence[Measured], messages: int = MESSAGES, early: int = EARLY) -> float:
    """Tokens per call at the end over tokens per call at the early message; all calls count."""
    begin = statistics.fmean(call.sized.tokens for call in around(calls, early // 2, early + early // 2))
    end = statistics.fmean(call.sized.tokens for call in around(calls, messages - early, messages + 1))
    return end / begin


def report(calls: Sequence[Measured], messages: int = MESSAGES, early: int = EARLY) -> str:
    """Means by stretches of the conversation, and the two figures with a goal."""
    rows = []
    step = max(1, messages // 10)
    for first in range(0, messages, step):
        part = around(calls, first, first + step)
        chats = [c for c in part if not c.sized.for_summary]  # full context never sums up
        full, unseen = statistics.fmean(c.full for c in chats), statistics.fmean(c.full_unseen for c in chats)
        own = statistics.fmean(c.sized.tokens for c in part)
        rows.append(
            (
                f"{first:,} to {first + step:,}",
                len(part),
                sum(c.sized.for_summary for c in part),
                f"{own:,.0f}",
                f"{sum(c.sized.seen for c in part) / sum(c.sized.tokens for c in part):.1%}",
                f"{statistics.fmean(c.sized.unseen for c in part):,.0f}",
                f"{full:,.0f}",
                f"{unseen:,.0f}",
                f"{own / full:.2f}",
            )
        )
    seen = sum(c.sized.seen for c in calls) / sum(c.sized.tokens for c in calls)
    facts = [c.sized for c in calls if c.after_fact] or [Sized(0, 0, for_summary=False)]
    lines = table(
        (
            "messages",
            "calls",
            "summaries",
            "tokens a call",
            "seen before",
            "unseen a call",
            "full context",
            "its unseen",
            "ratio",
        ),
        rows,
    )
    again, whole = (statistics.median(getattr(one, name) for one in facts) for name in ("unseen", "tokens"))
    return (
        f"{lines}\nTokens a call at the end over those at message {early}: {growth(calls, messages, early):.3f} (goal: at most {GOAL}). "
        f"In a prefix seen before: {seen:.1%} (goal: at least {GOAL_SEEN:.0%}). "
        f"After a stored fact {again:,.0f} of {whole:,.0f} tokens are read again (median of {len(facts)})."
    )


def main(data: Path) -> int:
    """Run on servers in a folder of their own. Returns the exit code."""
    said, messages = texts_of(data), int(os.environ.get("MESSAGES", MESSAGES))
    with ground() as running:
        calls = asyncio.run(run(running, said, messages=messages))
    print(report(calls, messages))
    return 0
