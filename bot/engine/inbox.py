"""The inbox: the only way in. An event is stored, numbered and its agent woken in one transaction, before anybody is acknowledged."""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Mapping
from dataclasses import asdict, dataclass, replace
from datetime import datetime, timedelta
from typing import Any

from psycopg.types.json import Jsonb

from adapters.base import Image, Incoming, Quote
from bot.engine.events import Origin
from memory.db import Connection, Database, value
from memory.sanitise import clean, clean_json

# Somebody joining or coming online says nothing to the bot: such a turn may be silent, like a timer's, and only `send_message` speaks in it.
_ORIGINS: Mapping[str, Origin] = {"message": "person", "retry": "person", "join": "timed", "login": "timed"}


@dataclass(frozen=True, slots=True)
class Accepted:
    """What became of an event. No `event_id`: it was here before, or its person was erased; then nothing was stored at all."""

    agent: int
    place_id: int
    event_id: int | None


async def accept(
    db: Database, incoming: Incoming, *, burst: timedelta, now: datetime, erasure_key: bytes | None = None
) -> Accepted:
    """Take one event of a platform in; durable when this returns. A redelivery (same platform and key) changes nothing.

    `burst`: how long a message waits for more of the same burst. `erasure_key`: the key of the hashes kept of erased events.
    Raises psycopg.Error when the database does not take it: do not acknowledge the platform then.
    """
    said: dict[str, str] = {}
    if incoming.quotes:
        incoming, said = await _quotable(db, incoming, erasure_key)
    person, place = incoming.person, incoming.place
    key = clean(incoming.key)
    [taken] = await db.once(
        "SELECT * FROM take_in(%s, %s, %s, %s, %s, %s, %s, %s, %s, %s, %s, %s, %s, %s, %s, %s, %s, %s, %s)",
        (
            clean(person.platform),
            clean(person.realm),
            clean(person.user_id),
            clean(person.name),
            _or_none(person.locale),
            _or_none(person.timezone),
            place.workspace,
            clean(place.external_id),
            place.kind,
            clean(place.name),
            _or_none(place.parent),
            incoming.kind,
            _ORIGINS[incoming.kind],
            key,
            Jsonb(clean_json(_payload(incoming, said))),
            round(burst.total_seconds() * 1000) if incoming.kind == "message" else 0,
            now,
            None if erasure_key is None else erased_hash(erasure_key, place.platform, key),
            place.closed,
        ),
    )
    return Accepted(taken["agent_id"], taken["place_id"], taken["event_id"])


async def accept_timed(
    connection: Connection, *, agent: int, place: int, key: str, payload: Mapping[str, Any], now: datetime
) -> int | None:
    """Take a timer's event in, inside the transaction that moves the timer on. None: this firing is in already."""
    event_id: int | None = await value(
        connection,
        "SELECT accept_event(%s, %s, 'timer', 'timed', 'timer', %s, %s, 0, %s)",
        (agent, place, key, Jsonb(clean_json(dict(payload))), now),
    )
    return event_id


async def accept_upload(
    connection: Connection, *, agent: int, place: int, document: int, payload: Mapping[str, Any], now: datetime
) -> None:
    """Tell an agent of a document that was read, inside the transaction that stores it."""
    await connection.execute(
        "SELECT accept_event(%s, %s, 'upload', 'person', 'upload', %s, %s, 0, %s)",
        (agent, place, str(document), Jsonb(clean_json(dict(payload))), now),
    )


async def _quotable(db: Database, incoming: Incoming, key: bytes | None) -> tuple[Incoming, dict[str, str]]:
    """The event without words that are quoted nowhere, although their platform still shows them; and to whom the bot said its own, by origin.

    Of some people nothing is (SQL `not_quoted` says of whom), nor of what the bot said to them. What was forgotten is not, unless its own
    author brings it along again; and of what the bot said nothing of which it is not known any more to whom.
    """
    own = clean(incoming.person.author_id)
    origins = [clean(quote.origin) for quote in incoming.quotes if quote.origin]
    rows = await db.once("SELECT * FROM said_to(%s, %s)", (clean(incoming.place.platform), origins)) if origins else []
    said = {row["origin"]: row["author_id"] for row in rows}
    gone = {row["origin"] for row in rows if row["gone"]}
    authors = list({*said.values(), *(clean(quote.author_id) for quote in incoming.quotes)} - {""})
    rows = await db.once("SELECT not_quoted(%s, %s, %s, %s) AS author", (authors, own, incoming.place.workspace, key))
    unquoted = {row["author"] for row in rows}

    def stands(quote: Quote) -> bool:
        origin, author = clean(quote.origin), clean(quote.author_id)
        if (origin in gone and author != own) or (quote.own and not said.get(origin)):
            return False
        return not {author, said.get(origin, "")} & unquoted

    quotes = tuple(quote for quote in incoming.quotes if stands(quote))
    if key is not None and quotes:
        # Whoever came back after an erasure begins as a stranger: what they said before it stays erased.
        rows = await db.once(
            "SELECT said_before_erasure(%s, %s, %s) AS nth",
            ([clean(each.author_id) for each in quotes], [each.at for each in quotes], key),
        )
        before = {row["nth"] for row in rows}
        quotes = tuple(quote for nth, quote in enumerate(quotes, start=1) if nth not in before)
    return replace(incoming, quotes=quotes), said


def erased_hash(key: bytes, source: str, idem: str) -> bytes:
    """What is kept of an erased person's event, as SQL `erase_agent` makes it."""
    return hashlib.sha256(key + f"{source}\x1f{idem}".encode()).digest()


def _or_none(text: str | None) -> str | None:
    return None if text is None else clean(text)


def _payload(incoming: Incoming, said: Mapping[str, str]) -> dict[str, Any]:
    """What the event holds; what somebody said leaves it when it ends (SQL `wordless` says what stays).

    `said`: to whom the bot said what is quoted of its own words, by origin.
    """
    return {
        "text": incoming.text,
        "author_id": incoming.person.author_id,
        "author_name": incoming.person.name,
        "message_id": incoming.message_id,
        "addressed": incoming.addressed,
        "at": incoming.at.isoformat(),
        **({"quotes": [_quote(quote, said) for quote in incoming.quotes]} if incoming.quotes else {}),
        **({"images": [_image(image) for image in incoming.images]} if incoming.images else {}),
    }


def _quote(quote: Quote, said: Mapping[str, str]) -> dict[str, Any]:
    kept = {name: each for name, each in asdict(quote).items() if name not in ("at", "own")}
    return {**kept, "said_to": said.get(clean(quote.origin), "")}


def _image(image: Image) -> dict[str, str]:
    data = base64.b64encode(image.data).decode()
    return {"name": image.name, "url": f"data:{image.media_type};base64,{data}"}
