"""An export is complete: brought into a new agent, the same is found again, and exported again it says the same."""

import json
from typing import Any

import pytest

from adapters.base import Quote
from memory import importing
from memory.db import Database, value
from tests.bot.commands.conftest import KEY, Desk, Opener
from tests.bot.commands.test_exporting import read
from tests.servers.model import call, reply

FACT = reply("Noted.", call("working_context_append", section="profile", content="Has a dog called Biscuit.", reason="said so"))
MORE = reply(
    None,
    call("archival_storage_insert", request_heartbeat=True, content="The garden plan: roses by the wall.", tags=["garden"]),
    call("set_timer", purpose="water the roses", in_minutes=600),
    call("recall_storage_search", query="dog"),
)
DONE = reply("Noted.")


async def exported(one: Desk) -> dict[str, Any]:
    """The JSON that /memory export writes."""
    said = await one.type("/memory export")
    data: dict[str, Any] = json.loads(read(next(line.strip() for line in said.splitlines() if line.strip().endswith(".json"))))
    return data


NUMBERS = (
    "id",
    "place_id",
    "conversation_id",
    "turn_id",
    "message_id",
    "entry_id",
    "passage_id",
    "log_id",
    "target_id",
    "undoes",
    "event_id",
)
OVER = ("identities", "events", "outbox", "usage", "spending", "agents")
"""What the engine did, and who somebody is: not memory."""


def without_numbers(data: dict[str, Any]) -> dict[str, Any]:
    """The export with every number replaced by the place of its row among the rows of its table."""
    order: dict[str, dict[int, Any]] = {
        table: {row["id"]: index for index, row in enumerate(rows) if "id" in row}
        for table, rows in data.items()
        if isinstance(rows, list)
    }
    order["places"] = {row["id"]: row["external_id"] for row in data["places"]}
    order["conversations"] = {row["id"]: order["places"][row["place_id"]] for row in data["conversations"]}
    refers = {
        "place_id": "places",
        "conversation_id": "conversations",
        "turn_id": "turns",
        "message_id": "messages",
        "entry_id": "working_context",
        "passage_id": "passages",
        "log_id": "memory_log",
        "undoes": "memory_log",
    }

    def plain(row: dict[str, Any]) -> dict[str, Any]:
        made = {name: each for name, each in row.items() if name not in NUMBERS and name != "row_before"}
        made |= {name: order[refers[name]].get(row[name]) for name in refers if row.get(name) is not None}
        return made

    return {
        table: sorted((plain(row) for row in rows), key=lambda row: json.dumps(row, sort_keys=True))
        for table, rows in data.items()
        if isinstance(rows, list) and table not in OVER
    }


async def test_an_export_comes_in_again_and_the_same_is_found(desk: Opener, db: Database) -> None:
    async with desk(FACT, MORE, DONE, DONE, reply("It is Biscuit.")) as one:
        group = one.talk.elsewhere("lounge", "public")
        await one.talk.hear("My dog is called Biscuit. ☃")
        await one.talk.hear("Keep my garden plan: roses by the wall.")
        await group.hear("Hello everybody.")
        [entry] = await one.talk.rows("SELECT id FROM working_context")
        await one.type(f"/memory correct w{entry['id']} Has two dogs.")
        await one.type("/settings quiet 22:00-08:00")
        before = await exported(one)
        await one.type("/memory forget everything yes")
        async with db.bare() as connection:
            agent = await value(connection, "SELECT agent_of('console', '', 'ada', 'Ada', NULL, NULL)")
        counts = await importing.load(db, agent, before)
        assert counts["messages"] == len(before["messages"])
        after = await exported(one)
        now, then = without_numbers(after), without_numbers(before)
        for table, rows in then.items():
            assert now[table] == rows, table
        # It lives: it is seen, found, traced, undone, private, and taken along by what it came from.
        assert "Has two dogs." in await one.type("/memory view")
        assert "roses by the wall" in await one.type("/memory search roses")
        assert "Hello everybody." in await one.type("/memory why", group)
        assert "reads again: Has a dog called Biscuit." in await one.type("/memory undo")
        assert "quiet: 22:00-08:00" in await one.type("/settings")
        assert "Biscuit" not in await one.type("/memory view", group)
        await one.talk.hear("What is my dog called?")
        assert "Has a dog called Biscuit." in one.talk.model.requests[-1].contents("system")[0]
        assert "My dog is called Biscuit. ☃" in json.dumps(one.talk.model.requests[-1].messages, ensure_ascii=False)
        [message] = await one.talk.rows("SELECT id FROM messages WHERE content = 'My dog is called Biscuit. ☃'")
        await one.type(f"/memory forget m{message['id']}")
        assert await one.talk.entries() == []


async def test_it_comes_in_only_where_nothing_is_kept_and_whole_or_not_at_all(desk: Opener, db: Database) -> None:
    async with desk(FACT) as one:
        await one.talk.hear("My dog is called Biscuit.")
        data = await exported(one)
        [own] = await one.talk.rows("SELECT id FROM agents")
        with pytest.raises(importing.NotImported, match="kept of that person already"):
            await importing.load(db, int(str(own["id"])), data)
        with pytest.raises(importing.NotImported, match="no export"):
            await importing.load(db, int(str(own["id"])), {"messages": []})
        async with db.bare() as connection:
            bob = await value(connection, "SELECT agent_of('console', '', 'bob', 'Bob', NULL, NULL)")
        data = {**data, "identities": [], "places": [{**place, "external_id": "bob"} for place in data["places"]]}
        broken = {**data, "working_context": [{**data["working_context"][0], "section": "nonsense"}]}
        with pytest.raises(importing.NotImported, match="CheckViolation"):
            await importing.load(db, bob, broken)
        async with db.agent(bob, everything=True) as connection:
            assert await value(connection, "SELECT count(*) FROM messages") == 0


async def test_what_came_from_a_place_that_is_lost_stays_lost(desk: Opener, db: Database) -> None:
    async with desk(DONE, DONE) as one:
        group = one.talk.elsewhere("lounge", "public")
        await group.hear("The ferry to Norderney leaves at nine.")
        await one.talk.hear("Hello.")
        async with db.bare() as connection:
            await value(connection, "SELECT access_changed('console', '', 'ada', 'w', NULL, true, %s)", (one.talk.at,))
        data = await exported(one)
        await one.type("/memory forget everything yes")
        agent, _ = await importing.load_for(db, "console", "", "ada", data)
        async with db.agent(agent, everything=True) as connection:
            lost = await (await connection.execute("SELECT lost_at FROM conversations ORDER BY id")).fetchall()
        assert [row["lost_at"] for row in lost].count(None) == 1
        one.talk.model.add(reply(None, call("recall_storage_search", query="ferry")), DONE)
        await one.talk.hear("When does it leave?")
        assert "ferry to Norderney" not in json.dumps(one.talk.model.requests[-1].messages)


async def test_a_refused_file_makes_no_account(desk: Opener, db: Database) -> None:
    async with desk(FACT) as one:
        await one.talk.hear("My dog is called Biscuit.")
        data = await exported(one)
        await one.type("/memory forget everything yes")
        for refused in ({}, {**data, "identities": [{"platform": "console", "realm": "", "user_id": "bob"}]}):
            with pytest.raises(importing.NotImported):
                await importing.load_for(db, "console", "", "ada", refused)
        async with db.bare() as connection:
            assert await value(connection, "SELECT known_agent('console', '', 'ada')") is None
            # Nor does it end the week in which somebody erased is quoted nowhere.
            quoted = "SELECT * FROM not_quoted(ARRAY['console::ada'], '', 'w', %s)"
            assert await value(connection, quoted, (KEY,)) == "console::ada"


async def test_an_import_shares_nobody_elses_words(desk: Opener, db: Database) -> None:
    async with desk(DONE) as one:
        quote = Quote("console::ben", "Ben", "My horse is called Zephyrine", "context")
        await one.talk.hear("What does he mean?", quotes=(quote,))
        data = await exported(one)
        await one.type("/memory forget everything yes")
        data["messages"] = [{**row, "shareable": True} for row in data["messages"]]
        await importing.load_for(db, "console", "", "ada", data)
        rows = await one.talk.rows("SELECT kind, shareable FROM messages ORDER BY id")
        assert {row["shareable"] for row in rows if row["kind"] == "quote"} == {False}
        assert {row["shareable"] for row in rows if row["kind"] == "message"} == {True}


async def test_what_an_old_export_says_of_a_place_changes_nothing(desk: Opener, db: Database) -> None:
    """A channel that was public then and is private now stays private for everybody."""
    async with desk(DONE, DONE) as one:
        group = one.talk.elsewhere("lounge", "public")
        await group.hear("Hello everybody.")
        await one.talk.hear("Hello.")
        data = await exported(one)
        await one.type("/memory forget everything yes")
        async with db.bare() as connection:
            await value(connection, "SELECT place_of('console', '', 'w', 'lounge', 'private', 'lounge', NULL, NULL)")
            agent = await value(connection, "SELECT agent_of('console', '', 'ada', 'Ada', NULL, NULL)")
        await importing.load(db, agent, data)
        async with db.agent(agent, everything=True) as connection:
            assert await value(connection, "SELECT kind FROM places WHERE external_id = 'lounge'") == "private"


async def test_somebody_elses_export_does_not_come_in(desk: Opener, db: Database) -> None:
    """Bob's reminders would be said in Ada's direct message."""
    async with desk(
        reply("Set.", call("set_timer", purpose="water the roses", asked="Remind me of the roses", in_minutes=600))
    ) as one:
        await one.talk.hear("Remind me of the roses in ten hours.")
        data = await exported(one)
        async with db.bare() as connection:
            bob = await value(connection, "SELECT agent_of('console', '', 'bob', 'Bob', NULL, NULL)")
        with pytest.raises(importing.NotImported, match="export of somebody else"):
            await importing.load(db, bob, data)
        with pytest.raises(importing.NotImported, match="direct messages is somebody else's"):
            await importing.load(db, bob, {**data, "identities": []})
        async with db.agent(bob, everything=True) as connection:
            assert await value(connection, "SELECT count(*) FROM timers") == 0
            assert await value(connection, "SELECT count(*) FROM conversations") == 0


@pytest.mark.parametrize(
    "places",
    [
        [{"id": 1}],
        [{"id": 1, "platform": "console\x00", "realm": "", "workspace": "", "external_id": "x", "kind": "public", "name": ""}],
        [{"id": 1, "platform": "console\ud800", "realm": "", "workspace": "", "external_id": "x", "kind": "public", "name": ""}],
        [{"id": 1, "platform": "console", "realm": "", "workspace": "", "external_id": "x", "kind": "nonsense", "name": ""}],
        "nonsense",
        7,
    ],
)
async def test_what_only_looks_like_an_export_is_refused_in_words(db: Database, places: object) -> None:
    async with db.bare() as connection:
        agent = await value(connection, "SELECT agent_of('console', '', 'ada', 'Ada', NULL, NULL)")
    with pytest.raises(importing.NotImported, match="does not hold what an export holds"):
        await importing.load(db, agent, {"format": importing.FORMAT, "places": places})
    with pytest.raises(importing.NotImported, match="does not hold what an export holds"):
        await importing.load(
            db, agent, {"format": importing.FORMAT, "messages": [{"conversation_id": 1, "position": 10**30}, places]}
        )
