"""The recursive summary: made from the one before and the evicted messages, by the summary model; by truncation when that fails."""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import tzinfo

from bot.model.errors import ContentRefused, ModelError
from bot.model.replies import Reply
from bot.words.secrets import masked
from memory.fifo_queue import shorten
from memory.main_context import label, over, package
from memory.messages import Message
from memory.spending import OverBudget, Usage
from memory.zones import local

log = logging.getLogger(__name__)

WORDS = 250
"""The most words of a summary."""
TOKENS = 600
"""The most tokens of a summary; a longer one counts as failed."""
LINE_LIMIT = 2000
"""Characters of one message in the transcript that is summarised."""
MOST_LEFT_OUT = 3
"""Lines that one summary leaves out because a content filter refuses them: each costs up to a dozen calls."""


@dataclass(frozen=True, slots=True)
class Summary:
    """A new summary. With a `tail` it could not be made: `text` is the old one, and `tail` a truncation, to be made again later."""

    text: str
    tail: str
    usages: tuple[Usage, ...]


def transcript(messages: Sequence[Message], zone: tzinfo, longest: int, count: Callable[[str], int]) -> list[str]:
    """What was said, a line of JSON a message of at most `longest` tokens, without calls, results and alerts.

    Without what others said near the person, which is kept for a time of its own and goes with its author, and without secrets.
    """
    said = [over(m) for m in messages if m.kind in ("message", "event", "monologue") and m.content]
    return [_line(message, zone, longest, count) for message in said]


def _line(message: Message, zone: tzinfo, longest: int, count: Callable[[str], int]) -> str:
    keep = LINE_LIMIT
    while True:
        line = package(
            message.kind,
            time=local(message.created_at, zone),
            said_by="you" if message.role == "assistant" else label(message.author_name),
            text=shorten(masked(message.content), keep=keep, pointer="in recall storage"),
        )
        if keep < 50 or count(line) <= longest:
            return line
        keep //= 2


def chunks(lines: Sequence[str], limit: int, count: Callable[[str], int]) -> list[list[str]]:
    """Lines in groups of at most `limit` tokens each."""
    groups: list[list[str]] = []
    used = limit + 1
    for line in lines:
        tokens = count(line) + 1
        if used + tokens > limit:
            groups.append([])
            used = 0
        groups[-1].append(line)
        used += tokens
    return groups


def truncated(lines: Sequence[str], count: Callable[[str], int], limit: int = TOKENS // 2) -> str:
    """What stands in for a summary: the beginnings of the newest lines, as many as fit in `limit` tokens."""
    kept: list[str] = []
    left = limit - 20
    for line in reversed(lines):
        piece = line[:240]
        left -= count(piece) + 1
        if left < 0:
            break
        kept.insert(0, piece)
    return "\n".join(["(Not summarised yet; the newest of what left the conversation:)", *kept])


Ask = Callable[[Sequence[Mapping[str, str]], int], Awaitable[Reply]]
"""Asks the summary model; takes the messages and the most tokens of the answer."""


async def summarise(
    ask: Ask, prompt: str, old: str, messages: Sequence[Message], *, zone: tzinfo, window: int, count: Callable[[str], int]
) -> Summary:
    """Fold evicted messages into the summary, in pieces that fit the window (tokens). Never raises for the model's sake.

    A piece that a content filter refuses is halved, and the line that it refuses by itself is left out: else no summary would ever be made.
    """
    system = prompt.replace("{words}", str(WORDS))
    room = max(500, window - count(system) - 3 * TOKENS)
    lines = transcript(messages, zone, room, count)
    summary, left_out = old, 0
    usages: list[Usage] = []
    groups = chunks(lines, room, count)
    while groups:
        group = groups.pop(0)
        request = [
            {"role": "system", "content": system},
            {"role": "user", "content": f"Summary so far:\n{summary or '(none)'}\n\nMessages that leave:\n" + "\n".join(group)},
        ]
        try:
            reply = await ask(request, 2 * TOKENS)
        except ContentRefused as refused:
            if refused.answer or left_out == MOST_LEFT_OUT:
                log.warning("summary refused by a content filter; truncated instead")
                return Summary(old, truncated(lines, count), tuple(usages))
            half = len(group) // 2
            groups[:0] = [group[:half], group[half:]] if half else []
            left_out += not half
            continue
        except (ModelError, OverBudget) as error:
            log.warning("summary failed: %s; truncated instead", type(error).__name__)
            return Summary(old, truncated(lines, count), tuple(usages))
        usages.append(reply.usage)
        made = (reply.text or "").strip()
        # One that is longer than what it sums up would make the context larger with every flush.
        if not made or count(made) > min(TOKENS, count(request[1]["content"])):
            log.warning("summary was %s; truncated instead", "too long" if made else "empty")
            return Summary(old, truncated(lines, count), tuple(usages))
        summary = made
    return Summary(summary, "", tuple(usages))
