"""/channels/{channel_id}/messages and typing."""

from __future__ import annotations

import time
from dataclasses import dataclass

from tests.servers.discord import errors, payloads
from tests.servers.discord.api import Api, Call, Parts
from tests.servers.discord.errors import ApiError, invalid_form
from tests.servers.discord.permissions import MANAGE_MESSAGES, READ_MESSAGE_HISTORY, may
from tests.servers.discord.posting import edit, known, read_draft, refer, refuse_empty, refuse_files, visible, writable
from tests.servers.discord.world import DM, Channel, Json, Message, User

# How long a nonce is remembered, in seconds.
NONCE_FOR = 300.0


@dataclass(frozen=True, slots=True)
class Typed:
    """One typing call, with time.monotonic()."""

    channel: Channel
    user: User
    at: float


class MessageRoutes:
    """What the bot may do with messages. `typed` logs its typing calls."""

    def __init__(self, api: Api, parts: Parts, typed: list[Typed]) -> None:
        self._world, self._actions = parts.world, parts.actions
        self._typed = typed
        self._nonces: dict[str, tuple[float, Message]] = {}
        api.add("POST", "/channels/{channel_id}/messages", self.post)
        api.add("GET", "/channels/{channel_id}/messages", self.history)
        api.add("POST", "/channels/{channel_id}/messages/bulk-delete", self.delete_bulk)
        api.add("GET", "/channels/{channel_id}/messages/{message_id}", self.get)
        api.add("PATCH", "/channels/{channel_id}/messages/{message_id}", self.edit)
        api.add("DELETE", "/channels/{channel_id}/messages/{message_id}", self.delete)
        api.add("POST", "/channels/{channel_id}/typing", self.typing)

    def post(self, call: Call) -> Json:
        channel = visible(self._world, call.id("channel_id"))
        writable(self._world, channel)
        draft = read_draft(call, self._actions)
        # Only a response to an interaction can be ephemeral.
        draft.flags &= ~(1 << 6)
        refer(draft, call.body, channel, self._world)
        refuse_empty(draft)
        refuse_files(draft, channel, self._world)
        told, message = self._nonces.get(str(draft.nonce), (0.0, None))
        if not (message and call.body.get("enforce_nonce") and time.monotonic() - told < NONCE_FOR):
            message = self._actions.create(channel, self._world.bot, draft)
            if draft.nonce is not None:
                self._nonces[str(draft.nonce)] = (time.monotonic(), message)
        return self._json(message, fresh=True)

    def history(self, call: Call) -> list[Json]:
        """Newest first, whatever is asked for."""
        channel = visible(self._world, call.id("channel_id"))
        query = call.log.query
        limit = int(query.get("limit", 50))
        if not 1 <= limit <= 100:
            raise invalid_form("limit", "NUMBER_TYPE_MAX", "int value should be less than or equal to 100.")
        if not may(self._world.bot, channel, self._world.bot, READ_MESSAGE_HISTORY):
            return []
        messages = list(channel.messages.values())
        if "around" in query:
            middle = int(query["around"])
            before = [one for one in messages if one.id < middle][-(limit // 2) :]
            messages = before + [one for one in messages if one.id >= middle][: limit - len(before)]
        elif "after" in query:
            messages = [one for one in messages if one.id > int(query["after"])][:limit]
        elif "before" in query:
            messages = [one for one in messages if one.id < int(query["before"])]
        return [self._json(message) for message in reversed(messages[-limit:])]

    def get(self, call: Call) -> Json:
        return self._json(self._message(call))

    def edit(self, call: Call) -> Json:
        message = self._message(call)
        if message.author is not self._world.bot:
            raise ApiError(403, 50005, "Cannot edit a message authored by another user")
        if message.channel.archived:
            raise errors.thread_archived()
        writable(self._world, message.channel)
        edit(message, call, self._actions)
        return self._json(message)

    def delete(self, call: Call) -> None:
        message = self._message(call)
        if message.author is not self._world.bot:
            if message.channel.kind == DM:
                raise ApiError(403, 50003, "Cannot execute action on a DM channel")
            if not may(self._world.bot, message.channel, self._world.bot, MANAGE_MESSAGES):
                raise errors.missing_permissions()
        self._actions.delete(message)

    def delete_bulk(self, call: Call) -> None:
        channel = visible(self._world, call.id("channel_id"))
        ids = [int(one) for one in call.body.get("messages", [])]
        if not 2 <= len(ids) <= 100:
            raise ApiError(400, 50016, "Provided too few or too many messages to delete.")
        if not may(self._world.bot, channel, self._world.bot, MANAGE_MESSAGES):
            raise errors.missing_permissions()
        self._actions.delete_bulk([channel.messages[one] for one in ids if one in channel.messages])

    def typing(self, call: Call) -> None:
        channel = visible(self._world, call.id("channel_id"))
        writable(self._world, channel)
        self._typed.append(Typed(channel, self._world.bot, time.monotonic()))
        self._actions.typing(channel, self._world.bot)

    def _message(self, call: Call) -> Message:
        return known(visible(self._world, call.id("channel_id")), call.id("message_id"))

    def _json(self, message: Message, *, fresh: bool = False) -> Json:
        return payloads.message_json(message, self._world, self._world.application.privileged, gateway=False, fresh=fresh)
