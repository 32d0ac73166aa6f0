"""Retention: what is too old goes, by kind; nothing else, nothing of a running turn, and nothing twice when several processes do it."""

from __future__ import annotations

import asyncio
from datetime import timedelta

import pytest

from adapters.base import Person, Quote
from bot.config.keeping import RetentionSection
from bot.keeping.retention import ages
from memory import log, retention
from memory.cache import Cache
from memory.db import Database, value
from tests.bot.commands.test_forgetting import everywhere
from tests.bot.dialogue import Dialogue, dialogue, seen
from tests.conftest import Urls
from tests.servers.model import call, reply

QUOTE = Quote("console::bob", "Bob", "The ferry to Norderney leaves at nine", "context")


async def contents(talk: Dialogue) -> list[str]:
    return [str(row["content"]) for row in await talk.rows("SELECT content FROM messages ORDER BY id")]


async def test_quotes_go_after_their_time_and_the_persons_words_stay(db: Database) -> None:
    store = call("archival_storage_insert", content="Bob says the ferry to Norderney leaves at nine.")
    async with dialogue(db, reply("Nine.", store), reply("Hm.")) as d:
        room = d.elsewhere("lobby", "public")
        await room.hear("When is the ferry?", quotes=(QUOTE,))
        cut = ages(RetentionSection())
        assert cut["quotes"] == timedelta(days=30)
        removed = await retention.apply(db, d.cache, cut, d.at + timedelta(days=29))
        assert removed["quotes"] == removed["quotes_stored"] == 0
        removed = await retention.apply(db, d.cache, cut, d.at + timedelta(days=31))
        assert (removed["quotes"], removed["quotes_stored"]) == (1, 1)
        assert await contents(room) == ["When is the ferry?", "Nine."]
        d.clock[0] += timedelta(days=31)
        await room.hear("And now?")
        assert "ferry to Norderney" not in seen(d.model.requests[-1])


async def test_by_default_only_what_is_not_the_persons_own_goes(db: Database) -> None:
    store = (
        call("working_context_append", section="goals", content="Sail."),
        call("archival_storage_insert", content="She sails."),
    )
    async with dialogue(db, reply("ok", *store)) as d:
        await d.hear("I sail")
        await retention.apply(db, d.cache, ages(RetentionSection()), d.at + timedelta(days=3650))
        assert "I sail" in await contents(d)
        assert await d.entries() == [("goals", "Sail.")]
        assert len(await d.rows("SELECT id FROM passages")) == 1
        assert await d.rows("SELECT id FROM usage UNION ALL SELECT id FROM events") == []


@pytest.mark.parametrize(
    ("kind", "table"), [("messages", "messages"), ("archival", "passages"), ("log", "memory_log_content"), ("usage", "usage")]
)
async def test_each_kind_by_its_own_age(db: Database, kind: str, table: str) -> None:
    async with dialogue(db, reply("ok", call("archival_storage_insert", content="She sails."))) as d:
        await d.hear("I sail")
        days = RetentionSection(**{"messages": 0, "quotes": 0, "usage": 0, "events": 0, kind: 10})
        await retention.apply(db, d.cache, ages(days), d.at + timedelta(days=9))
        assert await d.rows(f"SELECT 1 FROM {table}")
        await retention.apply(db, d.cache, ages(days), d.at + timedelta(days=11))
        assert await d.rows(f"SELECT 1 FROM {table}") == []


async def test_what_a_prompt_showed_is_gone_from_the_next(db: Database) -> None:
    async with dialogue(db, reply("ok"), reply("ok")) as d:
        await d.hear("I sail")
        before = await d.rows("SELECT version FROM agents")
        await retention.apply(db, d.cache, {"messages": timedelta(days=1)}, d.at + timedelta(days=2))
        assert await d.rows("SELECT version FROM agents") != before
        d.clock[0] += timedelta(days=2)
        await d.hear("Still there?")
        assert "I sail" not in seen(d.model.requests[-1])


async def test_a_running_turn_keeps_its_own(db: Database) -> None:
    async with dialogue(db) as d:
        claim = await d.claim(await d.accept("An old question"))

        async def late(_: object) -> object:
            await retention.apply(db, d.cache, {"messages": timedelta(days=1)}, d.at + timedelta(days=2))
            return reply("An answer.")

        d.model.add(late)
        await d.agent.turn(claim)
        assert await d.outbox(claim) == ["An answer."]
        assert await contents(d) == ["An old question", "An answer."]


async def test_several_processes_at_once(db: Database) -> None:
    async with dialogue(db, *[reply("ok")] * 8) as d:
        for number in range(8):
            one = d.elsewhere(f"u{number}", "direct", workspace="", person=Person("console", "", f"u{number}", "U"))
            await one.hear("Hi")
        times = [retention.apply(db, d.cache, {"messages": timedelta(days=1)}, d.at + timedelta(days=2)) for _ in range(4)]
        removed = await asyncio.gather(*times)
        assert sum(each["messages"] for each in removed) == 16
        async with db.bare() as connection:
            cursor = await connection.execute("SELECT * FROM retain('messages', %s, 10, 10)", (d.at + timedelta(days=2),))
            assert await cursor.fetchall() == []


async def test_a_workspace_that_was_left_is_forgotten_after_its_grace(db: Database) -> None:
    async with dialogue(db, *[reply("ok")] * 4) as d:
        room = d.elsewhere("lobby", "public", workspace="g1")
        other = d.elsewhere("garden", "public", workspace="g2")
        await d.hear("In private")
        await room.hear("In the lobby")
        await other.hear("In the garden")
        cut = {"workspaces": timedelta(days=30)}
        # Unavailable is not left: nothing says so, and nothing goes.
        await retention.apply(db, d.cache, cut, d.at + timedelta(days=400))
        assert "In the lobby" in await contents(d)

        async def left(gone: bool) -> None:
            async with db.bare() as connection:
                await value(connection, "SELECT workspace_left('console', '', 'g1', %s, %s)", (gone, d.at))

        await left(True)
        await left(False)  # put back within the grace
        await retention.apply(db, d.cache, cut, d.at + timedelta(days=31))
        assert "In the lobby" in await contents(d)
        await left(True)
        await retention.apply(db, d.cache, cut, d.at + timedelta(days=29))
        assert "In the lobby" in await contents(d)
        await retention.apply(db, d.cache, cut, d.at + timedelta(days=31))
        assert [text for text in await contents(d) if text.startswith("In")] == ["In private", "In the garden"]
        await d.hear("Still here")


async def test_a_workspace_that_was_left_leaves_no_search_results_elsewhere(db: Database, urls: Urls) -> None:
    look = reply(None, call("recall_storage_search", query="ferry"))
    async with dialogue(db, reply("ok"), look, reply("You spoke of it."), reply("Hm.")) as d:
        room = d.elsewhere("lobby", "public", workspace="g1")
        await room.hear("The ferry to Norderney leaves at nine")
        await d.hear("When did I mean to leave?")
        assert "Norderney" in seen(d.model.requests[-1])
        async with db.bare() as connection:
            await value(connection, "SELECT workspace_left('console', '', 'g1', true, %s)", (d.at,))
        await retention.apply(db, d.cache, {"workspaces": timedelta(days=30)}, d.at + timedelta(days=31))
        assert await everywhere(urls.owner, "Norderney") == []
        await d.hear("And now?")
        assert "Norderney" not in seen(d.model.requests[-1])


async def test_what_goes_by_its_age_goes_from_the_log_too(db: Database, urls: Urls) -> None:
    store = reply(
        "Noted.",
        call("archival_storage_insert", content="The zebra Zora lives in Zagreb."),
        call("set_timer", purpose="feed Zora", asked="The zebra Zora", in_minutes=1),
    )
    async with dialogue(db, store) as d:
        await d.hear("The zebra Zora lives in Zagreb.")
        # As /memory share does.
        [message] = await d.rows("SELECT id, content, agent_id, place_id FROM messages WHERE role = 'user'")
        agent, place = int(str(message["agent_id"])), int(str(message["place_id"]))
        async with db.agent(agent, place) as connection:
            await log.record(
                connection,
                agent=agent,
                place=place,
                at=d.at,
                actor="person",
                action="/memory share",
                target="message",
                target_id=int(str(message["id"])),
                before=str(message["content"]),
                after=str(message["content"]),
                row={"shareable": False},
            )
            await connection.execute("UPDATE timers SET due_at = NULL")
            await connection.execute("UPDATE outbox SET state = 'sent'")
        days = timedelta(days=1)
        await retention.apply(
            db, Cache(None), {"messages": days, "archival": days, "timers": days, "deliveries": days}, d.at + 3 * days
        )
        assert await everywhere(urls.owner, "Zora") == []
        assert len(await d.rows("SELECT id FROM memory_log")) == 3
