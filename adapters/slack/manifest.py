"""The app's manifest, to paste where Slack makes apps. Pure."""

from __future__ import annotations

import json

from adapters.catalogue import say
from adapters.slack.names import Json
from adapters.slack.settings import COMMAND, PATH, REDIRECT, SCOPES

EVENTS = (
    "agent_session_stopped",
    "app_context_changed",
    "app_home_opened",
    "app_mention",
    "app_uninstalled",
    "assistant_thread_context_changed",
    "assistant_thread_started",
    "channel_archive",
    "channel_deleted",
    "channel_id_changed",
    "channel_rename",
    "channel_shared",
    "channel_unshared",
    "group_deleted",
    "group_rename",
    "message.channels",
    "message.groups",
    "message.im",
    "message.mpim",
    "team_join",
    "tokens_revoked",
    "user_change",
)
DESCRIPTION = say("platform.about", None)


def manifest(name: str, *, command: str = COMMAND, public_url: str = "", oauth: bool = False) -> Json:
    """Everything the app needs. `public_url`: where Slack reaches us in HTTP mode; empty: Socket Mode."""
    url = public_url.rstrip("/") + PATH if public_url else ""
    address = {"request_url": url} if url else {}
    slash: Json = {"command": command, "description": say("platform.slash", None), "usage_hint": "help"}
    if url:
        slash["url"] = url
    auth: Json = {"scopes": {"bot": sorted(SCOPES)}}
    if oauth and public_url:
        auth["redirect_urls"] = [public_url.rstrip("/") + REDIRECT]
    return {
        "display_information": {"name": name[:35], "description": DESCRIPTION},
        "features": {
            "agent_view": {"agent_description": DESCRIPTION},
            "app_home": {"home_tab_enabled": True, "messages_tab_enabled": True, "messages_tab_read_only_enabled": False},
            "bot_user": {"display_name": name[:80], "always_online": True},
            "slash_commands": [slash],
        },
        "oauth_config": auth,
        "settings": {
            "event_subscriptions": {"bot_events": list(EVENTS), **address},
            "interactivity": {"is_enabled": True, **address},
            "org_deploy_enabled": True,
            "socket_mode_enabled": not url,
            "token_rotation_enabled": False,
        },
    }


def printed(made: Json) -> str:
    """As text, in the form that Slack's page takes first."""
    return json.dumps(made, indent=2, ensure_ascii=False)
