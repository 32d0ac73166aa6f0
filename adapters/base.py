"""What crosses the boundary between a platform and the bot: values, and one contract."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass
from datetime import datetime
from typing import Literal, Protocol

PlaceKind = Literal["direct", "private", "public"]


@dataclass(frozen=True, slots=True)
class PlaceOf:
    """Where something happened, in the platform's own ids.

    `realm` is the namespace of user ids (empty on Discord, the team on Slack), `workspace` the guild or team (empty for a
    direct message outside any). Unknown kinds are private. `parent` is the channel of a thread.
    """

    platform: str
    realm: str
    workspace: str
    external_id: str
    kind: PlaceKind
    name: str = ""
    parent: str | None = None


@dataclass(frozen=True, slots=True)
class Person:
    """Who acted, as the platform names them; `timezone` is an IANA name where the platform knows it.

    `roles` are the ids of the roles that the platform says they have now in the workspace they act in; filled for commands only.
    """

    platform: str
    realm: str
    user_id: str
    name: str
    locale: str | None = None
    timezone: str | None = None
    roles: tuple[str, ...] = ()

    @property
    def author_id(self) -> str:
        """The key under which quoted words of this person are found again."""
        return f"{self.platform}:{self.realm}:{self.user_id}"


@dataclass(frozen=True, slots=True)
class Quote:
    """Words of somebody else that came along with a message; data, never the person's own words."""

    author_id: str
    author_name: str
    text: str
    kind: Literal["reply", "forward", "context", "starter"]


@dataclass(frozen=True, slots=True)
class Incoming:
    """One event of a platform. `key` is unique per platform and stays the same when the event is delivered again."""

    kind: Literal["message", "retry", "join", "login"]
    person: Person
    place: PlaceOf
    key: str
    at: datetime
    text: str = ""
    message_id: str | None = None
    addressed: bool = True
    quotes: tuple[Quote, ...] = ()


@dataclass(frozen=True, slots=True)
class Outgoing:
    """One part of a reply. `outbox_id` identifies it for ever, so that a doubtful send can be looked up."""

    outbox_id: int
    channel: str
    text: str
    reply_to: str | None = None


class Undeliverable(Exception):
    """The platform refuses for good (the person closed their messages, the channel is gone): do not try again."""


class TryLater(Exception):
    """The platform refuses for now; `seconds` is how long it asks to wait."""

    def __init__(self, seconds: float) -> None:
        super().__init__(f"asked to wait {seconds:g} s")
        self.seconds = seconds


@dataclass(frozen=True, slots=True)
class Button:
    """Runs the command `line` when it is pressed, for the person it was made for alone.

    `ask`: what is asked for first, and then appended to the line (empty: nothing).
    """

    label: str
    line: str
    style: Literal["plain", "good", "danger"] = "plain"
    ask: str = ""


@dataclass(frozen=True, slots=True)
class Answer:
    """What a command says, in Markdown, to the asker alone; with the buttons that lead on."""

    text: str
    buttons: tuple[Button, ...] = ()


@dataclass(frozen=True, slots=True)
class Changed:
    """People edited a message or deleted some, in one place. `text` None: deleted. Who did it does not matter: the platform says it is so."""

    platform: str
    realm: str
    channel: str
    message_ids: tuple[str, ...]
    text: str | None
    at: datetime


@dataclass(frozen=True, slots=True)
class Newest:
    """The newest message that was taken in of a channel; `workspace` is empty for a direct message."""

    channel: str
    workspace: str
    message_id: str


class Bot(Protocol):
    """What an adapter may ask of the bot."""

    async def receive(self, incoming: Incoming) -> bool:
        """Take an event in durably; True when it was new. Returns only after the commit, so that the platform can be acknowledged."""
        ...

    async def command(self, person: Person, place: PlaceOf, line: str, *, made_for: str | None = None) -> Answer | None:
        """Run a chat command line (`/memory view`) for a person at a place; None when the text is no command.

        `made_for`: for a pressed button, the `author_id` of the person it was made for; for anybody else it does nothing but say so.
        """
        ...

    async def newest(self, platform: str, since: datetime) -> Sequence[Newest]:
        """The newest message taken in of each channel in which one was since then: from where to catch up after an absence."""
        ...

    async def changed(self, changed: Changed) -> None:
        """Follow an edit or a deletion: what waits is corrected or cancelled, what is remembered is corrected or erased."""
        ...


class Adapter(Protocol):
    """What the bot needs of a platform."""

    @property
    def platform(self) -> str:
        """The platform's name, as in `places.platform`."""
        ...

    @property
    def channels(self) -> tuple[str, ...] | None:
        """The only channels this process can send to, or None for all of the platform."""
        ...

    @property
    def limit(self) -> int:
        """The most characters of one outgoing message."""
        ...

    async def run(self, bot: Bot) -> None:
        """Take events in until the adapter is closed or the person leaves."""
        ...

    async def send(self, outgoing: Outgoing) -> str:
        """Send one message and return its platform id. Raises Undeliverable, TryLater, or another error when the outcome is unknown."""
        ...

    async def find(self, outgoing: Outgoing) -> str | None:
        """The platform id of a message that was perhaps sent before, or None when it was not."""
        ...

    def working(self, channel: str) -> AbstractAsyncContextManager[None]:
        """Show that the agent works (typing, a status line) for as long as the context is open."""
        ...
