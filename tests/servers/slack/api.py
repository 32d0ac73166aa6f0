"""The HTTP side: reads calls, lets faults have their way, checks tokens, asks the method, writes Slack's answers and the log."""

from __future__ import annotations

import asyncio
import base64
import json
import time
import traceback
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from aiohttp import web

from tests.servers.discord.faults import Answer, Cut, Delay, Effect, Hold
from tests.servers.discord.listener import reset
from tests.servers.discord.waiting import Signal
from tests.servers.slack.errors import SlackError, invalid_arguments
from tests.servers.slack.faults import ApiCall, Faults
from tests.servers.slack.world import Channel, Json, Team, Token, User, World


@dataclass(frozen=True, slots=True)
class Call:
    """What a method gets: the arguments and who asks."""

    log: ApiCall
    token: Token | None
    world: World

    @property
    def caller(self) -> Token:
        assert self.token is not None
        return self.token

    def text(self, name: str) -> str | None:
        value = self.log.args.get(name)
        return None if value is None else str(value)

    def need(self, name: str) -> str:
        value = self.text(name)
        if not value:
            raise invalid_arguments(f"missing required field: {name}")
        return value

    def flag(self, name: str, *, default: bool = False) -> bool:
        value = self.log.args.get(name)
        return default if value is None else value in (True, 1, "1", "true", "True")

    def number(self, name: str, default: int) -> int:
        value = self.log.args.get(name)
        try:
            return default if value in (None, "") else int(str(value))
        except ValueError:
            raise invalid_arguments(f"{name} must be a number") from None

    def parsed(self, name: str, wrong: str = "invalid_arguments") -> Any:
        """A structure, which in forms is JSON text."""
        value = self.log.args.get(name)
        if not isinstance(value, str):
            return value
        try:
            return json.loads(value) if value else None
        except ValueError:
            raise SlackError(wrong) from None

    @property
    def team(self) -> Team:
        """The workspace spoken for; an organisation's token has to name it where it matters."""
        caller = self.caller
        if caller.enterprise is not None and caller.value == caller.enterprise.bot_token:
            named = next((team for team in caller.teams if team.id == self.text("team_id")), None)
            if named is None:
                raise SlackError("missing_argument", arg="team_id")
            return named
        return caller.teams[0]

    @property
    def bot(self) -> User:
        bot = self.caller.bot
        assert bot is not None
        return bot

    def bot_in(self, channel: Channel) -> User:
        """The app's user there."""
        own = next((bot for bot in channel.bots if bot.team in self.caller.teams), None)
        return own or self.bot

    def channel(self, name: str = "channel", *, inside: bool = False) -> Channel:
        """A conversation the caller sees. `inside`: where the bot is no member it is refused."""
        channel = self.world.channel(self.need(name))
        if channel is None or not any(team in self.caller.teams for team in (channel.team, *channel.shared)):
            raise SlackError("channel_not_found")
        member = self.bot_in(channel).id in channel.members
        if not member and channel.kind != "channel":
            raise SlackError("channel_not_found")
        if inside and not member:
            raise SlackError("not_in_channel")
        return channel


Method = Callable[[Call], Json | None]


@dataclass(frozen=True, slots=True)
class Known:
    """A method with one of the scopes it needs, and who may call it."""

    run: Method
    scopes: tuple[str, ...] = ()
    kind: str = "bot"


class Api:
    """`log` holds every call; `failures` what makes the server's block fail at its end."""

    def __init__(self, world: World, signal: Signal, log: list[ApiCall], failures: list[str]) -> None:
        self.faults = Faults()
        self.app = web.Application(client_max_size=64 * 2**20)
        self.app.router.add_route("*", "/api/{method:.*}", self._serve)
        self._methods: dict[str, Known] = {}
        self._world = world
        self._signal = signal
        self._log = log
        self._failures = failures

    def add(self, name: str, run: Method, *scopes: str, kind: str = "bot") -> None:
        """A method; any one of `scopes` is enough. `kind` is whose token it takes: bot, app, or none."""
        self._methods[name] = Known(run, scopes, kind)

    def logged(self, method: str, token: str | None, args: Json) -> ApiCall:
        call = ApiCall(len(self._log) + 1, method, token, args)
        self._log.append(call)
        self._signal.notify()
        return call

    async def around(self, http: web.Request, log: ApiCall, run: Callable[[], Answer]) -> web.StreamResponse:
        """Carries out, with the faults that are set for it."""
        effect = self.faults.take(log)
        if await self._cut_before(effect, log):
            return self._cut(http, log)
        answer = effect if isinstance(effect, Answer) else self.faults.limited(log)
        if answer is None:
            answer = run()
        if isinstance(effect, Delay) and effect.after:
            await asyncio.sleep(effect.seconds)
        if isinstance(effect, Cut):
            return self._cut(http, log)
        return self._write(log, answer)

    async def _serve(self, http: web.Request) -> web.StreamResponse:
        args, token = await _read(http)
        log = self.logged(http.match_info["method"], token, args)
        return await self.around(http, log, lambda: self._run(log))

    async def _cut_before(self, effect: Effect | None, log: ApiCall) -> bool:
        match effect:
            case Delay(after=False):
                await asyncio.sleep(effect.seconds)
            case Hold():
                await effect.passed()
            case Cut(after=False):
                return True
            case _:
                pass
        return False

    def _run(self, log: ApiCall) -> Answer:
        known = self._methods.get(log.method)
        headers = {}
        try:
            if known is None:
                self._failures.append(f"unknown method: {log.method}")
                raise SlackError("unknown_method", req_method=log.method)
            token = self._authorised(log, known)
            if token is not None:
                headers = {"X-OAuth-Scopes": ",".join(sorted(token.scopes)), "X-Accepted-OAuth-Scopes": ",".join(known.scopes)}
            result = known.run(Call(log, token, self._world))
        except SlackError as refused:
            status, extra = (429, {"Retry-After": "1"}) if refused.body["error"] == "ratelimited" else (200, {})
            return Answer(status, refused.body, {**headers, **extra})
        except Exception:  # noqa: BLE001 - a fault of this server must fail the test, not vanish in a retried 500
            self._failures.append(f"{log.method} broke the server: {traceback.format_exc()}")
            return Answer(500, "broken")
        self._signal.notify()
        return Answer(200, {"ok": True, **(result or {})}, headers)

    def _authorised(self, log: ApiCall, known: Known) -> Token | None:
        if known.kind == "none":
            return None
        if not log.token:
            raise SlackError("not_authed")
        app = next((one for one in self._world.apps if one.app_token == log.token), None)
        if app is not None:
            token = Token(log.token, "app", app, [], None, {"connections:write"})
        else:
            found = self._world.tokens.get(log.token)
            if found is None:
                raise SlackError("invalid_auth")
            if found.refused:
                raise SlackError(found.refused)
            token = found
        if token.kind != known.kind and known.kind != "any":
            raise SlackError("not_allowed_token_type")
        if known.scopes and not token.scopes.intersection(known.scopes):
            raise SlackError("missing_scope", needed=known.scopes[0], provided=",".join(sorted(token.scopes)))
        return token

    def _write(self, log: ApiCall, answer: Answer) -> web.Response:
        log.status, log.answered_at = answer.status, time.monotonic()
        self._signal.notify()
        if isinstance(answer.body, str):
            kind = "text/html" if answer.body.startswith("<") else "text/plain"
            return web.Response(status=answer.status, text=answer.body, headers=answer.headers, content_type=kind)
        log.answer = answer.body
        return web.json_response(answer.body, status=answer.status, headers=answer.headers)

    def _cut(self, http: web.Request, log: ApiCall) -> web.Response:
        log.status, log.answered_at = 0, time.monotonic()
        self._signal.notify()
        reset(http.transport)
        return web.Response()


async def _read(http: web.Request) -> tuple[Json, str | None]:
    args: Json = dict(http.query)
    if http.content_type == "application/json":
        raw = await http.read()
        try:
            body = json.loads(raw) if raw else {}
        except ValueError:
            body = {}
        args |= body if isinstance(body, dict) else {}
    elif http.can_read_body:
        args |= {name: value for name, value in (await http.post()).items() if isinstance(value, str)}
    kind, _, token = http.headers.get("Authorization", "").partition(" ")
    if kind == "Basic":
        args["client_id"], _, args["client_secret"] = base64.b64decode(token).decode().partition(":")
    named = args.pop("token", None)
    return args, token if kind == "Bearer" and token else named
