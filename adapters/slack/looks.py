"""What channels are now: told to the bot when Slack says that one changed, and compared at the start and every hour."""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager, suppress
from dataclasses import replace
from datetime import UTC, datetime

from slack_sdk.errors import SlackApiError

from adapters.base import Bot, Changed, PlaceKind, PlaceOf
from adapters.comparing import compare
from adapters.slack.inbound import Inbound
from adapters.slack.names import PLATFORM, Scope, place_of
from adapters.slack.rooms import Rooms, room_of
from adapters.slack.workspaces import Workspace, Workspaces, error_of
from adapters.slack.written import Written

log = logging.getLogger(__name__)

CONVERSIONS = ("channel_convert_to_private", "channel_convert_to_public")
"""Messages that say so."""
AT_START = 10.0
"""Seconds for which the first events wait for the first comparison; it goes on beside them."""
EVERY, AGAIN = 3600.0, 60.0
"""Seconds between two comparisons, and after one that Slack did not let come to its end."""
TYPES = "public_channel,private_channel,mpim"
PAGE = 999
BUSY = frozenset(("ratelimited", "internal_error", "fatal_error", "service_unavailable", "request_timeout"))
HIDDEN = "channel_not_found"


class Looks:
    """Keeps what is known of channels in step with Slack. `mark`: what was said in a deleted one is kept and marked."""

    def __init__(
        self, bot: Bot, workspaces: Workspaces, rooms: Rooms, inbound: Inbound, count: Callable[[str], None], *, mark: bool
    ) -> None:
        self._bot, self._workspaces, self._rooms, self._inbound, self._count = bot, workspaces, rooms, inbound, count
        self._mark = mark

    async def changed(self, written: Written) -> None:
        """An event said that something about a channel changed: what it is now is asked, and told for all its threads."""
        old = str(written.event.get("old_channel_id") or "")
        for channel in {written.channel, old} - {""}:
            self._rooms.forget(channel)
        async with self._inbound.turnstile.through((written.workspace.key, written.channel)):
            room = await self._inbound.room(written)
            for channel in {written.channel, old} - {""}:
                await self._tell(written.scope, channel, room.kind, room.name, room.workspace)
        self._count("slack_channel_changed")

    async def deleted(self, written: Written) -> None:
        """A channel is gone, with its threads: as if each message had been deleted."""
        async with self._inbound.turnstile.through((written.workspace.key, written.channel)):
            now = datetime.now(UTC)
            await self._bot.changed(Changed(PLATFORM, written.scope.realm, written.channel, None, None, now, mark=self._mark))
        self._rooms.forget(written.channel)
        self._count("slack_deleted")

    async def _tell(self, scope: Scope, channel: str, kind: PlaceKind | None, name: str, workspace: str) -> None:
        place = place_of(scope, channel, None, kind, name, "" if scope.team else workspace)
        if place.kind is not None:
            await self._bot.place_changed(place)

    @asynccontextmanager
    async def watching(self) -> AsyncIterator[None]:
        """Compare from time to time for as long as the context is open, which begins with a comparison."""
        first = asyncio.Event()
        task = asyncio.create_task(self._run(first), name="slack channels")
        try:
            with suppress(TimeoutError):
                async with asyncio.timeout(AT_START):
                    await first.wait()
            yield
        finally:
            task.cancel()

    async def _run(self, first: asyncio.Event) -> None:
        """Events are lost while the bot is away or cut off, and of some changes none comes."""
        while True:
            [failure] = await asyncio.gather(self.compare(), return_exceptions=True)
            if isinstance(failure, BaseException):
                self._count("slack_channels_not_compared")
                log.info("channels could not be compared: %s", type(failure).__name__)
            first.set()
            await asyncio.sleep(AGAIN if failure else EVERY)

    async def compare(self) -> None:
        """Compare the known channels with what Slack shows. Raises one of FAILURES when Slack cannot be asked at present."""
        for key in {known.workspace for known in await self._bot.channels(PLATFORM)}:
            if (workspace := await self._workspaces.named(key)) is not None:
                await self._read(workspace, "" if workspace.team else key)
        await compare(self._bot, PLATFORM, self._look)

    async def _read(self, workspace: Workspace, team: str) -> None:
        """All channels that the bot is in, in few requests."""
        cursor = ""
        while True:
            asked = time.monotonic()
            try:
                answer = await workspace.client.users_conversations(
                    types=TYPES, limit=PAGE, cursor=cursor or None, team_id=team or None
                )
            except SlackApiError as refused:
                _raise_when_busy(refused)
                log.info("users.conversations was refused: %s", error_of(refused))
                return  # each is asked for by itself then
            for channel in answer.get("channels") or []:
                self._rooms.learn(str(channel.get("id")), room_of(channel), asked)
            cursor = str((answer.get("response_metadata") or {}).get("next_cursor") or "")
            if not cursor:
                return

    async def _look(self, known: PlaceOf) -> PlaceOf | None:
        """A channel as it is now. Of one that the bot is not in, only whether it is still public is asked."""
        workspace = await self._workspaces.named(known.workspace)
        if workspace is None:
            return None
        room = self._rooms.fresh(known.external_id)
        if room is None and known.kind != "public":
            return None
        if room is None:
            try:
                room = await self._rooms.look(workspace, known.external_id)
            except SlackApiError as refused:
                _raise_when_busy(refused)
                # Every app sees every public channel: what is hidden from it is none any more.
                return replace(known, kind="private") if error_of(refused) == HIDDEN else None
        scope = Scope(
            "" if known.workspace.startswith("E") else known.workspace, known.realm if known.realm.startswith("E") else ""
        )
        return place_of(scope, known.external_id, None, room.kind, room.name or known.name, "" if scope.team else room.workspace)


def _raise_when_busy(refused: SlackApiError) -> None:
    """For refusals that say nothing about the channel, and that the next request would meet too."""
    if error_of(refused) in BUSY or refused.response.status_code != 200:
        raise refused
