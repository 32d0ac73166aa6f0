"""What goes right and wrong while the bot runs: counters by reason code, the state of each service, and probes over HTTP.

A reason code is a short constant such as `accepted` or `duplicate`; nothing here holds text of people.
"""

from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from dataclasses import dataclass
from datetime import datetime

from aiohttp import web
from prometheus_client import CollectorRegistry, Counter, Gauge, generate_latest

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
        self._counts: dict[str, int] = {}
        self.services: dict[str, Service] = {}

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

    async def live(_: web.Request) -> web.Response:
        return web.Response(text="alive\n")

    async def readiness(_: web.Request) -> web.Response:
        well = await ready()
        return web.Response(text="ready\n" if well else "not ready\n", status=200 if well else 503)

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
