"""What exists: workspaces, people, channels, messages, files, views. Plain data; `actions` changes it and tells the app."""

from __future__ import annotations

import itertools
import re
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any, Literal

from tests.servers.slack.app import App

Json = dict[str, Any]
Kind = Literal["im", "channel", "group", "mpim"]

# The event each kind of conversation is subscribed by, and the scope that goes with it.
HISTORY = {"im": "im:history", "channel": "channels:history", "group": "groups:history", "mpim": "mpim:history"}
READ = {"im": "im:read", "channel": "channels:read", "group": "groups:read", "mpim": "mpim:read"}

PINGS = re.compile(r"<(?:!(?:channel|here|everyone)(?:\|[^>]*)?|!subteam\^[A-Z0-9]+(?:\|[^>]*)?|@[UW][A-Z0-9]+(?:\|[^>]*)?)>")


@dataclass(eq=False, slots=True, repr=False)
class Enterprise:
    """An Enterprise Grid organisation. With a `bot_token` the app is installed for all of it."""

    id: str
    name: str
    teams: list[Team] = field(default_factory=list)
    bot: User | None = None
    bot_token: str = ""

    def __repr__(self) -> str:
        return f"Enterprise({self.name})"


@dataclass(eq=False, slots=True, repr=False)
class Team:
    """A workspace with the `app` meant for it. `bot` is the app's user there, None where it is not installed."""

    id: str
    name: str
    domain: str
    app: App
    enterprise: Enterprise | None = None
    users: dict[str, User] = field(default_factory=dict)
    channels: dict[str, Channel] = field(default_factory=dict)
    bot: User | None = None
    bot_token: str = ""

    def __repr__(self) -> str:
        return f"Team({self.name})"

    @property
    def org_wide(self) -> bool:
        return self.enterprise is not None and bool(self.enterprise.bot_token)

    def channel(self, name: str) -> Channel:
        return next(channel for channel in self.channels.values() if channel.name == name)


@dataclass(eq=False, slots=True, repr=False)
class User:
    """Somebody in one workspace; on Grid `grid_id` is the same in all of them. `dnd` is (enabled, start, end) in epoch seconds."""

    id: str
    name: str
    team: Team
    tz: str | None = "America/Los_Angeles"
    locale: str = "en-US"
    is_bot: bool = False
    bot_id: str | None = None
    app_id: str | None = None
    deleted: bool = False
    is_admin: bool = False
    is_owner: bool = False
    is_restricted: bool = False
    grid_id: str | None = None
    dnd: tuple[bool, int, int] = (False, 1, 1)
    snooze_until: int | None = None
    updated: int = field(default_factory=lambda: int(time.time()))

    def __repr__(self) -> str:
        return f"User({self.name})"

    @property
    def mention(self) -> str:
        return f"<@{self.id}>"


@dataclass(eq=False, slots=True, repr=False)
class Channel:
    """A conversation. `members` are user ids, the bot's among them; `shared` are the other workspaces of a Slack Connect channel."""

    id: str
    kind: Kind
    team: Team
    name: str = ""
    creator: User | None = None
    members: dict[str, User] = field(default_factory=dict)
    messages: dict[str, Message] = field(default_factory=dict)
    archived: bool = False
    shared: list[Team] = field(default_factory=list)
    topic: str = ""
    general: bool = False
    created: int = field(default_factory=lambda: int(time.time()))

    def __repr__(self) -> str:
        return f"Channel({self.name or [user.name for user in self.members.values()]})"

    @property
    def mention(self) -> str:
        return f"<#{self.id}|{self.name}>"

    @property
    def user(self) -> User:
        """Of direct messages: the person, who is not the bot."""
        return next(user for user in self.members.values() if not user.is_bot)

    @property
    def bot_inside(self) -> bool:
        return any(bot.id in self.members for bot in self.bots)

    @property
    def bots(self) -> list[User]:
        return [team.bot for team in (self.team, *self.shared) if team.bot is not None]

    def last(self) -> Message | None:
        return next(reversed(self.messages.values()), None)

    def thread(self, ts: str) -> list[Message]:
        """A parent and its replies, oldest first."""
        return [message for message in self.messages.values() if ts in (message.ts, message.thread_ts)]


@dataclass(eq=False, slots=True, repr=False)
class File:
    """A file. `served` is how its download answers a right token; `mode` "hosted", "check" for what only files.info tells, or
    "tombstone" when it was deleted."""

    id: str
    name: str
    content: bytes
    mimetype: str
    user: User
    served: Literal["plain", "login", "redirect", "elsewhere", "gone"] = "plain"
    served_type: str | None = None
    mode: Literal["hosted", "check", "tombstone"] = "hosted"
    title: str = ""
    uploaded: bool = True
    created: int = field(default_factory=lambda: int(time.time()))
    # Where downloads came: the path and whether the token was right.
    downloads: list[tuple[str, bool]] = field(default_factory=list)

    def __repr__(self) -> str:
        return f"File({self.name}, {len(self.content)} bytes)"


@dataclass(eq=False, slots=True, repr=False)
class Message:
    """One message. An ephemeral one has `only_for`; one that is being streamed is `streaming`."""

    ts: str
    channel: Channel
    author: User
    text: str = ""
    blocks: list[Json] = field(default_factory=list)
    attachments: list[Json] = field(default_factory=list)
    thread_ts: str | None = None
    subtype: str | None = None
    metadata: Json | None = None
    files: list[File] = field(default_factory=list)
    edited: Json | None = None
    client_msg_id: str | None = None
    username: str | None = None
    bot_id: str | None = None
    broadcast: bool = False
    only_for: User | None = None
    streaming: bool = False
    # Of a stream: how its text came first, which it has to do from then on; and whether the stop button ended it.
    stream_mode: Literal["text", "chunks"] | None = None
    stopped: bool = False
    stream_ends: float = 0.0
    # Of a stream: what came, piece by piece.
    pieces: list[str] = field(default_factory=list)
    reactions: dict[str, list[str]] = field(default_factory=dict)
    deleted: bool = False
    # The raw arguments of chat.postMessage, as link_names and parse say who is notified.
    raw: Json = field(default_factory=dict)
    # Earlier texts, oldest first.
    history: list[str] = field(default_factory=list)
    made_at: float = field(default_factory=time.monotonic)

    def __repr__(self) -> str:
        return f"Message({self.author.name}: {self.text[:60]!r})"

    @property
    def of_bot(self) -> bool:
        return self.author.is_bot and self.author.app_id is not None

    @property
    def shown(self) -> str:
        """What a reader sees: the text of the blocks where there are any, else the text. A stream's blocks are below its text."""
        texts = block_texts(self.blocks)
        return "\n".join([self.text, *texts] if self.pieces or not texts else texts)

    @property
    def notifies(self) -> list[str]:
        """The mentions in it that would ring: <!channel>, <!here>, <!everyone>, groups, people; @channel where link_names is on."""
        whole = "\n".join([self.text, *block_texts(self.blocks)])
        found = PINGS.findall(whole)
        if self.raw.get("link_names") in (True, 1, "1", "true") or self.raw.get("parse") == "full":
            found += re.findall(r"(?<!\w)@(?:channel|here|everyone)\b", whole)
        return found


@dataclass(eq=False, slots=True, repr=False)
class View:
    """A modal or a Home tab as the app last gave it; `previous` is the modal under it."""

    id: str
    type: str
    user: User
    team: Team
    body: Json
    hash: str
    previous: View | None = None
    root_id: str = ""
    open: bool = True

    def __repr__(self) -> str:
        return f"View({self.type} of {self.user.name})"

    @property
    def blocks(self) -> list[Json]:
        blocks: list[Json] = self.body.get("blocks", [])
        return blocks

    @property
    def shown(self) -> str:
        return "\n".join(block_texts(self.blocks))


@dataclass(eq=False, slots=True)
class Token:
    """Who a token speaks for: a workspace's bot, an organisation's, or the app itself. `refused` is why it no longer counts."""

    value: str
    kind: Literal["bot", "app"]
    app: App
    teams: list[Team]
    bot: User | None
    scopes: set[str]
    enterprise: Enterprise | None = None
    refused: str | None = None


class World:
    """Everything by id."""

    def __init__(self, app: App) -> None:
        # The first is that of every workspace which is not given another.
        self.apps = [app]
        self.teams: dict[str, Team] = {}
        self.enterprises: dict[str, Enterprise] = {}
        self.tokens: dict[str, Token] = {}
        self.files: dict[str, File] = {}
        self.views: dict[str, View] = {}
        self.homes: dict[str, View] = {}
        self.ephemerals: list[Message] = []
        self._numbers = itertools.count(0xA0000001)
        self._last_ts = 0.0
        self._users: dict[str, User] = {}
        self._channels: dict[str, Channel] = {}

    def id(self, prefix: str) -> str:
        return f"{prefix}0{next(self._numbers):X}"

    def ts(self) -> str:
        """Now, later than every ts before."""
        self._last_ts = max(time.time(), self._last_ts + 0.000001)
        return f"{self._last_ts:.6f}"

    def keep(self, thing: User | Channel) -> None:
        if isinstance(thing, User):
            self._users[thing.id] = thing.team.users[thing.id] = thing
        else:
            self._channels[thing.id] = thing.team.channels[thing.id] = thing

    def forget(self, channel: Channel) -> None:
        self._channels.pop(channel.id, None)
        channel.team.channels.pop(channel.id, None)

    def user(self, user_id: str) -> User | None:
        """By the local id or, on Grid, by the organisation's."""
        return self._users.get(user_id) or next((user for user in self._users.values() if user.grid_id == user_id), None)

    def channel(self, channel_id: str) -> Channel | None:
        return self._channels.get(channel_id)

    def channels(self) -> Iterator[Channel]:
        return iter(list(self._channels.values()))

    def direct(self, user: User, team: Team | None = None) -> Channel:
        """The direct messages between a person and the bot of their workspace."""
        team = team or user.team
        assert team.bot is not None, f"the app is not installed in {team.name}"
        for channel in team.channels.values():
            if channel.kind == "im" and user.id in channel.members and team.bot.id in channel.members:
                return channel
        channel = Channel(self.id("D"), "im", team, members={user.id: user, team.bot.id: team.bot})
        self.keep(channel)
        return channel


def block_texts(node: object) -> list[str]:
    """Every text in blocks, in order."""
    if isinstance(node, list):
        return [text for one in node for text in block_texts(one)]
    if not isinstance(node, dict):
        return []
    found = [node["text"]] if isinstance(node.get("text"), str) else []
    for key in ("text", "fields", "elements", "accessory", "label", "element", "hint", "title", "description", "rows", "blocks"):
        if isinstance(node.get(key), dict | list):
            found += block_texts(node[key])
    return found
