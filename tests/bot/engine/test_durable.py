"""What is kept of what was taken: claims and steps are on disk, the fence knows its step, and no words go that stand nowhere else."""

from __future__ import annotations

import psycopg
import pytest

from adapters.catalogue import say
from bot.engine import turns
from bot.engine.deadletters import dead_letters, replay
from bot.engine.events import Claim, StaleTurn
from memory.db import Database
from tests.bot.dialogue import dialogue, seen
from tests.bot.engine.crashing import fragile
from tests.bot.engine.world import NOW, Turns, World, keep_words, working, world
from tests.conftest import Urls
from tests.servers.model import Request, Step, reply
from tests.waiting import until


async def test_a_crash_takes_back_no_claim_and_no_step() -> None:
    with fragile() as servers:
        claims: list[Claim] = []
        async with world(servers.servers.bot_url, servers.servers.owner_url) as engine:
            for number in range(5):
                claims.append(await engine.claim((await engine.say("x", user=f"user{number}")).agent))
            for claim in claims[:4]:
                async with turns.step(engine.db, claim, now=NOW) as step:
                    await keep_words(step)
            worker = await engine.queue.jobs.register_worker()
        await servers.crash("quit")
        async with world(servers.servers.bot_url, servers.servers.owner_url) as engine:
            rows = await engine.look(
                "SELECT t.id, a.epoch, t.step, a.version FROM turns t JOIN agents a ON a.id = t.agent_id ORDER BY t.id"
            )
            assert [(row["id"], row["epoch"], row["step"], row["version"]) for row in rows] == [
                (claim.turn, claim.epoch, claim.fence.step, claim.fence.version) for claim in claims
            ]
            assert await engine.one("SELECT count(*) FROM messages") == 4
            again = await engine.claim((await engine.say("y", user="another")).agent)
            assert again.turn not in {claim.turn for claim in claims}
            assert await engine.queue.jobs.register_worker() != worker


async def test_every_transaction_of_the_bot_is_flushed_whatever_the_server_prefers(urls: Urls) -> None:
    async with await psycopg.AsyncConnection.connect(urls.admin, autocommit=True) as admin:
        await admin.execute("ALTER ROLE keepsake_bot SET synchronous_commit = off")
        try:
            async with Database(urls.bot, size=2) as db:
                assert await db.once("SHOW synchronous_commit") == [{"synchronous_commit": "on"}]
        finally:
            await admin.execute("ALTER ROLE keepsake_bot RESET synchronous_commit")


LOST = {
    "the step": "UPDATE turns SET step = step - 1",
    "the version": "UPDATE agents SET version = version - 1",
    "both": "WITH t AS (UPDATE turns SET step = step - 1) UPDATE agents SET version = version - 1",
    "the step, and memory changed since": "WITH t AS (UPDATE turns SET step = step - 1) UPDATE agents SET version = version + 1",
}


@pytest.mark.parametrize("lost", LOST)
@pytest.mark.parametrize("finish", [None, "done"])
async def test_a_turn_that_is_ahead_of_the_database_is_stale(engine: World, lost: str, finish: turns.State | None) -> None:
    """As after a crash that took back what was said to be committed: the turn must be claimed again, not go on from what it remembers."""
    claim = await engine.claim((await engine.say("a")).agent)
    async with turns.step(engine.db, claim, now=NOW) as step:
        await keep_words(step)
    await engine.owner.execute(LOST[lost].encode())
    with pytest.raises(StaleTurn):
        async with turns.step(engine.db, claim, now=NOW, finish=finish) as step:
            await step.reply("from a past that never was")
    with pytest.raises(StaleTurn):
        await turns.refresh(engine.db, claim)
    assert await engine.column("SELECT body FROM outbox") == []
    assert await engine.column("SELECT status FROM events") == [0]


async def test_anothers_turn_with_the_same_number_takes_no_step(engine: World) -> None:
    claim = await engine.claim((await engine.say("a")).agent)
    other = await engine.say("b", user="bob")
    await engine.owner.execute("UPDATE turns SET agent_id = %s", (other.agent,))
    with pytest.raises(StaleTurn):
        async with turns.step(engine.db, claim, now=NOW) as step:
            await step.reply("not mine")


async def test_no_event_is_done_whose_words_stand_nowhere(engine: World) -> None:
    accepted = await engine.say("precious")
    for word in ("more", "and more"):
        await engine.say(word)
    claim = await engine.claim(accepted.agent)
    async with turns.step(engine.db, claim, now=NOW) as step:
        await keep_words(step)
    await engine.owner.execute("DELETE FROM messages WHERE event_id = %s", (accepted.event_id,))
    with pytest.raises(psycopg.Error) as refused:
        async with turns.step(engine.db, claim, now=NOW, finish="done") as step:
            await step.reply("sure")
    assert refused.value.sqlstate == "KS012"
    assert await engine.column("SELECT payload->>'text' FROM events ORDER BY seq") == ["precious", "more", "and more"]
    assert await engine.column("SELECT body FROM outbox") == []


async def test_words_that_were_never_stored_become_a_dead_letter_that_can_be_replayed(engine: World) -> None:
    async def forgets(claim: Claim) -> None:
        async with turns.step(engine.db, claim, now=NOW, finish="done") as step:
            await step.reply("sure")

    turn = Turns(engine, [forgets] * engine.settings.max_attempts)
    await engine.say("precious")
    async with working(engine, turn):
        await until(engine.at_rest)
        [letter] = await dead_letters(engine.db)
        assert letter.last_error == "DatabaseError KS012"
        await replay(engine.db)
        await until(engine.at_rest)
    assert await engine.column("SELECT body FROM outbox ORDER BY id") == [say("turn.apology", ""), "re precious"]
    assert await engine.column("SELECT content FROM messages") == ["precious"]


async def test_what_was_forgotten_during_its_turn_keeps_it_from_nothing(engine: World) -> None:
    claim = await engine.claim((await engine.say("a")).agent)
    async with turns.step(engine.db, claim, now=NOW) as step:
        await keep_words(step)
    await engine.owner.execute("DELETE FROM messages")
    await engine.owner.execute("""UPDATE events SET payload = payload || '{"text": "", "forgotten": true}'""")
    async with turns.step(engine.db, claim, now=NOW, finish="done") as step:
        await step.reply("fine")
    assert await engine.column("SELECT status FROM events") == [1]


@pytest.mark.parametrize("since", ["", "UPDATE agents SET version = version + 3"])
async def test_an_agent_stores_again_what_the_database_lost_of_its_turn(engine: World, since: str) -> None:
    """The step that stores the words is taken back while the model thinks: they are stored by the next claim, and answered once."""
    requests: list[Request] = []

    async def think(request: Request) -> Step:
        requests.append(request)
        if len(requests) == 1:
            for statement in (
                "DELETE FROM messages",
                "UPDATE conversations SET next_position = 1",
                "UPDATE turns SET step = 0",
                "UPDATE agents SET version = version - 1",
                since,
            ):
                if statement:
                    await engine.owner.execute(statement.encode())
        return reply(f"answer {len(requests)}")

    async with dialogue(engine.db, policy=think) as d:
        async with working(engine, d.agent.turn):
            await d.accept("My cat is called Pixel.")
            await until(engine.at_rest)
        assert await engine.column("SELECT content FROM messages WHERE role = 'user'") == ["My cat is called Pixel."]
        assert await engine.column("SELECT body FROM outbox") == ["answer 2"]
        assert all("Pixel" in seen(request) for request in requests)
