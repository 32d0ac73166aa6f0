"""What a channel is: direct, public or private, and its name. What is not known is private."""

from __future__ import annotations

import logging
import time
from collections import OrderedDict
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from adapters.base import PlaceKind
from adapters.slack.names import KINDS
from adapters.slack.people import FAILURES
from adapters.slack.workspaces import Workspace

log = logging.getLogger(__name__)

FRESH = 60.0
"""Seconds for which an answer is believed: a channel may become private at any time."""
REMEMBERED = 20_000


@dataclass(frozen=True, slots=True)
class Room:
    """One channel. `user` is the other one of direct messages; `workspace` is only told where an organisation has several."""

    kind: PlaceKind
    name: str = ""
    user: str = ""
    workspace: str = ""


UNKNOWN = Room("private")


def room_of(channel: Mapping[str, Any]) -> Room:
    """Slack's description of a channel as a value. One that outsiders can read is nobody's public place."""
    name = str(channel.get("name") or "")
    workspace = str(channel.get("context_team_id") or "")
    if channel.get("is_im"):
        return Room("direct", "", str(channel.get("user") or ""), workspace)
    shared = channel.get("is_ext_shared") or channel.get("is_pending_ext_shared")
    inside = channel.get("is_channel") and not (channel.get("is_private") or channel.get("is_mpim") or channel.get("is_group"))
    return Room("public" if inside and not shared else "private", name, "", workspace)


def kind_said(event: Mapping[str, Any]) -> PlaceKind | None:
    """The kind that an event itself tells."""
    return KINDS.get(str(event.get("channel_type")))


class Rooms:
    """Asks conversations.info."""

    def __init__(self) -> None:
        self._known: OrderedDict[str, tuple[float, Room]] = OrderedDict()

    async def of(self, workspace: Workspace, channel: str) -> Room:
        """A channel as it is now, nearly."""
        at, found = self._known.get(channel, (float("-inf"), UNKNOWN))
        if time.monotonic() - at < (FRESH * 60 if found.kind == "direct" else FRESH):
            return found
        try:
            answer = await workspace.client.conversations_info(channel=channel)
        except FAILURES as error:
            log.info("conversations.info failed: %s", type(error).__name__)
            return Room("private", found.name)
        room = room_of(answer["channel"])
        self._known[channel] = time.monotonic(), room
        while len(self._known) > REMEMBERED:
            self._known.popitem(last=False)
        return room

    def forget(self, channel: str) -> None:
        """Something about it changed."""
        self._known.pop(channel, None)
