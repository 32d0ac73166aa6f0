"""The connection: the client with its intents, a restart loop around it, and what is fatal.

discord.py mends most outages itself. It ends when its first gateway connection fails, when a dispatch cannot be parsed, and when Discord
closes with a code that no reconnection mends. Only the last is final; after the others a new client is made.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Awaitable, Callable
from contextlib import suppress
from typing import Any

import discord
import yarl
from discord.gateway import DiscordWebSocket
from discord.http import Route

from adapters.discord.presence import online_in
from adapters.discord.settings import Settings, shards_of

log = logging.getLogger(__name__)

SOUND = 60.0
"""Seconds that a connection must have held for the next fault to count as the first."""
FIRST = 1.0
CLOSING = 5.0
PATIENCE = 30.0
"""The longest rate limit that discord.py waits out itself; a longer one goes back to the outbox. The least it takes."""
PERMISSIONS = discord.Permissions(
    view_channel=True,
    send_messages=True,
    send_messages_in_threads=True,
    read_message_history=True,
    attach_files=True,
    embed_links=True,
)
"""What the invite link asks for."""
INTENTS = {"message_content": "message content", "members": "server members", "presences": "presence"}


class PlatformRefused(Exception):
    """Discord refuses for good; the text is a line for the operator."""


class _Watched(discord.Client):
    """Notes when anything came over the gateway, and tells who is online when a guild appears."""

    heard_at = 0.0
    between_identifies = 5.0

    async def before_identify_hook(self, shard_id: int | None, *, initial: bool = False) -> None:  # noqa: ARG002 - the library's signature
        """Discord allows one new session in five seconds. The library reads nothing meanwhile, so silence must not be over before."""
        if not initial:
            await asyncio.sleep(self.between_identifies)

    def dispatch(self, event: str, /, *args: Any, **kwargs: Any) -> None:
        if event == "socket_raw_receive":
            self.heard_at = time.monotonic()
            if self.intents.presences and (found := online_in(args[0])):
                super().dispatch("online_in_guild", *found)
        elif event != "socket_raw_send":
            super().dispatch(event, *args, **kwargs)


class _Sharded(_Watched, discord.AutoShardedClient):
    """The same on several shards."""


def intents_of(settings: Settings) -> discord.Intents:
    """As little as the chosen features need."""
    intents = discord.Intents.none()
    intents.guilds = intents.guild_messages = intents.dm_messages = True
    intents.message_content = settings.message_content
    intents.members = settings.members or bool(settings.join_channels)
    intents.presences = settings.presences or settings.login_events
    return intents


def client_of(settings: Settings) -> discord.Client:
    """A client that is not connected yet."""
    discord.VoiceClient.warn_nacl = discord.VoiceClient.warn_dave = False  # there is no voice here
    if settings.api_base:
        Route.BASE = settings.api_base.rstrip("/")
    if settings.gateway:
        DiscordWebSocket.DEFAULT_GATEWAY = yarl.URL(settings.gateway)
    intents = intents_of(settings)
    some: dict[str, Any] = {}
    if settings.shards:
        first, last, count = shards_of(settings.shards)
        some = {"shard_ids": list(range(first, last + 1)), "shard_count": count}
    client = (_Sharded if settings.sharded or some else _Watched)(
        intents=intents,
        allowed_mentions=discord.AllowedMentions(everyone=False, roles=False, users=False, replied_user=True),
        chunk_guilds_at_startup=False,
        enable_debug_events=True,
        enable_raw_presences=intents.presences,
        heartbeat_timeout=settings.silence,
        max_ratelimit_timeout=PATIENCE,
        **some,
    )
    client.between_identifies = min(client.between_identifies, settings.silence / 2)
    return client


def invite_link(application: int) -> str:
    """The address under which a guild's owner lets the bot in."""
    return discord.utils.oauth_url(application, permissions=PERMISSIONS, scopes=("bot", "applications.commands"))


def fatal(error: BaseException, settings: Settings) -> str | None:
    """The line for the operator when an error cannot be mended by another try."""
    if isinstance(error, discord.LoginFailure) or (isinstance(error, discord.ConnectionClosed) and error.code == 4004):
        return (
            f"discord.token_env: Discord does not accept the token in {settings.token_env}; it is wrong or was reset. Copy it anew from "
            "the developer portal (Bot, Reset Token)."
        )
    wanted = [name for name in INTENTS if getattr(intents_of(settings), name)]
    if isinstance(error, discord.PrivilegedIntentsRequired) or (
        isinstance(error, discord.ConnectionClosed) and error.code == 4014
    ):
        names = ", ".join(INTENTS[name] for name in wanted)
        return (
            f"{', '.join(f'discord.{name}' for name in wanted)}: the app lacks a privileged intent. Switch on in the developer portal (Bot, "
            f"Privileged Gateway Intents): {names}; or do without the features that need them."
        )
    if isinstance(error, discord.ConnectionClosed) and error.code in (4010, 4011):
        return "discord.sharded: the bot is in too many guilds for one connection. Set it to true."
    if isinstance(error, discord.ConnectionClosed) and error.code in (4012, 4013):
        return f"discord: the gateway refuses how this program speaks (code {error.code}). Update Keepsake."
    return None


class Connection:
    """Keeps a client connected. `prepare` is called with each new one, `logged_in` once it is known who it is."""

    def __init__(
        self,
        settings: Settings,
        prepare: Callable[[discord.Client], None],
        logged_in: Callable[[discord.Client], Awaitable[None]],
        count: Callable[[str], None],
    ) -> None:
        self._settings, self._prepare, self._logged_in, self._count = settings, prepare, logged_in, count
        self.client: discord.Client | None = None

    async def run(self) -> None:
        """Stay connected until cancelled. Raises Refused when no other try can help."""
        failures = 0
        while True:
            began = time.monotonic()
            error = await self._once()
            if line := fatal(error, self._settings):
                raise PlatformRefused(line) from error
            failures = 1 if time.monotonic() - began > SOUND else failures + 1
            delay = min(self._settings.restart_cap, FIRST * 2 ** min(failures - 1, 10))
            self._count("discord_restart")
            log.warning("the connection to Discord ended: %s; a new one in %.0f s", type(error).__name__, delay)
            await asyncio.sleep(delay)

    async def _once(self) -> BaseException:
        """One client from its login to its end; returns what ended it."""
        client = client_of(self._settings)
        self._prepare(client)
        life = asyncio.ensure_future(self._live(client))
        try:
            await asyncio.wait([life])
            return life.exception() or ConnectionResetError("closed")
        finally:
            life.cancel()
            self.client = None
            with suppress(TimeoutError, OSError, discord.DiscordException):
                async with asyncio.timeout(CLOSING):
                    await client.close()

    async def _live(self, client: discord.Client) -> None:
        await client.login(self._settings.token)
        self.client = client
        await self._logged_in(client)
        await client.connect(reconnect=True)

    def trouble(self) -> str:
        """Why the bot does not hear Discord now; empty when it does. A gateway that is up but says nothing is noticed here."""
        client = self.client
        if client is None or client.is_closed() or not client.is_ready():
            return "not connected"
        if isinstance(client, _Watched) and time.monotonic() - client.heard_at > self._settings.silence:
            return "silent"
        sockets = [shard.is_closed() for shard in client.shards.values()] if isinstance(client, discord.AutoShardedClient) else []
        return "disconnected" if any(sockets) or (not sockets and not client.ws.open) else ""
