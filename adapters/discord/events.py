"""Which dispatch goes where. The methods are named as discord.py names its events; they are registered with each new client."""

from __future__ import annotations

import asyncio
import logging
import sys
import time
from collections.abc import Callable, Coroutine
from typing import Any

import discord

from adapters.base import Bot, Incoming, Person, PlaceOf
from adapters.comparing import compare
from adapters.discord.catchup import CatchUp
from adapters.discord.inbound import Inbound
from adapters.discord.names import PLATFORM, hidden, person_of, place_of
from adapters.discord.outbound import Outbound
from adapters.discord.presence import FLAP, Presences
from adapters.discord.settings import Settings

log = logging.getLogger(__name__)


class Events:
    """Takes the dispatches of the present client."""

    def __init__(
        self,
        settings: Settings,
        bot: Bot,
        outbound: Outbound,
        client: Callable[[], discord.Client | None],
        count: Callable[[str], None],
        ready: Callable[[discord.Client], None],
    ) -> None:
        self._settings, self._bot, self._outbound, self._client, self._count = settings, bot, outbound, client, count
        self._ready = ready
        self._presences = Presences()
        self._inbound = Inbound(settings, bot, count)
        self._compared = asyncio.Event()
        self.catch_up = CatchUp(
            settings, bot, self._take, self._corrected, self._inbound.deleted, self._inbound.channel_deleted, count
        )

    def register(self, client: discord.Client) -> None:
        """Have a client call these methods."""
        handlers: tuple[Callable[..., Coroutine[Any, Any, None]], ...] = (
            self.on_connect,
            self.on_ready,
            self.on_message,
            self.on_raw_message_edit,
            self.on_raw_message_delete,
            self.on_raw_bulk_message_delete,
            self.on_guild_channel_delete,
            self.on_raw_thread_delete,
            self.on_member_join,
            self.on_raw_member_remove,
            self.on_member_update,
            self.on_guild_channel_update,
            self.on_guild_role_update,
            self.on_guild_join,
            self.on_guild_remove,
            self.on_guild_available,
            self.on_online_in_guild,
            self.on_raw_presence_update,
            self.on_error,
        )
        for handler in handlers:
            client.event(handler)

    async def caught_up(self, channel: int) -> None:
        """Catch one channel up, in its turn."""
        await self._compared.wait()
        async with self._inbound.turnstile.through(channel):
            if (client := self._client()) is not None:
                await self.catch_up.channel(client, channel)

    async def _take(self, message: discord.Message) -> None:
        me = self._me()
        if message.author.id == me:
            self._outbound.seen(message)
        taken = False
        try:
            await self._inbound.take(message, me)
            taken = True
        finally:
            if not taken:  # whatever the reason: it is read again
                self.catch_up.missed(message)

    async def _corrected(self, message: discord.Message) -> None:
        if not message.author.bot:
            await self._inbound.corrected(message, self._me())

    def _me(self) -> int:
        client = self._client()
        return client.user.id if client is not None and client.user is not None else 0

    async def on_connect(self) -> None:
        """A new session: what was said before it was not heard, and what changed is not known."""
        self._compared.clear()
        self.catch_up.new_session()
        self._presences.connected(time.monotonic())

    async def on_ready(self) -> None:
        """The guilds are known."""
        if (client := self._client()) is None:
            return

        async def look(known: PlaceOf) -> PlaceOf | None:
            channel = client.get_channel(int(known.external_id)) if known.external_id.isdecimal() else None
            return place_of(channel, channel.id, channel.guild, None) if isinstance(channel, discord.abc.GuildChannel) else None

        try:
            await compare(self._bot, PLATFORM, look)
        finally:
            self._compared.set()
        self.catch_up.ready(client)
        self._ready(client)

    async def on_message(self, message: discord.Message) -> None:
        """Somebody wrote, or we did. No message before it is known which channels turned private while nobody listened."""
        channel = message.channel.id
        with self.catch_up.at_work(message):
            await self._compared.wait()
            async with self._inbound.turnstile.through(channel):
                client = self._client()
                if self.catch_up.behind(message) and client is not None:
                    await self.catch_up.channel(client, channel)
                await self._take(message)
                self.catch_up.handled(message)

    async def on_raw_message_edit(self, event: discord.RawMessageUpdateEvent) -> None:
        """Somebody edited; after the message itself was taken in."""
        async with self._inbound.turnstile.through(event.channel_id):
            await self._inbound.edited(event, self._me())

    async def on_raw_message_delete(self, event: discord.RawMessageDeleteEvent) -> None:
        """A message is gone."""
        async with self._inbound.turnstile.through(event.channel_id):
            await self._inbound.deleted(event.channel_id, {event.message_id})

    async def on_raw_bulk_message_delete(self, event: discord.RawBulkMessageDeleteEvent) -> None:
        """Several are."""
        async with self._inbound.turnstile.through(event.channel_id):
            await self._inbound.deleted(event.channel_id, event.message_ids)

    async def on_guild_channel_delete(self, channel: discord.abc.GuildChannel) -> None:
        """A channel is gone; Discord says nothing of its threads."""
        await self._channel_gone(channel.id)

    async def on_raw_thread_delete(self, event: discord.RawThreadDeleteEvent) -> None:
        """A thread is gone."""
        await self._channel_gone(event.thread_id)

    async def _channel_gone(self, channel: int) -> None:
        async with self._inbound.turnstile.through(channel):
            await self._inbound.channel_deleted(channel)

    async def on_member_join(self, member: discord.Member) -> None:
        """Somebody new, or somebody who comes back."""
        await self._bot.access_changed(person_of(member), str(member.guild.id), None, lost=False)
        await self._access(member)
        await self._inbound.joined(member)

    async def on_raw_member_remove(self, event: discord.RawMemberRemoveEvent) -> None:
        """Somebody left a guild, or was removed."""
        await self._bot.access_changed(person_of(event.user), str(event.guild_id), None, lost=True)

    async def on_member_update(self, before: discord.Member, after: discord.Member) -> None:
        """Somebody gained or lost a role, and channels with it."""
        if before.roles != after.roles:
            await self._access(after)

    async def _access(self, member: discord.Member) -> None:
        channels = {
            str(each.id): each.permissions_for(member).read_messages for each in member.guild.channels if not hidden(each)
        }
        for lost in (True, False):
            concerned = [channel for channel, readable in channels.items() if readable is not lost]
            await self._bot.access_changed(person_of(member), str(member.guild.id), concerned, lost=lost)

    async def on_guild_channel_update(self, before: discord.abc.GuildChannel, after: discord.abc.GuildChannel) -> None:
        """A channel may have turned private, or public, or have another name; its threads follow."""
        if (before.overwrites, before.name) != (after.overwrites, after.name):
            await self._places_changed(after)

    async def on_guild_role_update(self, before: discord.Role, after: discord.Role) -> None:
        """What everybody may see decides which channels are public, where a channel says nothing else."""
        if after.is_default() and before.permissions != after.permissions:
            await self._places_changed(*after.guild.channels)

    async def _places_changed(self, *channels: discord.abc.GuildChannel) -> None:
        for channel in channels:
            if isinstance(channel, discord.abc.Messageable | discord.ForumChannel):
                await self._bot.place_changed(place_of(channel, channel.id, channel.guild, None))

    async def on_guild_join(self, guild: discord.Guild) -> None:
        """The bot is in a guild, perhaps again."""
        self.catch_up.joined(guild)
        await self._bot.workspace_gone("discord", "", str(guild.id), gone=False)

    async def on_guild_available(self, guild: discord.Guild) -> None:
        """What is in a guild has become known, with a new session or after an outage of Discord's."""
        self.catch_up.look_around(guild)

    async def on_guild_remove(self, guild: discord.Guild) -> None:
        """The bot was removed; a guild that is only unavailable is another event."""
        await self._bot.workspace_gone("discord", "", str(guild.id), gone=True)

    async def on_online_in_guild(self, guild: int, online: frozenset[int]) -> None:
        """Who is online in a guild that has just become known."""
        self._presences.guild(guild, online)

    async def on_raw_presence_update(self, event: discord.RawPresenceUpdateEvent) -> None:
        """Perhaps a login, of somebody who agreed to be spoken to first."""
        now, client = discord.utils.utcnow(), self._client()
        status = event.client_status.raw_status
        if (
            not self._settings.login_events
            or client is None
            or not self._presences.login(event.user_id, event.guild_id or 0, status, time.monotonic())
        ):
            return
        if not await self._bot.wants_login(Person(PLATFORM, "", str(event.user_id), ""), now, FLAP):
            self._count("discord_ignored_login")
            return
        try:
            user = client.get_user(event.user_id) or await client.fetch_user(event.user_id)
            channel = user.dm_channel or await user.create_dm()
        except discord.HTTPException as refused:
            log.info("nobody to greet: refused with %d", refused.code)
            return
        # The same key for whoever sees it at the same time.
        key = f"login:{user.id}:{now.timestamp() // FLAP:.0f}"
        place = place_of(channel, channel.id, None, None)
        if await self._bot.receive(Incoming("login", person_of(user), place, key, now, addressed=False)):
            self._count("discord_login")

    async def on_error(self, event: str, *_: object, **__: object) -> None:
        """A handler raised; the dispatch's data is not looked at, as it holds what people say."""
        error = sys.exc_info()[1]
        self._count("discord_handler_failed")
        log.error("the dispatch %s could not be handled: %s", event, type(error).__name__, exc_info=error)
