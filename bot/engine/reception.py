"""What the bot is to an adapter: it takes events in, follows what changed on a platform, and answers what an adapter asks beforehand.

All of it goes through a short absence of the database: an event's key makes it safe to take it in again, and the rest can be repeated.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from datetime import UTC, datetime, timedelta
from typing import Any, Protocol

from psycopg.types.json import Jsonb

from adapters.base import Answer, Changed, Incoming, Newest, Person, PlaceOf
from adapters.catalogue import in_every_language
from bot.engine.loops import insist
from memory.db import Database
from memory.sanitise import clean

PATIENCE = 60.0
"""Seconds for which the database may be away."""


class Command(Protocol):
    """Runs a command line of a person at a place; None when it is none. `made_for`: whom a pressed button was made for."""

    async def __call__(self, person: Person, place: PlaceOf, line: str, *, made_for: str | None = None) -> Answer | None: ...


class Reception:
    """The `Bot` of `adapters.base` for one process.

    `accept` takes an event in durably and returns whether it was new, `follow` applies an edit or a deletion, `command` runs a command
    line; `now` gives the time (aware).
    """

    def __init__(
        self,
        db: Database,
        *,
        accept: Callable[[Incoming], Awaitable[bool]],
        follow: Callable[[Changed], Awaitable[None]],
        command: Command,
        now: Callable[[], datetime],
    ) -> None:
        self._db, self._accept, self._follow, self._now = db, accept, follow, now
        self.command = command

    async def receive(self, incoming: Incoming) -> bool:
        """Take an event in; durable when this returns. True when it was new."""
        return await insist("taking an event in", lambda: self._accept(incoming), within=PATIENCE)

    async def changed(self, changed: Changed) -> None:
        """Follow an edit or a deletion."""
        await insist("following a change", lambda: self._follow(changed), within=PATIENCE)

    async def workspace_gone(self, platform: str, realm: str, workspace: str, *, gone: bool) -> None:
        """Begin the time after which what came from a workspace is erased, or end it."""
        await self._ask("SELECT workspace_left(%s, %s, %s, %s, %s)", platform, clean(realm), clean(workspace), gone, self._now())

    async def channels(self, platform: str) -> list[PlaceOf]:
        """The channels of a platform that are known, as they are known."""
        return [PlaceOf(platform, **row) for row in await self._ask("SELECT * FROM known_channels(%s)", platform)]

    async def place_changed(self, place: PlaceOf) -> None:
        """Take over what a platform says of a place that is known, for its threads too."""
        where = clean(place.realm), clean(place.workspace), clean(place.external_id)
        what = place.kind, clean(place.name), place.parent, place.closed
        await self._ask("SELECT place_changed(%s, %s, %s, %s, %s, %s, %s, %s)", place.platform, *where, *what)

    async def access_changed(self, person: Person, workspace: str, channels: Sequence[str] | None, *, lost: bool) -> None:
        """What came from places that a person can no longer read is used nowhere, until they can again."""
        which = None if channels is None else list(channels)
        await self._ask(
            "SELECT access_changed(%s, %s, %s, %s, %s, %s, %s)", *_named(person), clean(workspace), which, lost, self._now()
        )

    async def heard(self, platform: str) -> str | None:
        """Up to which message everything on a platform was dealt with; None: not known."""
        [row] = await self._ask("SELECT heard_until(%s) AS message_id", platform)
        found: str | None = row["message_id"]
        return found

    async def hear(self, platform: str, message_id: str) -> None:
        """Everything up to a message was dealt with."""
        await self._ask("SELECT hear_until(%s, %s)", platform, message_id)

    async def newest(self, platform: str) -> list[Newest]:
        """The channels of a platform that are known, those with the newest messages first."""
        rows = await self._ask("SELECT * FROM newest_messages(%s)", platform)
        return [Newest(row["channel"], row["workspace"], row["message_id"]) for row in rows]

    async def kept(self, place: PlaceOf, limit: int) -> Sequence[str]:
        """The newest messages of a place that are kept or quoted anywhere, by their platform's ids."""
        where = place.platform, place.realm, clean(place.external_id)
        return [row["id"] for row in await self._ask("SELECT kept_messages(%s, %s, %s, %s) AS id", *where, limit)]

    async def taken(self, person: Person, kind: str, since: datetime, channel: str | None = None) -> int:
        """How many events of a kind were taken in of a person since then, in one channel or anywhere."""
        [row] = await self._ask("SELECT taken_of(%s, %s, %s, %s, %s, %s) AS n", *_named(person), kind, since, channel)
        return int(row["n"])

    async def tell_limit(self, person: Person, at: datetime) -> str:
        """The line that says so, once a day and person; else empty."""
        lines = Jsonb(in_every_language("platform.limit"))
        [row] = await self._ask(
            "SELECT tell_today(%s, %s, %s, %s, %s) AS line", *_named(person), at.astimezone(UTC).date(), lines
        )
        return row["line"] or ""

    async def wants_login(self, person: Person, at: datetime, flap: float) -> bool:
        """Whether a person's coming online is an event: none came within the last `flap` seconds."""
        since = at - timedelta(seconds=flap)
        [row] = await self._ask("SELECT wants_login(%s, %s, %s, %s) AS wants", *_named(person), since)
        return bool(row["wants"])

    async def _ask(self, statement: str, *parameters: object) -> list[dict[str, Any]]:
        return await insist("answering an adapter", lambda: self._db.once(statement, parameters), within=PATIENCE)


def _named(person: Person) -> tuple[str, str, str]:
    return clean(person.platform), clean(person.realm), clean(person.user_id)
