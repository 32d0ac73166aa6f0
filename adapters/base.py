"""What crosses the boundary between a platform and the bot: values, and one contract."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass, field
from datetime import datetime
from typing import Literal, Protocol, runtime_checkable

PlaceKind = Literal["direct", "private", "public"]


@dataclass(frozen=True, slots=True)
class PlaceOf:
    """Where something happened, in the platform's own ids.

    `realm` is the namespace of user ids (empty on Discord, the team on Slack), `workspace` the guild or team (empty for a
    direct message outside any). `kind` None: the platform did not say; then what is known of the place stays, and one that was never seen is
    private. `parent` is the channel of a thread. What is said of a thread is said of its channel too, unless it is `closed`: it has members
    of its own.
    """

    platform: str
    realm: str
    workspace: str
    external_id: str
    kind: PlaceKind | None
    name: str = ""
    parent: str | None = None
    closed: bool = False


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
    """Words of somebody else that came along with a message; data, never the person's own words.

    `origin` is `channel/message` in the platform's ids: where they are found again when they are edited or deleted; empty: unknown.
    `at`: when they were said (aware), where the platform tells; what somebody said before they were erased is not quoted again.
    `own`: the bot itself said them, to somebody.
    """

    author_id: str
    author_name: str
    text: str
    kind: Literal["reply", "forward", "context", "starter"]
    origin: str = ""
    at: datetime | None = field(default=None, compare=False)
    own: bool = field(default=False, compare=False)


@dataclass(frozen=True, slots=True)
class Image:
    """A picture that came with a message, for a model that sees: shown in the turn in which it arrives, and kept no longer.

    Its place in the message's text is a line that describes it.
    """

    name: str
    media_type: str
    data: bytes


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
    images: tuple[Image, ...] = ()


LONGEST_LINE = 60
"""Characters of a line that a button may carry: Discord's hold 100, with whom it was made for."""


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
class Outgoing:
    """One part of a reply. `outbox_id` identifies it for ever, so that a doubtful send can be looked up.

    `streamed`: the text grows or has grown by edits, so it does not identify the message. `workspace`: the place's guild or team, empty
    where it is not known or there is none. `mention`: the id of the one user whom the message notifies, whatever its text says.
    `buttons` stand under it and serve only the person of the author id `made_for`.
    """

    outbox_id: int
    channel: str
    text: str
    reply_to: str | None = None
    streamed: bool = False
    workspace: str = ""
    mention: str = ""
    buttons: tuple[Button, ...] = ()
    made_for: str = ""


class Undeliverable(Exception):
    """The platform refuses for good (the person closed their messages, the channel is gone): do not try again."""


class Unreachable(Undeliverable):
    """The person themselves cannot be written to: nothing more is tried until they write again."""


class TryLater(Exception):
    """The platform refuses for now; `seconds` is how long it asks to wait."""

    def __init__(self, seconds: float) -> None:
        super().__init__(f"asked to wait {seconds:g} s")
        self.seconds = seconds


@dataclass(frozen=True, slots=True)
class Answer:
    """What a command says, in Markdown, to the asker alone; with the buttons that lead on."""

    text: str
    buttons: tuple[Button, ...] = ()


@dataclass(frozen=True, slots=True)
class Changed:
    """People edited a message or deleted some, in one place. `text` None: deleted. Who did it does not matter: the platform says it is so.

    `message_ids` None: the channel is gone with its threads and all that was said there.
    `mark`: the operator wants what was deleted kept and marked as such instead of erased.
    """

    platform: str
    realm: str
    channel: str
    message_ids: tuple[str, ...] | None
    text: str | None
    at: datetime
    mark: bool = False


@dataclass(frozen=True, slots=True)
class Newest:
    """A channel that is known and the newest message kept of it (empty: none); `workspace` is empty for a direct message."""

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

    async def heard(self, platform: str) -> str | None:
        """Up to which message everything on a platform was dealt with: from where to catch up after an absence; None: not known."""
        ...

    async def hear(self, platform: str, message_id: str) -> None:
        """Everything on a platform up to a message was dealt with, taken in or not; earlier ones than said before change nothing."""
        ...

    async def newest(self, platform: str) -> Sequence[Newest]:
        """Every channel of a platform that is known, those with the newest messages first."""
        ...

    async def changed(self, changed: Changed) -> None:
        """Follow an edit or a deletion: what waits is corrected or cancelled, what is remembered is corrected or erased."""
        ...

    async def workspace_gone(self, platform: str, realm: str, workspace: str, *, gone: bool) -> None:
        """The app was removed from a workspace, or put back; never for one that is only unavailable."""
        ...

    async def channels(self, platform: str) -> Sequence[PlaceOf]:
        """The channels of a platform that are known, as they are known, the public ones first; no threads and no direct messages."""
        ...

    async def place_changed(self, place: PlaceOf) -> None:
        """A place is of another kind or name now, or may be; with a channel its threads are. Nothing happens where it is not known."""
        ...

    async def access_changed(self, person: Person, workspace: str, channels: Sequence[str] | None, *, lost: bool) -> None:
        """A person can no longer read these channels of a workspace (None: any of them, as they left it), or can again."""
        ...

    async def kept(self, place: PlaceOf, limit: int) -> Sequence[str]:
        """The ids of the newest messages of a place that are kept or quoted anywhere: which of them are gone meanwhile?"""
        ...

    async def taken(self, person: Person, kind: str, since: datetime, channel: str | None = None) -> int:
        """How many events of a kind were taken in of a person since then (in one channel), by any process."""
        ...

    async def tell_limit(self, person: Person, at: datetime) -> str:
        """Once a day (UTC) and person, for any process, the line that says that nothing more is taken today; else empty."""
        ...

    async def wants_login(self, person: Person, at: datetime, flap: float) -> bool:
        """Whether somebody's coming online is an event: they agreed to be spoken to first, can be written to, and did not come
        online within the last `flap` seconds, wherever that was seen."""
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


class Served(Adapter, Protocol):
    """An adapter of a platform that a server process serves."""

    refused: str | None
    """Why the platform refuses the bot for good (a wrong token), for the operator; None: it does not."""

    async def check(self) -> None:
        """Raises where the platform is not heard now."""
        ...


@runtime_checkable
class Streams(Protocol):
    """What an adapter has besides when its messages can grow while the model writes.

    Every text is the whole text so far, at most `limit` characters. Errors are those of `send`. What was begun is finished by whoever
    sends the outbox, perhaps in another process, days later.
    """

    @property
    def pace(self) -> float | None:
        """The least seconds between two changes of one message; None: not chosen, and the methods below are not called."""
        ...

    async def begin(self, outgoing: Outgoing) -> str:
        """Send the beginning of a message and return its platform id. Again with the same `outbox_id`: the same message, if that can be told."""
        ...

    async def extend(self, outgoing: Outgoing, platform_id: str) -> None:
        """Let a begun message show more."""
        ...

    async def finish(self, outgoing: Outgoing, platform_id: str) -> str:
        """Give a begun message its final text, also one that another process began; doing it again changes nothing. Returns the id of the
        message that has the text, another one where the platform no longer changes the first."""
        ...


@runtime_checkable
class Quiets(Protocol):
    """What an adapter has besides when its platform knows hours in which people do not want to be disturbed."""

    async def quiet(self, person: Person) -> datetime | None:
        """Until when somebody does not want to be disturbed; None: they may be, or the platform does not tell."""
        ...
