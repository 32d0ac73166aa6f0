"""A third platform, as small as one can be: lines over TCP. It shows what a platform costs: this package, a section, one registration.

Whoever connects says who they are (`ada`), then sends `ID TEXT` lines; what the bot says comes as `ID "text"`, the text as JSON.
"""

from __future__ import annotations

import asyncio
import json
import os
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import UTC, datetime

from adapters.base import Bot, Incoming, Outgoing, Person, PlaceOf, TryLater, Undeliverable

PLATFORM = "lines"
LIMIT = 1000
"""Characters of one message."""


class LinesAdapter:
    """Serves one TCP port of this machine; everybody has a direct message under their own name."""

    platform = PLATFORM
    limit = LIMIT
    channels = None
    refused: str | None = None

    def __init__(self, port: int) -> None:
        self._port = port
        self._server: asyncio.Server | None = None
        self._open: dict[str, asyncio.StreamWriter] = {}
        self._sent: set[int] = set()

    async def run(self, bot: Bot) -> None:
        """Listen until cancelled."""

        async def talk(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            name = (await reader.readline()).decode().strip()
            person, place = Person(PLATFORM, "", name, name), PlaceOf(PLATFORM, "", "", name, "direct")
            self._open[name] = writer
            try:
                while line := (await reader.readline()).decode().rstrip("\n"):
                    key, _, text = line.partition(" ")
                    answer = await bot.command(person, place, text)
                    if answer is None:
                        await bot.receive(Incoming("message", person, place, f"{name}:{key}", datetime.now(UTC), text, key))
                    else:
                        await self._write(name, "-", answer.text)
            finally:
                if self._open.get(name) is writer:
                    del self._open[name]
                writer.close()

        self._server = await asyncio.start_server(talk, "127.0.0.1", self._port)
        try:
            await asyncio.Event().wait()
        finally:
            self._server.close()
            for writer in list(self._open.values()):
                writer.close()
            self._server = None

    async def send(self, outgoing: Outgoing) -> str:
        """Write a message to whoever is connected; they are waited for while they are not."""
        if not outgoing.channel.isalpha():
            raise Undeliverable("nobody can be called that")
        if outgoing.channel not in self._open:
            raise TryLater(0.2)
        await self._write(outgoing.channel, str(outgoing.outbox_id), outgoing.text)
        self._sent.add(outgoing.outbox_id)
        return str(outgoing.outbox_id)

    async def _write(self, name: str, key: str, text: str) -> None:
        self._open[name].write(f"{key} {json.dumps(text)}\n".encode())
        await self._open[name].drain()

    async def find(self, outgoing: Outgoing) -> str | None:
        """What this process sent."""
        return str(outgoing.outbox_id) if outgoing.outbox_id in self._sent else None

    @asynccontextmanager
    async def working(self, channel: str) -> AsyncIterator[None]:
        """Lines have no sign of work."""
        yield

    async def check(self) -> None:
        """Raises where nobody could connect."""
        if self._server is None or not self._server.is_serving():
            raise ConnectionError("not listening")


def from_environment() -> list[LinesAdapter]:
    """The adapter, where LINES_PORT names its port."""
    return [LinesAdapter(int(os.environ["LINES_PORT"]))] if "LINES_PORT" in os.environ else []
