"""What happens to messages, by the bot's requests or by people: the world is changed, then the gateway told."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from tests.servers.discord import intents, payloads
from tests.servers.discord.gateway import Gateway
from tests.servers.discord.mentions import Allowed, ping
from tests.servers.discord.session import Session
from tests.servers.discord.waiting import Signal
from tests.servers.discord.world import (
    DEFAULT,
    DM,
    EPHEMERAL,
    HAS_SNAPSHOT,
    PIN_ADDED,
    PRIVATE_THREAD,
    REPLY,
    Attachment,
    Channel,
    Json,
    Message,
    Reference,
    User,
    World,
    now,
)


@dataclass(slots=True)
class Draft:
    """A message before it exists."""

    content: str = ""
    kind: int = DEFAULT
    attachments: Sequence[Attachment] = ()
    embeds: list[Json] = field(default_factory=list)
    components: list[Json] = field(default_factory=list)
    reply_to: Message | None = None
    forward: Message | None = None
    flags: int = 0
    nonce: str | int | None = None
    allowed: Allowed = Allowed()
    webhook_id: int | None = None
    application_id: int | None = None
    interaction: Json | None = None
    reference: Reference | None = None
    # A forum post's first message has the id of its thread.
    id: int | None = None


class Actions:
    """Changes of messages; each is dispatched as Discord does."""

    def __init__(self, world: World, gateway: Gateway, signal: Signal, cdn: str) -> None:
        self.world = world
        self.gateway = gateway
        self.cdn = cdn
        self._signal = signal

    def attach(self, filename: str, content: bytes, content_type: str | None, served_type: str | None = None) -> Attachment:
        """A file on the CDN; `content_type` None leaves the field out of the message, as some clients do."""
        made = self.world.ids.next()
        attachment = Attachment(made, filename, content, f"{self.cdn}/{made}/{filename}", content_type, served_type)
        self.world.attachments[made] = attachment
        return attachment

    def create(self, channel: Channel, author: User, draft: Draft) -> Message:
        message = Message(
            draft.id or self.world.ids.next(),
            channel,
            author,
            draft.content,
            draft.kind,
            attachments=list(draft.attachments),
            embeds=draft.embeds,
            components=draft.components,
            flags=draft.flags,
            nonce=draft.nonce,
            webhook_id=draft.webhook_id,
            application_id=draft.application_id,
            interaction=draft.interaction,
            reference=draft.reference,
        )
        if draft.reply_to is not None:
            message.kind, message.reference = REPLY, _pointer(0, draft.reply_to)
        if draft.forward is not None:
            message.reference, message.snapshots = _pointer(1, draft.forward), [payloads.snapshot_of(draft.forward)]
            message.flags |= HAS_SNAPSHOT
        ping(self.world, message, draft.allowed, draft.reply_to.author if draft.reply_to else None)
        self.world.messages[message.id] = message
        if message.ephemeral:
            self._signal.notify()
            return message
        if channel.archived:
            self.set_thread(channel, archived=False)
        if channel.is_thread:
            self._follow(channel, [author, *([] if channel.kind == PRIVATE_THREAD else message.mentions)])
        channel.messages[message.id] = message
        self._tell("MESSAGE_CREATE", message, fresh=True)
        return message

    def _follow(self, thread: Channel, users: Sequence[User]) -> None:
        """Who writes in a thread or is mentioned there follows it from then on."""
        fresh = [user for user in users if user.id not in thread.followers and user in self.world.users.values()]
        for user in dict.fromkeys(fresh):
            thread.followers[user.id] = now()
            body = {
                "id": str(thread.id),
                "guild_id": str(thread.guild.id) if thread.guild else None,
                "member_count": len(thread.followers),
                "added_members": [payloads.thread_member_json(thread, user)],
                "removed_member_ids": [],
            }
            self.gateway.in_channel("THREAD_MEMBERS_UPDATE", _same(body), thread, intents.GUILDS)

    def edit(self, message: Message, content: str | None = None, **changes: object) -> None:
        """An edit by the author: it has an edited_timestamp."""
        if content is not None and content != message.content:
            replied = next((user for user in message.mentions if user.mention not in message.content), None)
            message.history.append(message.content)
            message.content = content
            if message.author is not self.world.bot:
                ping(self.world, message, Allowed(), replied)
        for name, value in changes.items():
            setattr(message, name, value)
        message.edited_at = now()
        self.update(message)

    def update(self, message: Message) -> None:
        """MESSAGE_UPDATE as it stands, for whatever is no edit: an unfurled link, a pin, a thread begun on it."""
        if message.flags & EPHEMERAL:
            self._signal.notify()
        else:
            self._tell("MESSAGE_UPDATE", message)

    def unfurl(self, message: Message, title: str = "A page", url: str = "https://example.com/") -> None:
        """Discord adds the preview of a link."""
        message.embeds = [*message.embeds, {"type": "link", "url": url, "title": title}]
        self.update(message)

    def pin(self, message: Message, by: User) -> None:
        message.pinned = True
        self.update(message)
        self.create(message.channel, by, Draft(kind=PIN_ADDED, reference=_pointer(0, message)))

    def delete(self, message: Message) -> None:
        self._drop(message)
        if not message.ephemeral:
            self.gateway.in_channel(
                "MESSAGE_DELETE",
                _same(_place(message.channel, id=str(message.id))),
                message.channel,
                intents.of_messages(message.channel),
            )
        self._signal.notify()

    def delete_bulk(self, messages: Sequence[Message]) -> None:
        """A moderator's bulk deletion, in one channel."""
        channel = messages[0].channel
        for message in messages:
            self._drop(message)
        body = _place(channel, ids=[str(message.id) for message in messages])
        self.gateway.in_channel("MESSAGE_DELETE_BULK", _same(body), channel, intents.of_messages(channel))

    def typing(self, channel: Channel, user: User) -> None:
        body = _place(channel, user_id=str(user.id), timestamp=int(now().timestamp()))
        if channel.guild and user.id in channel.guild.members:
            body["member"] = payloads.member_json(channel.guild.members[user.id])
        self.gateway.in_channel("TYPING_START", _same(body), channel, intents.of_typing(channel))

    def set_thread(self, thread: Channel, *, archived: bool | None = None, locked: bool | None = None) -> None:
        thread.archived = thread.archived if archived is None else archived
        thread.locked = thread.locked if locked is None else locked
        self.gateway.in_channel("THREAD_UPDATE", lambda _: payloads.channel_json(thread, self.world.bot), thread, intents.GUILDS)

    def _tell(self, event: str, message: Message, *, fresh: bool = False) -> None:
        def build(session: Session) -> Json:
            return payloads.message_json(message, self.world, session.intents, gateway=True, fresh=fresh)

        self.gateway.in_channel(event, build, message.channel, intents.of_messages(message.channel))

    def _drop(self, message: Message) -> None:
        message.deleted = True
        message.channel.messages.pop(message.id, None)


def _place(channel: Channel, **fields: object) -> Json:
    body: Json = {"channel_id": str(channel.id), **fields}
    return {**body, "guild_id": str(channel.guild.id)} if channel.kind != DM and channel.guild else body


def _same(body: Json) -> Callable[[Session], Json]:
    return lambda _: body


def _pointer(kind: int, message: Message) -> Reference:
    return Reference(kind, message.id, message.channel.id, message.channel.guild.id if message.channel.guild else None)
