"""Faults of the HTTP API on command: for a route like "POST /channels/{channel_id}/messages", or "*" for every route."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from dataclasses import dataclass, field

from tests.servers.discord.world import Json

ALWAYS = 1_000_000_000
# Without this header discord.py takes a 429 for a ban by Cloudflare.
VIA = {"Via": "1.1 google"}


@dataclass(slots=True)
class Request:
    """One request as the server saw it. `route` is "GET /channels/{channel_id}", `status` None until it is answered."""

    number: int
    method: str
    route: str
    path: str
    query: dict[str, str]
    params: dict[str, str]
    body: Json = field(default_factory=dict)
    files: list[str] = field(default_factory=list)
    # When it was read and answered, on time.monotonic().
    at: float = field(default_factory=time.monotonic)
    answered_at: float | None = None
    # 0 when the connection was cut instead of an answer.
    status: int | None = None
    answer: object = None


@dataclass(slots=True)
class Answer:
    """Answered with this instead of being carried out."""

    status: int
    body: Json | str = ""
    headers: dict[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Cut:
    """The connection is reset, before the request is carried out or (`after`) once it was."""

    after: bool


@dataclass(frozen=True, slots=True)
class Delay:
    """Carried out after `seconds`, or (`after`) answered that much later."""

    seconds: float
    after: bool = False


class Hold:
    """Requests wait until `release`; `reached` is set when the first one does. Then they are carried out."""

    def __init__(self) -> None:
        self.reached = asyncio.Event()
        self._open = asyncio.Event()

    def release(self) -> None:
        self._open.set()

    async def passed(self) -> None:
        self.reached.set()
        await self._open.wait()


Effect = Answer | Cut | Delay | Hold


@dataclass(slots=True)
class Fault:
    """An effect on the next `left` requests of a route that `where` accepts."""

    route: str
    effect: Effect
    left: int
    where: Callable[[Request], bool] | None = None


@dataclass(slots=True)
class Bucket:
    """A rate limit that is enforced, per channel or guild or webhook in the path: `limit` requests in `per` seconds."""

    route: str
    limit: int
    per: float
    used: dict[str, tuple[float, int]] = field(default_factory=dict)


class Faults:
    """What is wrong with the API at present. Later faults go behind earlier ones; `clear` mends everything."""

    def __init__(self) -> None:
        self._faults: list[Fault] = []
        self._buckets: list[Bucket] = []
        self._all: Bucket | None = None

    def add(self, route: str, effect: Effect, times: int = 1, where: Callable[[Request], bool] | None = None) -> None:
        self._faults.append(Fault(route, effect, times, where))

    def clear(self) -> None:
        self._faults.clear()
        self._buckets.clear()
        self._all = None

    def status(self, route: str, status: int, times: int = 1, where: Callable[[Request], bool] | None = None) -> None:
        """500, 502, 503 and the like, with the plain text a proxy gives."""
        self.add(route, Answer(status, f"error code: {status}"), times, where)

    def error(
        self,
        route: str,
        status: int,
        code: int,
        message: str = "refused",
        times: int = 1,
        where: Callable[[Request], bool] | None = None,
    ) -> None:
        """A refusal with one of Discord's codes: 40003, 20016, 200000, 50001 ..."""
        self.add(route, Answer(status, {"code": code, "message": message}), times, where)

    def rate_limit(
        self,
        route: str,
        retry_after: float,
        times: int = 1,
        *,
        scope: str = "user",
        via: bool = True,
        where: Callable[[Request], bool] | None = None,
    ) -> None:
        """429. `scope` is user, shared or global; without `via` it looks like Cloudflare's."""
        self.add(route, too_many(retry_after, scope, via=via), times, where)

    def bucket(self, route: str, limit: int, per: float) -> None:
        """A real limit with its headers, answered 429 when it is exceeded."""
        self._buckets.append(Bucket(route, limit, per))

    def limit_all(self, limit: int = 50, per: float = 1.0) -> None:
        """Discord's limit on all of a bot's requests together; without it nothing but the routes' buckets is enforced."""
        self._all = Bucket("*", limit, per)

    def lose_answer(self, route: str, times: int = 1, where: Callable[[Request], bool] | None = None) -> None:
        """Carried out, but the connection breaks before the answer: the message exists and the bot does not know."""
        self.add(route, Cut(after=True), times, where)

    def cut(self, route: str, times: int = 1, where: Callable[[Request], bool] | None = None) -> None:
        """The connection breaks and nothing is carried out."""
        self.add(route, Cut(after=False), times, where)

    def delay(
        self, route: str, seconds: float, times: int = 1, *, after: bool = False, where: Callable[[Request], bool] | None = None
    ) -> None:
        self.add(route, Delay(seconds, after), times, where)

    def hold(self, route: str, times: int = 1, where: Callable[[Request], bool] | None = None) -> Hold:
        gate = Hold()
        self.add(route, gate, times, where)
        return gate

    def take(self, request: Request) -> Effect | None:
        """The effect for this request, used up by it."""
        for fault in self._faults:
            if fault.left > 0 and fault.route in ("*", request.route) and (fault.where is None or fault.where(request)):
                fault.left -= 1
                return fault.effect
        return None

    def limited(self, request: Request) -> tuple[dict[str, str], Answer | None]:
        """The headers of the route's bucket, and the 429 when it is empty."""
        if self._all is not None:
            began, used = self._all.used.get("", (request.at, 0))
            if request.at - began >= self._all.per:
                began, used = request.at, 0
            self._all.used[""] = (began, used + 1)
            if used >= self._all.limit:
                return {}, too_many(self._all.per - (request.at - began), "global", via=True)
        bucket = next((one for one in self._buckets if one.route == request.route), None)
        if bucket is None:
            return {}, None
        major = next((request.params[name] for name in ("channel_id", "guild_id", "token") if name in request.params), "")
        began, used = bucket.used.get(major, (request.at, 0))
        if request.at - began >= bucket.per:
            began, used = request.at, 0
        left, rest = bucket.limit - used - 1, bucket.per - (request.at - began)
        headers = {
            "X-RateLimit-Limit": str(bucket.limit),
            "X-RateLimit-Remaining": str(max(0, left)),
            "X-RateLimit-Reset": f"{time.time() + rest:.3f}",
            "X-RateLimit-Reset-After": f"{rest:.3f}",
            "X-RateLimit-Bucket": f"{abs(hash(bucket.route)):032x}",
        }
        if left < 0:
            refusal = too_many(rest, "user", via=True)
            refusal.headers |= headers
            return headers, refusal
        bucket.used[major] = (began, used + 1)
        return headers, None


def too_many(retry_after: float, scope: str, *, via: bool) -> Answer:
    headers = {"Retry-After": str(int(retry_after) + 1), "X-RateLimit-Scope": scope, **(VIA if via else {})}
    if scope == "global":
        headers["X-RateLimit-Global"] = "true"
    body = {"message": "You are being rate limited.", "retry_after": retry_after, "global": scope == "global"}
    return Answer(429, body, headers)
