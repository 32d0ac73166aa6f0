"""The record of erasures: it outlives the database, and whoever a backup brings back is erased again; who came back themselves is not."""

from __future__ import annotations

import stat
from datetime import UTC, datetime, timedelta
from pathlib import Path

import psycopg

from bot.keeping import erasures
from memory.db import Database
from tests.bot.dialogue import Dialogue, dialogue
from tests.conftest import Urls
from tests.memory.test_erasure import agent_of
from tests.servers.model import reply

KEY = b"k" * 32


async def erased(talk: Dialogue, data: Path) -> None:
    found = await erasures.erase(talk.db, talk.cache, data, await agent_of(talk), actor="person", key=KEY, now=talk.at)
    assert found.complete


def forget_the_record(owner: str) -> None:
    """As a database is that was backed up before."""
    with psycopg.connect(owner, autocommit=True) as connection:
        connection.execute("DELETE FROM keepsake.erased_people")


async def test_who_was_erased_is_erased_again_where_a_backup_brings_them_back(db: Database, urls: Urls, tmp_path: Path) -> None:
    async with dialogue(db, *[reply("Hm.")] * 2) as ada:
        await ada.hear("I sail")
        await erased(ada, tmp_path)
        # The backup has the same person, from before.
        await ada.hear("I sail")
        with psycopg.connect(urls.owner, autocommit=True) as connection:
            connection.execute("UPDATE keepsake.identities SET created_at = created_at - interval '1 day'")
        forget_the_record(urls.owner)
        before = await agent_of(ada)
        assert await erasures.reconcile(db, ada.cache, tmp_path, KEY, ada.at) == 1
        assert await agent_of(ada) != before
        assert await erasures.reconcile(db, ada.cache, tmp_path, KEY, ada.at) == 0, "once"


async def test_who_came_back_after_the_erasure_stays(db: Database, urls: Urls, tmp_path: Path) -> None:
    async with dialogue(db, *[reply("Hm.")] * 2) as ada:
        await ada.hear("I sail")
        await erased(ada, tmp_path)
        await ada.hear("I am new here")
        forget_the_record(urls.owner)
        assert await erasures.reconcile(db, ada.cache, tmp_path, KEY, ada.at) == 0
        assert [row["content"] for row in await ada.rows("SELECT content FROM messages ORDER BY id")] == ["I am new here", "Hm."]


async def test_another_key_finds_nobody(db: Database, urls: Urls, tmp_path: Path) -> None:
    async with dialogue(db, *[reply("Hm.")] * 2) as ada:
        await ada.hear("I sail")
        await erased(ada, tmp_path)
        await ada.hear("I sail")
        with psycopg.connect(urls.owner, autocommit=True) as connection:
            connection.execute("UPDATE keepsake.identities SET created_at = created_at - interval '1 day'")
        forget_the_record(urls.owner)
        assert await erasures.reconcile(db, ada.cache, tmp_path, b"x" * 32, ada.at) == 0


def test_the_file_is_private_names_nobody_and_survives_a_crash_in_the_middle(tmp_path: Path) -> None:
    at = datetime(2026, 11, 30, tzinfo=UTC)
    erasures.write(tmp_path, {("person", b"\x01" * 32): at})
    file = tmp_path / erasures.FILE
    with file.open("a") as opened:
        opened.write("person 0202")  # cut off
    erasures.write(tmp_path, {("person", b"\x03" * 32): at, ("person", b"\x01" * 32): at + timedelta(days=1)})
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    assert erasures.read(tmp_path) == {("person", b"\x01" * 32): at + timedelta(days=1), ("person", b"\x03" * 32): at}
    size = file.stat().st_size
    erasures.write(tmp_path, {("person", b"\x03" * 32): at})
    assert file.stat().st_size == size, "what it knows is not written again"
    assert erasures.read(tmp_path / "nowhere") == {}


async def test_the_file_follows_what_the_database_knows(db: Database, tmp_path: Path) -> None:
    async with dialogue(db, reply("Hm.")) as ada:
        await ada.hear("I sail")
        await erased(ada, tmp_path)
        (tmp_path / erasures.FILE).unlink()
        await erasures.keep(db, tmp_path)
        assert len(erasures.read(tmp_path)) == 1
        assert "ada" not in (tmp_path / erasures.FILE).read_text().replace(next(iter(erasures.read(tmp_path)))[1].hex(), "")
