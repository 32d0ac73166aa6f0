"""The app as its settings pages know it: secrets, scopes, event subscriptions, commands."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

_GROUPS = {
    "app_mentions": "read",
    "assistant": "write",
    "channels": "history read",
    "chat": "write",
    "dnd": "read",
    "files": "read write",
    "groups": "history read",
    "im": "history read write",
    "mpim": "history read",
    "reactions": "read write",
    "team": "read",
    "users": "read",
}
SCOPES = frozenset({"commands", *(f"{group}:{right}" for group, rights in _GROUPS.items() for right in rights.split())})

# The scope an event needs beside its subscription; None for those that need none.
EVENT_SCOPES: dict[str, str | None] = {
    "message.im": "im:history",
    "message.channels": "channels:history",
    "message.groups": "groups:history",
    "message.mpim": "mpim:history",
    "app_mention": "app_mentions:read",
    "app_home_opened": None,
    "app_context_changed": None,
    "app_uninstalled": None,
    "tokens_revoked": None,
    "team_join": "users:read",
    "user_change": "users:read",
    "dnd_updated_user": "dnd:read",
    "assistant_thread_started": "assistant:write",
    "assistant_thread_context_changed": "assistant:write",
    "agent_session_stopped": "assistant:write",
    "reaction_added": "reactions:read",
    "reaction_removed": "reactions:read",
    "file_shared": "files:read",
    "file_deleted": "files:read",
    "channel_id_changed": "channels:read",
    "channel_archive": "channels:read",
    "channel_unarchive": "channels:read",
    "channel_deleted": "channels:read",
    "channel_left": "channels:read",
    "channel_rename": "channels:read",
    "channel_shared": "channels:read",
    "channel_unshared": "channels:read",
    "member_joined_channel": "channels:read",
    "member_left_channel": "channels:read",
    "group_archive": "groups:read",
    "group_unarchive": "groups:read",
    "group_deleted": "groups:read",
    "group_left": "groups:read",
    "group_rename": "groups:read",
}


@dataclass(eq=False)
class App:
    """`scopes` are those asked for at installation; `events` the bot events subscribed to; `commands` the slash commands."""

    id: str = "A0KEEPSAKE1"
    name: str = "Keepsake"
    app_token: str = "xapp-1-A0KEEPSAKE1-1-localtestapptoken"
    signing_secret: str = "5f3c1a9b7d2e4f60a1b2c3d4e5f60718"
    verification_token: str = "local-verification-token"
    client_id: str = "1000000000.2000000000"
    client_secret: str = "local-client-secret"
    scopes: set[str] = field(default_factory=lambda: set(SCOPES))
    events: set[str] = field(default_factory=lambda: set(EVENT_SCOPES))
    commands: set[str] = field(default_factory=lambda: {"/keepsake"})
    agent: bool = True
    home_tab: bool = True
    interactivity: bool = True

    @classmethod
    def another(cls, name: str, number: int) -> App:
        """One more app with secrets of its own, as each workspace has one where the app is not distributed."""
        made = cls(f"A0KEEPSAKE{number}", name, f"xapp-1-A0KEEPSAKE{number}-1-localtestapptoken")
        made.signing_secret, made.client_id = f"{number:032x}", f"1000000000.{number}"
        return made

    def configure(self, manifest: Mapping[str, Any]) -> None:
        """Takes over what an app manifest says. Call it before the first workspace is made, as scopes are granted at installation."""
        settings, features = manifest.get("settings", {}), manifest.get("features", {})
        self.scopes = set(manifest.get("oauth_config", {}).get("scopes", {}).get("bot", []))
        self.events = set(settings.get("event_subscriptions", {}).get("bot_events", []))
        unknown = self.events - set(EVENT_SCOPES)
        assert not unknown, f"events this server does not know: {unknown}"
        lacking = {scope for event in self.events if (scope := EVENT_SCOPES[event])} - self.scopes
        assert not lacking, f"the manifest subscribes to events without their scopes: {lacking}"
        address = settings.get("event_subscriptions", {}).get("request_url")
        assert address or settings.get("socket_mode_enabled"), "neither Socket Mode nor an address for events"
        agent = features.get("agent_view", {})
        assert agent or "app_context_changed" not in self.events, "app_context_changed is for agent apps"
        assert len(agent.get("agent_description", "")) <= 300, "the agent's description is too long"
        assert len(manifest.get("display_information", {}).get("name", "")) <= 35, "the app's name is too long"
        self.commands = {command["command"] for command in features.get("slash_commands", [])}
        self.agent = "agent_view" in features or "assistant_view" in features
        self.home_tab = bool(features.get("app_home", {}).get("home_tab_enabled"))
        self.interactivity = bool(settings.get("interactivity", {}).get("is_enabled"))

    def hears(self, event: str, scopes: set[str]) -> bool:
        """Whether an event such as "message.im" comes to an installation with these scopes."""
        needed = EVENT_SCOPES.get(event)
        return event in self.events and (needed is None or needed in scopes)
