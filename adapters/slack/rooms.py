"""What a channel is: direct, public or private, and its name. What is not known has no kind."""

from __future__ import annotations

import logging
import time
from collections import OrderedDict
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, TypeVar

from adapters.base import PlaceKind
from adapters.slack.names import KINDS
from adapters.slack.people import FAILURES
from adapters.slack.workspaces import Workspace
from adapters.slack.written import Written

log = logging.getLogger(__name__)

T = TypeVar("T")

FRESH = 60.0
"""Seconds for which an answer is believed: a channel may become private at any time."""
REMEMBERED = 20_000


@dataclass(frozen=True, slots=True)
class Room:
    """One channel; `kind` None: Slack could not be asked. `user` is the other one of direct messages.

    `workspace` is only told where an organisation has several.
    """

    kind: PlaceKind | None
    name: str = ""
    user: str = ""
    workspace: str = ""


UNKNOWN = Room(None)


def room_of(channel: Mapping[str, Any]) -> Room:
    """Slack's description of a channel as a value. One that outsiders can read is nobody's public place."""
    name = str(channel.get("name") or "")
    workspace = str(channel.get("context_team_id") or "")
    if channel.get("is_im"):
        return Room("direct", "", str(channel.get("user") or ""), workspace)
    shared = channel.get("is_ext_shared") or channel.get("is_pending_ext_shared")
    inside = channel.get("is_channel") and not (channel.get("is_private") or channel.get("is_mpim") or channel.get("is_group"))
    return Room("public" if inside and not shared else "private", name, "", workspace)


def kind_said(written: Written) -> PlaceKind | None:
    """The kind that an event itself tells. What is shared with outsiders is private, whatever it is at home."""
    event = written.event
    said = KINDS.get(str(event.get("channel_type")))
    shared = written.shared or event.get("type") == "channel_shared" or event.get("is_ext_shared") is True
    if said != "direct" and (shared or event.get("subtype") == "channel_convert_to_private"):
        return "private"
    return said


class Rooms:
    """Asks conversations.info."""

    def __init__(self) -> None:
        self._known: OrderedDict[str, tuple[float, Room]] = OrderedDict()
        self._changed: OrderedDict[str, float] = OrderedDict()

    async def of(self, workspace: Workspace, channel: str) -> Room:
        """A channel as it is now, nearly; without a kind where Slack cannot be asked."""
        if (found := self.fresh(channel)) is not None:
            return found
        try:
            return await self.look(workspace, channel)
        except FAILURES as error:
            log.info("conversations.info failed: %s", type(error).__name__)
            return UNKNOWN

    def fresh(self, channel: str) -> Room | None:
        """A channel by an answer that is still believed."""
        at, found = self._known.get(channel, (float("-inf"), UNKNOWN))
        return found if time.monotonic() - at < (FRESH * 60 if found.kind == "direct" else FRESH) else None

    async def look(self, workspace: Workspace, channel: str) -> Room:
        """A channel as Slack shows it now. Raises one of FAILURES."""
        asked = time.monotonic()
        answer = await workspace.client.conversations_info(channel=channel)
        return self.learn(channel, room_of(answer["channel"]), asked)

    def learn(self, channel: str, room: Room, asked: float) -> Room:
        """An answer to what was asked at that time (monotonic seconds). One that a change has overtaken says nothing."""
        if self.changed(channel, since=asked):
            return UNKNOWN
        _keep(self._known, channel, (time.monotonic(), room))
        return room

    def changed(self, channel: str, *, since: float) -> bool:
        """Whether Slack said since then (monotonic seconds) that something about a channel changed."""
        return self._changed.get(channel, float("-inf")) >= since

    def forget(self, channel: str) -> None:
        """Something about it changed."""
        self._known.pop(channel, None)
        _keep(self._changed, channel, time.monotonic())


def _keep(known: OrderedDict[str, T], channel: str, value: T) -> None:
    known[channel] = value
    known.move_to_end(channel)
    while len(known) > REMEMBERED:
        known.popitem(last=False)
