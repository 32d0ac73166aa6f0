"""Who joins is welcomed in the operator's words, once, and nothing about them is stored."""

from __future__ import annotations

import asyncio
from contextlib import nullcontext
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any

import psycopg
import pytest

from adapters.base import Bot, Incoming, Outgoing, Person, PlaceOf, TryLater, Undeliverable
from bot.speaking.welcome import Welcome
from memory.db import Database
from tests.conftest import Urls

NOW = datetime(2026, 11, 30, 12, 0, tzinfo=UTC)


@dataclass
class Door:
    """A platform that keeps what was sent, after failing as told."""

    failures: list[Exception] = field(default_factory=list)
    sent: list[Outgoing] = field(default_factory=list)
    platform: str = "test"
    channels: None = None
    limit: int = 2000

    async def run(self, bot: Bot) -> None:
        raise NotImplementedError

    async def send(self, outgoing: Outgoing) -> str:
        if self.failures:
            raise self.failures.pop(0)
        self.sent.append(outgoing)
        return "1"

    async def find(self, outgoing: Outgoing) -> str | None:
        return None

    def working(self, channel: str) -> Any:
        return nullcontext()


def joined(key: str = "join:1", name: str = "Ben") -> Incoming:
    return Incoming(
        "join", Person("test", "", "ben", name), PlaceOf("test", "", "guild", "door", "public", "door"), key, NOW, addressed=False
    )


def everything(url: str) -> dict[str, int]:
    with psycopg.connect(url, options="-c search_path=keepsake") as connection:
        tables = connection.execute("SELECT table_name FROM information_schema.tables WHERE table_schema = 'keepsake'").fetchall()
        return {t: connection.execute(f"SELECT count(*) FROM {t}".encode()).fetchone()[0] for (t,) in tables}  # type: ignore[index]


async def test_a_newcomer_is_welcomed_once_and_not_stored(db: Database, urls: Urls) -> None:
    door = Door()
    welcome = Welcome(db, "Welcome, {name}!\nRead the rules.", b"key", [door])
    before = everything(urls.owner)
    outcomes = await asyncio.gather(*(welcome.give(joined(name="Ben\n@everyone"), NOW) for _ in range(3)))
    assert sorted(outcomes) == [False, False, True]
    assert [(one.channel, one.text) for one in door.sent] == [("door", "Welcome, Ben @everyone!\nRead the rules.")]
    assert door.sent[0].outbox_id > 1 << 62
    after = everything(urls.owner)
    assert {table: after[table] - before[table] for table in after if after[table] != before[table]} == {"welcomes": 1}
    assert await welcome.give(joined("join:2"), NOW + timedelta(days=1, seconds=1)), "rejoined later"
    assert everything(urls.owner)["welcomes"] == 1, "the hash of the first is gone"


async def test_without_words_nothing_happens(db: Database, urls: Urls) -> None:
    before, door = everything(urls.owner), Door()
    assert not await Welcome(db, "", b"key", [door]).give(joined(), NOW)
    assert not await Welcome(db, "Welcome!", b"key", []).give(joined(), NOW)
    assert (door.sent, everything(urls.owner)) == ([], before)


@pytest.mark.parametrize(
    ("failure", "again"), [(Undeliverable("gone"), True), (TryLater(3600), True), (RuntimeError("perhaps sent"), False)]
)
async def test_a_welcome_that_failed_may_come_again_one_that_was_perhaps_sent_may_not(
    db: Database, failure: Exception, again: bool
) -> None:
    door = Door([failure])
    welcome = Welcome(db, "Welcome!", b"key", [door])
    assert not await welcome.give(joined(), NOW)
    assert await welcome.give(joined(), NOW) is again
    assert len(door.sent) == again


async def test_a_short_wait_is_waited(db: Database) -> None:
    door = Door([TryLater(0.01)])
    assert await Welcome(db, "Welcome!", b"key", [door]).give(joined(), NOW)
    assert len(door.sent) == 1
