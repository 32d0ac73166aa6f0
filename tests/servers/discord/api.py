"""The HTTP side: reads requests, lets faults have their way, asks the handler, writes Discord's answers and the log."""

from __future__ import annotations

import asyncio
import json
import time
import traceback
from collections.abc import Callable
from dataclasses import dataclass
from typing import cast

from aiohttp import BodyPartReader, web

from tests.servers.discord.actions import Actions
from tests.servers.discord.errors import ApiError, invalid_form, unauthorized
from tests.servers.discord.faults import Answer, Cut, Delay, Effect, Faults, Hold, Request
from tests.servers.discord.listener import reset
from tests.servers.discord.places import Places
from tests.servers.discord.waiting import Signal
from tests.servers.discord.world import Json, World

PREFIX = "/api/v10"


@dataclass(frozen=True, slots=True)
class Upload:
    """A file in a multipart body; `number` is n of files[n]."""

    number: int
    filename: str
    content: bytes
    content_type: str | None


@dataclass(frozen=True, slots=True)
class Call:
    """What a handler gets."""

    log: Request
    # The JSON body; a list for the routes that overwrite commands.
    body: Json
    items: list[Json]
    uploads: list[Upload]

    def id(self, name: str) -> int:
        """A snowflake of the path."""
        text = self.log.params[name]
        if not text.isdigit():
            raise invalid_form(name, "NUMBER_TYPE_COERCE", f'Value "{text}" is not snowflake.')
        return int(text)


@dataclass(frozen=True, slots=True)
class Created:
    """Status 201."""

    body: Json


Handler = Callable[[Call], object]


@dataclass(frozen=True, slots=True)
class Parts:
    """What the handlers work on."""

    world: World
    actions: Actions
    places: Places


class Api:
    """`log` holds every request; `failures` what makes the server's block fail at its end."""

    def __init__(self, world: World, signal: Signal, log: list[Request], failures: list[str]) -> None:
        self.faults = Faults()
        self.app = web.Application(client_max_size=26 * 2**20)
        self.app.router.add_route("*", "/{path:.*}", self._unknown)
        self._world = world
        self._signal = signal
        self._log = log
        self._failures = failures

    def add(self, method: str, route: str, handler: Handler, *, open_to_all: bool = False) -> None:
        """A route; `open_to_all` needs no bot token, as what carries a token of its own in the path."""

        async def serve(http: web.Request) -> web.StreamResponse:
            return await self._serve(http, f"{method} {route}", handler, open_to_all)

        self.app.router.add_route(method, PREFIX + route, serve)

    async def _unknown(self, http: web.Request) -> web.StreamResponse:
        self._failures.append(f"unknown route: {http.method} {http.path}")
        log = self._logged(http, f"{http.method} {http.path}")
        return self._write(log, Answer(404, {"message": "404: Not Found", "code": 0}))

    async def _serve(self, http: web.Request, route: str, handler: Handler, open_to_all: bool) -> web.StreamResponse:
        log = self._logged(http, route)
        try:
            call = await _read(http, log)
        except ValueError:
            return self._write(log, Answer(400, {"message": "The request body contains invalid JSON.", "code": 50109}))
        self._signal.notify()
        effect = self.faults.take(log)
        cut = await self._before(effect, http, log)
        if cut:
            return cut
        headers, refusal = self.faults.limited(log)
        answer = effect if isinstance(effect, Answer) else refusal
        if answer is None:
            authorized = open_to_all or http.headers.get("Authorization") == f"Bot {self._world.application.token}"
            answer = self._carry_out(handler, call, log, authorized=authorized)
        if isinstance(effect, Delay) and effect.after:
            await asyncio.sleep(effect.seconds)
        if isinstance(effect, Cut):
            return self._cut(http, log)
        return self._write(log, Answer(answer.status, answer.body, {**headers, **answer.headers}))

    async def _before(self, effect: Effect | None, http: web.Request, log: Request) -> web.StreamResponse | None:
        match effect:
            case Delay(after=False):
                await asyncio.sleep(effect.seconds)
            case Hold():
                await effect.passed()
            case Cut(after=False):
                return self._cut(http, log)
            case _:
                pass
        return None

    def _carry_out(self, handler: Handler, call: Call, log: Request, *, authorized: bool) -> Answer:
        try:
            if not authorized:
                raise unauthorized()
            result = handler(call)
        except ApiError as refused:
            return Answer(refused.status, refused.body)
        except Exception:  # noqa: BLE001 - a fault of this server must fail the test, not vanish in a retried 500
            self._failures.append(f"{log.route} broke the server: {traceback.format_exc()}")
            return Answer(500, {"message": "500: Internal Server Error", "code": 0})
        if result is None:
            return Answer(204)
        if isinstance(result, Created):
            return Answer(201, result.body)
        return Answer(200, cast(Json, result))

    def _logged(self, http: web.Request, route: str) -> Request:
        log = Request(len(self._log) + 1, http.method, route, http.path, dict(http.query), dict(http.match_info))
        self._log.append(log)
        return log

    def _write(self, log: Request, answer: Answer) -> web.Response:
        log.status, log.answer, log.answered_at = answer.status, answer.body, time.monotonic()
        self._signal.notify()
        if answer.status == 204:
            return web.Response(status=204, headers=answer.headers)
        if isinstance(answer.body, str):
            return web.Response(status=answer.status, text=answer.body, headers=answer.headers)
        # discord.py decodes JSON only for exactly this type: a charset behind it, and login fails.
        headers = {**answer.headers, "Content-Type": "application/json"}
        return web.Response(status=answer.status, body=json.dumps(answer.body).encode(), headers=headers)

    def _cut(self, http: web.Request, log: Request) -> web.Response:
        log.status, log.answered_at = 0, time.monotonic()
        self._signal.notify()
        reset(http.transport)
        return web.Response()


async def _read(http: web.Request, log: Request) -> Call:
    body: object = {}
    uploads: list[Upload] = []
    if http.content_type == "multipart/form-data":
        async for part in await http.multipart():
            assert isinstance(part, BodyPartReader)
            content = bytes(await part.read())
            if part.name == "payload_json":
                body = json.loads(content)
            else:
                number = int((part.name or "files[0]").partition("[")[2].rstrip("]") or 0)
                uploads.append(Upload(number, part.filename or "unknown", content, part.headers.get("Content-Type")))
    elif raw := await http.read():
        body = json.loads(raw)
    log.body = body if isinstance(body, dict) else {"items": body}
    log.files = [upload.filename for upload in uploads]
    return Call(log, log.body, body if isinstance(body, list) else [], uploads)
