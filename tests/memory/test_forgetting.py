"""One walk for all forgetting: what names a text as its source goes with it, and what repeats it, copy after copy, also at other people's."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from datetime import timedelta

import psycopg
import pytest
from redis.asyncio import Redis

from adapters.base import Changed, Incoming, Person, Quote
from bot.embedded import Servers
from bot.engine import changes, inbox
from memory import erasure, retention
from memory.cache import Cache
from memory.db import Database, value
from memory.proof import Traces, rarest, search
from tests.bot.commands.conftest import KEY, Desk, Opener, desk  # noqa: F401 - a fixture
from tests.bot.commands.test_forgetting import everywhere
from tests.bot.dialogue import SETTINGS, Dialogue, dialogue, seen
from tests.conftest import Urls
from tests.servers.model import Request, Step, call, reply
from tests.waiting import until

HORSE = "Xanthippe"
SAID = f"My horse is called {HORSE}."
BEN, EVE, DAN = (Person("console", "", name.lower(), name) for name in ("Ben", "Eve", "Dan"))
DONE = reply("Fine.")


async def number(talk: Dialogue, words: str, role: str = "user") -> int:
    [row] = await talk.rows(
        "SELECT id FROM messages WHERE role = %s AND kind = 'message' AND content LIKE %s", (role, f"%{words}%")
    )
    return int(str(row["id"]))


async def sent(talk: Dialogue, urls: Urls, words: str) -> str:
    """The platform has shown a reply: where it stands, as `channel/message`."""
    async with await psycopg.AsyncConnection.connect(urls.owner) as owner:
        cursor = await owner.execute(
            "UPDATE keepsake.outbox SET state = 'sent', platform_id = 'p' || id WHERE body LIKE %s RETURNING channel || '/' || platform_id",
            (f"%{words}%",),
        )
        row = await cursor.fetchone()
    assert row is not None
    return str(row[0])


async def erased(talk: Dialogue, person: Person) -> erasure.Erased:
    async with talk.db.bare() as connection:
        agent = await value(connection, "SELECT known_agent('console', '', %s)", (person.user_id,))
    return await erasure.erase(talk.db, talk.cache, agent, actor="person", key=KEY, now=talk.at)


# What came of it is followed to its end ------------------------------------------------------------------


async def test_a_reply_that_a_later_search_led_to_goes(desk: Opener, urls: Urls) -> None:  # noqa: F811
    looked = reply(None, call("recall_storage_search", query="which horse"))
    async with desk(DONE, looked, reply(f"Your horse is {HORSE}."), DONE) as one:
        elsewhere = one.talk.elsewhere("stable", "public")
        await elsewhere.hear(SAID)
        await one.talk.hear("Which horse do I have?")
        await one.talk.hear("Thanks.")
        said = await one.type(f"/memory forget m{await number(one.talk, HORSE)}")
        assert "2 replies of mine" in said
        assert await everywhere(urls.owner, HORSE) == []
        left = await one.talk.rows("SELECT content FROM messages WHERE kind = 'message' ORDER BY id")
        assert [row["content"] for row in left] == ["Which horse do I have?", "Thanks.", "Fine."]


async def test_the_line_of_a_timer_that_has_fired_goes(desk: Opener, db: Database, urls: Urls) -> None:  # noqa: F811
    from bot.engine import timers

    asked = f"Remind me to feed {HORSE} in half an hour."
    setting = reply(None, call("set_timer", request_heartbeat=True, purpose=f"feed {HORSE}", asked=asked, in_minutes=30))
    async with desk(setting, DONE, reply("It is time for the stable.")) as one:
        await one.talk.hear(asked)
        one.talk.clock[0] += timedelta(hours=1)
        assert await timers.fire_due(db, one.talk.at) == 1
        [agent] = await one.talk.rows("SELECT id FROM agents")
        await one.talk.agent.turn(await one.talk.claim(int(str(agent["id"]))))
        assert "messages" in await everywhere(urls.owner, HORSE)
        await one.type(f"/memory forget m{await number(one.talk, HORSE)}")
        assert await everywhere(urls.owner, HORSE) == []


async def test_a_copy_of_a_copy_goes(desk: Opener, urls: Urls) -> None:  # noqa: F811
    """m76 became an entry; a later turn, which had only the entry in view, copied it into archival storage."""
    entry = reply("Noted.", call("working_context_append", section="key_facts", content=f"The horse {HORSE} is lame."))
    copy = reply("Filed.", call("archival_storage_insert", content=f"Lame: {HORSE}.", tags=["animals"]))
    async with desk(entry, copy, DONE) as one:
        room = one.talk.elsewhere("stable", "public")
        await room.hear(f"{HORSE} is lame.")
        await one.talk.hear("File what matters.")
        await one.talk.hear("Good.")
        said = await one.type(f"/memory forget m{await number(one.talk, HORSE)}")
        assert "1 entry of the working context, 1 passage" in said
        assert await everywhere(urls.owner, HORSE) == []


async def test_what_had_it_in_view_and_shares_nothing_is_listed_and_stays(desk: Opener, urls: Urls) -> None:  # noqa: F811
    kept = reply("Noted.", call("working_context_append", section="profile", content="Likes early mornings."))
    async with desk(DONE, kept) as one:
        await one.talk.hear(SAID)
        await one.talk.hear("I like early mornings.")
        [entry] = await one.talk.rows("SELECT id FROM working_context")
        said = await one.type(f"/memory forget m{await number(one.talk, HORSE)}")
        assert f"This may have come from it too; have a look: w{entry['id']}." in said
        assert await one.talk.entries() == [("profile", "Likes early mornings.")]


async def test_what_the_person_said_again_elsewhere_keeps_what_came_of_that(desk: Opener, urls: Urls) -> None:  # noqa: F811
    again = reply("Noted.", call("working_context_append", section="key_facts", content=f"{HORSE} likes apples."))
    async with desk(DONE, again) as one:
        await one.talk.hear(SAID)
        await one.talk.hear(f"{HORSE} likes apples.")
        await one.type(f"/memory forget m{await number(one.talk, 'called')}")
        assert await one.talk.entries() == [("key_facts", f"{HORSE} likes apples.")]


async def test_a_reply_that_somebody_else_brought_along_as_a_quote_goes(desk: Opener, db: Database, urls: Urls) -> None:  # noqa: F811
    """In a channel the bot answers Ada; Ben's next mention brings that reply along."""
    async with desk(reply(f"A fine name, {HORSE}."), reply(f"{HORSE} is Ada's."), DONE) as one:
        room = one.talk.elsewhere("stable", "public")
        await room.hear(SAID)
        origin = await sent(room, urls, HORSE)
        ben = one.talk.elsewhere("stable", "public", person=BEN)
        await ben.hear("Whose is that?", quotes=(Quote("console::mika", "Mika", f"A fine name, {HORSE}.", "reply", origin),))
        assert HORSE in seen(one.talk.model.requests[-1])
        found = await erased(one.talk, one.talk.person)
        assert found.complete
        assert await everywhere(urls.owner, HORSE) == []
        assert [row["content"] for row in await ben.rows("SELECT content FROM messages")] == ["Whose is that?"]
        await ben.hear("And now?")
        assert HORSE not in seen(one.talk.model.requests[-1])


async def test_what_an_agent_repeated_of_somebody_goes_with_them(desk: Opener, urls: Urls) -> None:  # noqa: F811
    """Eve asks what Dan said; a thought, a query and the reply repeat it; Dan erases himself."""
    quote = Quote("console::dan", "Dan", f"I ride {HORSE} at dawn", "context")
    looked = reply(f"Dan rides {HORSE}.", call("recall_storage_search", query=f"{HORSE} at dawn", request_heartbeat=True))
    async with desk(DONE, DONE, looked, reply(f"He rides {HORSE} at dawn.")) as one:
        dan = one.talk.elsewhere("dan", "direct", workspace="", person=DAN)
        await dan.hear("Hello.")
        eve = one.talk.elsewhere("stable", "public", person=EVE)
        await eve.hear("Listen to him", quotes=(quote,))
        await eve.hear("What did he say?")
        assert (await erased(one.talk, DAN)).complete
        assert await everywhere(urls.owner, HORSE) == []
        left = await eve.rows("SELECT content FROM messages WHERE role = 'user' ORDER BY id")
        assert [row["content"] for row in left] == ["Listen to him", "What did he say?"]


async def test_forgetting_a_channel_message_takes_it_from_those_who_quoted_it_and_says_so(desk: Opener, urls: Urls) -> None:  # noqa: F811
    async with desk(DONE, reply(f"I know {HORSE}.")) as one:
        room = one.talk.elsewhere("stable", "public")
        await room.hear(SAID)
        [row] = await room.rows("SELECT platform_id FROM messages WHERE role = 'user'")
        ben = one.talk.elsewhere("stable", "public", person=BEN)
        await ben.hear("Have you heard?", quotes=(Quote("console::ada", "Ada", SAID, "reply", f"stable/{row['platform_id']}"),))
        said = await one.type(f"/memory forget m{await number(one.talk, HORSE)}")
        assert "It was quoted in what I keep about 1 other person; it is gone there too." in said
        assert await everywhere(urls.owner, HORSE) == []


async def test_what_was_forgotten_is_not_brought_along_again_as_a_quote(desk: Opener, urls: Urls) -> None:  # noqa: F811
    """Its platform shows it as ever, and the next mention in the channel brings what was said before along."""
    async with desk(reply(f"A fine name, {HORSE}."), DONE, DONE) as one:
        room = one.talk.elsewhere("stable", "public")
        await room.hear(SAID)
        [row] = await room.rows("SELECT platform_id FROM messages WHERE role = 'user'")
        answered = await sent(room, urls, HORSE)
        shown = (
            Quote("console::ada", "Ada", SAID, "context", f"stable/{row['platform_id']}"),
            Quote("console::mika", "Mika", f"A fine name, {HORSE}.", "reply", answered),
            Quote("console::dan", "Dan", "I like horses", "context", "stable/77"),
        )
        assert "Forgotten" in await one.type(f"/memory forget m{await number(one.talk, 'called')}")
        await one.talk.elsewhere("stable", "public", person=BEN).hear("Whose is that?", quotes=shown)
        assert await everywhere(urls.owner, HORSE) == []
        assert "I like horses" in seen(one.talk.model.requests[-1])
        # Their own words people bring along as they like.
        await room.hear("I meant this", quotes=shown[:1])
        assert HORSE in seen(one.talk.model.requests[-1])


async def test_what_the_bot_said_in_a_pause_is_not_brought_along_after_it(desk: Opener, urls: Urls) -> None:  # noqa: F811
    async with desk(reply(f"{HORSE} it is."), DONE) as one:
        room = one.talk.elsewhere("stable", "public")
        await one.type("/memory pause")
        await room.hear("Guess a name")
        answered = await sent(room, urls, HORSE)
        await one.type("/memory resume")
        ben = one.talk.elsewhere("stable", "public", person=BEN)
        await ben.hear("Hm?", quotes=(Quote("console::mika", "Mika", f"{HORSE} it is.", "context", answered),))
        assert await everywhere(urls.owner, HORSE) == []


async def test_of_what_the_bot_said_nothing_is_quoted_when_nobody_knows_any_more_to_whom(desk: Opener, urls: Urls) -> None:  # noqa: F811
    """The channel shows its reply to somebody who was erased since."""
    async with desk(reply(f"A fine name, {HORSE}."), DONE) as one:
        room = one.talk.elsewhere("stable", "public")
        await room.hear(SAID)
        answered = await sent(room, urls, HORSE)
        assert (await erased(one.talk, one.talk.person)).complete
        own = Quote("console::mika", "Mika", f"A fine name, {HORSE}.", "context", answered, own=True)
        ben = one.talk.elsewhere("stable", "public", person=BEN)
        await ben.hear("Hm?", quotes=(own, Quote("console::dan", "Dan", "I like horses", "context", "stable/77")))
        assert await everywhere(urls.owner, HORSE) == []
        assert "I like horses" in seen(one.talk.model.requests[-1])


@pytest.mark.parametrize("line", ["/memory pause", "/admin block console::ada"])
async def test_nothing_is_quoted_of_who_is_paused_or_blocked_nor_of_what_the_bot_said_to_them(
    desk: Opener,  # noqa: F811
    urls: Urls,
    line: str,
) -> None:
    async with desk(reply(f"A fine name, {HORSE}."), DONE, operators=("console::boss",)) as one:
        room = one.talk.elsewhere("stable", "public")
        await room.hear("Guess a name for my horse")
        answered = await sent(room, urls, HORSE)
        boss = one.talk.elsewhere("boss", "direct", workspace="", person=Person("console", "", "boss", "Boss"))
        await one.type(line, one.talk if "pause" in line else boss)
        shown = (
            Quote("console::mika", "Mika", f"A fine name, {HORSE}.", "reply", answered, own=True),
            Quote("console::ada", "Ada", f"{HORSE} is my horse", "context", "stable/78"),
        )
        ben = one.talk.elsewhere("stable", "public", person=BEN)
        await ben.hear("Whose is that?", quotes=shown)
        assert HORSE not in seen(one.talk.model.requests[-1])
        assert await ben.rows("SELECT 1 FROM messages WHERE kind = 'quote'") == []


async def test_an_author_who_never_had_an_agent_is_erased_everywhere(desk: Opener, urls: Urls, tmp_path: object) -> None:  # noqa: F811
    quote = Quote("console::zoe", "Zoe", f"I once rode {HORSE}", "context")
    fact = call("archival_storage_insert", content=f"Zoe once rode {HORSE}.")
    async with desk(reply(f"So Zoe rode {HORSE}.", fact)) as one:
        room = one.talk.elsewhere("stable", "public")
        await room.hear("Listen to her", quotes=(quote,))
        found = await erasure.erase_author(
            one.talk.db,
            one.talk.cache,
            "console::zoe",
            actor="person",
            key=KEY,
            now=one.talk.at,
            exports=one.parts.data / "exports",
        )
        assert found.complete
        assert found.removed["quotes"] == 2
        assert await everywhere(urls.owner, HORSE) == []
        assert [row["content"] for row in await room.rows("SELECT content FROM messages")] == ["Listen to her"]


async def test_what_somebody_said_before_their_erasure_is_quoted_no_more_when_they_are_back(db: Database) -> None:
    from datetime import UTC, datetime

    old, now = Quote("console::dan", "Dan", f"I ride {HORSE}", "context"), datetime.now(UTC)

    async def heard(talk: Dialogue, said: datetime) -> list[object]:
        quotes = (replace(old, at=said),)
        event = Incoming("message", talk.person, talk.place, said.isoformat(), talk.at, "Look", quotes=quotes)
        accepted = await inbox.accept(db, event, burst=timedelta(), now=talk.at, erasure_key=KEY)
        rows = await talk.rows("SELECT payload FROM events WHERE id = %s", (accepted.event_id,))
        return [quote["text"] for row in rows for quote in row["payload"].get("quotes", ())]  # type: ignore[attr-defined]

    async with dialogue(db, DONE, DONE) as one:
        dan = one.elsewhere("dan", "direct", workspace="", person=DAN)
        await dan.hear("Hello.")
        await erased(one, DAN)
        await dan.hear("I am back.")
        room = one.elsewhere("stable", "public")
        assert await heard(room, now - timedelta(days=1)) == []
        assert await heard(room, now + timedelta(days=1)) == [f"I ride {HORSE}"]


# An edit walks the same way -------------------------------------------------------------------------------


async def edited(talk: Dialogue, words: str, text: str) -> None:
    [row] = await talk.rows("SELECT platform_id FROM messages WHERE role = 'user' AND content LIKE %s", (f"%{words}%",))
    changed = Changed("console", "", talk.place.external_id, (str(row["platform_id"]),), text, talk.at)
    assert await changes.follow(talk.db, talk.cache, changed) == 1


async def test_an_edit_corrects_what_was_made_of_the_message(desk: Opener, urls: Urls) -> None:  # noqa: F811
    entry = call("working_context_append", section="key_facts", content=f"Has a horse called {HORSE}.")
    passage = call("archival_storage_insert", content="Owns a grey gelding.")
    async with desk(reply("I see.", entry, passage), DONE) as one:
        await one.talk.hear(f"My horse is called {HORSE}, a grey gelding.")
        await edited(one.talk, HORSE, "My horse is called Bucephalus, a bay.")
        assert await one.talk.entries() == [("key_facts", "Has a horse called Bucephalus.")]
        [kept] = await one.talk.rows("SELECT content FROM passages")
        assert kept["content"] == "Owns a bay."
        await one.talk.hear("What is its name?")
        assert HORSE not in seen(one.talk.model.requests[-1])
        # What was changed can be seen, and nothing that searches find says it.
        assert await everywhere(urls.owner, HORSE) == ["memory_log_content"]


async def test_what_cannot_be_corrected_is_marked_as_perhaps_outdated(desk: Opener, urls: Urls) -> None:  # noqa: F811
    entry = call("working_context_append", section="key_facts", content="Rides on Tuesdays and Saturdays, in Wiesbaden.")
    async with desk(reply("Tuesdays and Saturdays it is.", entry), DONE) as one:
        await one.talk.hear("I ride in Wiesbaden, each Tuesday and Saturday.")
        await edited(one.talk, "Wiesbaden", "I do not ride any more.")
        [(_, content)] = await one.talk.entries()
        assert str(content).endswith("(Perhaps outdated: the message it came from was edited.)")
        await one.talk.hear("When do I ride?")
        assert "Perhaps outdated" in seen(one.talk.model.requests[-1])


# Retention, summaries ------------------------------------------------------------------------------------


async def test_retention_takes_what_a_summary_says_of_old_messages(db: Database, urls: Urls) -> None:
    """The rows went and the summary went on saying it, in every prompt and in the log."""
    filler = "The tide came in and went out, and the boats rose and sank with it. " * 12

    def model(request: Request) -> Step:
        return reply("I see." if request.functions else "They spoke of " + (HORSE if HORSE in seen(request) else "the tide"))

    async with dialogue(db, policy=model, settings=replace(SETTINGS, budget=5_200, reply_reserve=500)) as d:
        await d.hear(SAID)
        while not (await d.rows("SELECT 1 FROM conversations WHERE summary LIKE %s", (f"%{HORSE}%",))):
            await d.hear(filler)
        recent = d.at
        d.clock[0] += timedelta(days=40)
        await d.hear("I am back.")
        await retention.apply(db, d.cache, {"messages": d.at - recent}, d.at)
        assert await everywhere(urls.owner, HORSE) == []
        await d.hear("What did we speak of?")
        assert HORSE not in seen(d.model.requests[-1])


# Redis -------------------------------------------------------------------------------------------------


async def test_one_state_a_conversation_is_cached(db: Database, cluster: Servers) -> None:
    cache = Cache(cluster.redis_url)
    async with dialogue(db, *[DONE] * 4) as d, Redis.from_url(cluster.redis_url) as redis:
        await redis.flushall()
        d.cache = cache
        for text in ("one", "two", "three"):
            await d.hear(text)
        await d.elsewhere("room", "public").hear("four")
        assert len([key async for key in redis.scan_iter(match="keepsake:*")]) == 2
    await cache.close()


async def test_redis_is_cleared_before_a_forgetting_commits(desk: Opener, db: Database, urls: Urls, cluster: Servers) -> None:  # noqa: F811
    """So a process that is killed after the commit leaves nothing. The commit is held up by the database itself."""
    cache = Cache(cluster.redis_url)
    async with (
        desk(DONE) as one,
        Redis.from_url(cluster.redis_url) as redis,
        await psycopg.AsyncConnection.connect(urls.owner, autocommit=True) as owner,
    ):
        await redis.flushall()
        one.talk.cache = cache
        one.parts = replace(one.parts, cache=cache)
        await one.talk.hear(SAID)
        holding = Traces((HORSE.lower(),))
        assert await cache.holding(holding.words, None) == 1
        message = await number(one.talk, HORSE)
        await owner.execute(
            """CREATE FUNCTION keepsake.slow() RETURNS trigger LANGUAGE plpgsql AS
               $$ BEGIN PERFORM pg_advisory_xact_lock(4242); RETURN NULL; END $$"""
        )
        await owner.execute(
            """CREATE CONSTRAINT TRIGGER slow AFTER INSERT ON keepsake.memory_log DEFERRABLE INITIALLY DEFERRED
               FOR EACH ROW EXECUTE FUNCTION keepsake.slow()"""
        )
        await owner.execute("SELECT pg_advisory_lock(4242)")
        forgetting = asyncio.create_task(one.type(f"/memory forget m{message}"))

        async def committing() -> bool:
            cursor = await owner.execute(
                "SELECT count(*) FROM pg_locks WHERE locktype = 'advisory' AND objid = 4242 AND NOT granted"
            )
            row = await cursor.fetchone()
            return bool(row and row[0])

        await until(committing)
        assert await cache.holding(holding.words, None) == 0
        await owner.execute("SELECT pg_advisory_unlock(4242)")
        assert "Forgotten" in await forgetting
        await redis.flushall()
    await cache.close()


# What is looked for ---------------------------------------------------------------------------------------


def test_the_rarest_sequences_are_what_a_copy_would_be_known_by() -> None:
    texts = ["good morning"] * 50 + [f"good morning, {HORSE} threw a shoe near Wiesbaden", "my number is 4711 0815"]
    found = rarest(texts, 2)
    assert any(HORSE.lower() in each or "wiesbaden" in each for each in found)
    assert "my number is 4711" in found or "number is 4711 0815" in found
    assert all(any(each in text.lower() for text in texts) for each in rarest(texts))
    assert len(rarest([f"{n} bottles of beer number {n}" for n in range(500)])) == 200


@pytest.mark.parametrize("text", ["", "ok", "!!!", "a b"])
def test_texts_of_nothing_rare_give_nothing_to_look_for(text: str) -> None:
    assert rarest([text]) == []


async def test_redis_and_files_are_searched(db: Database, cluster: Servers, tmp_path: object) -> None:
    from pathlib import Path

    folder = Path(str(tmp_path))
    (folder / "eve.json").write_text(
        '{"identities": [{"platform": "console", "realm": "", "user_id": "eve"}], "x": "XANTHIPPE trots"}'
    )
    (folder / "dan.json").write_text('{"identities": [{"platform": "console", "realm": "", "user_id": "dan"}]}')
    (folder / "dan.md").write_text("Dan's")
    cache = Cache(cluster.redis_url)
    await cache.put("keepsake:77712:1", {"queue": [{"content": "Über Xanthippe trots"}]})
    async with db.bare() as connection:
        found = await search(connection, cache, Traces(("xanthippe trots",), (77712,), ("console::dan",)), folder)
    assert found.tables["redis"] == 1
    assert [Path(path).name for path in found.files] == ["eve.json"]
    assert sorted(Path(path).name for path in found.own) == ["dan.json", "dan.md"]
    await cache.forget(77712)
    await cache.close()
