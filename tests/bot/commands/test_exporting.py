"""/memory export, and the walk over the real schema: no personal table or column is left out without a reason."""

import json
import stat
from dataclasses import replace
from pathlib import Path

from adapters.base import Person, PlaceOf
from bot.commands.context import ask
from memory.db import Database
from memory.export import EXPORTED, LEFT_OUT, PLACES, collect
from tests.bot.commands.conftest import Opener
from tests.servers.model import call, reply

FACT = reply(None, call("working_context_append", request_heartbeat=True, section="profile", content="Has a dog called Biscuit."))
DONE = reply("Noted. ✓")


def read(path: str) -> str:
    """A file that was written."""
    return Path(path).read_text("utf-8")


async def test_files_are_private_complete_and_never_overwritten(desk: Opener, tmp_path: Path) -> None:
    async with desk(FACT, DONE) as one:
        await one.talk.hear("My dog is called Biscuit. \u2603")
        for _ in range(2):
            said = await one.type("/memory export")
        files = sorted((tmp_path / "exports").iterdir())
        assert len(files) == 4
        assert all(str(file) in said for file in files if "-2." in file.name)
        assert {stat.S_IMODE(file.stat().st_mode) for file in files} == {0o600}
        data = json.loads(next(file for file in files if file.suffix == ".json").read_text())
        assert data["format"] == "keepsake-export-1"
        assert [row["content"] for row in data["working_context"]] == ["Has a dog called Biscuit."]
        assert {"My dog is called Biscuit. \u2603", "Noted. ✓"} <= {row["content"] for row in data["messages"]}
        assert data["identities"][0]["user_id"] == "ada"
        assert data["places"][0]["external_id"] == "ada"
        readable = next(file for file in files if file.suffix == ".md").read_text()
        assert "- (profile) Has a dog called Biscuit." in readable
        assert "**Ada**: My dog is called Biscuit." in readable


async def test_elsewhere_it_is_text(desk: Opener) -> None:
    async with desk(DONE) as one:
        one.talk.place = PlaceOf("discord", "", "", "dm", "direct")
        await one.talk.hear("Hello there.")
        assert (await one.type("/memory export")).startswith("# What the bot remembers about you")


async def test_every_personal_table_and_column_is_exported_or_left_out_for_a_reason(db: Database) -> None:
    async with db.bare() as connection:
        rows = await (
            await connection.execute(
                """SELECT c.relname AS table_name, a.attname AS column_name FROM pg_class c
                   JOIN pg_namespace n ON n.oid = c.relnamespace JOIN pg_attribute a ON a.attrelid = c.oid
                   WHERE n.nspname = 'keepsake' AND c.relkind IN ('r', 'p') AND a.attnum > 0 AND NOT a.attisdropped"""
            )
        ).fetchall()
    columns: dict[str, set[str]] = {}
    for row in rows:
        columns.setdefault(row["table_name"], set()).add(row["column_name"])
    personal = {table for table, names in columns.items() if "agent_id" in names} | {"agents"}
    for table in personal - set(LEFT_OUT):
        assert table in EXPORTED, f"{table} holds personal data: export it, or say in LEFT_OUT why not"
        for column in columns[table] - set(EXPORTED[table]) - {"agent_id"}:
            assert LEFT_OUT.get(f"{table}.{column}"), f"{table}.{column}: export it, or say in LEFT_OUT why not"
    for table, names in {**EXPORTED, "places": PLACES}.items():
        assert set(names) <= columns[table]
    assert {name.split(".")[0] for name in LEFT_OUT} <= personal


async def test_a_group_place_exports_nothing_of_the_others_not_even_in_the_log(desk: Opener) -> None:
    async with desk(FACT, DONE, DONE) as one:
        await one.talk.hear("My dog is called Biscuit.")
        group = one.talk.elsewhere("lounge", "public")
        await group.hear("Hello everybody.")
        said = await one.type("/memory export", group)
        written = "".join(read(line.strip()) for line in said.splitlines() if line.startswith("  "))
        assert "Hello everybody." in written
        assert "Biscuit" not in written


async def test_elsewhere_the_json_is_there_for_the_asking(desk: Opener) -> None:
    async with desk(DONE) as one:
        one.talk.place = PlaceOf("discord", "", "", "dm", "direct")
        await one.talk.hear("Hello there.")
        assert json.loads(await one.type("/memory export json"))["format"] == "keepsake-export-1"


async def test_an_export_in_a_channel_names_no_private_place(desk: Opener, db: Database) -> None:
    async with desk(DONE, DONE) as one:
        await one.talk.elsewhere("layoffs", "private").hear("Hello.")
        group = one.talk.elsewhere("lounge", "public")
        await group.hear("Hello everybody.")
        asking = await ask(one.parts, group.person, group.place, "")
        async with asking.open(asking.allowed("export")) as connection:
            tables = await collect(connection, partly=True)
        assert [row["name"] for row in tables["places"]] == ["lounge"]


async def test_the_files_of_an_export_go_with_the_person(desk: Opener) -> None:
    async with desk(reply("Noted."), reply("Noted.")) as one:
        eve = replace(one.talk, person=Person("console", "", "a.da", "Eve"), place=PlaceOf("console", "", "", "eve", "direct"))
        await one.talk.hear("My dog is called Biscuit.")
        await eve.hear("I sail.")
        for talk in (one.talk, eve):
            await one.type("/memory export", talk)
        folder = one.parts.data / "exports"
        # Of a namesake: only what is in it says whose it is.
        [theirs] = folder.glob("a.da-*.json")
        namesake = theirs.rename(folder / theirs.name.replace("a.da", "ada").replace("-2026", "-2025"))
        (folder / "notes.txt").write_text("the operator's own")
        assert len(list(folder.glob("ada-2026*"))) == 2
        assert "2 files of exports" in await one.type("/memory forget everything yes")
        assert sorted(file.name for file in folder.iterdir()) == sorted(
            [namesake.name, "notes.txt", theirs.with_suffix(".md").name]
        )
