"""The record of erasures: it outlives the database, and whoever a backup brings back is erased again; who came back themselves is not."""

from __future__ import annotations

import re
import stat
from datetime import UTC, datetime, timedelta
from pathlib import Path

import psycopg
import pytest

from bot.keeping import erasures
from memory.db import Database, value
from tests.bot.commands.conftest import Desk, Opener
from tests.bot.commands.conftest import desk as desk
from tests.bot.commands.test_linking import DISCORD, SLACK, both, linked
from tests.bot.commands.test_linking import agent_of as account
from tests.bot.dialogue import Dialogue, dialogue
from tests.conftest import Urls
from tests.memory.test_erasure import agent_of
from tests.servers.model import call, reply

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
        assert await erasures.reconcile(db, ada.cache, tmp_path, KEY, ada.at) == erasures.Again(1)
        assert await agent_of(ada) != before
        assert await erasures.reconcile(db, ada.cache, tmp_path, KEY, ada.at) == erasures.Again(), "once"


async def test_who_came_back_after_the_erasure_stays(db: Database, urls: Urls, tmp_path: Path) -> None:
    async with dialogue(db, *[reply("Hm.")] * 2) as ada:
        await ada.hear("I sail")
        await erased(ada, tmp_path)
        await ada.hear("I am new here")
        forget_the_record(urls.owner)
        assert await erasures.reconcile(db, ada.cache, tmp_path, KEY, ada.at) == erasures.Again()
        assert [row["content"] for row in await ada.rows("SELECT content FROM messages ORDER BY id")] == ["I am new here", "Hm."]


async def test_another_key_finds_nobody(db: Database, urls: Urls, tmp_path: Path) -> None:
    async with dialogue(db, *[reply("Hm.")] * 2) as ada:
        await ada.hear("I sail")
        await erased(ada, tmp_path)
        await ada.hear("I sail")
        with psycopg.connect(urls.owner, autocommit=True) as connection:
            connection.execute("UPDATE keepsake.identities SET created_at = created_at - interval '1 day'")
        forget_the_record(urls.owner)
        assert await erasures.reconcile(db, ada.cache, tmp_path, b"x" * 32, ada.at) == erasures.Again()


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
        await erasures.keep(db, tmp_path, KEY)
        assert len(erasures.read(tmp_path)) == 1
        assert "ada" not in (tmp_path / erasures.FILE).read_text().replace(next(iter(erasures.read(tmp_path)))[1].hex(), "")


async def decided(one: Desk, urls: Urls, back: str) -> erasures.Again:
    """What is applied again where a backup from before the decision is brought back: `back` puts the rows as they were."""
    await erasures.keep(one.parts.db, one.parts.data, KEY)
    with psycopg.connect(urls.owner, autocommit=True) as connection:
        connection.execute(back.encode())
        connection.execute("DELETE FROM keepsake.decisions")
    again = await erasures.reconcile(one.parts.db, one.parts.cache, one.parts.data, KEY, one.parts.now())
    assert await erasures.reconcile(one.parts.db, one.parts.cache, one.parts.data, KEY, one.parts.now()) == erasures.Again(), (
        "once"
    )
    return again


DOG = reply("Noted.", call("working_context_append", section="profile", content="Has a dog called Biscuit."))


@pytest.mark.parametrize(
    ("line", "back", "kind", "left"),
    [
        ("/memory pause", "UPDATE keepsake.agents SET paused = false", "paused", "SELECT paused FROM agents"),
        (
            "/settings openers off",
            "UPDATE keepsake.speaking SET openers = 'yes'",
            "refused",
            "SELECT openers = 'no' FROM speaking",
        ),
        (
            "/memory unshare {}",
            "UPDATE keepsake.working_context SET shareable = true",
            "unshared",
            "SELECT NOT shareable FROM working_context",
        ),
    ],
)
async def test_what_somebody_decided_is_decided_again(
    desk: Opener, urls: Urls, line: str, back: str, kind: str, left: str
) -> None:
    async with desk(DOG) as one:
        await one.talk.hear("My dog is called Biscuit.")
        [entry] = await one.talk.rows("SELECT id FROM working_context")
        for before in (f"/memory share w{entry['id']}", "/settings openers on"):
            await one.type(before)
        await one.type(line.format(f"w{entry['id']}"))
        assert await decided(one, urls, back) == erasures.Again(0, {kind: 1})
        [row] = await one.talk.rows(left)
        assert list(row.values()) == [True]


async def test_a_decision_that_was_taken_back_is_not_applied(desk: Opener, urls: Urls) -> None:
    async with desk(DOG) as one:
        await one.talk.hear("My dog is called Biscuit.")
        [entry] = await one.talk.rows("SELECT id FROM working_context")
        share, unshare = f"/memory share w{entry['id']}", f"/memory unshare w{entry['id']}"
        for line in ("/memory pause", "/memory resume", share, unshare, share, "/settings openers off", "/settings openers on"):
            await one.type(line)
        # Forgotten by the agent, and brought back by the person.
        one.talk.model.add(reply("Gone.", call("working_context_remove", content="Biscuit")))
        await one.talk.hear("Take the dog out of your notes")
        assert "is there again" in await one.type("/memory undo")
        assert await decided(one, urls, "SELECT 1") == erasures.Again()
        assert await one.talk.entries() == [("profile", "Has a dog called Biscuit.")]


async def test_blocks_and_parted_accounts_come_back_too(desk: Opener, urls: Urls) -> None:
    async with both(desk) as (one, discord, slack):
        await linked(one, discord, slack)
        for line in ("/settings cross on", "/settings cross off"):
            await one.type(line, discord)
        assert await decided(one, urls, "UPDATE keepsake.agents SET cross_accounts = true") == erasures.Again(0, {"uncrossed": 1})
        assert "separated" in (await one.type(f"/unlink {SLACK.author_id} yes", slack)).lower()
        async with one.parts.db.bare() as connection:
            assert await value(connection, "SELECT block('console', '', 'mallory', 'w', true, now())")
        again = await decided(
            one,
            urls,
            """DELETE FROM keepsake.blocks;
               SET search_path = keepsake, procrastinate, public;
               SELECT merge_agents(min(agent_id), max(agent_id), now()) FROM identities WHERE platform IN ('discord', 'slack')""",
        )
        assert again == erasures.Again(0, {"unlinked": 1, "blocked": 1})
        assert await account(one.parts.db, SLACK) != await account(one.parts.db, DISCORD)
        async with one.parts.db.bare() as connection:
            assert await value(connection, "SELECT blocked('console', '', 'mallory', 'w')")
            assert not await value(connection, "SELECT blocked('console', '', 'mallory', 'elsewhere')")


async def test_the_file_has_no_words_and_no_names_of_what_was_decided(desk: Opener) -> None:
    async with desk(DOG) as one:
        await one.talk.hear("My dog is called Biscuit.")
        [message] = await one.talk.rows("SELECT id FROM messages WHERE role = 'user'")
        await one.type(f"/memory forget m{message['id']}")
        await erasures.keep(one.parts.db, one.parts.data, KEY)
        written = (one.parts.data / erasures.FILE).read_text()
        assert "forgotten" in written
        assert not {"Biscuit", "messages", "ada", str(message["id"]) + ":"} & set(re.split(r"\s", written))
        assert all(re.fullmatch(r"[a-z]+ [0-9a-f]{64} \S+", line) for line in written.splitlines() if line)
