"""conversations.*"""

from __future__ import annotations

import base64
from collections.abc import Sequence
from typing import TypeVar

from tests.servers.slack import payloads
from tests.servers.slack.actions import Actions
from tests.servers.slack.api import Api, Call
from tests.servers.slack.errors import SlackError
from tests.servers.slack.world import HISTORY, READ, Channel, Json, Message

T = TypeVar("T")
KINDS = {"public_channel": "channel", "private_channel": "group", "mpim": "mpim", "im": "im"}


class ConversationMethods:
    def __init__(self, api: Api, actions: Actions) -> None:
        self._actions = actions
        api.add("conversations.history", self.history, *HISTORY.values())
        api.add("conversations.replies", self.replies, *HISTORY.values())
        api.add("conversations.info", self.info, *READ.values())
        api.add("conversations.members", self.members, *READ.values())
        api.add("conversations.open", self.open, "im:write", "mpim:write")
        api.add("conversations.list", self.list, *READ.values())
        api.add("users.conversations", self.list, *READ.values())

    def history(self, call: Call) -> Json:
        channel = _readable(call, HISTORY)
        shown = [one for one in channel.messages.values() if one.thread_ts is None or one.broadcast]
        found = [one for one in reversed(shown) if _within(call, one)]
        page, more, cursor = _page(call, found, 100, 999)
        return {
            "messages": [self._shown(call, one) for one in page],
            "has_more": more,
            "pin_count": 0,
            "channel_actions_ts": None,
            "channel_actions_count": 0,
            **cursor,
        }

    def replies(self, call: Call) -> Json:
        channel = _readable(call, HISTORY)
        message = channel.messages.get(call.need("ts"))
        if message is None:
            raise SlackError("thread_not_found")
        parent, *rest = channel.thread(message.thread_ts or message.ts)
        found = [one for one in rest if _within(call, one)]
        page, more, cursor = _page(call, found, 1000, 1000)
        # The parent is the first of every page.
        return {"messages": [self._shown(call, one) for one in (parent, *page)], "has_more": more, **cursor}

    def info(self, call: Call) -> Json:
        channel = _readable(call, READ, inside=False)
        body = payloads.channel_json(channel, call.bot_in(channel))
        if call.flag("include_locale"):
            body["locale"] = "en-US"
        return {"channel": body}

    def members(self, call: Call) -> Json:
        channel = _readable(call, READ, inside=False)
        page, _, cursor = _page(call, list(channel.members), 100, 1000)
        return {"members": page, **cursor}

    def open(self, call: Call) -> Json:
        named = [one for one in (call.text("users") or "").split(",") if one]
        if call.text("channel"):
            channel = call.channel()
            return {"channel": payloads.channel_json(channel), "no_op": True, "already_open": True}
        if not named:
            raise SlackError("users_list_not_supplied")
        users = [call.world.user(one) for one in named]
        if any(user is None or user.team not in call.caller.teams for user in users):
            raise SlackError("user_not_found")
        if any(user is not None and user.deleted for user in users):
            raise SlackError("user_disabled")
        user = users[0]
        assert user is not None
        if user is call.bot or user.is_bot:
            raise SlackError("cannot_dm_bot")
        if len(users) > 1:
            raise SlackError("not_enough_users")
        channel = call.world.direct(user)
        whole = payloads.channel_json(channel) if call.flag("return_im") else {"id": channel.id}
        return {"channel": whole}

    def list(self, call: Call) -> Json:
        wanted = {KINDS[kind] for kind in (call.text("types") or "public_channel").split(",") if kind in KINDS}
        lacking = [READ[kind] for kind in wanted if READ[kind] not in call.caller.scopes]
        if lacking:
            raise SlackError("missing_scope", needed=lacking[0], provided=",".join(sorted(call.caller.scopes)))
        found = [channel for channel in call.team.channels.values() if channel.kind in wanted and _seen(call, channel)]
        if call.flag("exclude_archived"):
            found = [channel for channel in found if not channel.archived]
        if call.log.method == "users.conversations":
            found = [channel for channel in found if call.bot_in(channel).id in channel.members]
        page, _, cursor = _page(call, found, 100, 1000)
        return {"channels": [payloads.channel_json(channel, call.bot_in(channel)) for channel in page], **cursor}

    def _shown(self, call: Call, message: Message) -> Json:
        metadata = call.flag("include_all_metadata")
        return payloads.message_json(message, call.world, self._actions.base, metadata=metadata)


def _readable(call: Call, scopes: dict[str, str], *, inside: bool = True) -> Channel:
    channel = call.channel(inside=inside)
    needed = scopes[channel.kind]
    if needed not in call.caller.scopes:
        raise SlackError("missing_scope", needed=needed, provided=",".join(sorted(call.caller.scopes)))
    return channel


def _seen(call: Call, channel: Channel) -> bool:
    return channel.kind == "channel" or call.bot_in(channel).id in channel.members


def _within(call: Call, message: Message) -> bool:
    oldest, latest, also = call.text("oldest"), call.text("latest"), call.flag("inclusive")
    ts = float(message.ts)
    if oldest and (ts < float(oldest) or (ts == float(oldest) and not also)):
        return False
    return not (latest and (ts > float(latest) or (ts == float(latest) and not also)))


def _page(call: Call, found: Sequence[T], default: int, most: int) -> tuple[list[T], bool, Json]:
    """A page, whether there is more, and the cursor of the next."""
    limit = call.number("limit", default)
    if not 1 <= limit <= most:
        raise SlackError("invalid_limit")
    start = 0
    if cursor := call.text("cursor"):
        try:
            start = int(base64.b64decode(cursor).decode().removeprefix("next:"))
        except ValueError:
            raise SlackError("invalid_cursor") from None
    page = list(found[start : start + limit])
    more = start + limit < len(found)
    following = base64.b64encode(f"next:{start + limit}".encode()).decode() if more else ""
    return page, more, {"response_metadata": {"next_cursor": following}}
