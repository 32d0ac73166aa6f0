"""A listening port that can be closed and opened again, and whose connections can be torn."""

from __future__ import annotations

import contextlib
import socket
import struct
from asyncio import BaseTransport, Transport

from aiohttp import web


def reset(transport: BaseTransport | None) -> None:
    """Ends a connection without lingering: the peer gets a TCP reset and no orderly end."""
    if not isinstance(transport, Transport):
        return
    with contextlib.suppress(OSError, AttributeError):
        transport.get_extra_info("socket").setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    transport.abort()


class Listener:
    """One aiohttp application on one loopback port, which stays the same over `close` and `open`."""

    def __init__(self, app: web.Application) -> None:
        # Handlers end with their client, so that a cut gateway connection is noticed at once.
        self._runner = web.AppRunner(app, handler_cancellation=True, shutdown_timeout=0.1, access_log=None)
        self._site: web.TCPSite | None = None
        self.port = 0

    async def start(self) -> None:
        await self._runner.setup()
        await self.open()

    async def open(self) -> None:
        if self._site is not None:
            return
        self._site = web.TCPSite(self._runner, "127.0.0.1", self.port, backlog=2048, reuse_address=True)
        await self._site.start()
        self.port = int(self._runner.addresses[0][1])

    async def close(self) -> None:
        """Nobody can connect any more; connections that exist are left alone."""
        if self._site is not None:
            site, self._site = self._site, None
            await site.stop()

    def cut(self) -> None:
        """Resets every connection."""
        server = self._runner.server
        for handler in list(server.connections) if isinstance(server, web.Server) else []:
            reset(handler.transport)

    async def stop(self) -> None:
        await self._runner.cleanup()
