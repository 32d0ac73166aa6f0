"""What was missed while nobody listened: the channels' histories after the last message seen, through the same way in.

Needed after a crash and after a session that Discord does not resume. Whatever was taken before is known to the inbox by its key, so
reading too much costs requests and nothing else. Of the messages that are kept, those that are gone from the part of the history that
is read were deleted meanwhile, and edited ones are corrected.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Iterable
from datetime import UTC, datetime, timedelta

import discord

from adapters.base import Bot, Newest, PlaceOf
from adapters.discord.names import PLATFORM
from adapters.discord.settings import Settings

log = logging.getLogger(__name__)

CHANNELS = 200
"""The most channels that are caught up at once, those of the latest messages first."""
AT_ONCE = 5
AGAIN = 5.0
"""Seconds until a channel whose history could not be read is tried again."""


class CatchUp:
    """Knows the newest message handled in each channel, and which channels have a gap behind it.

    `take`, `corrected` and `deleted` are the way in: a message, a message with perhaps another text, messages that are gone.
    """

    def __init__(
        self,
        settings: Settings,
        bot: Bot,
        take: Callable[[discord.Message], Awaitable[None]],
        corrected: Callable[[discord.Message], Awaitable[None]],
        deleted: Callable[[int, set[int]], Awaitable[None]],
    ) -> None:
        self._bot, self._corrected, self._deleted = bot, corrected, deleted
        self._limit = settings.catch_up_messages
        self._age = timedelta(hours=settings.catch_up_hours)
        self._take = take
        self._newest: dict[int, int] = {}
        self._direct: set[int] = set()
        self._stale: set[int] = set()
        self._wake = asyncio.Event()
        self._horizon = 0

    def load(self, known: Iterable[Newest]) -> None:
        """What an earlier process took in."""
        for one in known:
            channel, message = int(one.channel), int(one.message_id)
            self._newest[channel] = max(message, self._newest.get(channel, 0))
            if not one.workspace:
                self._direct.add(channel)

    def handled(self, message: discord.Message) -> None:
        """A message was dealt with, taken or not. Where a gap is still open nothing is moved on."""
        channel = message.channel.id
        if message.guild is None:
            self._direct.add(channel)
        if channel not in self._stale:
            self._newest[channel] = max(message.id, self._newest.get(channel, 0))

    def behind(self, channel: int) -> bool:
        """Whether a channel has to be caught up before its next message."""
        return channel in self._stale

    def missed(self, channel: int, message_id: int) -> None:
        """A message could not be taken in: its channel is read again from there."""
        self._newest[channel] = min(message_id - 1, self._newest.get(channel, message_id - 1))
        self._stale.add(channel)

    def new_session(self) -> None:
        """Whatever was sent since the last dispatch was not heard."""
        latest = sorted(self._newest, key=lambda channel: -self._newest[channel])[:CHANNELS] if self._limit else []
        self._stale |= set(latest)
        self._horizon = max(self._newest.values(), default=0)

    def look_around(self, client: discord.Client) -> None:
        """Channels of guilds in which something was said since, though never to us before."""
        after = max(self._horizon, self._cutoff())
        if not self._horizon or not self._limit:
            return
        for guild in client.guilds:
            channels: list[discord.TextChannel | discord.VoiceChannel | discord.StageChannel | discord.Thread] = [
                *guild.text_channels, *guild.voice_channels, *guild.stage_channels, *guild.threads,
            ]  # fmt: skip
            for channel in channels:
                if (channel.last_message_id or 0) > after and channel.id not in self._newest:
                    self._newest[channel.id] = after
                    self._stale.add(channel.id)
        self._wake.set()

    async def run(self, client: Callable[[], discord.Client | None], turn: Callable[[int], Awaitable[None]]) -> None:
        """Catch up whatever is stale, whenever told to and every few seconds; `turn` does one channel in its turn."""
        while True:
            found = client()
            waiting = [*self._stale] if found is not None and found.is_ready() else []
            gate = asyncio.Semaphore(AT_ONCE)

            async def one(channel: int, gate: asyncio.Semaphore = gate) -> None:
                async with gate:
                    await turn(channel)

            for error in await asyncio.gather(*map(one, waiting), return_exceptions=True):
                if isinstance(error, Exception):
                    log.warning("a channel could not be caught up: %s", type(error).__name__)
            try:
                async with asyncio.timeout(AGAIN):
                    await self._wake.wait()
            except TimeoutError:
                pass
            self._wake.clear()

    async def channel(self, client: discord.Client, channel: int) -> None:
        """Read one channel's history after what is known; the caller holds the channel's turn."""
        if channel not in self._stale:
            return
        where = self._where(client, channel)
        after = max(self._newest.get(channel, 0), self._cutoff())
        if where is not None:
            try:
                found = [one async for one in where.history(limit=self._limit)]
            except (discord.Forbidden, discord.NotFound):
                found = []
            else:
                await self._compare(where, channel, found)
            missed = [message for message in reversed(found) if message.id > after]
            for message in missed:
                await self._take(message)
                self._newest[channel] = max(message.id, self._newest.get(channel, 0))
            if missed:
                log.info("caught up %d messages of a channel", len(missed))
        self._stale.discard(channel)

    async def _compare(self, where: discord.abc.Messageable, channel: int, found: list[discord.Message]) -> None:
        """What is kept of the channel with the newest part of its history, newest first."""
        if not _sees_history(where):
            return  # Discord shows an empty one then
        kept = await self._bot.kept(PlaceOf(PLATFORM, "", "", str(channel), "private"), self._limit)
        known = {int(one) for one in kept if one.isdecimal()}
        oldest = found[-1].id if len(found) >= self._limit else 0
        gone = {one for one in known if one >= oldest} - {message.id for message in found}
        if gone:
            log.info("%d messages of a channel were deleted meanwhile", len(gone))
            await self._deleted(channel, gone)
        recently = datetime.now(UTC) - self._age
        for message in found:
            if message.id in known and message.edited_at is not None and message.edited_at > recently and message.content:
                await self._corrected(message)

    def _where(self, client: discord.Client, channel: int) -> discord.abc.Messageable | None:
        found = client.get_channel(channel)
        if found is None and channel in self._direct:
            return client.get_partial_messageable(channel, type=discord.ChannelType.private)
        return found if isinstance(found, discord.abc.Messageable) else None

    def _cutoff(self) -> int:
        return discord.utils.time_snowflake(datetime.now(UTC) - self._age)


def _sees_history(where: discord.abc.Messageable) -> bool:
    if isinstance(where, discord.TextChannel | discord.Thread | discord.VoiceChannel | discord.StageChannel):
        return where.permissions_for(where.guild.me).read_message_history
    return True
