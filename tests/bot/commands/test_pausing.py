"""While memory is paused, what is said serves the running conversation alone: never searched, embedded, summarised or saved from."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta

from memory import retention
from memory.cache import Cache
from memory.db import Database
from memory.embedding_filler import EmbeddingFiller
from tests.bot.commands.test_forgetting import everywhere
from tests.bot.dialogue import SETTINGS, Dialogue, dialogue, results, seen
from tests.conftest import Urls
from tests.memory.people import ByTopic, understand
from tests.servers.model import call, reply

SECRET = "The parrot is called Columbo."


async def pause(d: Dialogue, paused: bool) -> None:
    """As /memory pause and /memory resume do."""
    [agent] = await d.rows("SELECT id FROM agents")
    async with d.db.agent(int(str(agent["id"])), everything=True) as connection:
        await connection.execute("UPDATE agents SET paused = %s, version = version + 1", (paused,))


async def test_the_running_conversation_goes_on(db: Database, urls: Urls) -> None:
    async with dialogue(db, reply("Hello."), reply("A fine name."), reply("Columbo."), reply("Which parrot?")) as d:
        await d.hear("Hi")
        await pause(d, True)
        await d.hear(SECRET)
        await d.hear("What is it called?")
        assert SECRET in seen(d.model.requests[-1])
        async with d.db.bare() as connection:
            await connection.execute("UPDATE outbox SET state = 'sent'")
        await pause(d, False)
        await d.hear("And now?")
        assert "Columbo" not in seen(d.model.requests[-1])
        assert "Hi" in seen(d.model.requests[-1])
        assert await everywhere(urls.owner, "Columbo") in ([], ["outbox"])
        assert await everywhere(urls.owner, "parrot is called") == []


async def test_nothing_is_searched_or_embedded(db: Database) -> None:
    find = reply(None, call("recall_storage_search", query="parrot Columbo"))
    async with dialogue(db, reply("Hello."), reply("A fine name."), find, reply("I cannot say.")) as d:
        await d.hear("Hi")
        await pause(d, True)
        await d.hear(SECRET)
        meaning = await understand(db, ByTopic())
        await EmbeddingFiller(db, meaning).fill()
        texts = await d.rows("SELECT m.content FROM embeddings e JOIN messages m ON m.id = e.message_id")
        assert {str(row["content"]) for row in texts} == {"Hi", "Hello."}
        await d.hear("Search for it")
        assert "No results" in results(d.model.requests[-1])[-1] or "Columbo" not in results(d.model.requests[-1])[-1]


async def test_nothing_is_saved(db: Database) -> None:
    tries = (
        call("working_context_append", section="profile", content="Has a parrot."),
        call("working_context_replace", old="tea", new="Likes coffee."),
        call("archival_storage_insert", content="The parrot."),
        call("set_timer", purpose="parrot", in_minutes=5),
    )
    store = reply("ok", call("working_context_append", section="preferences", content="Likes tea."))
    async with dialogue(db, store, reply(None, *tries), reply("Not now.")) as d:
        await d.hear("I like tea")
        await pause(d, True)
        await d.hear(SECRET)
        assert all("paused memory" in result for result in results(d.model.requests[-1])[-4:])
        assert await d.entries() == [("preferences", "Likes tea.")]
        assert await d.rows("SELECT id FROM passages UNION SELECT id FROM timers") == []


async def test_a_pause_during_a_turn_stops_its_saving(db: Database) -> None:
    async with dialogue(db, settings=SETTINGS) as d:
        store = call("working_context_append", section="profile", content="Has a parrot.")

        async def paused_meanwhile(_: object) -> object:
            await pause(d, True)
            return reply("Noted.", store)

        d.model.add(reply("Hello."), paused_meanwhile, reply(None, store), reply("I may not."))
        await d.hear("Hi")
        assert await d.hear(SECRET) == ["I may not."]
        assert await d.entries() == []


async def test_nothing_is_summarised_and_no_warning_tells_to_save(db: Database) -> None:
    small = replace(SETTINGS, budget=5_200, reply_reserve=500)
    long = "Columbo " + "flies around the room and sings. " * 40
    async with dialogue(db, settings=small, policy=lambda request: reply(f"Number {request.number}.")) as d:
        await d.hear("Hi")
        await pause(d, True)
        for _ in range(12):
            await d.hear(long)
        summaries = [seen(request) for request in d.model.requests if not request.functions]
        assert "Columbo" not in "".join(summaries), "what was said before the pause may be summed up, and nothing else"
        assert "Memory pressure" not in seen(d.model.requests[-1])
        [row] = await d.rows("SELECT summary, summary_tail, fifo_start FROM conversations")
        assert "Columbo" not in f"{row['summary']}{row['summary_tail']}"
        assert int(str(row["fifo_start"])) > 1, "the queue was flushed all the same"


async def test_after_a_day_it_goes_by_itself(db: Database, urls: Urls) -> None:
    async with dialogue(db, reply("Hello."), reply("A fine name.")) as d:
        await d.hear("Hi")
        await pause(d, True)
        await d.hear(SECRET)
        cache = Cache(None)
        assert (await retention.apply(db, cache, {}, d.at + timedelta(hours=20)))["passing"] == 0
        assert (await retention.apply(db, cache, {}, d.at + timedelta(hours=30)))["passing"] == 2
        assert await everywhere(urls.owner, "Columbo") == []
        left = await d.rows("SELECT content FROM messages ORDER BY id")
        assert [row["content"] for row in left] == ["Hi", "Hello."]


async def test_a_resume_during_a_turn_deletes_what_was_said_before_it_when_the_turn_ends(db: Database, urls: Urls) -> None:
    async with dialogue(db, settings=SETTINGS) as d:
        store = call("working_context_append", section="profile", content="Has a parrot called Columbo.")

        async def resumed_meanwhile(_: object) -> object:
            await pause(d, False)
            return reply("Never said.")

        d.model.add(
            reply("Hello."), resumed_meanwhile, reply(None, store), reply("Columbo, a fine name."), reply("Which parrot?")
        )
        await d.hear("Hi")
        await pause(d, True)
        assert await d.hear(SECRET) == ["Columbo, a fine name."]
        assert await d.entries() == []
        assert await everywhere(urls.owner, "Columbo") == ["outbox"], "which is still to be sent"
        assert [row["content"] for row in await d.rows("SELECT content FROM messages ORDER BY id")] == ["Hi", "Hello."]
        await d.hear("What is my parrot called?")
        assert "Columbo" not in seen(d.model.requests[-1])
