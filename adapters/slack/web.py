"""HTTP mode: the address that Slack sends to. What is forged, stale or oversized is refused before anything looks at it."""

from __future__ import annotations

import hashlib
import hmac
import logging
import re
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from contextlib import asynccontextmanager

from aiohttp import web
from slack_bolt.adapter.aiohttp import to_aiohttp_response
from slack_bolt.async_app import AsyncApp
from slack_bolt.request.async_request import AsyncBoltRequest
from slack_bolt.response import BoltResponse

from adapters.slack.settings import PATH

log = logging.getLogger(__name__)

LARGEST = 1_000_000
"""Bytes of a request."""
OLDEST = 300.0
"""Seconds that a request's signature is good for."""

Page = Callable[[AsyncBoltRequest], Awaitable[BoltResponse]]


def signed_by(secrets: Sequence[str], body: bytes, stamp: str, signature: str, now: float) -> int | None:
    """Which secret a request was signed with, None for none. Every secret is compared, each in constant time."""
    fresh = re.fullmatch(r"\d{1,15}", stamp) is not None and abs(now - int(stamp)) <= OLDEST
    found = None
    for index, secret in enumerate(secrets):
        made = hmac.new(secret.encode(), b"v0:" + stamp.encode("utf-8", "replace") + b":" + body, hashlib.sha256).hexdigest()
        if hmac.compare_digest(b"v0=" + made.encode(), signature.encode("utf-8", "replace")):
            found = index
    return found if fresh else None


class Door:
    """Takes requests for several apps, told apart by their signing secrets."""

    def __init__(
        self, apps: Sequence[tuple[str, AsyncApp]], count: Callable[[str], None], pages: Mapping[str, Page] | None = None
    ) -> None:
        self._apps, self._count, self._pages = apps, count, pages or {}

    async def _events(self, request: web.Request) -> web.Response:
        if (request.content_length or 0) > LARGEST:
            return self._refused("oversized", 413)
        try:
            body = await request.read()
        except web.HTTPRequestEntityTooLarge:
            return self._refused("oversized", 413)
        stamp, signature = request.headers.get("X-Slack-Request-Timestamp", ""), request.headers.get("X-Slack-Signature", "")
        index = signed_by([secret for secret, _ in self._apps], body, stamp, signature, time.time())
        if index is None:
            return self._refused("forged or stale", 401)
        try:
            asked = AsyncBoltRequest(body=body.decode(), query=request.query_string, headers=dict(request.headers))
        except ValueError:
            return self._refused("malformed", 400)
        answer = await self._apps[index][1].async_dispatch(asked)
        return await to_aiohttp_response(answer)

    async def _page(self, request: web.Request) -> web.Response:
        page = self._pages[request.path]
        return await to_aiohttp_response(
            await page(AsyncBoltRequest(body="", query=request.query_string, headers=dict(request.headers)))
        )

    def _refused(self, why: str, status: int) -> web.Response:
        self._count(f"slack_refused_{status}")
        log.warning("a request to Slack's address was refused: %s", why)
        return web.Response(status=status, text="")

    @asynccontextmanager
    async def open(self, host: str, port: int) -> AsyncIterator[None]:
        """Listen there and nowhere else, while the context is open. Raises OSError when the address cannot be had."""
        app = web.Application(client_max_size=LARGEST)
        app.router.add_post(PATH, self._events)
        for path in self._pages:
            app.router.add_get(path, self._page)
        runner = web.AppRunner(app, access_log=None)
        await runner.setup()
        try:
            await web.TCPSite(runner, host, port).start()
            yield
        finally:
            await runner.cleanup()
