"""The words of others that come along with a message: each under its author, never as the person's own."""

from __future__ import annotations

import logging
from collections import OrderedDict
from collections.abc import Iterable
from typing import Literal

import discord

from adapters.base import Quote
from adapters.discord.names import author_id, names_in
from adapters.discord.texts import Names, readable
from adapters.files import File, described

log = logging.getLogger(__name__)

CHAIN = 4
"""Messages of a reply chain."""
LONG, SHORT = 2000, 500
"""Characters of a message that is pointed at, and of one that only stood around."""
REMEMBERED = 20_000


class Quotes:
    """Gathers them, and remembers how far each person's agent has seen a channel, so that nothing comes along twice."""

    def __init__(self, around: int, *, reads_content: bool) -> None:
        self._around = around if reads_content else 0
        self._seen: OrderedDict[tuple[int, int], int] = OrderedDict()

    async def of(self, message: discord.Message, me: int) -> tuple[Quote, ...]:
        """The thread's starter, the messages before, the reply chain, what was forwarded; oldest first within each."""
        if message.guild is None:
            chain = await _chain(message)
            return (*_quoted(chain, "reply", LONG, me), *forwarded(message))
        key = message.channel.id, message.author.id
        seen = self._seen.get(key)
        starter = [] if seen else await _starter(message)
        chain = await _chain(message)
        named = {one.id for one in [*starter, *chain]}
        around = [
            one for one in await self._before(message, seen or 0) if one.id not in named and not _in_queue(one, message, me)
        ]
        self._remember(key, message.id)
        return (
            *_quoted(starter, "starter", LONG, me),
            *_quoted(around, "context", SHORT, me),
            *_quoted(chain, "reply", LONG, me),
            *forwarded(message),
        )

    async def _before(self, message: discord.Message, seen: int) -> list[discord.Message]:
        if not self._around:
            return []
        try:
            found = [one async for one in message.channel.history(limit=self._around, before=message)]
        except discord.HTTPException as error:
            log.info("no context: history refused with %d", error.code)
            return []
        return [one for one in reversed(found) if one.id > seen]

    def _remember(self, key: tuple[int, int], message_id: int) -> None:
        self._seen[key] = max(message_id, self._seen.get(key, 0))
        self._seen.move_to_end(key)
        while len(self._seen) > REMEMBERED:
            self._seen.popitem(last=False)


def _in_queue(one: discord.Message, message: discord.Message, me: int) -> bool:
    """Whether the person's agent has it already: what they said to the bot, and what it answered them."""
    if one.author.id == message.author.id:
        return any(user.id == me for user in one.mentions) or _replies_to(one, me)
    return one.author.id == me and _replies_to(one, message.author.id)


def _replies_to(one: discord.Message, author: int) -> bool:
    resolved = one.reference.resolved if one.reference else None
    return isinstance(resolved, discord.Message) and resolved.author.id == author


async def _chain(message: discord.Message) -> list[discord.Message]:
    """What a message replies to, and what that replied to, oldest first."""
    chain: list[discord.Message] = []
    while len(chain) < CHAIN and (parent := await _replied_to(message)) is not None:
        chain.append(parent)
        message = parent
    return chain[::-1]


async def _replied_to(message: discord.Message) -> discord.Message | None:
    pointer = message.reference
    if pointer is None or pointer.type is not discord.MessageReferenceType.reply or pointer.message_id is None:
        return None
    if isinstance(pointer.resolved, discord.Message):
        return pointer.resolved
    if isinstance(pointer.resolved, discord.DeletedReferencedMessage) or pointer.channel_id != message.channel.id:
        return None
    return pointer.cached_message or await _fetched(message.channel, pointer.message_id)


async def _starter(message: discord.Message) -> list[discord.Message]:
    """The message that a thread hangs on; it has the thread's id. Of a forum's post it is the first message in the thread."""
    thread = message.channel
    if not isinstance(thread, discord.Thread) or message.id == thread.id:
        return []
    forum = isinstance(thread.parent, discord.ForumChannel)
    where = thread if forum or thread.parent is None else thread.parent
    if isinstance(where, discord.ForumChannel) or thread.is_private():
        return []
    found = thread.starter_message or await _fetched(where, thread.id)
    return [found] if found else []


async def _fetched(channel: discord.abc.Messageable, message_id: int) -> discord.Message | None:
    try:
        return await channel.fetch_message(message_id)
    except discord.HTTPException:
        return None  # deleted, or not ours to read


def _quoted(found: Iterable[discord.Message], kind: Literal["reply", "context", "starter"], longest: int, me: int) -> list[Quote]:
    quotes = []
    for one in found:
        if text := seen_text(one, names_in(one), me)[:longest]:
            origin = f"{one.channel.id}/{one.id}"
            who = author_id(one.author.id), one.author.display_name
            quotes.append(Quote(*who, text, kind, origin, one.created_at, one.author.id == me))
    return quotes


def seen_text(seen: discord.Message | discord.MessageSnapshot, names: Names, me: int) -> str:
    """A message of somebody else as text: its words, and in a line each what came with them."""
    lines = [readable(seen.content, names, me=me), *besides(seen), *(described(file_of(one)) for one in seen.attachments)]
    # What a program says often stands in embeds alone; under words they are mostly previews of links.
    if not any(lines):
        lines = [part for one in seen.embeds for part in (one.title, one.description) if part]
    if isinstance(seen, discord.Message):
        lines += [f"[forwards: {text}]" for one in seen.message_snapshots if (text := seen_text(one, names, me))]
    return "\n".join(line for line in lines if line)


def besides(seen: discord.Message | discord.MessageSnapshot) -> list[str]:
    """Stickers and a poll, in a line each."""
    poll = seen.poll if isinstance(seen, discord.Message) else None
    return [*(f"[sticker {one.name}]" for one in seen.stickers), *([f"[poll: {poll.question}]"] if poll else ())]


def forwarded(message: discord.Message) -> list[Quote]:
    """What was forwarded; Discord does not say by whom it was written."""
    names = names_in(message)
    texts = [seen_text(one, names, 0)[:LONG] for one in message.message_snapshots]
    return [Quote("", "somebody elsewhere", text, "forward") for text in texts if text]


def file_of(attachment: discord.Attachment) -> File:
    """An attachment as a value."""
    return File(attachment.filename, attachment.size, attachment.url, attachment.content_type)
