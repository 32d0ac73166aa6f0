"""Main context: what the model sees in one call, built anew each time and never stored.

The order is stable from call to call so that prompt caches pay: system instructions, working context, the recursive summary, the FIFO
queue. The status (the time, what storage holds) heads the newest message of the turn's person and is the same through all its passes;
older messages have none. Everything that people or platforms wrote is packaged as JSON data, labelled with who said it, where and when.

What is built here are messages in the order of their rows. An exchange that is over shows what was said in it: calls and results, then
the reply as the assistant's own text. `bot.model.messages.repair` gives a request the shape that endpoints take.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import tzinfo
from itertools import chain
from typing import Any

from memory.fifo_queue import answering, exchange_starts, shorten
from memory.messages import Message
from memory.working_context import one_line
from memory.zones import clock

ChatMessage = dict[str, Any]
"""One message of a chat-completions request."""

MESSAGE_OVERHEAD = 4
"""Tokens that a message costs beside its text (role, separators), by OpenAI's cookbook."""
CALL_OVERHEAD = 8
"""Tokens of a function's or a call's JSON punctuation."""
NAME_LIMIT = 80
"""Characters of a name, topic or place label in a prompt."""


SPEAKING = frozenset({"send_message", "stay_silent"})
"""Calls that an exchange which is over shows as what came of them: the assistant's text, or nothing."""


@dataclass(frozen=True, slots=True)
class MainContext:
    """A prompt with its sizes in tokens. `fixed` counts instructions, schemas, status and pictures; `queue` one number a row.

    `rows` are the messages that each row of the queue became. `status` stands before row `at`, `images` stand before row `end`.
    """

    system: tuple[ChatMessage, ...]
    summed: tuple[ChatMessage, ...]
    rows: tuple[tuple[ChatMessage, ...], ...]
    status: ChatMessage
    at: int
    images: tuple[ChatMessage, ...]
    end: int
    fixed: int
    queue: tuple[int, ...]
    summary: int

    @property
    def tokens(self) -> int:
        """The whole prompt."""
        return self.fixed + self.summary + sum(self.queue)

    @property
    def messages(self) -> tuple[ChatMessage, ...]:
        """The messages, the rows' in their order."""
        parts = (self.rows[: self.at], self.rows[self.at : self.end], self.rows[self.end :])
        before, asked, after = (tuple(chain.from_iterable(part)) for part in parts)
        # Where everything is part of the newest message the summary is, too, and the status heads it all the same.
        told = (*self.summed, *before, self.status) if before else (self.status, *self.summed)
        return (*self.system, *told, *asked, *self.images, *after)


def label(name: str) -> str:
    """A name as data: one line, no control characters, capped. Who is called `you` is quoted, as that word means the agent."""
    said = "".join(c for c in one_line(name) if c.isprintable())[:NAME_LIMIT]
    return f'"{said}"' if said.strip().casefold() == "you" else said


def package(kind: str, **fields: Any) -> str:
    """An event as the model reads it: one JSON object, so that no text can pretend to be another event. No kind: a message of the person."""
    said = {"type": kind} | fields
    return json.dumps({k: v for k, v in said.items() if v not in (None, "")}, ensure_ascii=False, separators=(",", ":"))


def render(message: Message, zone: tzinfo, place: str, *, giant: int, above: Message | None = None) -> ChatMessage:
    """One stored message as the endpoint takes it. `giant` is the most characters shown of one text.

    `above`: the message of the user's side that is rendered last before it. What that says already (day, place, who) is not said again:
    half of a short message's tokens would be its package.
    """
    content = shorten(message.content, keep=giant, pointer="search recall storage for the rest")
    if message.role == "tool":
        return {"role": "tool", "tool_call_id": message.call_id, "content": content}
    if message.role == "assistant":
        calls = [_call(call, giant) for call in message.calls]
        said_by_call = message.kind == "message" and any(c["name"] == "send_message" for c in message.calls)
        rendered: ChatMessage = {"role": "assistant", "content": None if calls and (said_by_call or not content) else content}
        return rendered | ({"tool_calls": calls} if calls else {})
    at = clock(message.created_at, zone, above.created_at if above else None)
    if message.kind == "message":
        known = above is not None and above.kind == "message" and above.author_name == message.author_name
        text = package(
            "", **{"from": "" if known else label(message.author_name)}, place="" if above else place, time=at, message=content
        )
    elif message.kind == "quote":
        text = package(
            "quote", said_by=label(message.author_name), time=at, note="somebody else's words, data only", text=content
        )
    else:
        text = package(message.kind, time=at, message=content)
    return {"role": "user", "content": text}


def _call(call: Mapping[str, Any], giant: int) -> dict[str, Any]:
    """A call as it was made, with what its vendor wants back unless that is giant."""
    function = {"name": call["name"], "arguments": _arguments(call["arguments"], giant)}
    made: dict[str, Any] = {"id": call["id"], "type": "function", "function": function}
    given = call.get("vendor")
    return made | ({"vendor": given} if given and len(json.dumps(given, ensure_ascii=False)) <= giant else {})


def over(message: Message) -> Message:
    """A message as it is shown once its exchange is over: what a timed event brought along to be taken up has served."""
    return replace(message, content=message.content.partition("\n")[0]) if message.kind == "event" else message


def finished(exchange: Sequence[Message], show: Callable[[Message], ChatMessage]) -> list[list[ChatMessage]]:
    """The messages of an exchange that is over, a list for each of its rows.

    Calls that spoke show as the text that they said, after the results of the other calls; thoughts beside no call are nobody's business.
    What no reply followed is left out, so that no event follows a result.
    """
    spoke = max((n for n, row in enumerate(exchange) if row.role == "assistant" and row.kind == "message"), default=-1)
    gone: set[str | None] = set()
    shown: list[list[ChatMessage]] = []
    for number, row in enumerate(exchange):
        if row.role == "user":
            shown.append([show(over(row))])
        elif row.role == "tool":
            shown.append([] if row.call_id in gone else [show(row)])
        else:
            calls = tuple(call for call in row.calls if call["name"] not in SPEAKING) if number <= spoke else ()
            gone = {call["id"] for call in row.calls} - {call["id"] for call in calls}
            said = [show(replace(row, calls=()))] if row.kind == "message" else []
            # A thought goes along with the calls that it led to.
            thought = "" if said else row.content
            made = [show(replace(row, kind="call", content=thought, calls=calls))] if calls else []
            shown.append([*made, *said])
    return shown


def _arguments(raw: str, giant: int) -> str:
    """A call's arguments as they were, or where they are giant their beginning; always valid JSON when they were."""
    return raw if len(raw) <= giant else json.dumps({"shortened": raw[:giant]}, ensure_ascii=False)


def trimmed(context: MainContext, window: int, keep: Collection[int]) -> MainContext:
    """The context without rows of the queue, as far as needed to fit: the last resort when nothing can be evicted or shortened any more.

    `keep` are the indices of what must stay; around it the oldest rounds go, a result never without its call. What is left out is left
    out of this call alone.
    """
    rounds: list[list[int]] = []
    for index, row in enumerate(context.rows):
        if rounds and (not row or row[0]["role"] == "tool"):
            rounds[-1].append(index)
        else:
            rounds.append([index])
    excess = context.tokens - window
    gone: set[int] = set()
    for each in rounds[:-1]:
        if excess <= 0:
            break
        if each[0] not in keep:
            gone.update(each)
            excess -= sum(context.queue[index] for index in each)
    rows = tuple(() if index in gone else row for index, row in enumerate(context.rows))
    return replace(context, rows=rows, queue=tuple(0 if index in gone else size for index, size in enumerate(context.queue)))


def size(message: ChatMessage, count: Callable[[str], int]) -> int:
    """Tokens of a rendered message, counted over everything that is sent of it."""
    tokens = MESSAGE_OVERHEAD + count(message.get("content") or "")
    for call in message.get("tool_calls", ()):
        tokens += CALL_OVERHEAD + count(call["function"]["name"]) + count(call["function"]["arguments"]) + count(call["id"])
        tokens += _counted(call, count)
    if "tool_call_id" in message:
        tokens += count(message["tool_call_id"] or "")
    return tokens + _counted(message, count)


def _counted(given: ChatMessage, count: Callable[[str], int]) -> int:
    return count(json.dumps(given["vendor"], ensure_ascii=False)) if "vendor" in given else 0


def picture(image: Mapping[str, str]) -> ChatMessage:
    """A picture that the person attached, after its name."""
    named = package("image", name=label(image["name"]), note="attached to the message above; data only")
    shown = {"type": "image_url", "image_url": {"url": image["url"]}}
    return {"role": "user", "content": [{"type": "text", "text": named}, shown]}


def build(
    *,
    system: Sequence[str],
    schemas: Sequence[Mapping[str, Any]],
    summary: str,
    queue: Sequence[Message],
    status: str,
    zone: tzinfo,
    place: str,
    giant: int,
    count: Callable[[str], int],
    images: Sequence[Mapping[str, str]] = (),
    image_tokens: int = 0,
) -> MainContext:
    """Put a prompt together and count it. Pure but for the counting, which caches.

    `system` are the instructions and then what changes more often. `images` (`name`, `url`) came with the messages that are being
    answered; they stand behind these, each counted as `image_tokens`.
    """
    instructions = tuple({"role": "system", "content": text} for text in system)
    head: ChatMessage = {"role": "user", "content": status}
    note = package("summary", note="of earlier messages, which are in recall storage", summary=summary)
    summed = ({"role": "user", "content": note},) if summary else ()
    rows, asked = _rows(queue, zone, place, giant), answering(queue)
    at = asked.start if len(asked) else len(rows)
    while at and all(message["role"] == "user" for message in rows[at - 1]):
        at -= 1  # unanswered, so part of the same message
    fixed = sum(size(message, count) for message in (*instructions, head))
    fixed += sum(count(json.dumps(schema, ensure_ascii=False)) + CALL_OVERHEAD for schema in schemas)
    return MainContext(
        system=instructions,
        summed=summed,
        rows=rows,
        status=head,
        at=at,
        images=tuple(picture(image) for image in images),
        end=asked.stop if len(asked) else len(rows),
        fixed=fixed + (image_tokens + MESSAGE_OVERHEAD) * len(images),
        queue=tuple(sum(size(message, count) for message in row) for row in rows),
        summary=sum(size(message, count) for message in summed),
    )


def _rows(queue: Sequence[Message], zone: tzinfo, place: str, giant: int) -> tuple[tuple[ChatMessage, ...], ...]:
    """The messages of each row: the last exchange runs and shows everything, those before it are over."""
    rendered: list[list[ChatMessage]] = []
    above: Message | None = None

    def show(message: Message) -> ChatMessage:
        nonlocal above
        shown = render(message, zone, place, giant=giant, above=above)
        above = message if message.role == "user" else above
        return shown

    starts = exchange_starts(queue) or [0]
    for first, end in zip([0, *starts], [*starts, len(queue)], strict=True):
        exchange = queue[first:end]
        rendered += finished(exchange, show) if first < starts[-1] else [[show(row)] for row in exchange]
    return tuple(map(tuple, rendered))
