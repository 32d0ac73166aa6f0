"""What exists: people, guilds, channels, messages. Plain data; `actions` changes it and tells the gateway."""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any

from tests.servers.discord.snowflakes import Snowflakes, moment

Json = dict[str, Any]

TEXT, DM, CATEGORY, PUBLIC_THREAD, PRIVATE_THREAD, FORUM = 0, 1, 4, 11, 12, 15
THREADS = (PUBLIC_THREAD, PRIVATE_THREAD)

# Kinds of messages.
DEFAULT, PIN_ADDED, USER_JOIN, THREAD_CREATED, REPLY, SLASH, THREAD_STARTER = 0, 6, 7, 18, 19, 20, 21
ORDINARY = (DEFAULT, REPLY, SLASH, 23)

# Flags of messages.
HAS_SNAPSHOT, HAS_THREAD, EPHEMERAL, LOADING, COMPONENTS_V2 = 1 << 14, 1 << 5, 1 << 6, 1 << 7, 1 << 15


def now() -> datetime:
    return datetime.now(UTC)


@dataclass(eq=False, slots=True, repr=False)
class User:
    id: int
    name: str
    bot: bool = False
    dms_open: bool = True
    # Has the app on their account, so that direct messages need no guild in common.
    installed: bool = False
    status: str = "offline"
    locale: str = "en-US"

    def __repr__(self) -> str:
        return f"User({self.name})"

    @property
    def mention(self) -> str:
        return f"<@{self.id}>"


@dataclass(eq=False, slots=True)
class Role:
    id: int
    name: str
    permissions: int
    position: int = 1

    @property
    def mention(self) -> str:
        return f"<@&{self.id}>"


@dataclass(eq=False, slots=True)
class Member:
    user: User
    roles: set[int] = field(default_factory=set)
    nick: str | None = None
    joined_at: datetime = field(default_factory=now)


@dataclass(eq=False, slots=True, repr=False)
class Guild:
    id: int
    name: str
    owner: User
    roles: dict[int, Role] = field(default_factory=dict)
    members: dict[int, Member] = field(default_factory=dict)
    channels: dict[int, Channel] = field(default_factory=dict)
    features: list[str] = field(default_factory=list)
    # Where Discord itself greets who joins (a message of kind 7).
    system_channel: Channel | None = None
    locale: str = "en-US"

    def __repr__(self) -> str:
        return f"Guild({self.name})"

    @property
    def everyone(self) -> Role:
        return self.roles[self.id]

    def channel(self, name: str) -> Channel:
        """A channel or thread by its name."""
        return next(channel for channel in self.channels.values() if channel.name == name)


@dataclass(slots=True)
class Overwrite:
    allow: int = 0
    deny: int = 0
    member: bool = False


@dataclass(eq=False, slots=True, repr=False)
class Channel:
    id: int
    kind: int
    name: str = ""
    guild: Guild | None = None
    # Of a thread: the channel it belongs to.
    parent: Channel | None = None
    topic: str | None = None
    overwrites: dict[int, Overwrite] = field(default_factory=dict)
    recipients: list[User] = field(default_factory=list)
    creator: User | None = None
    archived: bool = False
    locked: bool = False
    followers: dict[int, datetime] = field(default_factory=dict)
    messages: dict[int, Message] = field(default_factory=dict)

    def __repr__(self) -> str:
        return f"Channel({self.name or [user.name for user in self.recipients]})"

    @property
    def mention(self) -> str:
        return f"<#{self.id}>"

    @property
    def is_thread(self) -> bool:
        return self.kind in THREADS

    def last(self) -> Message | None:
        return next(reversed(self.messages.values()), None)


@dataclass(eq=False, slots=True, repr=False)
class Attachment:
    """A file; `content_type` is what the message says, `served_type` what the CDN's header says (None: the same)."""

    id: int
    filename: str
    content: bytes
    url: str
    content_type: str | None = None
    served_type: str | None = None
    gone: bool = False

    def __repr__(self) -> str:
        return f"Attachment({self.filename}, {len(self.content)} bytes)"


@dataclass(slots=True)
class Reference:
    """What a message points to; `kind` 0 is a reply or a thread's starter, 1 a forward."""

    kind: int
    message_id: int | None
    channel_id: int
    guild_id: int | None


@dataclass(eq=False, slots=True, repr=False)
class Message:
    id: int
    channel: Channel
    author: User
    content: str = ""
    kind: int = DEFAULT
    mentions: list[User] = field(default_factory=list)
    mention_roles: list[int] = field(default_factory=list)
    mention_everyone: bool = False
    attachments: list[Attachment] = field(default_factory=list)
    embeds: list[Json] = field(default_factory=list)
    components: list[Json] = field(default_factory=list)
    reference: Reference | None = None
    snapshots: list[Json] = field(default_factory=list)
    edited_at: datetime | None = None
    flags: int = 0
    nonce: str | int | None = None
    webhook_id: int | None = None
    # Of a response to an interaction.
    interaction: Json | None = None
    application_id: int | None = None
    thread: Channel | None = None
    pinned: bool = False
    deleted: bool = False
    # Earlier texts, oldest first.
    history: list[str] = field(default_factory=list)
    # time.monotonic() when the server took it.
    made_at: float = field(default_factory=time.monotonic)

    def __repr__(self) -> str:
        return f"Message({self.author.name}: {self.content[:60]!r})"

    @property
    def ephemeral(self) -> bool:
        return bool(self.flags & EPHEMERAL)

    @property
    def loading(self) -> bool:
        return bool(self.flags & LOADING)

    @property
    def created_at(self) -> datetime:
        return moment(self.id)


@dataclass(eq=False, slots=True)
class Application:
    """The app as the developer portal knows it. `privileged` holds the privileged intents that are switched on."""

    id: int
    name: str
    token: str
    owner: User
    privileged: int
    public: bool = True
    # By guild id, None for the global ones, as last written by the bot.
    commands: dict[int | None, list[Json]] = field(default_factory=dict)
    # How often the commands were overwritten.
    syncs: int = 0


class World:
    """Everything by id."""

    def __init__(self, token: str, privileged: int) -> None:
        self.ids = Snowflakes()
        self.users: dict[int, User] = {}
        self.guilds: dict[int, Guild] = {}
        self.channels: dict[int, Channel] = {}
        self.messages: dict[int, Message] = {}
        self.attachments: dict[int, Attachment] = {}
        self._direct: dict[int, Channel] = {}
        self.bot = self.add_user("Keepsake", bot=True)
        self.application = Application(self.bot.id, "Keepsake", token, self.add_user("operator"), privileged)

    def add_user(self, name: str, *, bot: bool = False) -> User:
        user = User(self.ids.next(), name, bot)
        self.users[user.id] = user
        return user

    def direct(self, user: User) -> Channel:
        """The direct messages between the bot and a person."""
        if user.id not in self._direct:
            channel = Channel(self.ids.next(), DM, recipients=[user])
            self._direct[user.id] = self.channels[channel.id] = channel
        return self._direct[user.id]

    def guilds_of(self, user: User) -> Iterator[Guild]:
        """The guilds a person shares with the bot."""
        return (guild for guild in self.guilds.values() if user.id in guild.members and self.bot.id in guild.members)

    def message(self, channel: Channel, message_id: int) -> Message | None:
        return channel.messages.get(message_id)
