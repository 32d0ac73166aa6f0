"""Faults of the Web API on command: for a method like "chat.postMessage", or "*" for every one. Downloads are "files.download"."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, field

from tests.servers.discord.faults import Answer, Cut, Delay, Effect, Hold
from tests.servers.slack.world import Json


@dataclass(slots=True)
class ApiCall:
    """One call as the server saw it. `status` is None until it is answered and 0 when the connection was cut instead."""

    number: int
    method: str
    token: str | None = None
    args: Json = field(default_factory=dict)
    at: float = field(default_factory=time.monotonic)
    answered_at: float | None = None
    status: int | None = None
    answer: Json = field(default_factory=dict)

    @property
    def ok(self) -> bool:
        return bool(self.answer.get("ok"))

    @property
    def error(self) -> str | None:
        """Slack's error code, None where it worked."""
        return self.answer.get("error")


Where = Callable[[ApiCall], bool]


@dataclass(slots=True)
class Fault:
    """An effect on the next `left` calls of a method that `where` accepts."""

    method: str
    effect: Effect
    left: int
    where: Where | None = None


@dataclass(slots=True)
class Bucket:
    """An enforced limit per token and channel: `limit` calls in `per` seconds."""

    method: str
    limit: int
    per: float
    used: dict[tuple[str | None, str], list[float]] = field(default_factory=dict)


class Faults:
    """What is wrong with the API at present. Earlier faults come first; `clear` mends everything."""

    def __init__(self) -> None:
        self._faults: list[Fault] = []
        self._buckets: list[Bucket] = []
        self._holds: list[Hold] = []

    def add(self, method: str, effect: Effect, times: int = 1, where: Where | None = None) -> None:
        self._faults.append(Fault(method, effect, times, where))

    def clear(self) -> None:
        """Mends everything and lets go on what is held."""
        self._faults.clear()
        self._buckets.clear()
        for hold in self._holds:
            hold.release()
        self._holds.clear()

    def status(self, method: str, status: int, times: int = 1, where: Where | None = None) -> None:
        """500, 503 and the like, with the HTML a proxy gives."""
        self.add(method, Answer(status, "<html><body>Something went wrong</body></html>"), times, where)

    def error(self, method: str, code: str, times: int = 1, where: Where | None = None, **extra: object) -> None:
        """A refusal with one of Slack's codes: internal_error, fatal_error, service_unavailable, restricted_action ..."""
        self.add(method, Answer(200, {"ok": False, "error": code, **extra}), times, where)

    def rate_limit(self, method: str, retry_after: int, times: int = 1, where: Where | None = None) -> None:
        """429 with Retry-After in whole seconds."""
        self.add(method, too_many(retry_after), times, where)

    def bucket(self, method: str, limit: int = 1, per: float = 1.0) -> None:
        """A real limit per channel, answered 429 when it is exceeded; the default is Slack's for posting."""
        self._buckets.append(Bucket(method, limit, per))

    def lose_answer(self, method: str, times: int = 1, where: Where | None = None) -> None:
        """Carried out, but the connection breaks before the answer."""
        self.add(method, Cut(after=True), times, where)

    def cut(self, method: str, times: int = 1, where: Where | None = None) -> None:
        """The connection breaks and nothing is carried out."""
        self.add(method, Cut(after=False), times, where)

    def delay(self, method: str, seconds: float, times: int = 1, *, after: bool = False, where: Where | None = None) -> None:
        """Carried out after `seconds`, or (`after`) at once and answered that much later."""
        self.add(method, Delay(seconds, after), times, where)

    def hold(self, method: str, times: int = 1, where: Where | None = None) -> Hold:
        """Calls wait, not carried out, until `release`; `reached` is an event."""
        gate = Hold()
        self._holds.append(gate)
        self.add(method, gate, times, where)
        return gate

    def hang(self, method: str, times: int = 1, where: Where | None = None) -> None:
        """Never answered while the caller waits; not carried out."""
        self.hold(method, times, where)

    def take(self, call: ApiCall) -> Effect | None:
        """The effect for this call, used up by it."""
        for fault in self._faults:
            if fault.left > 0 and fault.method in ("*", call.method) and (fault.where is None or fault.where(call)):
                fault.left -= 1
                return fault.effect
        return None

    def limited(self, call: ApiCall) -> Answer | None:
        """The 429 when a bucket is empty."""
        for bucket in self._buckets:
            if bucket.method != call.method:
                continue
            times = bucket.used.setdefault((call.token, str(call.args.get("channel", ""))), [])
            times[:] = [at for at in times if at > call.at - bucket.per]
            if len(times) >= bucket.limit:
                return too_many(max(1, round(bucket.per - (call.at - times[0]))))
            times.append(call.at)
        return None


def too_many(retry_after: int) -> Answer:
    return Answer(429, {"ok": False, "error": "ratelimited"}, {"Retry-After": str(retry_after)})
