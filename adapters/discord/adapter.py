"""Discord as the bot sees it: the contract of `adapters.base`, put together from this package."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Sequence
from contextlib import AbstractAsyncContextManager, suppress
from pathlib import Path

import discord

from adapters.base import Bot, Outgoing
from adapters.discord.commands import Commands, Slash, sync, tree_of
from adapters.discord.connection import Connection, PlatformRefused, invite_link
from adapters.discord.events import Events
from adapters.discord.names import PLATFORM
from adapters.discord.outbound import Outbound
from adapters.discord.settings import LIMIT, Settings

log = logging.getLogger(__name__)

EDIT_EVERY = 1.2
"""Seconds between two edits of a message that grows; Discord allows about five in five seconds in a channel."""


class Unheard(Exception):
    """The bot does not hear Discord now."""


class DiscordAdapter:
    """Discord in this process.

    Args:
        settings: what the operator chose.
        slashes: the bot's commands.
        count: is told reason codes.
        say: is told, once, what the operator should read.
        record: the file that keeps what commands Discord was told; None: it is told them at every start.
    """

    platform = PLATFORM
    channels = None
    limit = LIMIT

    def __init__(
        self,
        settings: Settings,
        slashes: Sequence[Slash],
        *,
        count: Callable[[str], None] = lambda _: None,
        say: Callable[[str], None] = lambda _: None,
        record: Path | None = None,
    ) -> None:
        self._settings, self._slashes, self._count, self._say, self._record = settings, slashes, count, say, record
        self._connection: Connection | None = None
        self._outbound = Outbound(self._client)
        self._announced = False
        self.refused: str | None = None
        """Why Discord will not have the bot, in a line for the operator; `run` has ended then."""

    def _client(self) -> discord.Client | None:
        return self._connection.client if self._connection is not None else None

    async def run(self, bot: Bot) -> None:
        """Take events in until cancelled, or until Discord refuses for good."""
        events = Events(self._settings, bot, self._outbound, self._client, self._count, self._ready)
        await events.catch_up.load()
        commands = Commands(bot, self._count)
        trees: dict[discord.Client, discord.app_commands.CommandTree[discord.Client]] = {}

        async def on_interaction(interaction: discord.Interaction[discord.Client]) -> None:
            await commands.pressed(interaction)

        def prepare(client: discord.Client) -> None:
            trees.clear()
            trees[client] = tree_of(client, self._slashes, commands.answer)
            trees[client].error(commands.failed)
            events.register(client)
            client.event(on_interaction)

        async def logged_in(client: discord.Client) -> None:
            await self._synced(client, trees[client])

        self._connection = Connection(self._settings, prepare, logged_in, self._count)
        catching_up = asyncio.create_task(events.catch_up.run(self._client, events.caught_up), name="catching up on discord")
        try:
            await self._connection.run()
        except PlatformRefused as refused:
            self.refused = str(refused)
            self._say(self.refused)
        finally:
            catching_up.cancel()
            with suppress(asyncio.CancelledError):
                await catching_up

    async def _synced(self, client: discord.Client, tree: discord.app_commands.CommandTree[discord.Client]) -> None:
        try:
            if await sync(tree, client.application_id or 0, self._record):
                log.info("Discord was told the slash commands")
        except (discord.HTTPException, OSError) as error:
            log.warning("Discord could not be told the slash commands: %s; at the next start again", type(error).__name__)

    def _ready(self, client: discord.Client) -> None:
        log.info("connected to Discord, in %d guilds", len(client.guilds))
        if self._announced:
            return
        self._announced = True
        if not client.guilds:
            self._say(f"Discord: the bot is in no guild yet. Invite it: {invite_link(client.application_id or 0)}")
        if not self._settings.message_content:
            log.warning(
                "Discord: without discord.message_content the bot sees direct messages, mentions and replies to it; other messages "
                "in a channel or thread are hidden from it"
            )

    async def check(self) -> None:
        """Raises Unheard when the bot does not hear Discord now."""
        trouble = self._connection.trouble() if self._connection is not None else "not started"
        if trouble:
            raise Unheard(trouble)

    async def send(self, outgoing: Outgoing) -> str:
        """Send one message; see `Outbound.send`."""
        return await self._outbound.send(outgoing)

    async def find(self, outgoing: Outgoing) -> str | None:
        """The id of a message that was perhaps sent; see `Outbound.find`."""
        return await self._outbound.find(outgoing)

    @property
    def pace(self) -> float | None:
        """Seconds between two edits of one message; None: replies do not grow here."""
        return EDIT_EVERY if self._settings.streaming else None

    async def begin(self, outgoing: Outgoing) -> str:
        """Send the beginning of a message; the same one when it is asked for again within minutes."""
        return await self._outbound.send(outgoing)

    async def extend(self, outgoing: Outgoing, platform_id: str) -> None:
        """Let a begun message show more."""
        await self._outbound.edit(outgoing, platform_id)

    async def finish(self, outgoing: Outgoing, platform_id: str) -> str:
        """The final text of a begun message."""
        return await self._outbound.finish(outgoing, platform_id)

    def working(self, channel: str) -> AbstractAsyncContextManager[None]:
        """Typing shows as long as the context is open."""
        return self._outbound.working(channel)


async def invite(settings: Settings) -> str:
    """The invite link of the token's app. Raises Refused."""
    from adapters.discord.connection import client_of, fatal

    async with client_of(settings) as client:
        try:
            await client.login(settings.token)
        except (discord.DiscordException, OSError) as error:
            raise PlatformRefused(
                fatal(error, settings) or f"Discord cannot be reached ({type(error).__name__}). Try again later."
            ) from error
        return invite_link(client.application_id or 0)
