"""What happens to messages, and what the app is told of it."""

from __future__ import annotations

import time
import uuid
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Literal

from tests.servers.discord.waiting import Signal
from tests.servers.slack import payloads
from tests.servers.slack.delivery import Deliveries, Delivery
from tests.servers.slack.world import Channel, File, Json, Message, Team, Token, User, World

PLURAL = {"im": "im", "channel": "channels", "group": "groups", "mpim": "mpim"}
Order = Literal["message_first", "mention_first"]


@dataclass(slots=True)
class Draft:
    """What goes into a message."""

    text: str = ""
    blocks: list[Json] = field(default_factory=list)
    attachments: list[Json] = field(default_factory=list)
    thread_ts: str | None = None
    files: Sequence[File] = ()
    metadata: Json | None = None
    subtype: str | None = None
    username: str | None = None
    bot_id: str | None = None
    broadcast: bool = False
    raw: Json = field(default_factory=dict)


class Actions:
    """Changes messages and tells the app. `base` is the address files are served at."""

    def __init__(self, world: World, deliveries: Deliveries, signal: Signal, statuses: dict[tuple[str, str], str]) -> None:
        self.world = world
        self.deliveries = deliveries
        self.signal = signal
        self.base = ""
        self._statuses = statuses

    # Events.

    def emit(self, name: str, event: Json, team: Team, *, shared: bool = False) -> Delivery | None:
        """An event for the installation in a workspace, when it is subscribed to and its scope was granted."""
        token = self._installation(team)
        if token is None or token.refused or not team.app.hears(name, token.scopes):
            return None
        body = payloads.event_json(event, team, self.world, shared=shared)
        return self.deliveries.send(Delivery("events_api", body, team.app))

    def in_channel(self, name: str, event: Json, channel: Channel) -> Delivery | None:
        """The same for what happens in a channel: the app hears of it only where its bot is inside."""
        self.signal.notify(channel)
        for team in (channel.team, *channel.shared):
            if team.bot is not None and team.bot.id in channel.members:
                return self.emit(name, event, team, shared=bool(channel.shared))
        return None

    def _installation(self, team: Team) -> Token | None:
        value = team.enterprise.bot_token if team.enterprise and team.enterprise.bot_token else team.bot_token
        return self.world.tokens.get(value)

    # Messages.

    def create(
        self, channel: Channel, author: User, draft: Draft, order: Order = "message_first", *, bare: bool = False
    ) -> Message:
        """A new message. In channels a mention of the bot makes a twin, before or after; `bare` twins have `event_ts` and no `ts`."""
        message = Message(
            self.world.ts(),
            channel,
            author,
            draft.text,
            draft.blocks,
            draft.attachments,
            draft.thread_ts,
            draft.subtype,
            draft.metadata,
            list(draft.files),
            client_msg_id=None if author.is_bot else str(uuid.uuid4()),
            username=draft.username,
            bot_id=draft.bot_id,
            broadcast=draft.broadcast,
            raw=draft.raw,
        )
        channel.messages[message.ts] = message
        if draft.thread_ts and author.is_bot and author.app_id in {app.id for app in self.world.apps}:
            # Whatever the app posts in a thread takes its status away.
            self._statuses.pop((channel.id, draft.thread_ts), None)
        if order == "message_first":
            self._tell(message)
        self._tell_mention(message, bare=bare)
        if order == "mention_first":
            self._tell(message)
        self.signal.notify(channel)
        return message

    def _tell(self, message: Message) -> None:
        body = self.body(message)
        self._message_event(message.channel, {**body, "event_ts": message.ts}, message.author)

    def _tell_mention(self, message: Message, *, bare: bool = False) -> None:
        bot = self.mentioned(message.channel, message.text)
        if bot is None or message.channel.kind == "im" or message.author is bot:
            return
        body = self.body(message)
        event = {**body, "type": "app_mention", "channel": message.channel.id, "event_ts": message.ts}
        event.pop("subtype", None)
        if bare:
            event.pop("ts")
        if message.channel.shared:
            event |= {"user_team": message.author.team.id, "source_team": message.author.team.id}
        self.in_channel("app_mention", event, message.channel)

    def mentioned(self, channel: Channel, text: str) -> User | None:
        return next((bot for bot in channel.bots if bot.mention in text), None)

    def edit(self, message: Message, text: str | None = None, editor: User | None = None, **changes: object) -> None:
        """An edit: `edited` is set. A mention that is new in it makes an app_mention."""
        before = self.body(message)
        was = message.text
        if text is not None:
            message.history.append(message.text)
            message.text = text
        for name, value in changes.items():
            setattr(message, name, value)
        if not (message.of_bot and message.blocks):
            # An app that changes blocks is not shown as having edited.
            message.edited = {"user": (editor or message.author).id, "ts": self.world.ts()}
        self.changed(message, before)
        if not self.mentioned(message.channel, was):
            self._tell_mention(message)

    def body(self, message: Message) -> Json:
        """A message as events show it."""
        return payloads.message_json(message, self.world, self.base)

    def change(self, message: Message, **changes: object) -> None:
        """What Slack itself changes in a message (an unfurled link): message_changed without `edited`."""
        before = self.body(message)
        for name, value in changes.items():
            setattr(message, name, value)
        self.changed(message, before)

    def delete(self, message: Message) -> None:
        """A message goes; a thread's parent with replies leaves a tombstone."""
        before = self.body(message)
        message.deleted = True
        channel = message.channel
        if len(channel.thread(message.ts)) > 1:
            message.subtype, message.text, message.blocks, message.files = "tombstone", "This message was deleted.", [], []
            self.changed(message, before, hidden=True)
            return
        channel.messages.pop(message.ts, None)
        event = {"subtype": "message_deleted", "hidden": True, "deleted_ts": message.ts, "previous_message": before}
        self._message_event(
            channel, {"type": "message", **event, "ts": (stamp := self.world.ts()), "event_ts": stamp}, message.author
        )

    def changed(self, message: Message, before: Json, *, hidden: bool = True) -> None:
        """message_changed; `before`: as `body` was."""
        after = self.body(message)
        event = {"subtype": "message_changed", "message": after, "previous_message": before, "hidden": hidden}
        stamp = self.world.ts()
        self._message_event(message.channel, {"type": "message", **event, "ts": stamp, "event_ts": stamp}, message.author)

    def _message_event(self, channel: Channel, event: Json, author: User) -> None:
        event |= {"channel": channel.id, "channel_type": channel.kind}
        if channel.shared and "user" in event:
            event |= {"user_team": author.team.id, "source_team": author.team.id}
        self.in_channel(f"message.{PLURAL[channel.kind]}", event, channel)

    def ephemeral(self, channel: Channel, author: User, reader: User, draft: Draft) -> Message:
        """A message only one person sees; it is in no history and makes no event."""
        message = Message(self.world.ts(), channel, author, draft.text, draft.blocks, draft.attachments, draft.thread_ts)
        message.only_for, message.raw, message.bot_id = reader, draft.raw, author.bot_id
        self.world.ephemerals.append(message)
        self.signal.notify(channel)
        return message

    # Streams.

    def end_stream(self, message: Message) -> None:
        """The stream is over, with what had come."""
        message.streaming = False
        self.change(message)

    def running(self, message: Message) -> bool:
        """Whether a stream still takes text; one past its life is ended here."""
        if message.streaming and time.monotonic() > message.stream_ends:
            self.end_stream(message)
        return message.streaming
