"""A streamed chat completion, put together again: the body that a whole answer would have had, and on the way what is there so far.

Whatever reads a body afterwards need not know that it was streamed, so every fault of a model is met as ever.
"""

import json
from collections.abc import AsyncIterator, Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Protocol

import httpx2

from bot.model import vendor
from bot.model.errors import ModelUnavailable
from bot.model.replies import dicts, mapping, said


@dataclass(frozen=True, slots=True)
class Partial:
    """What a model has written so far: text, and calls as names with their raw, unfinished arguments.

    `plain`: this model was seen to write no thoughts into its text.
    """

    text: str
    calls: tuple[tuple[str, str], ...]
    plain: bool = False


Watch = Callable[[Partial], None]


class Response(Protocol):
    """What is needed of the client library's open response."""

    @property
    def headers(self) -> Mapping[str, str]: ...
    def iter_lines(self) -> AsyncIterator[str]: ...
    async def read(self) -> bytes: ...


async def read(response: Response, watch: Watch | None, alive: Callable[[], None], *, plain: bool) -> bytes:
    """The body of an answer; `watch` is told whenever more of it is there. Empty where the stream broke off.

    `alive` is called for each piece, also of a thought that nobody sees; a comment that keeps the line open is none.
    An endpoint that does not stream is read as ever. Raises ModelUnavailable when the connection breaks.
    """
    try:
        if "event-stream" not in response.headers.get("content-type", ""):
            return await response.read()
        assembly = Assembly()
        async for line in response.iter_lines():
            name, _, data = line.partition(":")
            if name != "data":
                continue
            more = assembly.take(data.strip())
            alive()
            if more and watch is not None:
                watch(assembly.partial(plain=plain))
        return assembly.body()
    except httpx2.HTTPError as error:
        raise ModelUnavailable(f"the model endpoint broke off ({type(error).__name__})") from None


@dataclass(slots=True)
class _Call:
    id: str = ""
    name: str = ""
    arguments: str = ""
    extra: dict[str, object] = field(default_factory=dict)


def _begins_another(item: Mapping[str, object], call: _Call) -> bool:
    """Whether a piece names a function though this call is whole."""
    function = mapping(item.get("function"))
    if not (call.name and function.get("name") and (function.get("arguments") or item.get("id") != call.id)):
        return False
    try:
        return isinstance(json.loads(call.arguments or "{}"), dict)
    except (ValueError, RecursionError):
        return False


@dataclass(slots=True)
class Assembly:
    """The pieces of one answer."""

    message: dict[str, Any] = field(default_factory=lambda: {"role": "assistant", "content": None})
    calls: list[_Call] = field(default_factory=list)
    rest: dict[str, object] = field(default_factory=dict)
    finish: str = ""
    over: bool = False
    broken: bytes = b""

    def take(self, data: str) -> bool:
        """One event's data; true when there is more to see."""
        if data == "[DONE]":
            self.over = True
            return False
        try:
            chunk = mapping(json.loads(data))
        except (ValueError, RecursionError):
            self.broken = data.encode("utf-8", "replace")
            return False
        choice = next(iter(dicts(chunk.get("choices"))), {})
        if error := chunk.get("error") or choice.get("error"):
            self.broken = json.dumps({"error": error}).encode()
            return False
        self.rest |= {"model": chunk["model"]} if chunk.get("model") else {}
        # In the chunk, but for Kimi's (in its choice) and Groq's.
        usage = chunk.get("usage") or choice.get("usage") or mapping(chunk.get("x_groq")).get("usage")
        self.rest |= {"usage": usage} if usage else {}
        self.finish = str(choice.get("finish_reason") or self.finish)
        whole = choice.get("message")
        return self._add(mapping(whole if isinstance(whole, dict) else choice.get("delta")))

    def _add(self, delta: Mapping[str, object]) -> bool:
        for name in ("content", "refusal"):
            if piece := said(delta.get(name)):
                self.message[name] = (self.message.get(name) or "") + piece
        vendor.gather(self.message, delta)
        for item in dicts(delta.get("tool_calls")):
            call = self._call(item)
            call.extra |= mapping(item.get(vendor.SIGNED))
            function = mapping(item.get("function"))
            call.id = call.id or str(item.get("id") or "")
            call.name += str(function.get("name") or "")
            given = function.get("arguments")
            call.arguments += given if isinstance(given, str) else json.dumps(given) if given is not None else ""
        return bool(delta.get("content") or delta.get("tool_calls"))

    def _call(self, item: Mapping[str, object]) -> _Call:
        """The call that a piece belongs to: by its index, where an endpoint leaves that out by its id, else the last one.

        Ollama and others give whole calls, without an index or with one for all: another name after a whole call begins another.
        """
        index, known = item.get("index"), str(item.get("id") or "")
        if isinstance(index, int) and 0 <= index <= len(self.calls):
            found = self.calls[index : index + 1]
        else:
            found = [one for one in self.calls if one.id == known] if known else self.calls[-1:]
        if not found or _begins_another(item, found[-1]):
            found = [_Call()]
            self.calls.append(found[0])
        return found[-1]

    def partial(self, *, plain: bool) -> Partial:
        """What is there so far."""
        return Partial(str(self.message.get("content") or ""), tuple((one.name, one.arguments) for one in self.calls), plain)

    def body(self) -> bytes:
        """The whole answer as JSON; empty when it was cut off."""
        if self.broken or not (self.over or self.finish):
            return self.broken
        message = dict(self.message)
        if self.calls:
            message["tool_calls"] = [
                {"id": one.id, "type": "function", "function": {"name": one.name, "arguments": one.arguments}}
                | ({vendor.SIGNED: one.extra} if one.extra else {})
                for one in self.calls
            ]
        spoke = self.calls or self.finish or message.get("content")
        choices = [{"index": 0, "message": message, "finish_reason": self.finish or None}] if spoke else []
        return json.dumps({**self.rest, "choices": choices}).encode()
