"""An event of Slack with whose it is."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from adapters.slack.names import Scope
from adapters.slack.workspaces import Workspace


@dataclass(frozen=True, slots=True)
class Written:
    """A message, or something else that happened, with whose it is and the installation it came to.

    `arrived`: monotonic seconds. `shared`: its envelope says that people of other workspaces are in the channel.
    """

    workspace: Workspace
    scope: Scope
    event: Mapping[str, Any]
    me: str
    arrived: float
    shared: bool = False

    @property
    def channel(self) -> str:
        """The channel's id; an event about a channel itself may bring its description instead, or the id it has from now on."""
        found = self.event.get("channel") or self.event.get("new_channel_id") or ""
        return str(found.get("id") or "") if isinstance(found, Mapping) else str(found)

    @property
    def user(self) -> str:
        return str(self.event.get("user") or "")

    @property
    def own(self) -> bool:
        """Whether the bot itself wrote it."""
        return self.user == self.me or (bool(self.workspace.bot_id) and self.event.get("bot_id") == self.workspace.bot_id)
