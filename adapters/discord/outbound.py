"""What goes out: sending, looking up what was perhaps sent, typing, and what a refusal means."""

from __future__ import annotations

import asyncio
import logging
import time
import zlib
from collections import OrderedDict
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import AbstractAsyncContextManager, asynccontextmanager, contextmanager, suppress
from dataclasses import replace
from typing import Any

import aiohttp
import discord

from adapters.base import Answer, Outgoing, TryLater, Undeliverable, Unreachable
from adapters.discord import buttons

log = logging.getLogger(__name__)

TYPING_EVERY = 8.0
TYPING_AFTER = 0.2
"""Seconds of work before typing shows: an answer that is there at once needs no sign, and gets out sooner without one."""
REMEMBERED = 5_000
LOOK_BACK = 50
"""Messages of a channel that are looked at for one that was perhaps sent."""
AWAY = 2.0
"""Seconds to wait while there is no client, or Discord does not say how long."""

PERSON_GONE = frozenset((50007, 50278, 50001, 10013))
"""Codes that mean the person in a direct message (closed, no guild in common, no access, no user): nothing more is tried until they write."""
GONE_MESSAGE = frozenset((10008, 30046, 50005))
"""Codes of an edit that mean that the message is not there to be edited any more: deleted, or edited too often."""
SLOW_DOWN = {40003: 60.0, 20016: 10.0, 40062: 10.0, 130000: 30.0}
"""Codes that ask for patience, and for how much where the answer does not say."""
NO_HISTORY = 160002


def nonce_of(outgoing: Outgoing) -> str:
    """The message's own mark (at most 25 characters): Discord sends nothing twice with the same one within minutes.

    It holds a checksum too, because a database that begins anew begins with the same numbers: of the text, or where that grows of the
    message that is answered.
    """
    own = f"{outgoing.channel} {outgoing.reply_to}" if outgoing.streamed else outgoing.text
    return f"{_base36(outgoing.outbox_id)}-{zlib.crc32(own.encode('utf-8', 'replace')):08x}"


def _base36(number: int) -> str:
    digits = ""
    while number or not digits:
        number, digit = divmod(number, 36)
        digits = "0123456789abcdefghijklmnopqrstuvwxyz"[digit] + digits
    return digits


def shown_of(outgoing: Outgoing) -> dict[str, Any]:
    """What a message is sent with: its text, whom alone it may notify, its buttons. To be called in the event loop."""
    shown: dict[str, Any] = {"content": outgoing.text}
    if outgoing.mention.isdecimal():
        person = discord.Object(int(outgoing.mention))
        shown["content"] = f"<@{outgoing.mention}> {outgoing.text}"
        shown["allowed_mentions"] = discord.AllowedMentions(everyone=False, roles=False, users=[person], replied_user=True)
    user = outgoing.made_for.rpartition(":")[2]
    if outgoing.buttons and user.isdecimal():
        shown["content"], view = buttons.shown(Answer(shown["content"], outgoing.buttons), int(user))
        shown |= {} if view is None else {"view": view}
    return shown


def meaning(error: discord.HTTPException) -> Exception | None:
    """What a refusal means for the outbox; None: nobody knows whether it was done."""
    if error.status == 429 or error.code in SLOW_DOWN:
        return TryLater(_asked(error) or SLOW_DOWN.get(error.code, 60.0))
    if error.status == 401:
        return TryLater(60.0)  # the token was reset; the connection says so
    if error.code in PERSON_GONE:
        return Unreachable(f"Discord refuses it ({error.status}, code {error.code})")
    if 400 <= error.status < 500:
        return Undeliverable(f"Discord refuses it ({error.status}, code {error.code})")
    return None


def _asked(error: discord.HTTPException) -> float | None:
    with suppress(ValueError, TypeError):
        return float(error.response.headers.get("Retry-After", ""))
    return None


@contextmanager
def _understood() -> Iterator[None]:
    """Discord's refusals as the contract has them; what is left means that nobody knows whether it was done."""
    try:
        yield
    except discord.RateLimited as error:
        raise TryLater(error.retry_after) from error
    except discord.HTTPException as error:
        raise meaning(error) or error from error


class Outbound:
    """Sends through the present client."""

    def __init__(self, client: Callable[[], discord.Client | None]) -> None:
        self._client = client
        self._sent: OrderedDict[str, str] = OrderedDict()
        self._typing: dict[str, tuple[asyncio.Task[None], int]] = {}

    async def send(self, outgoing: Outgoing) -> str:
        """Send one message and return its id, as the contract says."""
        client = self._ready()
        nonce = nonce_of(outgoing)
        with _understood():
            sent = await self._post(client, outgoing, nonce, outgoing.reply_to)
        self._remember(nonce, str(sent.id))
        return str(sent.id)

    async def edit(self, outgoing: Outgoing, platform_id: str) -> None:
        """Give a message of ours another text."""
        where = self._ready().get_partial_messageable(int(outgoing.channel))
        with _understood():
            await where.get_partial_message(int(platform_id)).edit(content=outgoing.text)

    async def finish(self, outgoing: Outgoing, platform_id: str) -> str:
        """The final text of a message that grew; one that somebody deleted meanwhile is sent anew."""
        try:
            await self.edit(outgoing, platform_id)
        except Undeliverable as refused:
            cause = refused.__cause__
            if not isinstance(cause, discord.HTTPException) or cause.code not in GONE_MESSAGE:
                raise
            # Under another mark: the first one's belongs to the message that is gone.
            return await self.send(replace(outgoing, streamed=False))
        return platform_id

    async def _post(self, client: discord.Client, outgoing: Outgoing, nonce: str, reply_to: str | None) -> discord.Message:
        channel = int(outgoing.channel)
        where = client.get_partial_messageable(channel)
        known = client.get_channel(channel)
        pointer = None
        if reply_to and reply_to.isdigit() and known is not None and not isinstance(known, discord.DMChannel):
            pointer = discord.MessageReference(message_id=int(reply_to), channel_id=channel, fail_if_not_exists=False)
        shown = shown_of(outgoing)
        try:
            if pointer is None:
                return await where.send(nonce=nonce, **shown)
            return await where.send(nonce=nonce, reference=pointer, **shown)
        except discord.HTTPException as error:
            if error.code != NO_HISTORY or pointer is None:
                raise
        return await where.send(nonce=nonce, **shown)

    async def find(self, outgoing: Outgoing) -> str | None:
        """A message that was perhaps sent: by what the gateway told of it, else in the channel's history."""
        nonce = nonce_of(outgoing)
        if nonce in self._sent:
            return self._sent[nonce]
        client = self._ready()
        me = client.user.id if client.user else 0
        others = set(self._sent.values())
        after = discord.Object(int(outgoing.reply_to)) if outgoing.reply_to and outgoing.reply_to.isdigit() else None
        history = client.get_partial_messageable(int(outgoing.channel)).history(limit=LOOK_BACK, after=after, oldest_first=False)
        try:
            found = [one async for one in history if one.author.id == me and str(one.id) not in others]
        except discord.HTTPException as error:
            # Without a look the nonce still keeps Discord from sending it twice, if it is not too late for that.
            if meaning(error) is None:
                raise
            return None
        marked = [one for one in found if str(one.nonce or "") == nonce]
        # The history does not always name the nonce; then it is the same text after the message that it answers.
        same = [one for one in found if after is not None and one.nonce is None and one.content == shown_of(outgoing)["content"]]
        return str((marked or same)[0].id) if marked or same else None

    def seen(self, message: discord.Message) -> None:
        """The gateway told of a message of ours."""
        if message.nonce:
            self._remember(str(message.nonce), str(message.id))

    def _remember(self, nonce: str, message_id: str) -> None:
        self._sent[nonce] = message_id
        while len(self._sent) > REMEMBERED:
            self._sent.popitem(last=False)

    def _ready(self) -> discord.Client:
        client = self._client()
        if client is None or client.user is None or client.is_closed():
            raise TryLater(AWAY)
        return client

    def working(self, channel: str) -> AbstractAsyncContextManager[None]:
        """Typing shows in the channel as long as any context for it is open."""

        @asynccontextmanager
        async def shown() -> AsyncIterator[None]:
            task, users = self._typing.get(channel, (None, 0))
            task = task or asyncio.create_task(self._type(channel), name="typing")
            self._typing[channel] = task, users + 1
            try:
                yield
            finally:
                task, users = self._typing[channel]
                if users > 1:
                    self._typing[channel] = task, users - 1
                else:
                    del self._typing[channel]
                    task.cancel()

        return shown()

    async def _type(self, channel: str) -> None:
        await asyncio.sleep(TYPING_AFTER)
        while True:
            began = time.monotonic()
            # Nobody misses it: what fails here must not end the turn.
            with suppress(TryLater, discord.DiscordException, aiohttp.ClientError, OSError):
                await self._ready().get_partial_messageable(int(channel)).typing()
            await asyncio.sleep(max(0.0, TYPING_EVERY - (time.monotonic() - began)))
