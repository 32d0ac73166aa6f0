"""/link and /unlink: one person, two accounts, one agent, and nothing that crosses without a separate yes."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace
from datetime import timedelta

import psycopg
import pytest

from adapters.base import Incoming, Person, PlaceOf
from bot import commands
from bot.commands import forgetting
from bot.engine import inbox, turns
from bot.engine.events import StaleTurn
from memory.db import Database, value
from tests.bot.commands.conftest import KEY, Desk, Opener
from tests.bot.commands.test_forgetting import everywhere
from tests.bot.dialogue import Dialogue, seen
from tests.conftest import Urls
from tests.servers.model import call, reply
from tests.waiting import until

DISCORD = Person("discord", "", "80351110224678912", "Ada")
SLACK = Person("slack", "T024", "U061F", "Ada Lovelace")
DOG = reply("Noted.", call("working_context_append", section="profile", content="Has a dog called Biscuit."))
CELLO = reply("Noted.", call("working_context_append", section="profile", content="Plays the cello."))
DONE = reply("Noted.")


def homes(one: Desk) -> tuple[Dialogue, Dialogue]:
    """The direct messages of both accounts."""
    first = replace(one.talk, person=DISCORD, place=PlaceOf("discord", "", "", "dm-d", "direct"))
    second = replace(one.talk, person=SLACK, place=PlaceOf("slack", "T024", "T024", "dm-s", "direct"))
    return first, second


def code_in(text: str) -> str:
    return text.split("/link ")[1].split()[0]


async def linked(one: Desk, giver: Dialogue, taker: Dialogue) -> None:
    """All of the way to one agent."""
    code = code_in(await one.type("/link", giver))
    seen_there = await one.press(f"/link {code}", taker)
    await one.follow(seen_there, "Yes, that is me", talk=taker)
    assert "Linked" in (await one.follow(await one.press("/link", giver), "Yes, that is me", talk=giver)).text


async def agent_of(db: Database, person: Person) -> int:
    async with db.bare() as connection:
        return int(await value(connection, "SELECT known_agent(%s, %s, %s)", (person.platform, person.realm, person.user_id)))


async def agent_of_nobody(db: Database, person: Person) -> bool:
    async with db.bare() as connection:
        known = "SELECT known_agent(%s, %s, %s)"
        return await value(connection, known, (person.platform, person.realm, person.user_id)) is None


@asynccontextmanager
async def both(desk: Opener, *script: object) -> AsyncIterator[tuple[Desk, Dialogue, Dialogue]]:
    """Two accounts that have each told the bot something: the dog on Discord, the cello on Slack."""
    async with desk(DOG, CELLO, *script) as one:
        discord, slack = homes(one)
        await discord.hear("My dog is called Biscuit.")
        await slack.hear("I play the cello.")
        yield one, discord, slack


async def test_both_see_the_other_and_the_second_yes_makes_them_one(desk: Opener, db: Database) -> None:
    async with both(desk) as (one, discord, slack):
        older, younger = await agent_of(db, DISCORD), await agent_of(db, SLACK)
        versions = [row["version"] for talk in (discord, slack) for row in await talk.rows("SELECT version FROM agents")]
        offer = await one.press("/link", slack)
        code = code_in(offer.text)
        there = await one.press(f"/link {code.lower()[:4]}-{code[4:]}", discord)
        assert "Ada Lovelace (slack:T024:U061F)" in there.text
        assert "Now say yes in the other account" in (await one.follow(there, "Yes, that is me", talk=discord)).text
        assert await agent_of(db, SLACK) == younger
        # A yes without having seen whom shows whom.
        here = await one.press("/link yes", slack)
        assert "The other account is Ada (discord::80351110224678912)" in here.text
        done = await one.follow(here, "Yes, that is me", talk=slack)
        assert "Linked: both accounts are one person to me now." in done.text
        # The older agent survives, whoever gave the code.
        assert await agent_of(db, SLACK) == await agent_of(db, DISCORD) == older
        # Newer than anything that was cached of either.
        [row] = await discord.rows("SELECT version FROM agents")
        assert int(str(row["version"])) > max(int(str(version)) for version in versions)
        async with db.bare() as connection:
            left = await value(connection, "SELECT residue(%s)", (younger,))
        assert not any(left.values())
        assert "linked accounts: discord::80351110224678912, slack:T024:U061F" in await one.type("/whoami", slack)
        assert "not taken" in await one.type(f"/link yes {code}", slack)


async def test_nothing_crosses_until_a_separate_yes(desk: Opener, db: Database) -> None:
    async with both(desk, *[DONE] * 4) as (one, discord, slack):
        await linked(one, discord, slack)
        await slack.hear("What do you know of me?")
        prompt = seen(one.talk.model.requests[-1])
        assert "cello" in prompt
        assert "Biscuit" not in prompt
        # The person's own view has all of it.
        assert "Biscuit" in await one.type("/memory view", slack)
        assert "cross: on" in await one.type("/settings cross on", slack)
        await slack.hear("And now?")
        assert "Biscuit" in seen(one.talk.model.requests[-1])
        # Into the direct message alone, and no longer than wanted.
        await replace(slack, place=PlaceOf("slack", "T024", "T024", "C1", "public", name="general")).hear("And here?")
        assert "Biscuit" not in seen(one.talk.model.requests[-1])
        await one.type("/settings cross off", discord)
        await discord.hear("And mine?")
        assert "cello" not in seen(one.talk.model.requests[-1])


async def test_ones_own_commands_say_which_account_something_came_from(desk: Opener) -> None:
    async with both(desk) as (one, discord, slack):
        code = code_in(await one.type("/link", discord))
        asked = await one.press(f"/link {code}", slack)
        assert "list both accounts' memory from then on, each under its name" in asked.text, "before the yes"
        await one.follow(asked, "Yes, that is me", talk=slack)
        await one.follow(await one.press("/link", discord), "Yes, that is me", talk=discord)
        for line in ("/memory view", "/memory search cello dog", "/memory changes"):
            said = await one.type(line, discord)
            here, there = said.split(f"From the linked account, {SLACK.author_id} (Ada Lovelace)")
            assert f"From this account, {DISCORD.author_id} (Ada)" in here, line
            assert "dog" in here, line
            assert "cello" not in here, line
            assert "cello" in there, line
            assert "dog" not in there, line
        assert "These accounts are linked" in await one.type("/memory export", discord)
        # The other way round it is the other way round.
        assert "cello" in (await one.type("/memory view", slack)).split("From the linked account")[0]


async def test_codes_are_single_use_short_lived_and_given_in_private(desk: Opener, db: Database) -> None:
    async with both(desk) as (one, discord, slack):
        lounge = replace(discord, place=PlaceOf("discord", "", "g", "lounge", "public"))
        assert "in a direct message" in await one.type("/link", lounge)
        code = code_in(await one.type("/link", discord))
        assert "in a direct message" in await one.type(
            f"/link {code}", replace(slack, place=PlaceOf("slack", "T024", "T024", "C1", "public"))
        )
        assert "code of this very account" in await one.type(f"/link {code}", discord)
        one.talk.clock[0] += timedelta(minutes=10, seconds=1)
        assert "isn't valid" in await one.type(f"/link {code}", slack)
        # A new one makes the old one void.
        old, new = code_in(await one.type("/link", discord)), code_in(await one.type("/link", discord))
        assert "isn't valid" in await one.type(f"/link {old}", slack)
        assert "The other account is" in await one.type(f"/link {new}", slack)
        other = replace(
            slack, person=Person("slack", "T999", "U9", "Eve"), place=PlaceOf("slack", "T999", "T999", "dm-e", "direct")
        )
        assert "isn't valid" in await one.type(f"/link {new}", other)
        # Taken, but the yes came too late.
        one.talk.clock[0] += timedelta(minutes=11)
        assert "not taken in another account, or its ten minutes are over" in await one.type("/link yes 000000", slack)
        assert await agent_of(db, SLACK) != await agent_of(db, DISCORD)


async def test_guessing_is_slow(desk: Opener) -> None:
    async with both(desk) as (one, discord, slack):
        code = code_in(await one.type("/link", discord))
        for number in range(5):
            assert "isn't valid" in await one.type(f"/link AAAAAAA{number + 2}", slack)
        assert "a lot of codes in a short time" in await one.type(f"/link {code}", slack)
        for _ in range(4):
            await one.type("/link", discord)
        assert "a lot of codes in a short time" in await one.type("/link", discord)


async def test_a_no_makes_the_code_void(desk: Opener, db: Database) -> None:
    async with both(desk) as (one, discord, slack):
        code = code_in(await one.type("/link", discord))
        there = await one.press(f"/link {code}", slack)
        await one.follow(there, "Yes, that is me", talk=slack)
        assert "Not linked" in (await one.follow(await one.press("/link", discord), "No", talk=discord)).text
        assert "not taken" in await one.type("/link yes 000000", slack)
        assert await agent_of(db, SLACK) != await agent_of(db, DISCORD)


async def test_accounts_of_one_platform_are_not_linked(desk: Opener) -> None:
    async with both(desk) as (one, discord, _):
        twin = replace(discord, person=Person("discord", "", "2", "Eve"), place=PlaceOf("discord", "", "", "dm-2", "direct"))
        code = code_in(await one.type("/link", discord))
        assert "different platforms or workspaces" in await one.type(f"/link {code}", twin)


async def test_two_yes_at_once_link_once(desk: Opener, db: Database) -> None:
    async with both(desk) as (one, discord, slack):
        code = code_in(await one.type("/link", discord))
        there, here = await one.press(f"/link {code}", slack), await one.press("/link", discord)
        answers = await asyncio.gather(
            one.follow(there, "Yes, that is me", talk=slack), one.follow(here, "Yes, that is me", talk=discord)
        )
        assert sorted("Linked" in answer.text for answer in answers) == [False, True]
        assert await agent_of(db, SLACK) == await agent_of(db, DISCORD)


async def test_the_stricter_of_both_wins(desk: Opener) -> None:
    async with both(desk) as (one, discord, slack):
        await one.type("/settings openers on", discord)
        await one.type("/settings quiet 22:00-08:00", slack)
        await one.type("/settings timezone Asia/Tokyo", slack)
        await one.type("/memory pause", slack)
        await linked(one, discord, slack)
        shown = await one.type("/settings", discord)
        assert "openers: off" in shown
        assert "quiet: 22:00-08:00" in shown
        assert "timezone: Asia/Tokyo" in shown
        assert "memory: paused" in shown
        assert "cross: off" in shown


@pytest.mark.parametrize("side", ["older", "younger", "both"])
async def test_a_turn_that_runs_on_either_side_starts_its_step_again(desk: Opener, db: Database, side: str) -> None:
    script = [reply(f"Answer {number}.") for number in range(2 if side == "both" else 1)]
    async with both(desk, *script) as (one, discord, slack):
        running = {"older": [discord], "younger": [slack], "both": [discord, slack]}[side]
        claims = [await talk.claim(await talk.accept("And now?")) for talk in running]
        await linked(one, discord, slack)
        for claim in claims:
            with pytest.raises(StaleTurn):
                async with turns.step(db, claim, now=one.talk.at):
                    pass
        agent = await agent_of(db, DISCORD)
        for number, _ in enumerate(running):
            claim = await discord.claim(agent)
            await discord.agent.turn(claim)
            # The two dialogues' clocks may differ by more than a person's patience.
            assert (await discord.outbox(claim))[-1:] == [f"Answer {number}."]
        assert await turns.claim(db, agent, one.talk.at, one.talk.engine) is None


def waiting_for_locks(urls: Urls) -> int:
    """Sessions of this database that wait for somebody else's lock."""
    with psycopg.connect(urls.admin) as connection:
        statement = "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock'"
        row = connection.execute(statement).fetchone()
    return int(row[0]) if row else 0


async def test_what_is_taken_in_meanwhile_is_not_lost(desk: Opener, db: Database, urls: Urls) -> None:
    async with both(desk) as (one, discord, slack):
        code = code_in(await one.type("/link", discord))
        there, here = await one.press(f"/link {code}", slack), await one.press("/link", discord)
        await one.follow(there, "Yes, that is me", talk=slack)
        before = await agent_of(db, SLACK)
        # Somebody holds the younger agent, so that the link waits, and the message behind it.
        async with await psycopg.AsyncConnection.connect(urls.owner) as holder:
            await holder.execute("SELECT 1 FROM keepsake.agents WHERE id = %s FOR NO KEY UPDATE", (before,))
            linking = asyncio.create_task(one.follow(here, "Yes, that is me", talk=discord))
            await until(lambda: waiting_for_locks(urls) == 1)
            message = Incoming("message", SLACK, slack.place, "late", one.talk.at, "Are you there?")
            taking = asyncio.create_task(inbox.accept(db, message, burst=timedelta(), now=one.talk.at, erasure_key=KEY))
            await until(lambda: waiting_for_locks(urls) == 2)
            await holder.rollback()
        assert "Linked" in (await linking).text
        accepted = await taking
        assert accepted.event_id is not None
        assert (await slack.rows("SELECT agent_id FROM events WHERE idem = 'late'")) == [
            {"agent_id": await agent_of(db, DISCORD)}
        ]


async def test_what_waits_on_either_side_is_woken(desk: Opener, db: Database) -> None:
    async with both(desk) as (one, discord, slack):
        agent = await agent_of(db, DISCORD)
        for talk in (discord, slack):  # so far nothing waits, and the flags are down
            assert await turns.claim(db, await agent_of(db, talk.person), one.talk.at, one.talk.engine) is None
        await slack.accept("Are you there?")
        woken: list[int] = []

        async def wake(_: object, who: int) -> None:
            woken.append(who)

        one.parts = replace(one.parts, wake=wake)
        await linked(one, discord, slack)
        assert woken == [agent]
        await one.type("/unlink slack:T024:U061F yes", discord)
        assert woken == [agent, await agent_of(db, SLACK)]


async def test_unlinking_parts_rows_by_where_they_came_from(desk: Opener, db: Database, urls: Urls) -> None:
    timer = reply(
        "Set.",
        call("set_timer", purpose="tune the cello", asked="Remind me to tune it", in_minutes=600),
        call("recall_storage_search", query="cello"),
    )
    async with both(desk, timer, DONE, DONE, DONE) as (one, discord, slack):
        await slack.hear("Remind me to tune it.")
        await linked(one, discord, slack)
        listed = await one.press("/unlink", slack)
        assert "discord::80351110224678912  Ada" in listed.text
        sure = await one.follow(listed, "Separate slack", talk=slack)
        assert "To go ahead" in sure.text
        assert "Separated" in (await one.follow(sure, "Separate them", talk=slack)).text
        assert await agent_of(db, SLACK) != await agent_of(db, DISCORD)
        mine, theirs = await one.type("/memory view", discord), await one.type("/memory view", slack)
        assert "Biscuit" in mine
        assert "cello" not in mine
        assert "Plays the cello." in theirs
        assert "tune the cello" in theirs
        assert "Biscuit" not in theirs
        await slack.hear("What do I play?")
        assert "cello" in seen(one.talk.model.requests[-1])
        await discord.hear("And me?")
        assert "cello" not in seen(one.talk.model.requests[-1])
        assert "only account" in await one.type("/unlink", slack)
        # Each is erased by itself, and wholly.
        await one.type("/memory forget everything yes", slack)
        assert await everywhere(urls.owner, "cello") == []
        assert "Biscuit" in await one.type("/memory view", discord)


def test_every_table_is_parted_or_stays_for_a_reason(urls: Urls) -> None:
    """A later table without a place fails here until somebody says where its rows go when accounts are parted."""
    stays = {
        "identities": "the account itself",
        "links": "void by then",
        "link_tries": "a rate limit",
        "spending": "the day's budget is not doubled",
        "speaking": "copied: both keep the wishes",
        "decisions": "kept under every account's hash already",
        "rezoned": "a note to reckon timers anew",
    }
    with psycopg.connect(urls.owner) as connection:
        rows = connection.execute(
            """SELECT r.relname FROM pg_class r JOIN pg_attribute a ON a.attrelid = r.oid AND a.attname = 'agent_id'
               WHERE r.relnamespace = 'keepsake'::regnamespace AND r.relkind = 'r'
                 AND NOT EXISTS (SELECT 1 FROM pg_attribute b WHERE b.attrelid = r.oid AND b.attname = 'place_id')"""
        ).fetchall()
        body = connection.execute("SELECT prosrc FROM pg_proc WHERE proname = 'unlink_account'").fetchone()
    assert body is not None
    parted = {name for (name,) in rows if f"('{name}', " in body[0]}
    assert {name for (name,) in rows} == parted | set(stays)


async def test_no_row_is_left_with_a_row_of_somebody_else(desk: Opener, db: Database, urls: Urls) -> None:
    """Every foreign key between personal rows stays within one agent, after a link that crossed and a parting."""
    cross = reply(
        "Noted.",
        call("working_context_append", section="profile", content="Dog and cello."),
        call("recall_storage_search", query="dog"),
    )
    async with both(desk, cross, DONE) as (one, discord, slack):
        await linked(one, discord, slack)
        await one.type("/settings cross on", slack)
        await slack.hear("What do you know of my dog?")
        await one.type("/unlink slack:T024:U061F yes", discord)
        async with await psycopg.AsyncConnection.connect(urls.owner) as connection:
            await connection.execute("SET search_path = keepsake, public")
            keys = await (
                await connection.execute(
                    """SELECT c.relname, a.attname, p.relname FROM pg_constraint k JOIN pg_class c ON c.oid = k.conrelid
                       JOIN pg_class p ON p.oid = k.confrelid
                       JOIN pg_attribute a ON a.attrelid = c.oid AND a.attnum = k.conkey[1]
                       WHERE k.contype = 'f' AND cardinality(k.conkey) = 1 AND c.relnamespace = 'keepsake'::regnamespace
                         AND EXISTS (SELECT 1 FROM pg_attribute x WHERE x.attrelid = c.oid AND x.attname = 'agent_id')
                         AND EXISTS (SELECT 1 FROM pg_attribute x WHERE x.attrelid = p.oid AND x.attname = 'agent_id')"""
                )
            ).fetchall()
            assert len(keys) > 10
            for table, column, parent in keys:
                statement = f"SELECT count(*) FROM {table} t JOIN {parent} p ON p.id = t.{column} WHERE p.agent_id <> t.agent_id"
                row = await (await connection.execute(statement.encode())).fetchone()
                assert row == (0,), f"{table}.{column} names another agent's {parent}"


async def test_an_erasure_that_a_link_overtakes_erases_all_the_same(desk: Opener, db: Database, urls: Urls) -> None:
    """The account was found under its own agent, and by the time of the erasure another one had it all."""
    async with both(desk) as (one, discord, slack):
        asking = await commands.ask(one.parts, slack.person, slack.place, "everything yes")
        await linked(one, slack, discord)
        said = await forgetting.forget(asking)
        assert "Everything is erased" in said.text
        assert await everywhere(urls.owner, "cello") == []
        assert await agent_of_nobody(db, SLACK)
