"""What was missed while nobody listened: the channels' histories after the last message heard, through the same way in.

Needed after a crash and after a session that Discord does not resume. Up to where everything was heard is kept in the database and stays
there until every gap behind it was read, so neither a new message nor another crash hides what was said before. Whatever was taken is
known to the inbox by its key: reading too much costs requests and nothing else. Of the messages that are kept, those that are gone from
the part of the history that is read were deleted meanwhile, and edited ones are corrected. What no guild lists, archived threads and deleted
channels, is asked for by itself.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections import Counter, deque
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from typing import NamedTuple

import discord

from adapters.base import Bot, PlaceOf
from adapters.discord.names import PLATFORM
from adapters.discord.settings import Settings

log = logging.getLogger(__name__)

PAGE = 100
"""The most messages that Discord gives at once."""
AT_ONCE = 5
PER_SECOND = 25
"""How many channels are begun in a second: half of what Discord allows a bot in all, so that replies have room."""
AGAIN = 4.0
"""Seconds until a channel whose history could not be read is tried again."""
ROUND = int(PER_SECOND * AGAIN)
"""How many channels are read before it is asked which are the most urgent now."""
UNLISTED = 200
"""Of so many channels that no guild lists, after one gap, it is asked what became of them: those with the newest messages."""
UNKNOWN_CHANNEL = 10003
REFUSALS, REFUSED_FOR = 100, 600.0
"""The most refusals in so many seconds; after 10,000 in ten minutes Discord bans the address. Nothing more is read meanwhile."""
MARGIN = 300_000 << 22
"""Five minutes in snowflakes: Discord's servers, and the shards, do not tell of messages in the exact order of their ids."""


class Past(NamedTuple):
    """The newest part of a channel's history, newest first. `whole`: there is nothing before; `more`: at the bound of messages was more."""

    messages: list[discord.Message]
    whole: bool = False
    more: bool = False


class CatchUp:
    """Knows up to where each channel was heard, and which channels have a gap behind that.

    `take`, `corrected`, `deleted` and `vanished` are the way in: a message, a message with perhaps another text, messages that are gone, a
    channel that is.
    """

    def __init__(
        self,
        settings: Settings,
        bot: Bot,
        take: Callable[[discord.Message], Awaitable[None]],
        corrected: Callable[[discord.Message], Awaitable[None]],
        deleted: Callable[[int, set[int]], Awaitable[None]],
        vanished: Callable[[int], Awaitable[None]],
        count: Callable[[str], None],
    ) -> None:
        self._bot, self._take, self._corrected, self._count = bot, take, corrected, count
        self._deleted, self._vanished = deleted, vanished
        # What other processes have heard on their connections says nothing about ours.
        self._listener = f"{PLATFORM} {settings.shards}" if settings.shards else PLATFORM
        self._limit = settings.catch_up_messages
        self._age = timedelta(hours=settings.catch_up_hours)
        self._marks: dict[int, int] = {}
        self._guilds: dict[int, int] = {}  # of each channel with a mark; 0: a direct message
        self._stale: dict[int, int] = {}  # channels with a gap, and since which session
        self._tries: Counter[int] = Counter()
        self._refused: set[int] = set()  # channels that were asked for in vain; until somebody writes there
        self._refusals: deque[float] = deque(maxlen=REFUSALS)
        self._session = self._unlisted = 0
        self._looked: set[int] = set()  # guilds whose channels are known in this session
        self._listing = False
        self._at_work: list[int] = []
        self._last = self._heard = self._saved = 0
        self._wake = asyncio.Event()

    async def load(self) -> None:
        """What an earlier process heard."""
        known = await self._bot.newest(PLATFORM)
        heard = await self._bot.heard(self._listener)
        self._heard = self._saved = int(heard) if heard else max((int(one.message_id or 0) for one in known), default=0)
        for one in known:
            channel, newest = int(one.channel), int(one.message_id or 0)
            # Nothing is said by a message kept after that: what came before it may be unread.
            self._marks[channel] = max(self._horizon, newest if newest <= self._heard else 0)
            self._guilds[channel] = int(one.workspace or 0)

    @property
    def _horizon(self) -> int:
        """From where a channel is read of which nothing is known."""
        return max(0, self._heard - MARGIN)

    @contextmanager
    def at_work(self, message: discord.Message) -> Iterator[None]:
        """While a message is being dealt with, nothing counts as heard from it on."""
        self._at_work.append(message.id)
        try:
            yield
        finally:
            self._at_work.remove(message.id)

    def handled(self, message: discord.Message) -> None:
        """A message was dealt with, taken or not. Where a gap is still open nothing is moved on."""
        channel = message.channel.id
        self._last = max(message.id, self._last)
        self._guilds[channel] = message.guild.id if message.guild else 0
        if channel not in self._stale:
            self._marks[channel] = max(message.id, self._marks.get(channel, 0))

    def behind(self, message: discord.Message) -> bool:
        """Whether a message's channel has to be caught up before it."""
        channel, guild = message.channel.id, message.guild.id if message.guild else 0
        self._refused.discard(channel)
        # Direct messages are told of by nobody, a guild's channels when the guild becomes known.
        if channel not in self._marks and guild not in self._looked:
            self._open(channel, guild)
        return channel in self._stale

    def missed(self, message: discord.Message) -> None:
        """A message could not be taken in: its channel is read again from there."""
        channel = message.channel.id
        self._guilds[channel] = message.guild.id if message.guild else 0
        self._marks[channel] = min(message.id - 1, self._marks.get(channel, message.id - 1))
        self._stale.setdefault(channel, self._session)

    def new_session(self) -> None:
        """Whatever was sent since the last dispatch was not heard."""
        self._heard = self._heard or discord.utils.time_snowflake(datetime.now(UTC))  # the first session of all
        if self._limit:
            self._advance()
            self._session += 1
            self._unlisted = 0
            self._listing = True
            self._looked.clear()
            self._tries.clear()
            self._stale = dict.fromkeys(self._marks, self._session)

    def look_around(self, guild: discord.Guild) -> None:
        """Channels of a guild in which something was said since, though never to us before."""
        channels: list[discord.TextChannel | discord.VoiceChannel | discord.StageChannel | discord.Thread] = [
            *guild.text_channels,
            *guild.voice_channels,
            *guild.stage_channels,
            *guild.threads,
        ]
        for channel in channels:
            if channel.id not in self._marks and (channel.last_message_id or 0) > max(self._horizon, self._cutoff()):
                self._open(channel.id, guild.id)
        self._looked.add(guild.id)

    def joined(self, guild: discord.Guild) -> None:
        """The bot is new in a guild: what was said there before was not said to it."""
        self._looked.add(guild.id)

    def ready(self, client: discord.Client) -> None:
        """The session is whole: every guild is known that Discord has at present."""
        for guild in client.guilds:
            if not guild.unavailable:
                self.look_around(guild)
        self._listing = False
        self._wake.set()

    def _open(self, channel: int, guild: int) -> None:
        if self._limit:
            self._marks[channel], self._guilds[channel] = self._horizon, guild
            self._stale[channel] = self._session

    async def run(self, client: Callable[[], discord.Client | None], turn: Callable[[int], Awaitable[None]]) -> None:
        """Catch up whatever is stale, whenever told to and every few seconds; `turn` does one channel in its turn."""
        while True:
            found = client()
            waiting = self._next() if found is not None and found.is_ready() else []
            gate = asyncio.Semaphore(AT_ONCE)

            async def one(number: int, channel: int, gate: asyncio.Semaphore = gate) -> None:
                await asyncio.sleep(number / PER_SECOND)
                async with gate:
                    await turn(channel)

            tasks = [one(number, channel) for number, channel in enumerate(waiting)]
            for error in await asyncio.gather(*tasks, self._save(found), return_exceptions=True):
                if isinstance(error, Exception):
                    log.warning("a channel could not be caught up: %s", type(error).__name__)
            if len(waiting) == ROUND:
                continue  # that took as long already
            try:
                async with asyncio.timeout(AGAIN):
                    await self._wake.wait()
            except TimeoutError:
                pass
            self._wake.clear()

    def _next(self) -> list[int]:
        """The channels to read now: those with the newest messages first, and first those that were not tried before."""
        if len(self._refusals) == REFUSALS and time.monotonic() - self._refusals[0] < REFUSED_FOR:
            return []
        waiting = sorted(self._stale, key=lambda channel: (self._tries[channel], -self._marks[channel]))[:ROUND]
        self._tries.update(waiting)
        return waiting

    def _advance(self) -> None:
        """Everything is heard up to the last message, but for what is being dealt with; nothing while a gap is open."""
        if not self._stale and not self._listing:
            self._heard = max(self._heard, min(self._at_work) - 1 if self._at_work else self._last)

    async def _save(self, client: discord.Client | None) -> None:
        """Tell the next process from where to listen."""
        if client is None or any(guild.unavailable for guild in client.guilds):
            return  # nobody knows what was said there
        self._advance()
        if self._heard > self._saved:
            heard = self._heard
            await self._bot.hear(self._listener, str(heard))
            self._saved = heard

    async def channel(self, client: discord.Client, channel: int) -> None:
        """Read one channel's history after what is known; the caller holds the channel's turn."""
        session, guild = self._stale.get(channel), client.get_guild(self._guilds.get(channel, 0))
        if session is None or (guild is not None and guild.unavailable):
            return
        where = await self._where(client, guild, channel)
        if where is not None:
            await self._read(where, channel)
        if self._stale.get(channel) == session:  # else there was another gap meanwhile
            del self._stale[channel]
            del self._tries[channel]

    async def _read(self, where: discord.abc.Messageable, channel: int) -> None:
        heard = max(self._marks[channel], self._heard)
        try:
            past = await self._past(where, channel, heard)
        except (discord.Forbidden, discord.NotFound) as refused:
            self._refused.add(channel)
            if refused.status == 403:
                self._refusals.append(time.monotonic())
            return self._unreadable(channel, f"Discord refuses with {refused.code}")
        await self._compare(channel, past)
        await self._take_up(channel, past)
        self._tell(channel, past, heard)
        return None

    def _unreadable(self, channel: int, why: str) -> None:
        self._count("discord_missed_unreadable")
        log.info("channel %d: what was missed there cannot be read: %s", channel, why)

    async def _past(self, where: discord.abc.Messageable, channel: int, heard: int) -> Past:
        """A page of a channel's history at least, and on to what is known or to one of the operator's bounds."""
        messages: list[discord.Message] = []
        after = max(self._marks[channel], self._cutoff())
        async for message in where.history(limit=self._limit + 1):  # asks for a page when it is come to
            if len(messages) == self._limit:
                return Past(messages, more=message.id > heard)
            messages.append(message)
            if message.id <= after and len(messages) % PAGE == 0:
                return Past(messages)
        return Past(messages, whole=True)

    def _tell(self, channel: int, past: Past, heard: int) -> None:
        """Of what was missed beyond the operator's bounds, which nobody answers."""
        cutoff = self._cutoff()
        if old := sum(heard < message.id <= cutoff for message in past.messages):
            self._count("discord_missed_too_old")
            log.warning("channel %d: %d or more messages were missed longer ago than discord.catch_up_hours", channel, old)
        if past.more:
            self._count("discord_missed_too_many")
            log.warning("channel %d: more messages were missed than discord.catch_up_messages (%d)", channel, self._limit)

    async def _take_up(self, channel: int, past: Past) -> None:
        """Take in what was missed, oldest first."""
        after = max(self._marks[channel], self._cutoff())
        missed = [message for message in reversed(past.messages) if message.id > after]
        for message in missed:
            await self._take(message)
            self._marks[channel] = message.id
            self._last = max(message.id, self._last)
        if missed:
            log.info("caught up %d messages of channel %d", len(missed), channel)

    async def _compare(self, channel: int, past: Past) -> None:
        """What is kept of the channel with what was read of its history."""
        kept = await self._bot.kept(PlaceOf(PLATFORM, "", "", str(channel), "private"), self._limit)
        known = {int(one) for one in kept if one.isdecimal()}
        oldest = 0 if past.whole else min((message.id for message in past.messages), default=0)
        gone = {one for one in known if one >= oldest} - {message.id for message in past.messages}
        if gone:
            log.info("%d messages of a channel were deleted meanwhile", len(gone))
            await self._deleted(channel, gone)
        recently = datetime.now(UTC) - self._age
        for message in past.messages:
            if message.id in known and message.edited_at is not None and message.edited_at > recently and message.content:
                await self._corrected(message)

    async def _where(self, client: discord.Client, guild: discord.Guild | None, channel: int) -> discord.abc.Messageable | None:
        """The channel; None where there is nothing to read, or where asking would be refused."""
        if channel in self._refused:
            return None
        if not self._guilds[channel]:
            return client.get_partial_messageable(channel, type=discord.ChannelType.private)
        if guild is None:
            return None
        found = guild.get_channel_or_thread(channel) or await self._ask(guild, channel)
        if not isinstance(found, discord.TextChannel | discord.VoiceChannel | discord.StageChannel | discord.Thread) or not _seen(
            found
        ):
            return None
        if not found.permissions_for(found.guild.me).read_message_history:
            self._unreadable(channel, "the bot lacks the permission to read message history")  # Discord shows an empty one
            return None
        return found

    async def _ask(self, guild: discord.Guild, channel: int) -> object:
        """A channel that its guild does not list: an archived thread, or None; one that was deleted meanwhile is told of."""
        if self._unlisted == UNLISTED:
            return None
        self._unlisted += 1
        try:
            return await guild.fetch_channel(channel)
        except discord.NotFound as refused:
            if refused.code == UNKNOWN_CHANNEL:
                log.info("a channel was deleted meanwhile")
                await self._vanished(channel)
        except (discord.Forbidden, discord.InvalidData):
            pass
        self._refused.add(channel)
        return None

    def _cutoff(self) -> int:
        return discord.utils.time_snowflake(datetime.now(UTC) - self._age)


def _seen(channel: discord.TextChannel | discord.VoiceChannel | discord.StageChannel | discord.Thread) -> bool:
    """Whether the bot sees a channel; of those it does not, Discord tells, too."""
    may = channel.permissions_for(channel.guild.me)
    if isinstance(channel, discord.VoiceChannel | discord.StageChannel):
        return may.view_channel and may.connect
    if isinstance(channel, discord.Thread) and channel.is_private():
        return may.view_channel and (channel.me is not None or may.manage_threads)
    return may.view_channel
