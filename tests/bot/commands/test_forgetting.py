"""/memory forget: one thing with what was made of it, or everything, with the proof."""

import json
from datetime import timedelta

import psycopg
from psycopg import sql

from adapters.base import Incoming
from bot.engine import inbox
from memory.db import Database
from tests.bot.commands.conftest import KEY, Opener
from tests.conftest import Urls
from tests.servers.model import call, reply

WORD = "Biscuit"
FACT = reply(None, call("working_context_append", request_heartbeat=True, section="profile", content=f"Has a dog called {WORD}."))
PASSAGE = reply(None, call("archival_storage_insert", request_heartbeat=True, content=f"{WORD} likes the park."))
DONE = reply("Noted.")


async def everywhere(owner: str, word: str) -> list[str]:
    """The tables in which a word stands, looked for as the owner role."""
    found = []
    async with await psycopg.AsyncConnection.connect(owner) as connection:
        # Not in the hashes: three letters may well stand in their hexadecimal digits.
        listed = "SELECT tablename FROM pg_tables WHERE schemaname = 'keepsake' AND tablename NOT LIKE 'erased\\_%'"
        tables = await (await connection.execute(listed)).fetchall()
        for (table,) in tables:
            query = sql.SQL("SELECT count(*) FROM keepsake.{} t WHERE t::text ILIKE %s").format(sql.Identifier(table))
            row = await (await connection.execute(query, (f"%{word}%",))).fetchone()
            if row and row[0]:
                found.append(table)
    return found


async def test_a_message_takes_along_what_was_made_of_it(desk: Opener, db: Database, urls: Urls) -> None:
    async with desk(FACT, PASSAGE, DONE, DONE) as one:
        await one.talk.hear(f"My dog is called {WORD}.")
        await one.talk.hear("Nothing special today.")
        [message] = await one.talk.rows(
            "SELECT id, turn_id FROM messages WHERE content LIKE '%%called Biscuit%%' AND role = 'user'"
        )
        said = await one.type(f"/memory forget m{message['id']}")
        assert "1 entry of the working context, 1 passage, 1 reply of mine" in said
        assert await everywhere(urls.owner, WORD) == []
        left = await one.talk.rows("SELECT content FROM messages WHERE kind = 'message' ORDER BY id")
        assert [row["content"] for row in left] == ["Nothing special today.", "Noted."]
        logged = await one.talk.rows("SELECT actor, action, target, target_id FROM memory_log ORDER BY id DESC LIMIT 1")
        assert logged == [{"actor": "person", "action": "/memory forget", "target": "message", "target_id": message["id"]}]


async def test_a_reply_that_repeats_the_message_goes_with_it(desk: Opener, db: Database, urls: Urls) -> None:
    async with desk(reply(f"{WORD} is a fine name for a dog."), reply(f"As I said: {WORD} is a fine name.")) as one:
        await one.talk.hear("My dog has a name, guess it.")
        [message] = await one.talk.rows("SELECT id FROM messages WHERE role = 'user'")
        said = await one.type(f"/memory forget m{message['id']}")
        assert said == f"Forgotten: m{message['id']}, and what was made of it: 1 reply of mine."
        assert await everywhere(urls.owner, WORD) == []
        # The other way round the question stays.
        await one.talk.hear("What did you say?")
        [answer] = await one.talk.rows("SELECT id FROM messages WHERE role = 'assistant'")
        assert await one.type(f"/memory forget m{answer['id']}") == f"Forgotten: m{answer['id']}."
        assert [row["content"] for row in await one.talk.rows("SELECT content FROM messages")] == ["What did you say?"]


async def test_an_entry_goes_with_its_calls_and_the_message_stays(desk: Opener, db: Database, urls: Urls) -> None:
    async with desk(FACT, DONE) as one:
        await one.talk.hear(f"My dog is called {WORD}.")
        [entry] = await one.talk.rows("SELECT id FROM working_context")
        said = await one.type(f"/memory forget w{entry['id']}")
        assert said.startswith(f"Forgotten: w{entry['id']}.")
        assert await everywhere(urls.owner, WORD) == ["messages"]
        assert await one.talk.entries() == []
        assert json.dumps([row["calls"] for row in await one.talk.rows("SELECT calls FROM messages")]).count(WORD) == 0


async def test_the_running_turn_sees_a_new_version(desk: Opener) -> None:
    async with desk(FACT, DONE) as one:
        await one.talk.hear(f"My dog is called {WORD}.")
        before = await one.talk.rows("SELECT version FROM agents")
        [entry] = await one.talk.rows("SELECT id FROM working_context")
        await one.type(f"/memory forget w{entry['id']}")
        assert await one.talk.rows("SELECT version FROM agents") != before


async def test_a_timer(desk: Opener) -> None:
    async with desk(
        reply(None, call("set_timer", request_heartbeat=True, purpose="water the roses", in_minutes=90)), DONE
    ) as one:
        await one.talk.hear("Remind me to water the roses in 90 minutes.")
        assert "water the roses" in await one.type("/memory view")
        [timer] = await one.talk.rows("SELECT id FROM timers")
        assert (await one.type(f"/memory forget t{timer['id']}")).startswith("The timer is gone.")
        assert await one.talk.rows("SELECT id FROM timers") == []


async def test_what_is_not_there_or_not_clear_changes_nothing(desk: Opener) -> None:
    async with desk(DONE) as one:
        await one.talk.hear("Hello.")
        for line, said in (
            ("/memory forget", "Say what to forget"),
            ("/memory forget 12", "Say what to forget"),
            ("/memory forget m1 and m2", "Say what to forget"),
            ("/memory forget m999999", "There is no m999999"),
            ("/memory forget a999999999999999999", "There is no a"),
            ("/memory forget everything", "/memory forget everything yes"),
            ("/memory forget everything please", "/memory forget everything yes"),
        ):
            assert said in await one.type(line)
        assert len(await one.talk.rows("SELECT id FROM messages")) == 2


async def test_everything_is_erased_and_proven(desk: Opener, db: Database, urls: Urls) -> None:
    async with desk(FACT, PASSAGE, DONE) as one:
        await one.talk.hear(f"My dog is called {WORD}.")
        [event] = await one.talk.rows("SELECT idem FROM events")
        said = await one.type("/memory forget everything yes")
        assert "found nothing left" in said
        assert "1 entry of the working context" in said
        assert await everywhere(urls.owner, WORD) == []
        # A late redelivery of the erased message brings nobody back.
        late = Incoming("message", one.talk.person, one.talk.place, str(event["idem"]), one.talk.at, f"My dog is called {WORD}.")
        found = await inbox.accept(db, one.talk.queue, late, burst=timedelta(), now=one.talk.at, erasure_key=KEY)
        assert found.event_id is None
        assert "know nothing about you" in await one.type("/memory view")


async def test_everything_is_only_for_the_direct_message(desk: Opener) -> None:
    async with desk(DONE) as one:
        group = one.talk.elsewhere("lounge", "public")
        await group.hear("Hello.")
        assert "direct message" in await one.type("/memory forget everything yes", group)
        assert len(await one.talk.rows("SELECT id FROM messages")) == 2


async def test_not_even_the_place_names_an_erased_person(desk: Opener, urls: Urls) -> None:
    async with desk(DONE) as one:
        await one.talk.hear("Hello.")
        await one.type("/memory forget everything yes")
        assert await everywhere(urls.owner, "ada") == []


async def test_a_message_takes_along_what_later_turns_repeated_of_it(desk: Opener, db: Database, urls: Urls) -> None:
    """A later search showed it, an entry made of it was removed before, a timer was set in its turn."""
    secret = f"My dog is called {WORD}."
    entry = call("working_context_append", section="key_facts", content=f"Dog: {WORD}.", reason=f"said {WORD}")
    timer = call("set_timer", purpose=f"feed {WORD}", in_minutes=60)
    found = call("recall_storage_search", query="dog")
    steps = (
        reply("Noted.", entry, timer),
        reply(None, found),
        DONE,
        reply("Removed.", call("working_context_remove", content=f"Dog: {WORD}.")),
    )
    async with desk(*steps) as one:
        await one.talk.hear(secret)
        await one.talk.hear("which pet do I have?")
        await one.talk.hear("forget that fact")
        [message] = await one.talk.rows("SELECT id FROM messages WHERE content = %s", (secret,))
        await one.type(f"/memory forget m{message['id']}")
        assert await everywhere(urls.owner, WORD) == []
