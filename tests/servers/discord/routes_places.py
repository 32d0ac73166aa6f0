"""Channels, threads, guilds, users and the app itself."""

from __future__ import annotations

import re

from tests.servers.discord import errors, intents, payloads
from tests.servers.discord.api import Api, Call, Created, Parts
from tests.servers.discord.errors import ApiError, invalid_form
from tests.servers.discord.gateway import Gateway
from tests.servers.discord.permissions import (
    CREATE_PRIVATE_THREADS,
    CREATE_PUBLIC_THREADS,
    MANAGE_CHANNELS,
    MANAGE_THREADS,
    SEND_MESSAGES,
    may,
)
from tests.servers.discord.posting import known, read_draft, refuse_empty, visible
from tests.servers.discord.world import FORUM, PRIVATE_THREAD, TEXT, Channel, Guild, Json, Message, User

_NAME = re.compile(r"[-_'\w]{1,32}")


class PlaceRoutes:
    """Reads of the world, threads, and the app's commands."""

    def __init__(self, api: Api, parts: Parts, gateway: Gateway) -> None:
        self._world, self._actions, self._places, self._gateway = parts.world, parts.actions, parts.places, gateway
        api.add("GET", "/gateway/bot", self.gateway_bot)
        api.add("GET", "/gateway", lambda _: {"url": self._gateway.url})
        api.add("GET", "/users/@me", lambda _: {**payloads.user_json(self._world.bot), "verified": True, "flags": 0})
        api.add("GET", "/users/@me/guilds", lambda _: [{"id": str(one.id), "name": one.name} for one in self._guilds()])
        api.add("POST", "/users/@me/channels", self.open_direct)
        api.add("GET", "/users/{user_id}", lambda call: payloads.user_json(self._user(call.id("user_id"))))
        api.add("GET", "/oauth2/applications/@me", self.application)
        api.add("GET", "/applications/@me", self.application)
        for base in ("/applications/{application_id}", "/applications/{application_id}/guilds/{guild_id}"):
            api.add("GET", f"{base}/commands", self.commands)
            api.add("PUT", f"{base}/commands", self.overwrite_commands)
        api.add("GET", "/guilds/{guild_id}", lambda call: payloads.guild_json(self._guild(call)))
        api.add("GET", "/guilds/{guild_id}/channels", self.channels)
        api.add("GET", "/guilds/{guild_id}/threads/active", self.active_threads)
        api.add("GET", "/guilds/{guild_id}/members/{user_id}", self.member)
        api.add("GET", "/channels/{channel_id}", lambda call: self._json(visible(self._world, call.id("channel_id"))))
        api.add("PATCH", "/channels/{channel_id}", self.change)
        api.add("GET", "/channels/{channel_id}/threads/archived/public", self.archived_threads)
        api.add("POST", "/channels/{channel_id}/threads", self.start_thread)
        api.add("POST", "/channels/{channel_id}/messages/{message_id}/threads", self.start_thread)
        api.add("PUT", "/channels/{channel_id}/thread-members/@me", self.join_thread)
        api.add("DELETE", "/channels/{channel_id}/thread-members/@me", self.leave_thread)

    def gateway_bot(self, call: Call) -> Json:
        limit = {"total": 1000, "remaining": 1000, "reset_after": 86_400_000, "max_concurrency": 1}
        return {"url": self._gateway.url, "shards": self.shards, "session_start_limit": limit}

    # How many shards /gateway/bot recommends.
    shards = 1

    def open_direct(self, call: Call) -> Json:
        user = self._user(int(call.body["recipient_id"]))
        if user is self._world.bot or user.bot:
            raise ApiError(403, 50007, "Cannot send messages to this user")
        return self._json(self._world.direct(user))

    def application(self, call: Call) -> Json:
        app = self._world.application
        return {
            "id": str(app.id),
            "name": app.name,
            "icon": None,
            "description": "",
            "bot_public": app.public,
            "bot_require_code_grant": False,
            "owner": payloads.user_json(app.owner),
            "team": None,
            "verify_key": "0" * 64,
            "flags": intents.application_flags(app.privileged),
            "bot": payloads.user_json(self._world.bot),
            "approximate_guild_count": len(self._guilds()),
            "interactions_endpoint_url": None,
            "integration_types_config": {"0": {}, "1": {}},
        }

    def commands(self, call: Call) -> object:
        return self._world.application.commands.get(self._scope(call), [])

    def overwrite_commands(self, call: Call) -> object:
        """Takes the commands as the new truth; one that keeps its name keeps its id."""
        app, scope = self._world.application, self._scope(call)
        if len(call.items) > 100:
            raise ApiError(400, 30032, "Maximum number of application commands reached")
        old = {(one["type"], one["name"]): one["id"] for one in app.commands.get(scope, [])}
        made = []
        for number, item in enumerate(call.items):
            kind = item.get("type", 1)
            if kind == 1:
                _check_command(item, str(number))
            name = old.get((kind, item["name"])) or str(self._world.ids.next())
            ids = {"id": name, "application_id": str(app.id), "type": kind, "version": str(self._world.ids.next())}
            made.append({"default_member_permissions": None, "description": "", "nsfw": False, "options": [], **item, **ids})
        app.commands[scope] = made
        app.syncs += 1
        return made

    def channels(self, call: Call) -> object:
        return [self._json(one) for one in self._guild(call).channels.values() if not one.is_thread]

    def active_threads(self, call: Call) -> Json:
        threads = [one for one in self._guild(call).channels.values() if one.is_thread and not one.archived]
        seen = [one for one in threads if may(self._world.bot, one, self._world.bot, 1 << 10)]
        return {"threads": [self._json(one) for one in seen], "members": []}

    def archived_threads(self, call: Call) -> Json:
        parent = visible(self._world, call.id("channel_id"))
        threads = [
            one for one in self._world.channels.values() if one.parent is parent and one.archived and one.kind != PRIVATE_THREAD
        ]
        return {"threads": [self._json(one) for one in threads], "members": [], "has_more": False}

    def member(self, call: Call) -> Json:
        member = self._guild(call).members.get(call.id("user_id"))
        if member is None:
            raise errors.unknown_member()
        return payloads.member_json(member)

    def change(self, call: Call) -> Json:
        """A thread's name, archived and locked, or a channel's name and topic."""
        channel = visible(self._world, call.id("channel_id"))
        mine = channel.is_thread and channel.creator is self._world.bot and "locked" not in call.body
        needed = MANAGE_THREADS if channel.is_thread else MANAGE_CHANNELS
        if not mine and not may(self._world.bot, channel, self._world.bot, needed):
            raise errors.missing_permissions()
        channel.name = call.body.get("name", channel.name)
        if channel.is_thread:
            self._actions.set_thread(channel, archived=call.body.get("archived"), locked=call.body.get("locked"))
        else:
            channel.topic = call.body.get("topic", channel.topic)
        return self._json(channel)

    def start_thread(self, call: Call) -> Created:
        parent = visible(self._world, call.id("channel_id"))
        source = known(parent, call.id("message_id")) if "message_id" in call.log.params else None
        _check_thread(call.body)
        if parent.kind == FORUM:
            return self._forum_post(call, parent)
        if parent.kind != TEXT:
            raise ApiError(400, 50024, "Cannot execute action on this channel type")
        if source is not None and source.thread is not None:
            raise errors.thread_exists()
        private = source is None and call.body.get("type", PRIVATE_THREAD) == PRIVATE_THREAD
        if not may(self._world.bot, parent, self._world.bot, CREATE_PRIVATE_THREADS if private else CREATE_PUBLIC_THREADS):
            raise errors.missing_permissions()
        return Created(
            self._json(self._places.thread(parent, self._world.bot, call.body["name"], source=source, private=private))
        )

    def join_thread(self, call: Call) -> None:
        thread = visible(self._world, call.id("channel_id"))
        if thread.archived:
            raise errors.thread_archived()
        self._places.follow(thread, self._world.bot)

    def leave_thread(self, call: Call) -> None:
        self._places.unfollow(visible(self._world, call.id("channel_id")), self._world.bot)

    def _forum_post(self, call: Call, forum: Channel) -> Created:
        if not may(self._world.bot, forum, self._world.bot, SEND_MESSAGES):
            raise errors.missing_permissions()
        draft = read_draft(call, self._actions, call.body.get("message") or {})
        refuse_empty(draft)
        thread = self._places.thread(forum, self._world.bot, call.body["name"], first=draft)
        first: Message = thread.messages[thread.id]
        message = payloads.message_json(first, self._world, self._world.application.privileged, gateway=False, fresh=True)
        return Created({**self._json(thread), "message": message})

    def _scope(self, call: Call) -> int | None:
        if call.id("application_id") != self._world.application.id:
            raise ApiError(403, 20012, "You are not authorized to perform this action on this application")
        return self._guild(call).id if "guild_id" in call.log.params else None

    def _guilds(self) -> list[Guild]:
        return list(self._world.guilds_of(self._world.bot))

    def _guild(self, call: Call) -> Guild:
        guild = self._world.guilds.get(call.id("guild_id"))
        if guild is None:
            raise errors.unknown_guild()
        if self._world.bot.id not in guild.members:
            raise errors.missing_access()
        return guild

    def _user(self, user_id: int) -> User:
        if user_id not in self._world.users:
            raise errors.unknown_user()
        return self._world.users[user_id]

    def _json(self, channel: Channel) -> Json:
        return payloads.channel_json(channel, self._world.bot)


def _check_thread(body: Json) -> None:
    if not 1 <= len(str(body.get("name") or "")) <= 100:
        raise invalid_form("name", "BASE_TYPE_BAD_LENGTH", "Must be between 1 and 100 in length.")
    if body.get("auto_archive_duration", 1440) not in (None, 60, 1440, 4320, 10080):
        raise invalid_form("auto_archive_duration", "BASE_TYPE_CHOICES", "Value must be one of (60, 1440, 4320, 10080).")


_LOCALES = frozenset(
    ("id", "da", "de", "en-GB", "en-US", "es-ES", "es-419", "fr", "hr", "it", "lt", "hu", "nl", "no", "pl", "pt-BR", "ro")
    + ("fi", "sv-SE", "vi", "tr", "cs", "el", "bg", "ru", "uk", "hi", "th", "zh-CN", "ja", "zh-TW", "ko")
)
"""https://discord.com/developers/docs/reference#locales"""


def _check_command(item: Json, path: str) -> None:
    """Names, descriptions and the number of options of a command, its subcommands and their options."""
    name, options = str(item.get("name", "")), item.get("options") or []
    if not _NAME.fullmatch(name) or name != name.lower():
        raise invalid_form(f"{path}.name", "APPLICATION_COMMAND_INVALID_NAME", "Command name is invalid")
    if not 1 <= len(item.get("description") or "") <= 100:
        raise invalid_form(f"{path}.description", "BASE_TYPE_BAD_LENGTH", "Must be between 1 and 100 in length.")
    for locale, text in (item.get("description_localizations") or {}).items():
        if locale not in _LOCALES:
            raise invalid_form(
                f"{path}.description_localizations", "BASE_TYPE_CHOICES", f"Value must be one of {sorted(_LOCALES)}."
            )
        if not 1 <= len(text) <= 100:
            where = f"{path}.description_localizations.{locale}"
            raise invalid_form(where, "BASE_TYPE_BAD_LENGTH", "Must be between 1 and 100 in length.")
    if len(options) > 25:
        raise invalid_form(f"{path}.options", "BASE_TYPE_MAX_LENGTH", "Must be 25 or fewer in length.")
    required = [bool(option.get("required")) for option in options if option["type"] > 2]
    if required != sorted(required, reverse=True):
        raise invalid_form(
            f"{path}.options",
            "APPLICATION_COMMAND_OPTIONS_REQUIRED_INVALID",
            "Required options must be placed before non-required options",
        )
    for number, option in enumerate(options):
        _check_command(option, f"{path}.options.{number}")
