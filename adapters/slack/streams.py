"""Replies that grow while the model writes: by Slack's streams in threads, by edits elsewhere; finished and repaired here.

A stream takes only what is new, dies some minutes after its start, and may have died unseen. Then nothing more is appended: the end sets
the whole text by an update, and where that is refused too, what was not shown yet comes as a new message.
"""

from __future__ import annotations

import logging
from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass, replace

from slack_sdk.errors import SlackApiError

from adapters.base import Outgoing, TryLater
from adapters.slack import blocks
from adapters.slack.names import Json, parted
from adapters.slack.outbound import Outbound, mark_of
from adapters.slack.people import FAILURES
from adapters.slack.texts import harmless, held_back
from adapters.slack.workspaces import DEAD_TOKEN, Workspace, error_of

log = logging.getLogger(__name__)

PACE = 1.5
"""Seconds between two changes: chat.update may be called about 50 times a minute."""
REMEMBERED = 1000


@dataclass(slots=True)
class _Growing:
    """A message that grows. `shown` is what was sent of it, `alive` whether more may be appended; `edits`: it is no stream."""

    edits: bool
    shown: str
    alive: bool = True


class SlackStreams:
    """`recipient` tells whom a place's stream is for, as (team, user); None when nobody knows."""

    def __init__(self, outbound: Outbound, recipient: Callable[[str], str | None], count: Callable[[str], None]) -> None:
        self._outbound, self._recipient, self._count = outbound, recipient, count
        self._growing: OrderedDict[str, _Growing] = OrderedDict()
        self._tried: OrderedDict[int, None] = OrderedDict()

    async def begin(self, outgoing: Outgoing) -> str:
        """Send the beginning; see the contract."""
        if (known := self._outbound.known(outgoing)) is not None:
            return known
        channel, thread = parted(outgoing.channel)
        user = self._recipient(outgoing.channel)
        # An earlier process, or an earlier try, may have begun it.
        if (not user or outgoing.outbox_id in self._tried) and (found := await self._outbound.find(outgoing)) is not None:
            return found
        self._tried[outgoing.outbox_id] = None
        while len(self._tried) > REMEMBERED:
            self._tried.popitem(last=False)
        if thread and user:
            workspace = await self._outbound.workspace(outgoing)
            shown = held_back(harmless(outgoing.text))
            ts = await self._start(workspace, outgoing, channel, thread, user, shown)
            if ts is not None:
                self._remember(ts, _Growing(False, shown))
                self._outbound.remember(outgoing, ts)
                self._outbound.posted(outgoing.channel, workspace.key)
                return ts
        ts = await self._outbound.send(outgoing)
        self._remember(ts, _Growing(True, outgoing.text))
        return ts

    async def _start(
        self, workspace: Workspace, outgoing: Outgoing, channel: str, thread: str, user: str, shown: str
    ) -> str | None:
        """A stream's id; None where there are none, so that edits have to do."""
        try:
            answer = await workspace.client.chat_startStream(
                channel=channel,
                thread_ts=thread,
                markdown_text=shown or None,
                recipient_user_id=user,
                recipient_team_id=outgoing.workspace or workspace.key,
            )
        except SlackApiError as error:
            meant = await self._outbound.judged(workspace, error)
            if isinstance(meant, TryLater) or error_of(error) in DEAD_TOKEN:
                raise (meant or error) from error
            self._count("slack_stream_refused")
            return None
        return str(answer["ts"])

    async def extend(self, outgoing: Outgoing, platform_id: str) -> None:
        """Let it show more. What fails here is nobody's loss: the end puts it right."""
        growing = self._growing.get(platform_id)
        if growing is None or not growing.alive:
            return
        workspace = await self._outbound.workspace(outgoing)
        channel, _ = parted(outgoing.channel)
        try:
            if growing.edits:
                await workspace.client.chat_update(channel=channel, ts=platform_id, **blocks.message(outgoing.text))
                return
            shown = held_back(harmless(outgoing.text))
            if not shown.startswith(growing.shown):
                growing.alive = False
            elif tail := shown[len(growing.shown) :]:
                await workspace.client.chat_appendStream(channel=channel, ts=platform_id, markdown_text=tail)
                growing.shown = shown
        except FAILURES as error:
            if isinstance(error, SlackApiError) and error_of(error) in ("ratelimited", "rate_limited"):
                return
            # Also when nobody knows whether it came: the same piece is never appended twice.
            growing.alive = growing.edits
            self._count("slack_stream_died")

    async def finish(self, outgoing: Outgoing, platform_id: str) -> str:
        """The final text; see the contract."""
        workspace = await self._outbound.workspace(outgoing)
        channel, _ = parted(outgoing.channel)
        growing = self._growing.get(platform_id)
        if growing is None:
            # Perhaps finished before, with its answer lost, and by a message of its own.
            found = await self._outbound.find(outgoing)
            if found is not None and found != platform_id:
                return found
        elif growing.alive and not growing.edits and await self._stop(workspace, channel, platform_id, growing, outgoing):
            return self._done(outgoing, platform_id)
        return await self._repaired(workspace, channel, platform_id, growing, outgoing)

    async def _stop(self, workspace: Workspace, channel: str, ts: str, growing: _Growing, outgoing: Outgoing) -> bool:
        text = harmless(outgoing.text)
        if not text.startswith(growing.shown):
            return False
        growing.alive = False
        try:
            await workspace.client.chat_stopStream(
                channel=channel, ts=ts, markdown_text=text[len(growing.shown) :] or None, metadata=mark_of(outgoing)
            )
        except SlackApiError as error:
            meant = await self._outbound.judged(workspace, error)
            if isinstance(meant, TryLater):
                growing.alive = True
                raise meant from error
            self._count("slack_stream_died")
            return False
        return True

    async def _repaired(self, workspace: Workspace, channel: str, ts: str, growing: _Growing | None, outgoing: Outgoing) -> str:
        if growing is None or not growing.edits:
            try:
                # Perhaps it still runs; one that does cannot be updated.
                await workspace.client.chat_stopStream(channel=channel, ts=ts)
            except SlackApiError as error:
                log.info("a stream had ended: %s", error_of(error))
        whole: Json = {**blocks.message(outgoing.text), "metadata": mark_of(outgoing)}
        try:
            await workspace.client.chat_update(channel=channel, ts=ts, **whole)
            return self._done(outgoing, ts)
        except SlackApiError as error:
            meant = await self._outbound.judged(workspace, error)
            if isinstance(meant, TryLater):
                raise meant from error
            log.info("a message could not be changed any more: %s", error_of(error))
            if error_of(error) == "message_not_found":
                growing = None  # somebody deleted it: a rest without its beginning would tell nobody anything
        self._count("slack_stream_repaired")
        text = harmless(outgoing.text)
        rest = text[len(growing.shown) :] if growing is not None and text.startswith(growing.shown) else text
        self._outbound.forget(outgoing)
        new = await self._outbound.send(replace(outgoing, text=rest)) if rest.strip() else ts
        return self._done(outgoing, new)

    def _done(self, outgoing: Outgoing, ts: str) -> str:
        self._growing.pop(ts, None)
        self._outbound.remember(outgoing, ts)
        return ts

    def _remember(self, ts: str, growing: _Growing) -> None:
        self._growing[ts] = growing
        while len(self._growing) > REMEMBERED:
            self._growing.popitem(last=False)
