"""What adapters ask before they bring something in."""

from __future__ import annotations

from datetime import timedelta

from adapters.base import Image, Person, PlaceOf, Quote
from adapters.catalogue import say
from bot.bench.stage import keep_words
from bot.engine import turns
from tests.bot.engine.conftest import engine
from tests.bot.engine.world import NOW, World, place, reception_of

__all__ = ["engine"]

ADA, BEN = Person("test", "", "ada", "Ada"), Person("test", "", "ben", "Ben")


async def test_how_much_was_taken_of_whom(engine: World) -> None:
    hall = place("hall", "public")
    for number in range(3):
        engine.at = NOW + timedelta(minutes=number)
        await engine.say("x", where=hall)
    await engine.say("x")
    await engine.say("x", "ben", where=hall)
    await engine.say("", kind="login")

    async def taken(person: Person, kind: str = "message", minutes: float = 0, channel: str | None = None) -> int:
        return await reception_of(engine.db).taken(person, kind, NOW + timedelta(minutes=minutes), channel)

    assert await taken(ADA) == 4
    assert await taken(ADA, minutes=0.5) == 3
    assert await taken(ADA, channel="hall") == 3
    assert await taken(ADA, "login") == 1
    assert await taken(BEN) == 1
    assert await taken(Person("other", "", "ada", "Ada")) == 0
    assert await taken(Person("test", "", "stranger", "")) == 0


async def test_a_day_is_told_once_and_of_a_stranger_nothing_is_kept(engine: World) -> None:
    await engine.say("x")
    assert [await reception_of(engine.db).tell_limit(ADA, NOW) for _ in range(2)] == [say("platform.limit", None), ""]
    assert await reception_of(engine.db).tell_limit(ADA, NOW + timedelta(days=1))
    assert not await reception_of(engine.db).tell_limit(BEN, NOW)
    assert await engine.one("SELECT count(*) FROM agents") == 1


async def test_a_login_counts_of_who_agreed_can_be_reached_and_did_not_just_come(engine: World) -> None:
    agent = (await engine.say("x")).agent

    async def wanted(seconds: float = 0) -> bool:
        return await reception_of(engine.db).wants_login(ADA, engine.at + timedelta(seconds=seconds), 600)

    assert not await wanted()
    for openers, wants in (("unasked", False), ("asked", False), ("no", False), ("yes", True)):
        await engine.owner.execute(
            "INSERT INTO speaking (agent_id, openers) VALUES (%s, %s) ON CONFLICT (agent_id) DO UPDATE SET openers = excluded.openers",
            (agent, openers),
        )
        assert await wanted() is wants
    await engine.say("", kind="login")
    assert not await wanted(599)
    assert await wanted(601)
    await engine.owner.execute("UPDATE identities SET unreachable_since = now()")
    assert not await wanted(601)
    assert not await reception_of(engine.db).wants_login(BEN, engine.at, 600)


async def test_what_is_kept_of_a_place(engine: World) -> None:
    hall = place("9", "public")
    waiting = await engine.say("one", where=hall, message_id="101")
    quotes = (Quote("test::eve", "Eve", "quoted", "context", "9/99"), Quote("test::eve", "Eve", "elsewhere", "context", "90/7"))
    await engine.say("two", "ben", where=place("shed", "public"), quotes=quotes, message_id="300")
    where = PlaceOf("test", "", "", "9", "private")
    # Also what only waits as a quote.
    assert await reception_of(engine.db).kept(where, 10) == ["101", "99"]
    claim = await engine.claim(waiting.agent)
    async with turns.step(engine.db, claim, now=engine.at, finish="done") as step:
        await keep_words(step)
        for kind, platform_id in (("message", "101"), ("quote", "9/99"), ("quote", "90/7")):
            await step.connection.execute(
                """INSERT INTO messages (agent_id, conversation_id, place_id, visibility, position, role, kind, content, platform_id, searchable,
                     created_at) VALUES (%s, %s, %s, 'public', (SELECT 1 + count(*) FROM messages), 'user', %s, 'x', %s, true, now())""",
                (claim.agent, claim.conversation, claim.place, kind, platform_id),
            )
    assert await reception_of(engine.db).kept(where, 10) == ["101", "99"]
    assert await reception_of(engine.db).kept(where, 1) == ["101"]
    assert await reception_of(engine.db).kept(PlaceOf("other", "", "", "9", "private"), 10) == []


async def test_pictures_leave_the_database_with_the_end_of_their_turn(engine: World) -> None:
    accepted = await engine.say("look", images=(Image("cat.png", "image/png", b"\x89PNG"),))
    claim = await engine.claim(accepted.agent)
    assert claim.events[0].payload["images"] == [{"name": "cat.png", "url": "data:image/png;base64,iVBORw=="}]
    await engine.finish(claim, "A cat.")
    assert await engine.column("SELECT payload ? 'images' FROM events") == [False]
    # A message that is never answered lets go of them, too; a dead letter keeps them for its replay.
    for number, state in enumerate(("cancelled", "failed")):
        accepted = await engine.say("look", images=(Image("cat.png", "image/png", b"\x89PNG"),))
        claim = await engine.claim(accepted.agent)
        async with turns.step(engine.db, claim, now=engine.at, finish=state):  # type: ignore[arg-type]
            pass
        assert await engine.one("SELECT payload ? 'images' FROM events WHERE id = %s", accepted.event_id) is (number == 1)


async def test_up_to_where_a_platform_was_heard_never_goes_back(engine: World) -> None:
    assert await reception_of(engine.db).heard("test") is None
    for message, heard in (("99", "99"), ("101", "101"), ("100", "101"), ("20", "101")):
        await reception_of(engine.db).hear("test", message)
        assert await reception_of(engine.db).heard("test") == heard
    assert await reception_of(engine.db).heard("other") is None


async def test_every_place_is_known_however_old_the_newest_first(engine: World) -> None:
    for number, (name, message) in enumerate((("hall", "98"), ("shed", "99"), ("attic", "100"), ("yard", ""))):
        agent = (await engine.say("x", f"person {number}", where=place(name, "public"), message_id=message or None)).agent
        claim = await engine.claim(agent)
        async with turns.step(engine.db, claim, now=engine.at, finish="done") as step:
            await step.connection.execute(
                """INSERT INTO messages (agent_id, conversation_id, place_id, visibility, position, role, kind, content, platform_id,
                     event_id, searchable, created_at) SELECT agent_id, id, place_id, 'public', 1, 'user', 'message', 'x', %s, %s, true,
                     '2001-01-01' FROM conversations""",
                (message or None, claim.events[0].id),
            )
    known = await reception_of(engine.db).newest("test")
    assert [(one.channel, one.message_id) for one in known] == [("attic", "100"), ("shed", "99"), ("hall", "98"), ("yard", "")]
