"""One dedicated connection that listens for notifications, and comes back when it breaks."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable

import psycopg

from bot.engine.loops import forever
from bot.engine.queue import KEEPALIVE

Heard = Callable[[str], Awaitable[None]]
"""Takes a notification's payload; the empty text means that anything may have been missed."""

_PROBE = 20.0  # seconds of silence after which the connection is tried, as a half-open one stays silent for ever


async def listen(url: str, channel: str, heard: Heard) -> None:
    """Pass on what is notified on a channel, until cancelled. After every (re)connection `heard("")` is called once."""

    async def once() -> None:
        connection = await psycopg.AsyncConnection.connect(url, autocommit=True, application_name=channel, **KEEPALIVE)  # type: ignore[arg-type]
        async with connection:
            await connection.execute(f"LISTEN {channel}")
            await heard("")
            while True:
                async for notification in connection.notifies(timeout=_PROBE):
                    # Empty is what we say ourselves when anything may have been missed.
                    await heard(notification.payload)
                async with asyncio.timeout(_PROBE):
                    await connection.execute("SELECT 1")

    await forever(f"listening on {channel}", once, every=0.0)
