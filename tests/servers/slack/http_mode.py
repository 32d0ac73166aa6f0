"""HTTP mode: signed requests to the app's address, and forged ones."""

from __future__ import annotations

import asyncio
import hashlib
import hmac
import json
import time
from dataclasses import dataclass, field
from urllib.parse import urlencode

import aiohttp

from tests.servers.slack.app import App
from tests.servers.slack.delivery import Attempt, Deliveries, Delivery
from tests.servers.slack.world import Json, World

FORM = "application/x-www-form-urlencoded"


@dataclass(frozen=True, slots=True)
class Posted:
    """What the app's address answered; status 0 when it hung up or took no connection."""

    status: int
    body: str = ""
    seconds: float = 0.0
    headers: dict[str, str] = field(default_factory=dict)


class HttpMode:
    """Posts to `url`; commands and interactions go to the same unless they have addresses of their own."""

    def __init__(self, world: World, deliveries: Deliveries) -> None:
        self.url = ""
        self.commands_url: str | None = None
        self.interactions_url: str | None = None
        self._world = world
        self._deliveries = deliveries
        self._session: aiohttp.ClientSession | None = None
        self._tasks: set[asyncio.Task[None]] = set()

    def start(self, delivery: Delivery, attempt: Attempt) -> bool:
        task = asyncio.ensure_future(self._send(delivery, attempt))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        return True

    async def stop(self) -> None:
        for task in list(self._tasks):
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        if self._session is not None:
            await self._session.close()

    def signature(self, body: bytes, stamp: str, app: App) -> str:
        return "v0=" + hmac.new(app.signing_secret.encode(), b"v0:" + stamp.encode() + b":" + body, hashlib.sha256).hexdigest()

    async def post(
        self,
        body: bytes,
        *,
        url: str | None = None,
        app: App | None = None,
        signature: str | None = None,
        age: float = 0.0,
        signed: bool = True,
        kind: str = "application/json",
        headers: dict[str, str] | None = None,
    ) -> Posted:
        """One request. `signature` instead of the right one; `age` seconds old; not `signed`: without those headers at all."""
        stamp = str(int(time.time() - age))
        sent = {"Content-Type": kind, "User-Agent": "Slackbot 1.0 (+https://api.slack.com/robots)", **(headers or {})}
        if signed:
            sent |= {
                "X-Slack-Request-Timestamp": stamp,
                "X-Slack-Signature": signature or self.signature(body, stamp, app or self._world.apps[0]),
            }
        self._session = self._session or aiohttp.ClientSession(timeout=aiohttp.ClientTimeout(total=30))
        began = time.monotonic()
        try:
            async with self._session.post(url or self.url, data=body, headers=sent, allow_redirects=False) as answer:
                text = await answer.text()
                return Posted(answer.status, text, time.monotonic() - began, dict(answer.headers))
        except (aiohttp.ClientError, OSError):
            return Posted(0, "", time.monotonic() - began)

    async def _send(self, delivery: Delivery, attempt: Attempt) -> None:
        url, body, kind = self._shaped(delivery)
        headers = {}
        if attempt.number:
            reason = "http_timeout" if attempt.reason == "timeout" else attempt.reason
            headers = {"X-Slack-Retry-Num": str(attempt.number), "X-Slack-Retry-Reason": reason}
        try:
            # Slack hangs up on who takes longer.
            async with asyncio.timeout(self._deliveries.ack_timeout):
                posted = await self.post(body, url=url, app=delivery.app, kind=kind, headers=headers)
        except TimeoutError:
            return
        attempt.body = "no-retry" if posted.headers.get("X-Slack-No-Retry") else posted.body
        self._deliveries.acknowledged(delivery, attempt, posted.status, _parsed(posted))

    def _shaped(self, delivery: Delivery) -> tuple[str, bytes, str]:
        if delivery.sort == "slash_commands":
            return self.commands_url or self.url, urlencode(delivery.payload).encode(), FORM
        if delivery.sort == "interactive":
            form: Json = {"payload": json.dumps(delivery.payload)}
            return self.interactions_url or self.url, urlencode(form).encode(), FORM
        return self.url, json.dumps(delivery.payload).encode(), "application/json"


def _parsed(posted: Posted) -> object:
    if not posted.body:
        return None
    try:
        answer: object = json.loads(posted.body)
    except ValueError:
        return {"text": posted.body}
    return answer
