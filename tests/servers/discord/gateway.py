"""The gateway: identify, heartbeats, resume, and who gets which dispatch."""

from __future__ import annotations

import asyncio
import contextlib
import itertools
import json
import secrets
import time
from collections import deque
from collections.abc import Callable, Iterator

from aiohttp import WSMsgType, web

from tests.servers.discord import intents, payloads
from tests.servers.discord.permissions import VIEW_CHANNEL, may
from tests.servers.discord.session import (
    ACK,
    HEARTBEAT,
    HELLO,
    IDENTIFY,
    INVALID,
    MEMBERS,
    PRESENCE,
    RECONNECT,
    RESUME,
    VOICE,
    Connection,
    Session,
)
from tests.servers.discord.waiting import Signal
from tests.servers.discord.world import Channel, Guild, Json, World

# What a client may send in a minute on one connection.
SENDS_PER_MINUTE = 120


class Gateway:
    """All connections and sessions. `heartbeat_interval` is in seconds."""

    def __init__(self, world: World, signal: Signal, heartbeat_interval: float) -> None:
        self.world = world
        self.url = ""
        self.heartbeat_interval = heartbeat_interval
        self.connections: list[Connection] = []
        self.sessions: dict[str, Session] = {}
        self._signal = signal
        self._numbers = itertools.count(1)

    def dispatch(self, event: str, build: Callable[[Session], object], *, guild: Guild | None, intent: int = 0) -> None:
        """An event to every session that hears it; `build` makes what this session may see of it."""
        for session in self.sessions.values():
            if session.hears(guild, intent):
                session.emit(event, build(session))
        self._signal.notify()

    def in_channel(self, event: str, build: Callable[[Session], object], channel: Channel, intent: int) -> None:
        """The same for an event of a channel, which the bot gets only where it sees the channel."""
        if may(self.world.bot, channel, self.world.bot, VIEW_CHANNEL):
            self.dispatch(event, build, guild=channel.guild, intent=intent)
        self._signal.notify(channel)

    def live(self) -> Iterator[Connection]:
        """The connections that are open and identified."""
        return (connection for connection in self.connections if connection.open and connection.session is not None)

    # Faults.

    def cut(self) -> None:
        """Tears every gateway connection; the sessions can be resumed."""
        for connection in self.connections:
            if connection.open:
                connection.cut()

    def deafen(self) -> None:
        """The open connections stay open and say nothing more: no dispatch, no acknowledgement. New ones are sound."""
        for connection in self.connections:
            connection.deaf = connection.deaf or connection.open

    def close(self, code: int) -> None:
        for connection in list(self.live()):
            connection.close(code)

    def reconnect(self) -> None:
        """Opcode 7: asks the clients to come back."""
        for connection in list(self.live()):
            connection.op(RECONNECT)

    def invalidate(self, *, resumable: bool = False) -> None:
        """Opcode 9. A session that is not resumable is forgotten."""
        for connection in list(self.live()):
            if not resumable:
                self._forget(connection.session)
            connection.op(INVALID, resumable)

    def forget_sessions(self) -> None:
        """The next RESUME is refused with opcode 9, as after a long absence."""
        for session in list(self.sessions.values()):
            self._forget(session)

    # The protocol.

    async def handle(self, request: web.Request) -> web.WebSocketResponse:
        socket = web.WebSocketResponse(compress=False, autoclose=False, max_msg_size=16 * 1024)
        await socket.prepare(request)
        connection = Connection(next(self._numbers), socket, request, request.query.get("compress") == "zlib-stream")
        self.connections.append(connection)
        writer = asyncio.create_task(connection.write())
        try:
            if request.query.get("v") not in ("9", "10") or request.query.get("encoding", "json") != "json":
                connection.close(4012)
            connection.op(HELLO, {"heartbeat_interval": int(self.heartbeat_interval * 1000), "_trace": ["local"]})
            self._signal.notify()
            await self._read(connection)
        finally:
            self._ended(connection)
            writer.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await writer
        return socket

    async def _read(self, connection: Connection) -> None:
        sent: deque[float] = deque()
        beats_due = time.monotonic() + 1.5 * self.heartbeat_interval
        while True:
            try:
                message = await connection.socket.receive(timeout=max(0.0, beats_due - time.monotonic()))
            except TimeoutError:
                connection.closed = 4009
                await connection.socket.close(code=4009)
                return
            if message.type is not WSMsgType.TEXT:
                # A connection that breaks without a closing frame has no code, though aiohttp says 1000 for it.
                if message.type is WSMsgType.CLOSE:
                    self._goodbye(connection, message.data)
                    await connection.socket.close()
                return
            sent.append(time.monotonic())
            while sent[0] < sent[-1] - 60:
                sent.popleft()
            if len(sent) > SENDS_PER_MINUTE:
                connection.close(4008)
                continue
            beats = connection.heartbeats
            self._receive(connection, message.data)
            if connection.heartbeats > beats:
                beats_due = time.monotonic() + 1.5 * self.heartbeat_interval
            self._signal.notify()

    def _receive(self, connection: Connection, text: str) -> None:
        try:
            payload = json.loads(text)
            op, data = payload["op"], payload.get("d")
        except (ValueError, KeyError, TypeError):
            return connection.close(4002)
        if op == HEARTBEAT:
            connection.heartbeats += 1
            return connection.op(ACK)
        if op == IDENTIFY:
            return self._identify(connection, data)
        if op == RESUME:
            return self._resume(connection, data)
        connection.received.append(payload)
        if connection.session is None:
            return connection.close(4003)
        if op == MEMBERS:
            return self._members(connection.session, data)
        if op not in (PRESENCE, VOICE):
            connection.close(4001)
        return None

    def _identify(self, connection: Connection, data: Json) -> None:
        if connection.session is not None:
            return connection.close(4005)
        connection.identify = data
        refused = self._refusal(data)
        if refused:
            return connection.close(refused)
        for old in [session for session in self.sessions.values() if session.expired]:
            self._forget(old)
        number, count = data.get("shard", (0, 1))
        session = Session(secrets.token_hex(16), data["intents"], (number, count), data.get("large_threshold", 50))
        self.sessions[session.name] = session
        session.attach(connection, 0)
        guilds = [guild for guild in self.world.guilds.values() if self.world.bot.id in guild.members and session.hears(guild, 0)]
        session.emit("READY", self._ready(session, guilds))
        for guild in guilds if session.intents & intents.GUILDS else []:
            session.emit(
                "GUILD_CREATE",
                payloads.guild_create_json(guild, self.world, session.intents, session.large_threshold, joined=False),
            )
        return None

    def _refusal(self, data: Json) -> int | None:
        """The close code for an IDENTIFY that Discord refuses."""
        if data.get("token") != self.world.application.token:
            return 4004
        shard = data.get("shard", [0, 1])
        if len(shard) != 2 or not 0 <= shard[0] < shard[1]:
            return 4010
        wanted = data.get("intents")
        if not isinstance(wanted, int) or wanted & ~intents.KNOWN:
            return 4013
        return 4014 if wanted & intents.PRIVILEGED & ~self.world.application.privileged else None

    def _ready(self, session: Session, guilds: list[Guild]) -> Json:
        application = self.world.application
        return {
            "v": 10,
            "user": {**payloads.user_json(self.world.bot), "verified": True, "mfa_enabled": False, "email": None, "flags": 0},
            "guilds": [{"id": str(guild.id), "unavailable": True} for guild in guilds],
            "private_channels": [],
            "session_id": session.name,
            "session_type": "normal",
            "resume_gateway_url": self.url,
            "shard": list(session.shard),
            "application": {"id": str(application.id), "flags": intents.application_flags(application.privileged)},
        }

    def _resume(self, connection: Connection, data: Json) -> None:
        connection.resume = data
        if data.get("token") != self.world.application.token:
            return connection.close(4004)
        session = self.sessions.get(str(data.get("session_id")))
        after = data.get("seq")
        if session is None or session.expired or not isinstance(after, int) or not session.can_replay(after):
            self._forget(session)
            return connection.op(INVALID, False)
        if after > session.sequence:
            self._forget(session)
            return connection.close(4007)
        session.attach(connection, after)
        session.emit("RESUMED", {"_trace": ["local"]})
        connection.resumed = True
        return None

    def _members(self, session: Session, data: Json) -> None:
        """GUILD_MEMBERS_CHUNK; without the members intent only people asked for by id or by a beginning."""
        guild = self.world.guilds.get(int(data["guild_id"]))
        if guild is None:
            return
        members = list(guild.members.values())
        wanted, query = data.get("user_ids"), data.get("query")
        if wanted:
            ids = {int(one) for one in (wanted if isinstance(wanted, list) else [wanted])}
            members = [member for member in members if member.user.id in ids][:100]
        elif query:
            members = [member for member in members if member.user.name.lower().startswith(query.lower())][:100]
        elif not session.intents & intents.GUILD_MEMBERS:
            members = [guild.members[self.world.bot.id]]
        chunks = [members[start : start + 1000] for start in range(0, len(members), 1000)] or [[]]
        for number, chunk in enumerate(chunks):
            body: Json = {
                "guild_id": str(guild.id),
                "members": [payloads.member_json(member) for member in chunk],
                "chunk_index": number,
                "chunk_count": len(chunks),
                "nonce": data.get("nonce"),
            }
            if data.get("presences") and session.intents & intents.GUILD_PRESENCES:
                body["presences"] = [payloads.presence_json(one.user, None) for one in chunk if one.user.status != "offline"]
            session.emit("GUILD_MEMBERS_CHUNK", body)

    def _forget(self, session: Session | None) -> None:
        if session is not None:
            self.sessions.pop(session.name, None)

    def _goodbye(self, connection: Connection, code: int) -> None:
        """A client that closes with 1000 or 1001 ends its session; after any other end it can be resumed."""
        if connection.open and code in (1000, 1001):
            self._forget(connection.session)
        connection.closed = connection.closed or code

    def _ended(self, connection: Connection) -> None:
        connection.closed = connection.closed or 1006
        session = connection.session
        if session is not None and session.connection is connection:
            session.detach()
            if connection.closed == 4004:
                self._forget(session)
        self._signal.notify()
