"""What goes right and wrong while the bot runs: counters by reason code, the state of each service, and probes over HTTP.

A reason code is a short constant such as `accepted` or `duplicate`; nothing here holds text of people.
"""

from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from dataclasses import dataclass
from datetime import datetime, timedelta

from prometheus_client import CollectorRegistry, Counter, Gauge, generate_latest

TIMERS = "timers"
OVERDUE = timedelta(seconds=60)
"""After how long without a good look for due timers a process is not ready."""
Check = Callable[[], Awaitable[None]]
"""Raises when a service does not answer."""


@dataclass(frozen=True, slots=True)
class Service:
    """How a service is: `error` is the class of its last error, `since` when it last worked or failed."""

    well: bool
    error: str
    since: datetime


class Health:
    """Counters and states of one process."""

    def __init__(self) -> None:
        self.registry = CollectorRegistry()
        self._reasons = Counter("keepsake_reasons", "What was done or not done, by reason.", ["reason"], registry=self.registry)
        self._up = Gauge("keepsake_up", "Whether a service worked when it was last used.", ["service"], registry=self.registry)
        self._put_off = Gauge(
            "keepsake_timers_put_off", "Timers that could not be fired when they were due.", registry=self.registry
        )
        self._counts: dict[str, int] = {}
        self.services: dict[str, Service] = {}
        self.put_off = 0
        """Timers that could not be fired when they last were due."""

    def count(self, reason: str) -> None:
        """One more of a reason code."""
        self._counts[reason] = self._counts.get(reason, 0) + 1
        self._reasons.labels(reason=reason).inc()

    @property
    def counts(self) -> dict[str, int]:
        """How often each reason code came up, the most frequent first."""
        return dict(sorted(self._counts.items(), key=lambda pair: (-pair[1], pair[0])))

    def worked(self, service: str, now: datetime) -> None:
        """A service did what it was asked."""
        self._note(service, Service(True, "", now))

    def failed(self, service: str, error: BaseException | str, now: datetime) -> None:
        """A service did not; only the error's class is kept."""
        self._note(service, Service(False, error if isinstance(error, str) else type(error).__name__, now))

    def timers(self, at: datetime, error: BaseException | None, put_off: int) -> None:
        """How a look for due timers went, and how many are put off by a fault of theirs."""
        if error is None:
            self.worked(TIMERS, at)
        else:
            self.failed(TIMERS, error, at)
        self.put_off = put_off
        self._put_off.set(put_off)

    def timely(self, now: datetime) -> bool:
        """Whether due timers are looked at, as far as this process does that."""
        timers = self.services.get(TIMERS)
        return timers is None or (timers.well and now - timers.since <= OVERDUE)

    def _note(self, service: str, state: Service) -> None:
        self.services[service] = state
        self._up.labels(service=service).set(state.well)

    async def check(self, service: str, probe: Check, now: datetime) -> Service:
        """Ask a service now."""
        try:
            await probe()
        except Exception as error:  # noqa: BLE001 - a probe's whole answer is whether it raised
            self.failed(service, error, now)
        else:
            self.worked(service, now)
        return self.services[service]


def address(bind: str) -> tuple[str, int]:
    """Host and port of `health.bind`."""
    host, _, port = bind.rpartition(":")
    return host.strip("[]"), int(port)


def serving(health: Health, bind: str, ready: Callable[[], Awaitable[bool]]) -> AbstractAsyncContextManager[None]:
    """/live (the loop turns), /ready (the services answer) and /metrics, while the context is open. Raises OSError when taken."""
    # Late, as a command that serves nothing does not wait for it.
    from aiohttp import web

    async def live(_: web.Request) -> web.Response:
        return web.Response(text="alive\n")

    async def readiness(_: web.Request) -> web.Response:
        well = await ready()
        faulty = f"timers put off by a fault: {health.put_off}\n" if health.put_off else ""
        return web.Response(text=("ready\n" if well else "not ready\n") + faulty, status=200 if well else 503)

    async def metrics(_: web.Request) -> web.Response:
        return web.Response(body=generate_latest(health.registry), content_type="text/plain", charset="utf-8")

    @asynccontextmanager
    async def running() -> AsyncIterator[None]:
        app = web.Application()
        app.add_routes(
            [web.get("/live", live), *(web.get(path, readiness) for path in ("/ready", "/readyz")), web.get("/metrics", metrics)]
        )
        runner = web.AppRunner(app, access_log=None)
        await runner.setup()
        try:
            await web.TCPSite(runner, *address(bind)).start()
            yield
        finally:
            await runner.cleanup()

    return running()
