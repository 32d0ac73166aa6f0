"""Messages, edits, deletions and joins on their way in: each channel in order, channels side by side."""

from __future__ import annotations

import logging
from collections.abc import Callable
from datetime import UTC, datetime, timedelta

import discord

from adapters.base import Bot, Changed, Incoming
from adapters.discord import files
from adapters.discord.commands import show
from adapters.discord.names import PLATFORM, names_in, person_of, place_of
from adapters.discord.quotes import Quotes, besides, file_of
from adapters.discord.settings import Settings
from adapters.discord.texts import readable
from adapters.guard import IN_WINDOW, SINCE_HUMAN, WINDOW, PairGuard
from adapters.triggers import Author, Facts, Heard, decide
from adapters.turnstile import Turnstile

log = logging.getLogger(__name__)

ORDINARY = frozenset((discord.MessageType.default, discord.MessageType.reply))
LATE_MENTION = timedelta(hours=1)
"""How old a message may be that is edited to address the bot."""


class Inbound:
    """Takes in what concerns the bot. `count` is told the reason of every decision."""

    def __init__(self, settings: Settings, bot: Bot, count: Callable[[str], None]) -> None:
        self._settings, self._bot, self._count = settings, bot, count
        self._quotes = Quotes(settings.context_messages, reads_content=settings.message_content)
        self._guard = PairGuard()
        self._people_in: set[str] = set()
        self._hidden_told = False
        self.turnstile = Turnstile()

    async def take(self, message: discord.Message, me: int) -> None:
        """One message, in its channel's turn. Returns when it is in the inbox, or when it need not be."""
        decision = decide(facts_of(message, me), self._settings.rules)
        channel = str(message.channel.id)
        if not message.author.bot:
            self._guard.person(channel)
            self._people_in.add(channel)
        elif decision.kind != "ignore" and await self._loops(message):
            decision = Heard("ignore", "bot_loop")
        if decision.kind != "ignore" and await self._spent(message):
            decision = Heard("ignore", "daily_limit")
            await self._tell_spent(message)
        if decision.kind == "ignore":
            self._ignored(decision.reason)
            return
        if message.guild is None and await self._command(message):
            self._count("discord_typed_command")
            return
        if await self._bot.receive(await self._incoming(message, me, addressed=decision.kind == "answer")):
            self._count(f"discord_{decision.reason}")

    async def _command(self, message: discord.Message) -> bool:
        """Whether what stands in a direct message is a command line, pasted or typed as text; then it was run and answered."""
        line = message.content.strip()
        if not line.startswith("/") or message.author.bot:
            return False
        place = place_of(message.channel, message.channel.id, None, None)
        answer = await self._bot.command(person_of(message.author), place, line)
        if answer is None:  # a path or a smiley
            return False
        try:
            await show(message.channel.send, answer, message.author.id)
        except (discord.DiscordException, OSError) as error:
            log.info("nobody could be told what a command did: %s", type(error).__name__)
        return True

    async def _loops(self, message: discord.Message) -> bool:
        """Whether an allowed bot has been answered often enough: by what this process saw, and by what any process took in."""
        channel, at = str(message.channel.id), message.created_at
        if not self._guard.bot(channel, str(message.author.id), at.timestamp()):
            return True
        since = at - timedelta(seconds=WINDOW)
        taken = await self._bot.taken(person_of(message.author), "message", since, channel)
        return taken >= (IN_WINDOW if channel in self._people_in else SINCE_HUMAN)

    async def _spent(self, message: discord.Message) -> bool:
        """Whether nothing more is taken of this person today (UTC)."""
        limit = self._settings.daily_limit
        today = datetime.now(UTC).replace(hour=0, minute=0, second=0, microsecond=0)
        return limit > 0 and await self._bot.taken(person_of(message.author), "message", today) >= limit

    async def _incoming(self, message: discord.Message, me: int, *, addressed: bool) -> Incoming:
        return Incoming(
            "message",
            person_of(message.author),
            place_of(message.channel, message.channel.id, message.guild, None),
            key=str(message.id),
            at=message.created_at,
            text=await self._text(message, me),
            message_id=str(message.id),
            addressed=addressed,
            quotes=await self._quotes.of(message, me),
            images=await files.seen([file_of(one) for one in message.attachments], self._settings.image_bytes),
        )

    async def _text(self, message: discord.Message, me: int) -> str:
        """The person's own words, and what they attached."""
        lines = [readable(message.content, names_in(message), me=me)]
        lines += besides(message)
        lines += await files.told([file_of(one) for one in message.attachments], self._settings.attachment_bytes)
        lines += ["(forwards a message)"] if message.message_snapshots and not any(lines) else []
        return "\n".join(line for line in lines if line)

    def _ignored(self, reason: str) -> None:
        self._count(f"discord_ignored_{reason}")
        if reason == "content_hidden" and not self._hidden_told:
            self._hidden_told = True
            log.warning(
                "Discord hides the text of messages that do not mention the bot: threads are not followed. Switch the message content "
                "intent on in the developer portal and set discord.message_content, or set discord.threads to false."
            )

    async def _tell_spent(self, message: discord.Message) -> None:
        if line := await self._bot.tell_limit(person_of(message.author), datetime.now(UTC)):
            try:
                await message.channel.send(line)
            except (discord.DiscordException, OSError) as error:
                log.info("nobody could be told of the daily limit: %s", type(error).__name__)

    async def edited(self, event: discord.RawMessageUpdateEvent, me: int) -> None:
        """An edit by a person; unfurled links and pins are none. One that first addresses the bot is taken like a new message."""
        message = event.message
        if not event.data.get("edited_timestamp") or message.author.bot:
            return
        known = event.cached_message
        if known is not None and (known.content, known.attachments) == (message.content, message.attachments):
            return
        if not message.content and not self._settings.message_content and message.guild is not None:
            return  # hidden from us, not emptied
        now = datetime.now(UTC)
        await self.corrected(message, me)
        late = message.created_at <= now - LATE_MENTION
        if message.guild is not None and not late and decide(facts_of(message, me), self._settings.rules).kind == "answer":
            await self.take(message, me)

    async def corrected(self, message: discord.Message, me: int) -> None:
        """A message has another text now; where it has still the same nothing comes of it."""
        ids, text = (str(message.id),), await self._text(message, me)
        await self._bot.changed(Changed(PLATFORM, "", str(message.channel.id), ids, text, datetime.now(UTC)))
        self._count("discord_edited")

    async def deleted(self, channel: int, messages: set[int]) -> None:
        """Messages are gone, by whose hand does not matter."""
        ids = tuple(str(one) for one in sorted(messages))
        mark = self._settings.mark_deleted
        await self._bot.changed(Changed(PLATFORM, "", str(channel), ids, None, datetime.now(UTC), mark=mark))
        self._count("discord_deleted")

    async def channel_deleted(self, channel: int) -> None:
        """A channel is gone, with its threads: as if each message had been deleted."""
        mark = self._settings.mark_deleted
        await self._bot.changed(Changed(PLATFORM, "", str(channel), None, None, datetime.now(UTC), mark=mark))
        self._count("discord_deleted")

    async def joined(self, member: discord.Member) -> None:
        """Somebody new, where the operator named a channel of that guild for it."""
        channels = [one for one in member.guild.text_channels if str(one.id) in self._settings.join_channels]
        if member.bot or not channels:
            return
        joined = member.joined_at or datetime.now(UTC)
        key = f"join:{member.guild.id}:{member.id}:{joined.isoformat()}"
        place = place_of(channels[0], channels[0].id, member.guild, None)
        await self._bot.receive(Incoming("join", person_of(member), place, key, joined, addressed=False))


def facts_of(message: discord.Message, me: int) -> Facts:
    """What counts of a message."""
    author: Author = "person"
    if message.author.id == me:
        author = "myself"
    elif message.webhook_id is not None and message.type is not discord.MessageType.chat_input_command:
        author = "webhook"
    elif message.author.bot:
        author = "bot"
    replied = message.reference.resolved if message.reference else None
    reply_to_me = isinstance(replied, discord.Message) and replied.author.id == me and message.type is discord.MessageType.reply
    thread = message.channel if isinstance(message.channel, discord.Thread) else None
    named = any(user.id == me for user in message.mentions)
    return Facts(
        author=author,
        author_id=str(message.author.id),
        ordinary=message.type in ORDINARY,
        direct=message.guild is None,
        workspace=str(message.guild.id) if message.guild else "",
        channel=str(message.channel.id),
        parent=str(thread.parent_id) if thread else "",
        mentioned=named and (not reply_to_me or me in message.raw_mentions),
        mass_mention=message.mention_everyone or bool(message.raw_role_mentions),
        reply_to_me=reply_to_me,
        my_thread=thread is not None and (thread.me is not None or thread.owner_id == me),
        readable=bool(message.content or message.attachments or message.stickers or message.poll or message.message_snapshots),
    )
