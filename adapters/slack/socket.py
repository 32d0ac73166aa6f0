"""Socket Mode: the connection, what is fatal at its start, and a watch for one that is alive but deaf.

The library mends a cut and Slack's own refreshes. What it does not mend is mended by a new connection: a wrong token (it would try for
ever), an address that was used up, pings that are answered while no event comes. That is noticed by our own messages, of which Slack
tells us too; and where nothing happens at all, the connection is made anew now and then.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Callable
from contextlib import suppress
from typing import Any

import aiohttp
from slack_bolt.adapter.socket_mode.async_handler import AsyncSocketModeHandler
from slack_bolt.async_app import AsyncApp
from slack_sdk.errors import SlackApiError
from slack_sdk.web.async_client import AsyncWebClient

from adapters.slack.settings import Settings
from adapters.slack.workspaces import DEAD_TOKEN, PlatformRefused, error_of

log = logging.getLogger(__name__)

PINGS = 5.0
"""Seconds between two pings; after four without an answer the library connects anew."""
LOOKS = 20
"""Looks at the connection within `silence`."""
CONNECTING = 20.0
CLOSING = 5.0
FIRST = 1.0
SOUND = 60.0
"""Seconds that a connection must have held for the next fault to count as the first."""
REFUSALS = DEAD_TOKEN | frozenset(("not_allowed_token_type", "missing_scope", "no_permission"))


class Unheard(Exception):
    """The connection does not hear; the text is a short reason."""


class Ears:
    """What was heard, and whether our own messages come back."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self.heard_at = clock()
        self._posted_at: float | None = None
        self._echoes = False

    def heard(self, *, own: bool) -> None:
        """An event, command or press came."""
        self.heard_at = self._clock()
        self._posted_at = None
        self._echoes |= own

    def posted(self) -> None:
        """We posted: of that we should hear."""
        if self._posted_at is None and self._echoes:
            self._posted_at = self._clock()

    def anew(self) -> None:
        """A new connection."""
        self.heard_at, self._posted_at = self._clock(), None

    def deaf(self, silence: float, refresh: float) -> str:
        """Why the connection counts as deaf; empty when it does not."""
        now = self._clock()
        if self._posted_at is not None and now - self._posted_at > silence / 3:
            return "deaf"
        return "quiet for long" if now - self.heard_at > refresh else ""


class Socket:
    """One app's connection."""

    def __init__(
        self,
        settings: Settings,
        app: AsyncApp,
        token: str,
        token_env: str,
        client: AsyncWebClient,
        ears: Ears,
        count: Callable[[str], None],
    ) -> None:
        self._settings, self._app, self._token, self._token_env, self._client = settings, app, token, token_env, client
        self._ears, self._count = ears, count
        self._handler: Any = None

    async def run(self) -> None:
        """Stay connected until cancelled. Raises Refused when no other try can help."""
        failures = 0
        while True:
            began = time.monotonic()
            try:
                why = await self._once()
            except SlackApiError as error:
                self._judge(error)
                why = error_of(error) or "refused"
            except (aiohttp.ClientError, OSError, TimeoutError) as error:
                why = type(error).__name__
            failures = 1 if time.monotonic() - began > SOUND else failures + 1
            # One that was only made anew as a precaution needs no patience.
            delay = (
                0.0 if why in ("deaf", "quiet for long") else min(self._settings.restart_cap, FIRST * 2 ** min(failures - 1, 10))
            )
            self._count("slack_restart")
            if why != "quiet for long":
                log.warning("the connection to Slack ended: %s; a new one in %.0f s", why, delay)
            await asyncio.sleep(delay)

    async def _once(self) -> str:
        """One connection from its opening to its end; returns why it ended."""
        url = str((await self._client.apps_connections_open(app_token=self._token))["url"])
        quiet = logging.getLogger("slack_sdk.socket_mode")
        quiet.setLevel(logging.CRITICAL)  # it repeats every fault each few seconds; we say it once
        pings = min(PINGS, self._settings.silence / 4)
        handler = AsyncSocketModeHandler(self._app, self._token, logger=quiet, web_client=self._client, ping_interval=pings)
        handler.client.wss_uri = url
        connect: Any = handler.connect_async
        close: Any = handler.close_async
        try:
            async with asyncio.timeout(CONNECTING):
                await connect()
            self._ears.anew()
            self._handler = handler
            return await self._watch(handler)
        finally:
            self._handler = None
            with suppress(TimeoutError, OSError, aiohttp.ClientError):
                async with asyncio.timeout(CLOSING):
                    await close()

    async def _watch(self, handler: Any) -> str:
        away_since: float | None = None
        while True:
            await asyncio.sleep(self._settings.silence / LOOKS)
            if why := self._ears.deaf(self._settings.silence, self._settings.refresh):
                return why
            if await handler.client.is_connected():
                away_since = None
                continue
            away_since = away_since or time.monotonic()
            if time.monotonic() - away_since > self._settings.silence / 4:
                return "disconnected"

    def _judge(self, error: SlackApiError) -> None:
        code = error_of(error)
        if code in ("missing_scope", "not_allowed_token_type", "no_permission"):
            raise PlatformRefused(
                f"slack.app_token_env: the token in {self._token_env} may not open a Socket Mode connection ({code}). Make an app-level "
                "token (xapp-) with the scope connections:write on your app's page (Basic Information)."
            ) from error
        if code in REFUSALS:
            raise PlatformRefused(
                f"slack.app_token_env: Slack does not accept the token in {self._token_env} ({code}); it is wrong or was revoked. Copy the "
                "app-level token (xapp-) anew from your app's page (Basic Information)."
            ) from error

    async def check(self) -> None:
        """Raises Unheard when the connection does not hear now."""
        if self._handler is None or not await self._handler.client.is_connected():
            raise Unheard("not connected")
        if why := self._ears.deaf(self._settings.silence, self._settings.refresh * 2):
            raise Unheard(why)
