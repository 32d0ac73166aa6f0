"""A scripted model behind a real OpenAI-compatible HTTP server, for tests.

    async with ScriptedModel([reply("Hello."), Status(429)]) as model:
        client = ModelClient(model.base_url, "key")

A script is a list of steps, one per request: a `reply`, a fault, or a callable that is given the `Request` and
returns a step. With `key` each agent has a script of its own (`scripts[key(request)]`); with `policy` a function
answers whatever no script covers. A request that nothing covers and a step that nobody asked for both make the
block fail at its end.
"""

import asyncio
import contextlib
import hashlib
import inspect
import json
import socket
import struct
from collections.abc import Awaitable, Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from types import TracebackType
from typing import Self, cast

from aiohttp import web

from bot.model.calls import Call

Json = dict[str, object]


@dataclass(frozen=True, slots=True)
class Request:
    """One request as the server saw it; `number` counts from 1."""

    number: int
    body: Json
    headers: Mapping[str, str]

    @property
    def model(self) -> str:
        return str(self.body.get("model"))

    @property
    def messages(self) -> list[Json]:
        return cast(list[Json], self.body.get("messages", []))

    @property
    def functions(self) -> list[str]:
        """The names of the functions offered."""
        tools = cast(list[dict[str, Json]], self.body.get("tools", []))
        return [str(tool["function"]["name"]) for tool in tools]

    @property
    def tool_choice(self) -> object:
        """What the request says, "auto" where it says nothing."""
        return self.body.get("tool_choice", "auto")

    @property
    def last(self) -> str:
        """The content of the last message."""
        return str(self.messages[-1].get("content"))

    def contents(self, role: str) -> list[str]:
        """The contents of all messages of a role, in order."""
        return [str(message.get("content")) for message in self.messages if message.get("role") == role]


@dataclass(frozen=True, slots=True)
class Answer:
    """A whole reply; `message` overrides what the other fields make of it."""

    text: str | None = None
    calls: tuple[Call, ...] = ()
    finish: str | None = None
    usage: Mapping[str, object] | None = None
    message: Mapping[str, object] | None = None


@dataclass(frozen=True, slots=True)
class Status:
    """An HTTP error. `code` and `message` make OpenAI's body; `body` replaces it."""

    status: int
    code: str | None = None
    message: str = "scripted fault"
    headers: Mapping[str, str] = field(default_factory=dict)
    body: str | None = None
    param: str | None = None


@dataclass(frozen=True, slots=True)
class Raw:
    """Status 200 with this body: malformed JSON, HTML, null choices, whatever a test needs."""

    body: str
    content_type: str = "application/json"


@dataclass(frozen=True, slots=True)
class Reset:
    """The connection is reset, before the request was read or (`after`) once it was recorded."""

    after: bool = False


@dataclass(frozen=True, slots=True)
class Truncated:
    """Half of the body of `step`, then the connection ends."""

    step: Answer = Answer("cut off in the middle")


@dataclass(frozen=True, slots=True)
class Drip:
    """A blank every `seconds` and never the body: a server that is slow enough to defeat a timeout per read."""

    seconds: float = 0.02


class Gate:
    """Answers with `step` once `release` is called; without it never. `reached` tells that a request waits."""

    def __init__(self, step: "Step | None" = None) -> None:
        self.step = step if step is not None else Answer("late")
        self.reached = asyncio.Event()
        self._open = asyncio.Event()

    def release(self) -> None:
        self._open.set()

    async def passed(self) -> None:
        self.reached.set()
        await self._open.wait()


class Growing:
    """Streams `step` in pieces of a few characters, but goes no further than `shown` characters until `release`; with `cut` the
    connection ends there, with `failed` the endpoint says so in a chunk, as OpenRouter does under status 200. `pace`: seconds before
    each piece. `reached` tells that it got that far. For a request that asks for no stream it is a plain answer."""

    def __init__(
        self, step: Answer, *, shown: int | None = None, cut: bool = False, failed: Json | None = None, pace: float = 0.0
    ) -> None:
        self.step, self.shown, self.cut, self.failed, self.pace = step, shown, cut, failed, pace
        self.reached = asyncio.Event()
        self._open = asyncio.Event()

    def release(self) -> None:
        self._open.set()

    async def passed(self) -> None:
        self.reached.set()
        await self._open.wait()


@dataclass(frozen=True, slots=True)
class Delay:
    """`step` after `seconds`."""

    seconds: float
    step: "Step" = Answer("slow")


Step = Answer | Status | Raw | Reset | Truncated | Drip | Gate | Delay | Growing
PIECE = 7
"""Characters of one chunk of a stream: words, escapes and emoji are torn."""
Scripted = Step | Callable[[Request], Step | Awaitable[Step]]

EMPTY_CHOICES = Raw('{"id": "x", "object": "chat.completion", "choices": []}')
NULL_CHOICES = Raw('{"id": "x", "object": "chat.completion", "choices": null}')
MALFORMED = Raw('{"choices": [{"message": {"role": "assistant", "content": "unfini')


def call(name: str, /, call_id: str | None = None, **arguments: object) -> Call:
    """A well-formed call; its id follows from name and arguments unless given."""
    raw = json.dumps(arguments)
    return Call(call_id or "call_" + hashlib.sha256(f"{name}{raw}".encode()).hexdigest()[:12], name, raw)


def reply(text: str | None = None, *calls: Call, finish: str | None = None, **usage: object) -> Answer:
    """A reply with text, calls or both; `usage` fields replace the estimated ones."""
    return Answer(text, calls, finish, usage or None)


def unused_port() -> int:
    """A port of this machine where nothing listens."""
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        return int(listener.getsockname()[1])


class Habits:
    """How an endpoint behaves around its model; this one takes everything and adds nothing (`tests.servers.vendors` has others)."""

    def refusal(self, body: Json) -> Status | None:
        """Why a request is refused before the model sees it."""

    def dressed(self, body: Json) -> Json:
        """A completion with what the endpoint adds to it."""
        return body

    def deltas(self, message: Json) -> Iterator[Json]:
        """A message in pieces, as endpoints stream it: the text, then each call's name, then its arguments."""
        return _deltas(message)

    def opening(self) -> Iterator[Json]:
        """Fields of chunks before the first piece of the message."""
        return iter(())

    def ending(self, usage: object, finish: object, asked: Json) -> Iterator[Json]:
        """Fields of the chunks after its last piece: how it ended, and the usage where the request asked for it."""
        yield {"choices": [{"index": 0, "delta": {}, "finish_reason": finish}]}
        if asked.get("stream_options"):
            yield {"choices": [], "usage": usage}


class ScriptedModel:
    """The server. `requests` holds every chat request, `embedded` every text of an embedding request, `refused` every refusal's words."""

    def __init__(
        self,
        script: Iterable[Scripted] = (),
        *,
        scripts: Mapping[str, Iterable[Scripted]] | None = None,
        key: Callable[[Request], str] | None = None,
        policy: Callable[[Request], Step | Awaitable[Step]] | None = None,
        embed: Callable[[str], Sequence[float]] | None = None,
        models: Status | None = None,
        root: bool = False,
        latency: float = 0.0,
        habits: Habits | None = None,
    ) -> None:
        self._habits = habits or Habits()
        self.refused: list[str] = []
        self.requests: list[Request] = []
        self.embedded: list[str] = []
        self.failures: list[str] = []
        self.in_flight = 0
        self.most_in_flight = 0
        self.latency = latency
        self._scripts = {name: list(steps) for name, steps in (scripts or {}).items()}
        self._scripts.setdefault("", []).extend(script)
        self._key = key
        self._policy = policy
        self._embed = embed or _vector
        self._listing = models
        self._root = root
        self._arrived = asyncio.Condition()
        self._resets_before = 0
        self._runner: web.AppRunner | None = None
        self.base_url = ""

    def add(self, *steps: Scripted, key: str = "") -> None:
        """More steps at the end of a script."""
        self._scripts.setdefault(key, []).extend(steps)

    def left(self) -> int:
        """How many steps nobody asked for yet."""
        return sum(map(len, self._scripts.values()))

    async def wait_for(self, requests: int) -> None:
        """Returns when this many chat requests have arrived in all."""
        async with self._arrived:
            await self._arrived.wait_for(lambda: len(self.requests) >= requests)

    async def __aenter__(self) -> Self:
        app = web.Application(client_max_size=64 * 2**20)
        app.router.add_post("/v1/chat/completions", self._chat)
        if self._root:  # as LM Studio, which answers anything anywhere
            app.router.add_post("/chat/completions", self._chat)
        app.router.add_post("/v1/embeddings", self._embeddings)
        app.router.add_get("/v1/models", self._models)
        # Cancelled with its client, so that `in_flight` is true also when somebody hung up.
        self._runner = web.AppRunner(app, handler_cancellation=True, shutdown_timeout=0.1, access_log=None)
        await self._runner.setup()
        site = web.TCPSite(self._runner, "127.0.0.1", 0, backlog=2048)
        await site.start()
        self.base_url = f"http://127.0.0.1:{self._runner.addresses[0][1]}/v1"
        return self

    async def __aexit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        assert self._runner is not None
        await self._runner.cleanup()
        if error is not None:
            return
        if self.failures:
            raise AssertionError("; ".join(self.failures))
        left = {name: len(steps) for name, steps in self._scripts.items() if steps}
        if left:
            raise AssertionError(f"steps that nobody asked for: {left}")

    async def _models(self, _: web.Request) -> web.Response:
        if self._listing is not None:
            return _error(self._listing)
        return web.json_response({"object": "list", "data": [{"id": "scripted", "object": "model"}]})

    async def _embeddings(self, request: web.Request) -> web.Response:
        body = await request.json()
        texts = [body["input"]] if isinstance(body["input"], str) else body["input"]
        self.embedded += texts
        data = [{"object": "embedding", "index": index, "embedding": list(self._embed(text))} for index, text in enumerate(texts)]
        return web.json_response({"object": "list", "data": data, "model": body.get("model")})

    async def _chat(self, http: web.Request) -> web.StreamResponse:
        self.in_flight += 1
        self.most_in_flight = max(self.most_in_flight, self.in_flight)
        try:
            if self._resets_next():
                return self._reset(http)
            request = Request(len(self.requests) + 1, json.loads(await http.read()), dict(http.headers))
            self.requests.append(request)
            async with self._arrived:
                self._arrived.notify_all()
            if refusal := self._habits.refusal(request.body):
                self.refused.append(refusal.message)
                return _error(refusal)
            if self.latency:
                await asyncio.sleep(self.latency)
            return await self._play(await self._step(request), request, http)
        finally:
            self.in_flight -= 1

    def _resets_next(self) -> bool:
        """Takes a `Reset` before reading off the script; its request is never seen, so it has no key."""
        script = self._scripts[""]
        if script and script[0] == Reset(after=False):
            script.pop(0)
            return True
        return False

    async def _step(self, request: Request) -> Step:
        name = self._key(request) if self._key else ""
        script = self._scripts.get(name)
        scripted: Scripted | None = script.pop(0) if script else self._policy
        if scripted is None:
            self.failures.append(f"unexpected request {request.number} for {name or 'the script'}")
            return Status(400, "unexpected_call", "the script is at its end")
        if not callable(scripted):
            return scripted
        step = scripted(request)
        return await step if inspect.isawaitable(step) else step

    async def _play(self, step: Step, request: Request, http: web.Request) -> web.StreamResponse:
        match step:
            case Answer() if request.body.get("stream"):
                return await self._streamed(Growing(step), request, http)
            case Answer():
                return web.json_response(self._habits.dressed(completion(step, request)))
            case Growing() if request.body.get("stream"):
                return await self._streamed(step, request, http)
            case Growing():
                return await self._play(step.step, request, http)
            case Status():
                return _error(step)
            case Raw():
                return web.Response(text=step.body, content_type=step.content_type)
            case Reset():
                return self._reset(http)
            case Truncated():
                return await _half(completion(step.step, request), http)
            case Drip():
                return await _dripping(step.seconds, http)
            case Gate():
                await step.passed()
                return await self._play(step.step, request, http)
            case Delay():
                await asyncio.sleep(step.seconds)
                return await self._play(step.step, request, http)

    async def _streamed(self, growing: Growing, request: Request, http: web.Request) -> web.StreamResponse:
        body = self._habits.dressed(completion(growing.step, request))
        choice = cast(list[Json], body["choices"])[0]
        message = cast(Json, choice["message"])
        response = web.StreamResponse(headers={"Content-Type": "text/event-stream"})
        await response.prepare(http)

        async def send(**fields: object) -> None:
            chunk = {**{name: body[name] for name in ("id", "model", "created")}, "object": "chat.completion.chunk", **fields}
            await response.write(f"data: {json.dumps(chunk)}\n\n".encode())

        for fields in self._habits.opening():
            await send(**fields)
        sent = 0
        for delta in self._habits.deltas(message):
            if growing.shown is not None and sent >= growing.shown and not growing._open.is_set():
                if growing.cut:
                    growing.reached.set()
                    assert http.transport is not None
                    http.transport.close()
                    return response
                if growing.failed is not None:
                    await send(
                        choices=[{"index": 0, "delta": {"content": ""}, "finish_reason": "error", "error": growing.failed}]
                    )
                    await response.write(b"data: [DONE]\n\n")
                    return response
                await growing.passed()
            if growing.pace:
                await response.write(b": PROCESSING\n\n")
                await asyncio.sleep(growing.pace)
            await send(choices=[{"index": 0, "delta": delta, "finish_reason": None}])
            sent += PIECE
        for fields in self._habits.ending(body["usage"], choice["finish_reason"], request.body):
            await send(**fields)
        await response.write(b"data: [DONE]\n\n")
        return response

    def _reset(self, http: web.Request) -> web.StreamResponse:
        assert http.transport is not None
        connection = http.transport.get_extra_info("socket")
        with contextlib.suppress(OSError):
            # No lingering: the client gets a reset and not an orderly end.
            connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        http.transport.abort()
        return web.Response()


def completion(answer: Answer, request: Request) -> Json:
    """The body of a chat completion."""
    message: Json = {"role": "assistant", "content": answer.text}
    if answer.calls:
        message["tool_calls"] = [
            {"id": one.id, "type": "function", "function": {"name": one.name, "arguments": one.arguments}} for one in answer.calls
        ]
    finish = answer.finish or ("tool_calls" if answer.calls else "stop")
    size = len(json.dumps(request.messages)) // 4
    written = len(json.dumps(message)) // 4
    usage = {"prompt_tokens": size, "completion_tokens": written, "total_tokens": size + written}
    return {
        "id": f"chatcmpl-{request.number}",
        "object": "chat.completion",
        "created": 0,
        "model": request.model,
        "choices": [{"index": 0, "message": {**message, **(answer.message or {})}, "finish_reason": finish}],
        "usage": {**usage, **(answer.usage or {})},
    }


def _deltas(message: Json) -> Iterator[Json]:
    """A message in pieces, as endpoints stream it: thoughts and text, then each call's name, then its arguments."""
    for name in ("reasoning_content", "content", "refusal"):
        text = message.get(name)
        if isinstance(text, str):
            for start in range(0, len(text), PIECE):
                yield {name: text[start : start + PIECE]}
    if isinstance(message.get("content"), list):
        yield from ({"content": [part]} for part in cast(list[Json], message["content"]))
    if message.get("tool_calls") and not _wellformed(message["tool_calls"]):
        yield {"tool_calls": message["tool_calls"]}
        return
    for index, one in enumerate(cast(list[dict[str, Json]], message.get("tool_calls") or [])):
        function = {"name": one["function"]["name"], "arguments": ""}
        yield {"tool_calls": [{"index": index, "id": one["id"], "type": "function", "function": function}]}
        raw = str(one["function"]["arguments"])
        for start in range(0, len(raw), PIECE):
            yield {"tool_calls": [{"index": index, "function": {"arguments": raw[start : start + PIECE]}}]}


def _wellformed(calls: object) -> bool:
    """Whether calls can be streamed in pieces."""
    return isinstance(calls, list) and all(
        isinstance(one, dict) and isinstance(one.get("function"), dict) and isinstance(one["function"].get("arguments"), str)
        for one in calls
    )


def _error(step: Status) -> web.Response:
    error = {"message": step.message, "type": "scripted", "code": step.code, "param": step.param}
    body = step.body if step.body is not None else json.dumps({"error": error})
    return web.Response(status=step.status, text=body, headers=dict(step.headers), content_type="application/json")


async def _half(body: Json, http: web.Request) -> web.StreamResponse:
    content = json.dumps(body).encode()
    response = web.StreamResponse(headers={"Content-Type": "application/json"})
    response.content_length = len(content)
    await response.prepare(http)
    await response.write(content[: len(content) // 2])
    assert http.transport is not None
    http.transport.close()
    return response


async def _dripping(seconds: float, http: web.Request) -> web.StreamResponse:
    response = web.StreamResponse(headers={"Content-Type": "application/json"})
    await response.prepare(http)
    while True:
        await response.write(b" ")
        await asyncio.sleep(seconds)


def _vector(text: str) -> list[float]:
    """Eight numbers that follow from the text."""
    return [byte / 255 for byte in hashlib.sha256(text.encode()).digest()[:8]]
