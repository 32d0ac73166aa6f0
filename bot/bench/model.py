"""The model of the benchmarks: an OpenAI-compatible server that answers at once, or after a given time.

`ModelServer` runs in the caller's loop and answers by a policy; it can size every request (`bot.bench.sizes`). `apart` runs one with
the instant policy in a process of its own, so that the process that is measured does not carry the server's load; it is asked about
and steered over HTTP, and ends with its caller.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import subprocess
import sys
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass
from functools import cached_property
from types import TracebackType
from typing import Any, Self

from aiohttp import ClientSession, web

from bot.bench.sizes import Sized, Sizes
from bot.model.calls import Call

TEXT = "I see. Tell me more about that."
"""What the instant model says."""


@dataclass(frozen=True, slots=True)
class Answer:
    """What the model says and calls."""

    text: str | None = None
    calls: Sequence[Call] = ()


class Request:
    """One request; its body is decoded only when it is looked at."""

    def __init__(self, raw: bytes) -> None:
        self.raw = raw

    @cached_property
    def body(self) -> dict[str, Any]:
        """The decoded body."""
        return dict(json.loads(self.raw))

    @property
    def messages(self) -> list[dict[str, Any]]:
        """The messages of the prompt."""
        return list(self.body["messages"])

    @property
    def for_summary(self) -> bool:
        """A request without functions asks for a summary."""
        return "tools" not in self.body


Policy = Callable[[Request], Answer]
"""Decides what the model answers."""


def instant(_: Request) -> Answer:
    """Always the same words, without a look at the request."""
    return Answer(TEXT)


class ModelServer:
    """The server. `requests` counts; `sized` holds the size of every request if `sizes` was given; `last` is the newest body."""

    def __init__(self, policy: Policy = instant, *, latency: float = 0.0, sizes: Sizes | None = None) -> None:
        """`latency` is in seconds."""
        self.policy = policy
        self.latency = latency
        self.requests = 0
        self.in_flight = 0
        self.last = b""
        self.sized: list[Sized] = []
        self.base_url = ""
        self._sizes = sizes
        self._open = asyncio.Event()
        self._open.set()
        self._runner: web.AppRunner | None = None

    async def __aenter__(self) -> Self:
        app = web.Application(client_max_size=64 * 2**20)
        app.router.add_post("/v1/chat/completions", self._chat)
        app.router.add_get("/figures", self._figures)
        app.router.add_get("/last", self._newest)
        app.router.add_post("/hold/{held}", self._hold)
        app.router.add_post("/latency/{seconds}", self._slow_down)
        self._runner = web.AppRunner(app, access_log=None, handler_cancellation=True, shutdown_timeout=0.1)
        await self._runner.setup()
        await web.TCPSite(self._runner, "127.0.0.1", 0, backlog=2048).start()
        self.base_url = f"http://127.0.0.1:{self._runner.addresses[0][1]}/v1"
        return self

    async def __aexit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        if self._runner is not None:
            await self._runner.cleanup()

    async def _chat(self, http: web.Request) -> web.Response:
        request = Request(await http.read())
        self.requests += 1
        self.last = request.raw
        self.in_flight += 1
        try:
            answer = self.policy(request)
            prompt = 0  # says nothing of its size, as some endpoints do
            if self._sizes is not None:
                self.sized.append(self._sizes.of(request.body))
                prompt = self.sized[-1].tokens
            await self._open.wait()
            if self.latency:
                await asyncio.sleep(self.latency)
            return web.Response(body=_completion(answer, self.requests, prompt), content_type="application/json")
        finally:
            self.in_flight -= 1

    async def _figures(self, _: web.Request) -> web.Response:
        return web.json_response({"requests": self.requests, "in_flight": self.in_flight})

    async def _newest(self, _: web.Request) -> web.Response:
        return web.Response(body=self.last)

    async def _hold(self, http: web.Request) -> web.Response:
        if http.match_info["held"] == "on":
            self._open.clear()
        else:
            self._open.set()
        return web.Response()

    async def _slow_down(self, http: web.Request) -> web.Response:
        self.latency = float(http.match_info["seconds"])
        return web.Response()


def _completion(answer: Answer, number: int, prompt: int) -> bytes:
    message: dict[str, Any] = {"role": "assistant", "content": answer.text}
    if answer.calls:
        message["tool_calls"] = [
            {"id": call.id, "type": "function", "function": {"name": call.name, "arguments": call.arguments}}
            for call in answer.calls
        ]
    body = {
        "id": f"chatcmpl-{number}",
        "object": "chat.completion",
        "created": 0,
        "model": "bench",
        "choices": [{"index": 0, "message": message, "finish_reason": "tool_calls" if answer.calls else "stop"}],
        "usage": {"prompt_tokens": prompt, "completion_tokens": 10, "total_tokens": prompt + 10},
    }
    return json.dumps(body).encode()


# --- in a process of its own -------------------------------------------------------------------------


class Apart:
    """A server in another process, from here."""

    def __init__(self, base_url: str, session: ClientSession) -> None:
        self.base_url = base_url
        self._address = base_url.removesuffix("/v1")
        self._session = session

    async def figures(self) -> Mapping[str, int]:
        """`requests` so far and `in_flight` now."""
        async with self._session.get(f"{self._address}/figures") as response:
            return dict(await response.json())

    async def last(self) -> bytes:
        """The body of the newest request, as it came."""
        async with self._session.get(f"{self._address}/last") as response:
            return await response.read()

    async def hold(self, held: bool) -> None:
        """While held, nothing is answered."""
        await self._post(f"hold/{'on' if held else 'off'}")

    async def slow_down(self, seconds: float) -> None:
        """Answer after so many seconds from now on."""
        await self._post(f"latency/{seconds}")

    async def _post(self, what: str) -> None:
        async with self._session.post(f"{self._address}/{what}") as response:
            response.raise_for_status()


@asynccontextmanager
async def apart(*, latency: float = 0.0) -> AsyncIterator[Apart]:
    """An instant model in a process of its own, which ends when its standard input does."""
    process = await asyncio.create_subprocess_exec(
        sys.executable,
        "-m",
        "bot.bench.model",
        "--latency",
        str(latency),
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))},
    )
    assert process.stdout is not None
    assert process.stdin is not None
    try:
        address = (await process.stdout.readline()).decode().strip()
        async with ClientSession() as session:
            yield Apart(address, session)
    finally:
        process.stdin.close()
        with suppress(TimeoutError):
            await asyncio.wait_for(process.wait(), 10)


async def _serve(latency: float) -> None:
    async with ModelServer(latency=latency) as server:
        print(server.base_url, flush=True)
        await asyncio.to_thread(sys.stdin.read)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description="The instant model, until standard input ends.")
    parser.add_argument("--latency", type=float, default=0.0, help="seconds before each answer")
    asyncio.run(_serve(parser.parse_args().latency))
