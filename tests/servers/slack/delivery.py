"""What is sent to the app: each event with its attempts, acknowledgement and retries, whichever way it goes."""

from __future__ import annotations

import asyncio
import contextlib
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Literal, Protocol

from tests.servers.discord.waiting import Signal
from tests.servers.slack.app import App
from tests.servers.slack.world import Json

Sort = Literal["events_api", "slash_commands", "interactive"]

# Why an event comes again, by the HTTP status of the attempt before.
REASONS: dict[int | None, str] = {None: "timeout", 0: "connection_failed"}


@dataclass(eq=False, slots=True)
class Attempt:
    """One sending. `number` counts the retries, `status` is the HTTP answer's (200 for an acknowledgement over a socket)."""

    number: int
    reason: str
    at: float = field(default_factory=time.monotonic)
    acknowledged_at: float | None = None
    status: int | None = None
    # What came back with the acknowledgement: a message, `response_action`, or nothing.
    answer: object = None
    body: str = ""
    connection: int | None = None

    @property
    def latency(self) -> float | None:
        """Seconds until the acknowledgement."""
        return None if self.acknowledged_at is None else self.acknowledged_at - self.at


@dataclass(eq=False, slots=True, repr=False)
class Delivery:
    """Something the app is told. `pending` while nothing listens; `given_up` after the last retry."""

    sort: Sort
    payload: Json
    app: App
    attempts: list[Attempt] = field(default_factory=list)
    pending: bool = False
    given_up: bool = False
    acknowledged: asyncio.Event = field(default_factory=asyncio.Event)
    # Told what came with the first acknowledgement.
    on_answer: Callable[[object], None] | None = None

    def __repr__(self) -> str:
        return f"Delivery({self.sort} {self.kind}, {len(self.attempts)} attempts, acknowledged={self.acknowledged.is_set()})"

    @property
    def event(self) -> Json:
        """The inner event of events_api."""
        event: Json = self.payload.get("event", {})
        return event

    @property
    def kind(self) -> str:
        return str(self.event.get("type") or self.payload.get("command") or self.payload.get("type"))

    @property
    def answer(self) -> object:
        return next((attempt.answer for attempt in self.attempts if attempt.acknowledged_at), None)

    @property
    def settled(self) -> bool:
        return self.acknowledged.is_set() or self.given_up


class Carrier(Protocol):
    """Socket Mode or HTTP."""

    def start(self, delivery: Delivery, attempt: Attempt) -> bool:
        """Sends; `acknowledged` is called later. False when there is nobody to send to."""


class Deliveries:
    """Sends, waits, sends again. `retries` are the pauses before each retry, `ack_timeout` how long an acknowledgement may take, in s."""

    def __init__(self, signal: Signal) -> None:
        self.all: list[Delivery] = []
        self.carrier: Carrier | None = None
        self.ack_timeout = 3.0
        self.retries: Sequence[float] = (0.0, 60.0, 300.0)
        self._signal = signal
        self._tasks: set[asyncio.Task[None]] = set()

    def send(self, delivery: Delivery, failed: Callable[[str], None] | None = None) -> Delivery:
        """Sends in the order of the calls. `failed` is told why a command or press came to nothing; events are retried instead."""
        self.all.append(delivery)
        first = self._attempt(delivery, "")
        if first is None and delivery.sort == "events_api":
            delivery.pending = True
        else:
            self._spawn(self._follow(delivery, first, failed))
        self._signal.notify()
        return delivery

    def again(self, delivery: Delivery, reason: str = "timeout") -> Attempt | None:
        """One more attempt now, as a retry, whether or not it was acknowledged. None when nobody listens."""
        delivery.given_up = False
        return self._attempt(delivery, reason)

    def listeners_came(self, app: App) -> None:
        """Somebody listens again: what waited is sent, as a retry."""
        for delivery in [one for one in self.all if one.pending and one.app is app]:
            delivery.pending = False
            self._spawn(self._follow(delivery, self._attempt(delivery, "timeout"), None))

    def acknowledged(self, delivery: Delivery, attempt: Attempt, status: int, answer: object = None) -> None:
        """What a carrier reports; a status that is no success acknowledges nothing."""
        attempt.status, attempt.answer = status, answer
        if 200 <= status < 300:
            attempt.acknowledged_at = attempt.acknowledged_at or time.monotonic()
            first = not delivery.acknowledged.is_set()
            delivery.acknowledged.set()
            if first and delivery.on_answer is not None and not delivery.given_up:
                delivery.on_answer(answer)
        self._signal.notify()

    async def stop(self) -> None:
        # Before Python 3.12 asyncio.wait_for swallows a cancellation that comes together with its result, so one may not do.
        while self._tasks:
            for task in list(self._tasks):
                task.cancel()
            await asyncio.wait(list(self._tasks), timeout=0.01)

    def _attempt(self, delivery: Delivery, reason: str) -> Attempt | None:
        attempt = Attempt(len(delivery.attempts), reason)
        if self.carrier is None or not self.carrier.start(delivery, attempt):
            return None
        delivery.attempts.append(attempt)
        return attempt

    async def _follow(self, delivery: Delivery, first: Attempt | None, failed: Callable[[str], None] | None) -> None:
        if delivery.sort != "events_api":
            if first is None or not await self._waited(delivery, first):
                delivery.given_up = True
                if failed is not None:
                    failed("operation_timeout" if first and first.status is None else "dispatch_failed")
            self._signal.notify()
            return
        pauses = iter(self.retries)
        attempt = first
        while attempt is not None and not await self._waited(delivery, attempt):
            pause = next(pauses, None)
            if pause is None or attempt.body == "no-retry":
                delivery.given_up = True
                self._signal.notify()
                return
            await asyncio.sleep(pause)
            if delivery.acknowledged.is_set():
                return
            attempt = self._attempt(delivery, REASONS.get(attempt.status, "http_error"))
        delivery.pending = attempt is None
        self._signal.notify()

    async def _waited(self, delivery: Delivery, attempt: Attempt) -> bool:
        """Whether this or an earlier attempt was acknowledged in time; a refusal ends the waiting."""
        limit = asyncio.get_running_loop().time() + self.ack_timeout
        with contextlib.suppress(TimeoutError):
            await self._signal.until(
                lambda: delivery.acknowledged.is_set() or attempt.status is not None,
                max(0.0, limit - asyncio.get_running_loop().time()),
                "the acknowledgement",
            )
        return delivery.acknowledged.is_set()

    def _spawn(self, coroutine: object) -> None:
        task = asyncio.ensure_future(coroutine)  # type: ignore[call-overload]
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
