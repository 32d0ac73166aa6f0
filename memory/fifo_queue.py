"""The FIFO queue as pure decisions: where exchanges begin, what to evict, when to warn and when to flush.

The queue is no second copy: it is the window of recall storage from a conversation's start position on. Slot 0 holds the recursive
summary. Shares are of the window: the paper (Packer et al. 2023, section 2.2) warns at 70 % and at 100 % evicts 50 %.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from memory.messages import Message


@dataclass(frozen=True, slots=True)
class Thresholds:
    """When to warn and to flush, in tokens of the whole prompt, and how large the queue may be after a flush."""

    window: int
    warn: int
    flush: int
    fixed: int
    evict: float

    @property
    def after_flush(self) -> int:
        """The most tokens of the queue after a flush: the kept share of what the fixed part leaves."""
        return int((self.window - self.fixed) * (1 - self.evict))


def thresholds(window: int, fixed: int, *, warning: float, flush: float, evict: float) -> Thresholds:
    """`window` is what a prompt may hold, `fixed` what system instructions, schemas and working context take of it (tokens)."""
    return Thresholds(window, int(window * warning), int(window * flush), fixed, evict)


def exchange_starts(messages: Sequence[Message]) -> list[int]:
    """The indices at which a whole exchange begins: an event that comes after the agent has had its say.

    An alert belongs to the exchange it came in; a call is never apart from its result.
    """
    starts: list[int] = []
    answered = True
    for index, message in enumerate(messages):
        if message.role != "user":
            answered = True
        elif message.kind != "alert" and answered:
            starts.append(index)
            answered = False
    return starts


def plan_eviction(messages: Sequence[Message], tokens: Sequence[int], target: int) -> int:
    """How many of the oldest messages to evict so that the rest takes at most `target` tokens.

    Whole exchanges go, the oldest first. The last one is being answered and stays, whatever its size: its giant texts are shortened.
    """
    left = sum(tokens)
    starts = exchange_starts(messages)
    if left <= target or not starts:
        return 0
    done = 0
    for start in starts:
        left -= sum(tokens[done:start])
        done = start
        if start > 0 and left <= target:
            return start
    return starts[-1]


def answering(messages: Sequence[Message]) -> range:
    """The indices of what is being answered: the events at the begin of the last exchange."""
    starts = exchange_starts(messages)
    if not starts:
        return range(0)
    end = starts[-1]
    while end < len(messages) and messages[end].role == "user" and messages[end].kind != "alert":
        end += 1
    return range(starts[-1], end)


def shorten(text: str, *, keep: int, pointer: str) -> str:
    """Head, tail and a pointer in place of a giant text; `keep` is in characters. The whole text stays in recall storage."""
    if len(text) <= keep:
        return text
    head = keep * 7 // 10
    tail = keep - head
    return f"{text[:head]}\n[… {len(text) - keep} of {len(text)} characters left out here; {pointer} …]\n{text[-tail:] if tail else ''}"
