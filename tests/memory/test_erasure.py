"""Erasing a person: everything that is theirs, their words in others' memory, and nothing of anybody else; fast, and proven."""

from __future__ import annotations

import asyncio
from datetime import timedelta

import psycopg
import pytest
from redis import Redis

from adapters.base import Person, Quote
from bot.embedded import Servers
from memory import agent_state, erasure
from memory.cache import Cache
from memory.db import Database, value
from tests.bot.commands.test_forgetting import everywhere
from tests.bot.dialogue import Dialogue, dialogue, results, seen
from tests.conftest import Urls
from tests.servers.model import call, reply

KEY = b"k" * 32
BOB = Person("console", "", "bob", "Bob")
WORD = "Marmalade"


async def agent_of(talk: Dialogue) -> int:
    [row] = await talk.rows("SELECT id FROM agents")
    return int(str(row["id"]))


async def test_words_in_other_peoples_memory_go_too(db: Database, urls: Urls) -> None:
    """A quote, what was stored of it by name, a search's result that shows it, and a waiting event that brings it along."""
    quote = Quote("console::bob", "Bob", f"{WORD} on toast is my favourite breakfast", "context")
    store = call("archival_storage_insert", content=f"Bob's favourite breakfast is {WORD} on toast.")
    search = call("recall_storage_search", query="favourite breakfast", said_by=["others"])
    async with dialogue(
        db, reply("Hello Bob."), reply("Noted.", store), reply(None, search), reply("I found it."), reply("Hm.")
    ) as ada:
        bob = ada.elsewhere("bob", "direct", workspace="", person=BOB)
        await bob.hear("Hi, I am Bob")
        room = ada.elsewhere("lobby", "public")
        await room.hear("Hear what Bob says", quotes=(quote,))
        await ada.hear("What did he say?")
        assert WORD in results(ada.model.requests[-1])[-1]
        waiting = await room.accept("One more of his", quotes=(quote,))
        found = await erasure.erase(db, ada.cache, await agent_of(bob), actor="person", key=KEY, now=ada.at)
        assert found.complete
        assert found.removed["quotes"] == 2
        assert await everywhere(urls.owner, WORD) == []
        claim = await room.claim(waiting)
        await room.agent.turn(claim)
        assert WORD not in seen(ada.model.requests[-1])
        assert [row["content"] for row in await room.rows("SELECT content FROM messages WHERE role = 'user' ORDER BY id")] == [
            "Hear what Bob says",
            "What did he say?",
            "One more of his",
        ]


async def test_a_quote_that_a_running_turn_has_read_is_not_written_back(db: Database, urls: Urls) -> None:
    quote = Quote("console::bob", "Bob", f"{WORD} is what I like best of all", "context")
    async with dialogue(db, reply("Hello Bob."), reply("I see.")) as ada:
        bob = ada.elsewhere("bob", "direct", workspace="", person=BOB)
        await bob.hear("Hi")
        room = ada.elsewhere("lobby", "public")
        claim = await room.claim(await room.accept("Look", quotes=(quote,)))  # the quote is in this process's memory now
        await erasure.erase(db, ada.cache, await agent_of(bob), actor="person", key=KEY, now=ada.at)
        await room.agent.turn(claim)
        assert WORD not in seen(ada.model.requests[-1])
        assert await everywhere(urls.owner, WORD) == []


async def test_what_was_stored_of_them_and_removed_again_goes_too(db: Database, urls: Urls) -> None:
    """Nothing but the log has it still: as it was added, and as it was before it was removed."""
    quote = Quote("console::bob", "Bob", f"{WORD} on toast is my favourite breakfast", "context")
    fact = f"Bob's favourite breakfast is {WORD} on toast."
    store = reply("Noted.", call("working_context_append", section="key_facts", content=fact))
    async with dialogue(db, reply("Hello Bob."), store, reply("Removed.", call("working_context_remove", content=fact))) as ada:
        bob = ada.elsewhere("bob", "direct", workspace="", person=BOB)
        await bob.hear("Hi, I am Bob")
        room = ada.elsewhere("lobby", "public")
        await room.hear("Hear what Bob says", quotes=(quote,))
        await room.hear("Take that out again")
        assert await room.entries() == []
        found = await erasure.erase(db, ada.cache, await agent_of(bob), actor="person", key=KEY, now=ada.at)
        assert found.complete
        assert await everywhere(urls.owner, WORD) == []


@pytest.mark.parametrize(
    ("table", "left_behind"),
    [
        (
            "messages",
            "UPDATE keepsake.messages SET author_id = 'console::bob' WHERE role = 'user' AND author_id = 'console::ada'",
        ),
        (
            "events",
            """UPDATE keepsake.events SET status = 2, payload = payload || '{"quotes": [{"author_id": "console::bob"}]}'""",
        ),
        ("memory_log_content", """UPDATE keepsake.memory_log_content SET row_before = '{"author_id": "console::bob"}'"""),
    ],
)
async def test_the_proof_finds_their_words_in_somebody_elses_rows(db: Database, urls: Urls, table: str, left_behind: str) -> None:
    """As an eraser would leave them that does not know of a place where words are."""
    async with dialogue(db, reply("Noted.", call("working_context_append", section="key_facts", content="Sails."))) as ada:
        await ada.hear("I sail")
        async with await psycopg.AsyncConnection.connect(urls.owner) as owner:
            await owner.execute(left_behind.encode())
            async with db.bare() as connection:
                before = await value(connection, "SELECT residue(0, '{console::bob}')")
            await owner.commit()
        async with db.bare() as connection:
            left = await value(connection, "SELECT residue(0, '{console::bob}')")
        assert not any(before.values())
        assert {name: number for name, number in left.items() if number} == {table: 1}


async def test_two_people_who_quote_each_other_are_erased_at_once(db: Database) -> None:
    async with dialogue(db, *[reply("Hm.")] * 2) as ada:
        bob = ada.elsewhere("bob", "direct", workspace="", person=BOB)
        await ada.hear("Hi", quotes=(Quote("console::bob", "Bob", "words of Bob's", "reply"),))
        await bob.hear("Hi", quotes=(Quote("console::ada", "Ada", "words of Ada's", "reply"),))
        both = [await agent_of(ada), await agent_of(bob)]
        found = await asyncio.gather(*(erasure.erase(db, ada.cache, a, actor="person", key=KEY, now=ada.at) for a in both))
        assert all(each.complete for each in found)


async def test_nobody_quotes_the_erased_for_a_week_unless_they_are_back(db: Database) -> None:
    """Their platform still shows what they said, and a mention brings the messages around it along."""
    from datetime import timedelta

    from adapters.base import Incoming
    from bot.engine import inbox

    quote = Quote("console::bob", "Bob", f"{WORD} is what I like", "context")

    async def heard(talk: Dialogue, key: str) -> int:
        event = Incoming("message", talk.person, talk.place, key, talk.at, "Look", quotes=(quote,))
        accepted = await inbox.accept(db, event, burst=timedelta(), now=talk.at, erasure_key=KEY)
        await talk.agent.turn(await talk.claim(accepted.agent))
        return len(await talk.rows("SELECT id FROM messages WHERE kind = 'quote'"))

    async with dialogue(db, *[reply("Hm.")] * 4) as ada:
        bob = ada.elsewhere("bob", "direct", workspace="", person=BOB)
        await bob.hear("Hi")
        await erasure.erase(db, ada.cache, await agent_of(bob), actor="person", key=KEY, now=ada.at)
        assert await heard(ada.elsewhere("lobby", "public"), "1") == 0
        await bob.hear("I am back")
        assert await heard(ada.elsewhere("lobby", "public"), "2") == 1


async def test_a_turn_that_ended_just_before_stores_nothing_in_redis(db: Database, cluster: Servers) -> None:
    cache = Cache(cluster.redis_url)
    async with dialogue(db, reply("Hello.")) as ada:
        ada.cache = cache
        claim = await ada.claim(await ada.accept(f"I like {WORD}"))
        put = agent_state.store
        held: list[tuple[object, ...]] = []

        async def late(*arguments: object) -> None:
            held.append(arguments)

        agent_state.store = late  # type: ignore[assignment]
        try:
            await ada.agent.turn(claim)
        finally:
            agent_state.store = put
        await erasure.erase(db, cache, claim.agent, actor="person", key=KEY, now=ada.at)
        await put(*held[0])  # type: ignore[arg-type]
        assert await cache.left(claim.agent) == 0
    await cache.close()
    with Redis.from_url(cluster.redis_url) as redis:
        redis.flushall()  # agents of other tests' databases have the same numbers


async def test_wake_ups_that_wait_go_too_and_what_stays_names_nobody(db: Database, urls: Urls) -> None:
    async with dialogue(db, reply("Hm.")) as ada:
        agent = await ada.accept("Hi")
        found = await erasure.erase(db, ada.cache, agent, actor="operator", key=KEY, now=ada.at)
        assert found.removed["jobs"] == 1
        assert await ada.hear("I am back") == ["Hm."]  # somebody new
        assert await agent_of(ada) != agent
        async with await psycopg.AsyncConnection.connect(urls.owner) as owner:
            rows = await (await owner.execute("SELECT actor, counts::text FROM keepsake.erasures")).fetchall()
            assert [row[0] for row in rows] == ["operator"]
            hashes = await (await owner.execute("SELECT count(*) FROM keepsake.erased_people")).fetchone()
            assert hashes == (1,)


async def test_places_of_an_erased_person_go_with_the_next_upkeep(db: Database) -> None:
    async with dialogue(db, reply("Hm.")) as ada:
        await ada.hear("Hi")
        await erasure.erase(db, ada.cache, await agent_of(ada), actor="person", key=KEY, now=ada.at)
        async with db.bare() as connection:
            assert await value(connection, "SELECT purge_erased(%s)", (ada.at,)) == 0
            assert await value(connection, "SELECT purge_erased(%s)", (ada.at + timedelta(days=8),)) == 1


async def test_no_foreign_key_of_a_large_table_is_without_an_index(urls: Urls) -> None:
    """Erasing looks up, for each row that goes, what hangs on it: without an index that is the square of a person's messages."""
    async with await psycopg.AsyncConnection.connect(urls.owner) as owner:
        rows = await (
            await owner.execute(
                """SELECT k.conrelid::regclass::text, a.attname FROM pg_constraint k
                   JOIN pg_attribute a ON a.attrelid = k.conrelid AND a.attnum = ANY (k.conkey)
                   WHERE k.contype = 'f' AND k.connamespace = 'keepsake'::regnamespace AND a.attname <> 'place_id'
                     AND k.confrelid::regclass::text NOT LIKE '%places' AND k.confrelid::regclass::text NOT LIKE '%embedding_models'
                     AND NOT EXISTS (SELECT 1 FROM pg_index i WHERE i.indrelid = k.conrelid AND i.indkey[0] = ANY (k.conkey))"""
            )
        ).fetchall()
    allowed = {("speaking", "guess_turn")}  # one row a person
    assert {(table.removeprefix("keepsake."), column) for table, column in rows} - allowed == set()
