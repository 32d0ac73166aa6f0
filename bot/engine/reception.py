"""What adapters ask before they bring something in: what is kept of a place, how much was taken of whom, whose logins count."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime, timedelta

from adapters.base import Newest, Person, PlaceOf
from memory.db import Database, value
from memory.sanitise import clean


def _named(person: Person) -> tuple[str, str, str]:
    return clean(person.platform), clean(person.realm), clean(person.user_id)


async def heard(db: Database, platform: str) -> str | None:
    """Up to which message everything on a platform was dealt with; None: not known."""
    async with db.bare() as connection:
        found: str | None = await value(connection, "SELECT heard_until(%s)", (platform,))
    return found


async def hear(db: Database, platform: str, message_id: str) -> None:
    """Everything up to a message was dealt with."""
    async with db.bare() as connection:
        await connection.execute("SELECT hear_until(%s, %s)", (platform, message_id))


async def newest(db: Database, platform: str) -> list[Newest]:
    """The channels of a platform that are known, those with the newest messages first."""
    async with db.bare() as connection:
        cursor = await connection.execute("SELECT * FROM newest_messages(%s)", (platform,))
        return [Newest(row["channel"], row["workspace"], row["message_id"]) for row in await cursor.fetchall()]


async def workspace_gone(db: Database, platform: str, realm: str, workspace: str, *, gone: bool, now: datetime) -> None:
    """Begin the time after which what came from a workspace is erased, or end it."""
    async with db.bare() as connection:
        await connection.execute(
            "SELECT workspace_left(%s, %s, %s, %s, %s)", (platform, clean(realm), clean(workspace), gone, now)
        )


async def place_changed(db: Database, place: PlaceOf) -> None:
    """Take over what a platform says of a place that is known, for its threads too."""
    async with db.bare() as connection:
        await connection.execute(
            "SELECT place_changed(%s, %s, %s, %s, %s, %s, %s, %s)",
            (
                place.platform,
                clean(place.realm),
                clean(place.workspace),
                clean(place.external_id),
                place.kind,
                clean(place.name),
                place.parent,
                place.closed,
            ),
        )


async def channels(db: Database, platform: str) -> list[PlaceOf]:
    """The channels of a platform that are known, as they are known."""
    async with db.bare() as connection:
        cursor = await connection.execute("SELECT * FROM known_channels(%s)", (platform,))
        return [PlaceOf(platform, **row) for row in await cursor.fetchall()]


async def access_changed(
    db: Database, person: Person, workspace: str, channels: Sequence[str] | None, *, lost: bool, now: datetime
) -> None:
    """What came from places that a person can no longer read is used nowhere, until they can again."""
    async with db.bare() as connection:
        await connection.execute(
            "SELECT access_changed(%s, %s, %s, %s, %s, %s, %s)",
            (*_named(person), clean(workspace), None if channels is None else list(channels), lost, now),
        )


async def kept(db: Database, place: PlaceOf, limit: int) -> Sequence[str]:
    """The newest messages of a place that stand anywhere in the bot's memory, by their platform's ids."""
    async with db.bare() as connection:
        cursor = await connection.execute(
            "SELECT kept_messages(%s, %s, %s, %s) AS id", (place.platform, place.realm, clean(place.external_id), limit)
        )
        return [row["id"] for row in await cursor.fetchall()]


async def taken(db: Database, person: Person, kind: str, since: datetime, channel: str | None) -> int:
    """How many events of a kind were taken in of a person since then."""
    async with db.bare() as connection:
        return int(await value(connection, "SELECT taken_of(%s, %s, %s, %s, %s, %s)", (*_named(person), kind, since, channel)))


async def tell_limit(db: Database, person: Person, at: datetime) -> bool:
    """True once a day and person."""
    async with db.bare() as connection:
        return bool(await value(connection, "SELECT tell_today(%s, %s, %s, %s)", (*_named(person), at.astimezone(UTC).date())))


async def wants_login(db: Database, person: Person, at: datetime, flap: float) -> bool:
    """Whether a person's coming online is an event."""
    async with db.bare() as connection:
        since = at - timedelta(seconds=flap)
        return bool(await value(connection, "SELECT wants_login(%s, %s, %s, %s)", (*_named(person), since)))
