"""A gateway session: its numbered dispatches, which outlive the connection they were sent on."""

from __future__ import annotations

import asyncio
import json
import time
import zlib
from collections import deque
from dataclasses import dataclass, field

from aiohttp import web

from tests.servers.discord.intents import MESSAGE_CONTENT
from tests.servers.discord.listener import reset
from tests.servers.discord.world import Guild, Json

DISPATCH, HEARTBEAT, IDENTIFY, PRESENCE, VOICE, RESUME, RECONNECT, MEMBERS, INVALID, HELLO, ACK = (
    0,
    1,
    2,
    3,
    4,
    6,
    7,
    8,
    9,
    10,
    11,
)

# How many dispatches a session can replay, and for how many seconds it waits for its client to come back.
KEPT = 20_000
LINGER = 180.0


@dataclass(eq=False)
class Connection:
    """One WebSocket. What is sent goes through a queue, in order; a deaf connection sends nothing more."""

    number: int
    socket: web.WebSocketResponse
    request: web.Request
    compressed: bool
    session: Session | None = None
    # The payload of IDENTIFY or RESUME, as it came.
    identify: Json | None = None
    resume: Json | None = None
    resumed: bool = False
    heartbeats: int = 0
    # Whatever else the client sent, by opcode.
    received: list[Json] = field(default_factory=list)
    deaf: bool = False
    # The close code the server sent or the client gave; 1006 when the connection broke.
    closed: int | None = None
    opened_at: float = field(default_factory=time.monotonic)

    def __post_init__(self) -> None:
        self._deflate = zlib.compressobj() if self.compressed else None
        self._outgoing: asyncio.Queue[str | int] = asyncio.Queue()

    @property
    def open(self) -> bool:
        return self.closed is None

    def send(self, text: str) -> None:
        if not self.deaf and self.open:
            self._outgoing.put_nowait(text)

    def op(self, code: int, data: object = None) -> None:
        self.send(json.dumps({"op": code, "d": data, "s": None, "t": None}))

    def close(self, code: int) -> None:
        """Closes with a code after what was already sent."""
        self._outgoing.put_nowait(code)

    def cut(self) -> None:
        reset(self.request.transport)

    async def write(self) -> None:
        """Sends from the queue until the connection ends."""
        while True:
            item = await self._outgoing.get()
            try:
                if isinstance(item, int):
                    self.closed = self.closed or item
                    await self.socket.close(code=item)
                    return
                if self._deflate is None:
                    await self.socket.send_str(item)
                else:
                    data = self._deflate.compress(item.encode()) + self._deflate.flush(zlib.Z_SYNC_FLUSH)
                    await self.socket.send_bytes(data)
            except ConnectionError:
                return


class Session:
    """What one IDENTIFY began."""

    def __init__(self, name: str, intents: int, shard: tuple[int, int], large_threshold: int) -> None:
        self.name = name
        self.intents = intents
        self.shard = shard
        self.large_threshold = large_threshold
        self.sequence = 0
        self.connection: Connection | None = None
        self.detached_at: float | None = None
        self._sent: deque[tuple[int, str]] = deque(maxlen=KEPT)

    @property
    def reads_content(self) -> bool:
        return bool(self.intents & MESSAGE_CONTENT)

    def hears(self, guild: Guild | None, intent: int) -> bool:
        """Whether a dispatch comes here: direct messages only to shard 0, a guild's events to its shard."""
        number, count = self.shard
        mine = (guild.id >> 22) % count == number if guild else number == 0
        return mine and self.intents & intent == intent

    def emit(self, event: str, data: object) -> None:
        """A dispatch: kept for a replay, sent if somebody is there."""
        self.sequence += 1
        text = json.dumps({"op": DISPATCH, "s": self.sequence, "t": event, "d": data})
        self._sent.append((self.sequence, text))
        if self.connection is not None:
            self.connection.send(text)

    def can_replay(self, after: int) -> bool:
        return after >= self.sequence or bool(self._sent) and self._sent[0][0] <= after + 1

    def attach(self, connection: Connection, after: int) -> None:
        """Goes on over a new connection with what the client missed."""
        if self.connection is not None:
            self.connection.cut()
        self.connection, self.detached_at = connection, None
        connection.session = self
        for number, text in self._sent:
            if number > after:
                connection.send(text)

    def detach(self) -> None:
        self.connection, self.detached_at = None, time.monotonic()

    @property
    def expired(self) -> bool:
        return self.detached_at is not None and time.monotonic() - self.detached_at > LINGER
