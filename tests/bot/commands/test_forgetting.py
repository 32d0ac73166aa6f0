"""/memory forget: one thing with what was made of it, or everything, with the proof."""

import asyncio
import json
from dataclasses import replace
from datetime import timedelta

import psycopg
import pytest
from psycopg import sql

from adapters.base import Incoming
from bot import commands
from bot.commands import changing, forgetting, pausing, settings
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
        reply(
            None,
            call(
                "set_timer",
                request_heartbeat=True,
                purpose="water the roses",
                asked="Remind me to water the roses",
                in_minutes=90,
            ),
        ),
        DONE,
    ) as one:
        await one.talk.hear("Remind me to water the roses in 90 minutes.")
        assert "water the roses" in await one.type("/memory view")
        [timer] = await one.talk.rows("SELECT id FROM timers")
        assert (await one.type(f"/memory forget t{timer['id']}")).startswith("The timer is gone.")
        assert await one.talk.rows("SELECT id FROM timers") == []
        assert await one.talk.rows("SELECT id FROM outbox WHERE position('water the roses' IN body) > 0") == [], (
            "the bot's line about it"
        )


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
        found = await inbox.accept(db, late, burst=timedelta(), now=one.talk.at, erasure_key=KEY)
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
    timer = call("set_timer", purpose=f"feed {WORD}", asked="My dog is called", in_minutes=60)
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


# More than one thing ------------------------------------------------------------------------------------


async def test_several_numbers_go_at_once(desk: Opener, urls: Urls) -> None:
    async with desk(FACT, DONE, PASSAGE, DONE) as one:
        await one.talk.hear(f"My dog is called {WORD}.")
        await one.talk.hear(f"{WORD} likes the park.")
        [entry] = await one.talk.rows("SELECT id FROM working_context")
        [passage] = await one.talk.rows("SELECT id FROM passages")
        said = await one.type(f"/memory forget w{entry['id']}, A{passage['id']}")
        assert said.startswith(f"Forgotten: a{passage['id']}, w{entry['id']}.")
        assert await everywhere(urls.owner, WORD) == ["messages"]


async def test_a_search_is_shown_before_it_is_forgotten(desk: Opener, urls: Urls) -> None:
    async with desk(FACT, DONE, DONE, DONE) as one:
        await one.talk.hear(f"My dog is called {WORD}.")
        await one.talk.hear("The park is green.")
        shown = await one.press("/memory forget search Biscuit dog")
        assert "My dog is called Biscuit." in shown.text
        assert "Has a dog called Biscuit." in shown.text
        assert "park" not in shown.text
        assert "cannot be undone" in shown.text
        # What comes in between is not forgotten unseen.
        await one.talk.hear(f"The dog {WORD} barks.")
        again = await one.follow(shown, "Forget")
        assert "has changed" in again.text
        assert "barks" in again.text
        said = await one.follow(again, "Forget")
        assert said.text.startswith("Forgotten: ")
        assert "2 replies of mine" in said.text
        assert await everywhere(urls.owner, WORD) == []
        assert [row["content"] for row in await one.talk.rows("SELECT content FROM messages WHERE role = 'user'")] == [
            "The park is green."
        ]
        assert "Nothing I keep" in await one.type("/memory forget search Biscuit")


async def test_a_period_of_local_days(desk: Opener, urls: Urls) -> None:
    async with desk(FACT, DONE, DONE) as one:
        # 08:01 UTC on the thirtieth is still the twenty-ninth in Honolulu.
        one.talk.person = replace(one.talk.person, timezone="Pacific/Honolulu")
        await one.talk.hear(f"My dog is called {WORD}.")
        one.talk.clock[0] += timedelta(hours=3)
        await one.talk.hear("The park is green.")
        assert "I keep nothing for everything from" in await one.type("/memory forget from 2026-12-01 to 2026-12-31")
        for wrong in ("from monday to friday", "from 2026-02-30 to 2026-03-01"):
            assert "Write days as" in await one.type(f"/memory forget {wrong}")
        assert "must not be after" in await one.type("/memory forget from 2026-12-02 to 2026-12-01")
        shown = await one.press("/memory forget from 2026-11-29 to 2026-11-29")
        assert "from 29 Nov 2026 00:00 to 29 Nov 2026 23:59" in shown.text
        assert "2 messages, 1 entry of the working context" in shown.text
        said = await one.follow(shown, "Forget")
        assert "That was 2 messages, 1 entry of the working context." in said.text
        assert await everywhere(urls.owner, WORD) == []
        assert len(await one.talk.rows("SELECT id FROM messages")) == 2


async def test_a_place_goes_and_the_others_stay(desk: Opener, urls: Urls) -> None:
    async with desk(FACT, DONE, DONE, reply("Hi.")) as one:
        group, other = one.talk.elsewhere("lounge", "public"), one.talk.elsewhere("kitchen", "public")
        await group.hear(f"My dog is called {WORD}.")
        await other.hear("The park is green.")
        await one.talk.hear("Hello.")
        assert "direct message you reach every place" in await one.type("/memory forget #lounge", other)
        shown = await one.press("/memory forget #Lounge")
        assert "everything that came from #lounge" in shown.text
        await group.accept(f"{WORD} is waiting.")
        said = await one.follow(shown, "Forget")
        assert "1 waiting message taken back" in said.text
        assert await everywhere(urls.owner, WORD) == []
        left = await one.talk.rows("SELECT content FROM messages WHERE role = 'user' ORDER BY id")
        assert [row["content"] for row in left] == ["The park is green.", "Hello."]
        # And here, where it is asked.
        await one.follow(await one.press("/memory forget here", other), "Forget", talk=other)
        left = await one.talk.rows("SELECT content FROM messages WHERE role = 'user'")
        assert [row["content"] for row in left] == ["Hello."]


async def test_what_may_have_come_of_it_is_listed(desk: Opener, urls: Urls) -> None:
    later = reply("Noted.", call("working_context_append", section="profile", content="Is fond of animals."))
    async with desk(DONE, later) as one:
        await one.talk.hear(f"My dog is called {WORD}.")
        await one.talk.hear("Note that I am fond of animals.")
        [message] = await one.talk.rows("SELECT id FROM messages WHERE content LIKE '%%called Biscuit%%'")
        [entry] = await one.talk.rows("SELECT id FROM working_context")
        said = await one.press(f"/memory forget m{message['id']}")
        assert f"This may have come from it too; have a look: w{entry['id']}." in said.text
        await one.follow(said, "Forget those too")
        assert await one.talk.entries() == []


async def test_a_place_takes_along_the_workings_of_later_turns_elsewhere(desk: Opener, urls: Urls) -> None:
    looked = reply(None, call("recall_storage_search", query="dog"))
    kept = reply("Set.", call("set_timer", purpose="water the roses", asked="Remind me of the roses", in_minutes=600))
    async with desk(DONE, DONE, looked, DONE, kept) as one:
        group = one.talk.elsewhere("lounge", "public")
        await group.hear(f"My dog is called {WORD}.")
        await group.hear(f"{WORD} is a retriever.")
        await one.talk.hear("Which dog do I have?")
        await one.talk.hear("Remind me of the roses in ten hours.")
        await one.follow(await one.press("/memory forget #lounge"), "Forget")
        assert await everywhere(urls.owner, WORD) == []
        assert len(await one.talk.rows("SELECT id FROM timers WHERE due_at IS NOT NULL")) == 1


async def test_a_turn_that_only_looked_it_up_keeps_what_else_it_did(desk: Opener, urls: Urls) -> None:
    looked = reply(
        None,
        call("recall_storage_search", query="dog"),
        call("set_timer", purpose="water the roses", asked="remind me of the roses", in_minutes=600),
    )
    async with desk(reply("Ah."), looked, DONE) as one:
        await one.talk.hear("A dog!")
        await one.talk.hear("Which pet do I have? And remind me of the roses in ten hours.")
        [message] = await one.talk.rows("SELECT id FROM messages WHERE content = 'A dog!'")
        await one.type(f"/memory forget m{message['id']}")
        assert await everywhere(urls.owner, "A dog!") == []
        assert len(await one.talk.rows("SELECT id FROM timers WHERE due_at IS NOT NULL")) == 1


async def test_what_is_forgotten_in_a_channel_is_forgotten_in_the_direct_message_too(desk: Opener, urls: Urls) -> None:
    looked = reply(None, call("recall_storage_search", query="dog"))
    async with desk(FACT, DONE, looked, DONE) as one:
        group = one.talk.elsewhere("lounge", "public")
        await group.hear(f"My dog is called {WORD}.")
        await one.talk.hear("Which dog do I have?")
        [message] = await one.talk.rows("SELECT id FROM messages WHERE role = 'user' AND content LIKE '%%called Biscuit%%'")
        said = await one.type(f"/memory forget m{message['id']}", group)
        assert said.startswith(f"Forgotten: m{message['id']}, and what was made of it: 1 entry")
        assert await everywhere(urls.owner, WORD) == []


async def test_a_channel_forgets_what_came_from_another_public_one_when_it_is_named(desk: Opener, urls: Urls) -> None:
    async with desk(FACT, DONE, DONE) as one:
        group, other = one.talk.elsewhere("lounge", "public"), one.talk.elsewhere("kitchen", "public")
        await group.hear(f"My dog is called {WORD}.")
        await other.hear("Hello.")
        [entry] = await one.talk.rows("SELECT id FROM working_context")
        assert (await one.type(f"/memory forget w{entry['id']}", other)).startswith("Forgotten: w")
        assert await one.talk.entries() == []


async def test_an_entry_leaves_the_reminder_of_its_turn_alone_and_a_message_does_not(desk: Opener, urls: Urls) -> None:
    both = reply(
        "Noted.",
        call("working_context_append", section="profile", content=f"Has a dog called {WORD}."),
        call("set_timer", purpose="water the roses", asked="Remind me of the roses", in_minutes=600),
    )
    async with desk(both) as one:
        await one.talk.hear(f"My dog is called {WORD}. Remind me of the roses in ten hours.")
        [entry] = await one.talk.rows("SELECT id FROM working_context")
        [message] = await one.talk.rows("SELECT id FROM messages WHERE role = 'user'")
        await one.type(f"/memory forget w{entry['id']}")
        assert "water the roses" in await one.type("/memory view")
        assert "1 timer, 1 reply of mine" in await one.type(f"/memory forget m{message['id']}")
        assert await everywhere(urls.owner, "roses") == []


async def test_a_channel_does_not_name_what_else_came_of_it_in_a_direct_message(desk: Opener) -> None:
    looked = reply(
        None,
        call("recall_storage_search", query="dog"),
        call("working_context_append", request_heartbeat=True, section="profile", content="Is fond of retrievers."),
    )
    async with desk(DONE, looked, DONE) as one:
        group = one.talk.elsewhere("lounge", "public")
        await group.hear(f"My dog is called {WORD}.")
        await one.talk.hear("Which dog do I have? Note that I am fond of retrievers.")
        [message] = await one.talk.rows(
            "SELECT id FROM messages WHERE content LIKE '%%called Biscuit%%' AND kind = 'message' AND role = 'user'"
        )
        said = await one.press(f"/memory forget m{message['id']}", group)
        assert "may have come from it" not in said.text
        assert said.buttons == ()


async def test_everything_asked_for_twice_at_once_is_erased_once_and_said_so(desk: Opener, urls: Urls) -> None:
    async with desk(FACT, DONE) as one:
        await one.talk.hear(f"My dog is called {WORD}.")
        said = await asyncio.gather(*[one.type("/memory forget everything yes") for _ in range(4)])
        assert sum("Everything is erased" in each for each in said) == 1
        assert sum("I know nothing about you yet" in each for each in said) == 3
        assert await everywhere(urls.owner, WORD) == []


async def test_whoever_is_erased_while_they_ask_gets_an_answer(desk: Opener) -> None:
    """The asking found the agent, and then it was gone."""
    async with desk(FACT, DONE) as one:
        await one.talk.hear(f"My dog is called {WORD}.")
        asked = [await commands.ask(one.parts, one.talk.person, one.talk.place, word) for word in ("w1", "w1 A cat.", "", "")]
        shown = await commands.ask(one.parts, one.talk.person, one.talk.place, "")
        await one.type("/memory forget everything yes")
        late = (forgetting.forget, changing.correct, changing.take_back, pausing.pause)
        for body, asking in zip(late, asked, strict=True):
            with pytest.raises(commands.CommandRefused, match="I know nothing about you"):
                await body(asking)
        with pytest.raises(commands.CommandRefused, match="I know nothing about you"):
            await settings.settings(shown)
