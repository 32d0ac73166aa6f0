"""Slack's JSON shapes."""

from __future__ import annotations

import time
from datetime import datetime
from zoneinfo import ZoneInfo

from tests.servers.slack.world import Channel, File, Json, Message, Team, User, View, World

PREFIX = {"channel": "channel", "group": "group", "im": "im", "mpim": "mpim"}


def user_json(user: User, team: Team | None = None) -> Json:
    """As in users.info, `team` being the one who asks: a stranger shows less of themselves."""
    stranger = (
        team is not None and user.team is not team and (team.enterprise is None or user.team.enterprise is not team.enterprise)
    )
    profile: Json = {
        "real_name": user.name,
        "real_name_normalized": user.name,
        "display_name": user.name.lower(),
        "display_name_normalized": user.name.lower(),
        "team": user.team.id,
        "avatar_hash": "g0",
        "image_72": "https://example.com/72.png",
    }
    body: Json = {
        "id": user.id,
        "team_id": user.team.id,
        "name": user.name.lower(),
        "deleted": user.deleted,
        "profile": profile,
        "is_bot": user.is_bot,
        "is_app_user": False,
        "updated": user.updated,
    }
    if user.bot_id:
        profile |= {"bot_id": user.bot_id, "api_app_id": user.app_id or ""}
    if user.deleted:
        return body
    if user.tz:
        offset = datetime.now(ZoneInfo(user.tz)).utcoffset()
        body |= {"tz": user.tz, "tz_label": user.tz, "tz_offset": int(offset.total_seconds()) if offset else 0}
    body["real_name"] = user.name
    if stranger:
        return body | {"is_stranger": True}
    body |= {
        "is_admin": user.is_admin or user.is_owner,
        "is_owner": user.is_owner,
        "is_primary_owner": False,
        "is_restricted": user.is_restricted,
        "is_ultra_restricted": False,
        "color": "9f69e7",
    }
    if user.grid_id and user.team.enterprise:
        body["enterprise_user"] = {
            "id": user.grid_id,
            "enterprise_id": user.team.enterprise.id,
            "enterprise_name": user.team.enterprise.name,
            "is_admin": False,
            "is_owner": False,
            "is_primary_owner": False,
            "teams": [
                team.id for team in user.team.enterprise.teams if any(one.grid_id == user.grid_id for one in team.users.values())
            ],
        }
    return body


def channel_json(channel: Channel, bot: User | None = None) -> Json:
    shared = bool(channel.shared)
    body: Json = {
        "id": channel.id,
        "created": channel.created,
        "is_archived": channel.archived,
        "is_im": channel.kind == "im",
        "is_mpim": channel.kind == "mpim",
        "is_channel": channel.kind == "channel",
        "is_group": channel.kind == "group",
        "is_private": channel.kind != "channel",
        "is_org_shared": False,
        "is_ext_shared": shared,
        "is_shared": shared,
        "context_team_id": channel.team.id,
        "updated": channel.created * 1000,
    }
    if channel.kind == "im":
        return body | {"user": channel.user.id, "is_user_deleted": channel.user.deleted, "priority": 0}
    return body | {
        "name": channel.name,
        "name_normalized": channel.name,
        "is_general": channel.general,
        "is_member": bot is not None and bot.id in channel.members,
        "creator": channel.creator.id if channel.creator else "",
        "shared_team_ids": [team.id for team in (channel.team, *channel.shared)],
        "connected_team_ids": [team.id for team in channel.shared],
        "topic": {"value": channel.topic, "creator": "", "last_set": 0},
        "purpose": {"value": "", "creator": "", "last_set": 0},
        "num_members": len(channel.members),
    }


def file_json(file: File, base: str) -> Json:
    """A file in a message; of a `check` file only its id is told, as in shared channels."""
    if file.mode == "check":
        return {"id": file.id, "mode": "file_access", "file_access": "check_file_info", "created": 0, "timestamp": 0}
    if file.mode == "tombstone":
        return {"id": file.id, "mode": "tombstone"}
    return full_file_json(file, base)


def full_file_json(file: File, base: str) -> Json:
    path = f"{base}/files-pri/{file.user.team.id}-{file.id}"
    extension = file.name.rpartition(".")[2] if "." in file.name else "binary"
    return {
        "id": file.id,
        "created": file.created,
        "timestamp": file.created,
        "name": file.name,
        "title": file.title or file.name,
        "mimetype": file.mimetype,
        "filetype": {"txt": "text"}.get(extension, extension),
        "pretty_type": extension.upper(),
        "user": file.user.id,
        "user_team": file.user.team.id,
        "editable": False,
        "size": len(file.content),
        "mode": "hosted",
        "is_external": False,
        "external_type": "",
        "is_public": False,
        "public_url_shared": False,
        "display_as_bot": False,
        "username": "",
        "url_private": f"{path}/{file.name}",
        "url_private_download": f"{path}/download/{file.name}",
        "media_display_type": "unknown",
        "permalink": f"{base}/files/{file.user.id}/{file.id}/{file.name}",
        "has_rich_preview": False,
        "file_access": "visible",
    }


def bot_json(user: User, world: World) -> Json:
    return {
        "id": user.bot_id,
        "app_id": user.app_id or "A0OTHERAPP1",
        "user_id": user.id,
        "name": user.name,
        "icons": {"image_36": "", "image_48": "", "image_72": ""},
        "deleted": user.deleted,
        "updated": user.updated,
        "team_id": user.team.id,
    }


def message_json(message: Message, world: World, base: str, *, metadata: bool = False) -> Json:
    """A message as events and histories show it; `metadata` adds what was posted with it."""
    body: Json = {"type": "message", "ts": message.ts, "text": message.text}
    if message.subtype:
        body["subtype"] = message.subtype
    if message.subtype != "bot_message":
        body |= {"user": message.author.id, "team": message.author.team.id}
    if message.bot_id:
        body |= {"bot_id": message.bot_id, "app_id": message.author.app_id or "A0OTHERAPP1"}
        if message.subtype is None:
            body["bot_profile"] = bot_json(message.author, world)
    if message.username:
        body["username"] = message.username
    if message.client_msg_id:
        body["client_msg_id"] = message.client_msg_id
    if message.blocks:
        body["blocks"] = message.blocks
    if message.attachments:
        body["attachments"] = message.attachments
    if message.files:
        body |= {"files": [file_json(file, base) for file in message.files], "upload": False, "display_as_bot": False}
    if message.edited:
        body["edited"] = message.edited
    if message.streaming:
        body["streaming_state"] = "in_progress"
    body |= _thread_json(message)
    if message.reactions:
        body["reactions"] = [{"name": name, "users": users, "count": len(users)} for name, users in message.reactions.items()]
    if message.metadata is not None and metadata:
        body["metadata"] = message.metadata
    return body


def _thread_json(message: Message) -> Json:
    if message.thread_ts is not None:
        parent = message.channel.messages.get(message.thread_ts)
        body: Json = {"thread_ts": message.thread_ts}
        return body | ({"parent_user_id": parent.author.id} if parent else {})
    replies = [one for one in message.channel.messages.values() if one.thread_ts == message.ts]
    if not replies:
        return {}
    users = list(dict.fromkeys(one.author.id for one in replies))
    return {
        "thread_ts": message.ts,
        "reply_count": len(replies),
        "reply_users_count": len(users),
        "reply_users": users,
        "latest_reply": replies[-1].ts,
        "is_locked": False,
        "subscribed": False,
    }


def view_json(view: View, world: World) -> Json:
    bot = view.team.bot
    return {
        "id": view.id,
        "team_id": view.user.team.id,
        "type": view.type,
        "private_metadata": "",
        "callback_id": "",
        "title": None,
        "close": None,
        "submit": None,
        "clear_on_close": False,
        "notify_on_close": False,
        "external_id": "",
        "state": {"values": {}},
        **view.body,
        "hash": view.hash,
        "previous_view_id": view.previous.id if view.previous else None,
        "root_view_id": view.root_id or view.id,
        "app_id": view.team.app.id,
        "app_installed_team_id": view.team.id,
        "bot_id": bot.bot_id if bot else None,
    }


def event_json(event: Json, team: Team, world: World, *, shared: bool = False, author_team: Team | None = None) -> Json:
    """The wrapper around an event for the installation in `team`."""
    enterprise = team.enterprise
    return {
        "token": team.app.verification_token,
        "team_id": team.id,
        "enterprise_id": enterprise.id if enterprise else None,
        "context_team_id": team.id,
        "context_enterprise_id": enterprise.id if enterprise else None,
        "api_app_id": team.app.id,
        "event": event,
        "type": "event_callback",
        "event_id": world.id("Ev"),
        "event_time": int(time.time()),
        "authorizations": [
            {
                "enterprise_id": enterprise.id if enterprise else None,
                "team_id": None if team.org_wide else team.id,
                "user_id": team.bot.id if team.bot else None,
                "is_bot": True,
                "is_enterprise_install": team.org_wide,
            }
        ],
        "is_ext_shared_channel": shared,
        "event_context": "4-eyJldCI6Im1lc3NhZ2UifQ",
    }
