"""Socket Mode: tickets, hello, envelopes, acknowledgements, disconnect messages, pings; and what may be wrong with it."""

from __future__ import annotations

import asyncio
import contextlib
import itertools
import json
import secrets
import time
import uuid
from dataclasses import dataclass, field

from aiohttp import WSMsgType, web

from tests.servers.discord.listener import reset
from tests.servers.discord.waiting import Signal
from tests.servers.slack.app import App
from tests.servers.slack.delivery import Attempt, Deliveries, Delivery
from tests.servers.slack.world import Json

# How many connections an app may have.
MOST = 10


@dataclass(eq=False)
class Connection:
    """One WebSocket. A deaf one answers pings and gets no envelopes; a mute one does not even answer pings."""

    number: int
    app: App
    socket: web.WebSocketResponse
    request: web.Request
    deaf: bool = False
    mute: bool = False
    greeted: bool = False
    open: bool = True
    pings: int = 0
    pongs: int = 0
    # What the client sent, acknowledgements among it.
    received: list[Json] = field(default_factory=list)
    opened_at: float = field(default_factory=time.monotonic)

    def __post_init__(self) -> None:
        self._outgoing: asyncio.Queue[Json | int] = asyncio.Queue()

    def send(self, body: Json) -> None:
        self._outgoing.put_nowait(body)

    def close(self, code: int = 1000) -> None:
        """A close frame after what was already sent."""
        self._outgoing.put_nowait(code)

    def cut(self) -> None:
        reset(self.request.transport)

    async def write(self) -> None:
        while True:
            item = await self._outgoing.get()
            try:
                if isinstance(item, int):
                    self.open = False
                    await self.socket.close(code=item)
                    return
                await self.socket.send_str(json.dumps(item))
            except ConnectionError:
                return


class Hub:
    """All connections. `ping_every` is the seconds between the server's own pings."""

    def __init__(self, signal: Signal, deliveries: Deliveries, ping_every: float) -> None:
        self.url = ""
        self.connections: list[Connection] = []
        # Also what connects from now on is deaf, mute, or is not greeted.
        self.deaf = False
        self.mute = False
        self.connection_time = 18060
        self.disabled = False
        self._signal = signal
        self._deliveries = deliveries
        self._ping_every = ping_every
        self._numbers = itertools.count(1)
        self._turn = itertools.count()
        self._tickets: dict[str, App] = {}
        self._sent: dict[str, tuple[Delivery, Attempt]] = {}

    def ticket(self, app: App) -> str:
        """An address for one connection, as apps.connections.open gives it."""
        ticket = secrets.token_urlsafe(16)
        self._tickets[ticket] = app
        return f"{self.url}?ticket={ticket}&app_id={app.id}"

    @property
    def live(self) -> list[Connection]:
        return [connection for connection in self.connections if connection.open and connection.greeted]

    # Carrying.

    def start(self, delivery: Delivery, attempt: Attempt) -> bool:
        """To one of the open connections, in turn."""
        live = [connection for connection in self.live if connection.app is delivery.app]
        if not live:
            return False
        connection = live[next(self._turn) % len(live)]
        attempt.connection = connection.number
        envelope: Json = {
            "envelope_id": str(uuid.uuid4()),
            "type": delivery.sort,
            "accepts_response_payload": delivery.sort != "events_api",
            "payload": delivery.payload,
        }
        if delivery.sort == "events_api":
            envelope |= {"retry_attempt": attempt.number, "retry_reason": attempt.reason}
        self._sent[envelope["envelope_id"]] = (delivery, attempt)
        if not (connection.deaf or connection.mute):
            connection.send(envelope)
        return True

    # Faults.

    def deafen(self) -> None:
        """The open connections get no more envelopes though pings are answered. New ones are sound, unless `deaf` is set."""
        for connection in self.live:
            connection.deaf = True

    def silence(self) -> None:
        """The same, and their pings go unanswered."""
        for connection in self.live:
            connection.mute = True

    def cut(self) -> None:
        """Resets the connections, without a close frame."""
        for connection in self.live:
            connection.open = False
            connection.cut()

    def close(self, code: int = 1000) -> None:
        for connection in self.live:
            connection.close(code)

    def warn(self) -> None:
        """Ten seconds before a connection ends Slack says so."""
        self._disconnect("warning")

    def refresh(self) -> None:
        """The connections end because Slack wants new ones."""
        self._disconnect("refresh_requested")
        self.close()

    def disable(self) -> None:
        """Socket Mode is switched off for the app."""
        self.disabled = True
        self._disconnect("link_disabled")
        self.close()

    def _disconnect(self, reason: str) -> None:
        for connection in self.live:
            connection.send({"type": "disconnect", "reason": reason, "debug_info": {"host": "applink-local"}})

    # The protocol.

    async def handle(self, request: web.Request) -> web.StreamResponse:
        ticket = request.query.get("ticket", "")
        if ticket not in self._tickets or self.disabled:
            return web.Response(status=408, text="the ticket is used or unknown")
        app = self._tickets.pop(ticket)
        socket = web.WebSocketResponse(autoping=False, compress=False)
        await socket.prepare(request)
        connection = Connection(next(self._numbers), app, socket, request, self.deaf, self.mute)
        self.connections.append(connection)
        writer = asyncio.create_task(connection.write())
        pinger = asyncio.create_task(self._ping(connection))
        try:
            self._greet(connection)
            await self._read(connection)
        finally:
            connection.open = False
            for task in (writer, pinger):
                task.cancel()
                with contextlib.suppress(asyncio.CancelledError):
                    await task
            self._signal.notify()
        return socket

    def _greet(self, connection: Connection) -> None:
        alike = [one for one in self.live if one.app is connection.app]
        if len(alike) >= MOST:
            connection.send({"type": "disconnect", "reason": "too_many_websockets"})
            return connection.close()
        connection.greeted = True
        connection.send(
            {
                "type": "hello",
                "num_connections": len(alike) + 1,
                "debug_info": {"host": "applink-local", "build_number": 1, "approximate_connection_time": self.connection_time},
                "connection_info": {"app_id": connection.app.id},
            }
        )
        if not (connection.deaf or connection.mute):
            self._deliveries.listeners_came(connection.app)
        self._signal.notify()
        return None

    async def _ping(self, connection: Connection) -> None:
        with contextlib.suppress(ConnectionError):
            while True:
                await asyncio.sleep(self._ping_every)
                if not connection.mute:
                    await connection.socket.ping(b"Ping from applink-local")

    async def _read(self, connection: Connection) -> None:
        async for message in connection.socket:
            match message.type:
                case WSMsgType.PING:
                    connection.pings += 1
                    if not connection.mute:
                        await connection.socket.pong(message.data)
                case WSMsgType.PONG:
                    connection.pongs += 1
                case WSMsgType.TEXT:
                    self._receive(connection, message.data)
                case _:
                    pass
            self._signal.notify()

    def _receive(self, connection: Connection, text: str) -> None:
        body = json.loads(text)
        connection.received.append(body)
        known = self._sent.get(body.get("envelope_id", ""))
        if known is not None:
            delivery, attempt = known
            self._deliveries.acknowledged(delivery, attempt, 200, body.get("payload"))
