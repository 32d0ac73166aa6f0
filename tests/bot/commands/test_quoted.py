"""Whoever has words in other people's memory sees and erases them, also without an agent, and gets none by asking."""

from __future__ import annotations

from dataclasses import replace

import psycopg

from adapters.base import Person, PlaceOf, Quote
from bot.cli.people import _operator
from bot.commands import memory, quoted
from bot.commands.context import Asking
from bot.keeping import erasures
from memory.db import Database, value
from memory.people import find_agent
from tests.bot.commands.conftest import KEY, Desk, Opener
from tests.bot.commands.test_forgetting import everywhere
from tests.bot.dialogue import Dialogue
from tests.conftest import Urls
from tests.servers.model import call, reply

BEN = Person("console", "", "ben", "Ben")
QUOTE = Quote("console::ben", "Ben", "My horse is called Zephyrine", "context")
NOTED = reply("Noted.", call("working_context_append", section="key_facts", content="Ben has a horse called Zephyrine."))


def home(one: Desk) -> Dialogue:
    """Ben's direct message."""
    return replace(one.talk, person=BEN, place=PlaceOf("console", "", "", "ben", "direct"))


async def quoted_by_ada(one: Desk) -> Dialogue:
    """Ada asks something where Ben has just spoken."""
    lounge = one.talk.elsewhere("lounge", "public")
    await lounge.hear("What does he mean?", quotes=(QUOTE,))
    return lounge


async def test_a_bystander_sees_and_erases_their_words_and_gets_no_agent(desk: Opener, db: Database, urls: Urls) -> None:
    async with desk(NOTED) as one:
        assert "know nothing about you" in await one.type("/memory view", home(one))
        await quoted_by_ada(one)
        shown = await one.press("/memory view", home(one))
        assert "know nothing" not in shown.text
        assert "1 quote of your words, 1 note made of them" in shown.text
        assert "#lounge: My horse is called Zephyrine" in shown.text
        assert "Ada" not in shown.text, "whose memory it is, is theirs"
        asked = await one.follow(shown, "Erase them", talk=home(one))
        assert "cannot be undone" in asked.text
        assert await everywhere(urls.owner, "Zephyrine") != []
        said = await one.follow(asked, "Erase them", talk=home(one))
        assert "found nothing left" in said.text
        assert await everywhere(urls.owner, "Zephyrine") == []
        assert "know nothing about you" in await one.type("/memory view", home(one))
        assert await find_agent(db, "console", "", "ben") is None
        async with db.bare() as connection:
            assert (
                await value(connection, "SELECT * FROM not_quoted(ARRAY['console::ben'], '', 'w', %s)", (KEY,)) == "console::ben"
            )


async def test_everything_means_the_quotes_too_for_who_has_nothing_else(desk: Opener, urls: Urls) -> None:
    async with desk(NOTED) as one:
        await quoted_by_ada(one)
        assert "found nothing left" in await one.type("/memory forget everything yes", home(one))
        assert await everywhere(urls.owner, "Zephyrine") == []


async def test_others_read_none_of_it_in_a_channel(desk: Opener) -> None:
    async with desk(NOTED) as one:
        lounge = await quoted_by_ada(one)
        said = await one.type("/memory view", replace(lounge, person=BEN))
        assert "1 quote of your words" in said
        assert "Zephyrine" not in said


async def test_who_has_an_agent_is_told_and_keeps_their_own_memory(desk: Opener, urls: Urls) -> None:
    async with desk(reply("Hello Ben."), NOTED) as one:
        await home(one).hear("I ride a lot")
        await quoted_by_ada(one)
        assert "/memory forget quotes erases them" in await one.type("/memory view", home(one))
        assert "Zephyrine" in await one.type("/memory view quotes", home(one))
        assert "found nothing left" in await one.type("/memory forget quotes yes", home(one))
        assert await everywhere(urls.owner, "Zephyrine") == []
        assert await everywhere(urls.owner, "I ride a lot") != []


async def test_a_restored_backup_brings_no_quotes_back(desk: Opener, urls: Urls) -> None:
    async with desk(NOTED, NOTED) as one:
        await quoted_by_ada(one)
        await one.type("/memory forget quotes yes", home(one))
        await erasures.keep(one.parts.db, one.parts.data, KEY)
        await one.talk.elsewhere("lounge", "public").hear("And now?", quotes=(QUOTE,))
        with psycopg.connect(urls.owner, autocommit=True) as connection:
            connection.execute("DELETE FROM keepsake.decisions")
            connection.execute("DELETE FROM keepsake.erased_people")
        again = await erasures.reconcile(one.parts.db, one.parts.cache, one.parts.data, KEY, one.parts.now())
        assert again == erasures.Again(0, {"unquoted": 1})
        assert await everywhere(urls.owner, "Zephyrine") == []


async def test_the_operator_finds_who_has_no_agent(desk: Opener, urls: Urls) -> None:
    async with desk(NOTED) as one:
        await quoted_by_ada(one)
        assert await quoted.bystander(one.parts, "console::ada") is None, "she has an agent"
        assert await quoted.bystander(one.parts, "console::eve") is None
        person = await quoted.bystander(one.parts, "console::ben")
        assert person is not None
        asking = Asking(one.parts, person, PlaceOf("console", "", "", "", "direct"), _operator(), None, None, "")
        shown = (await memory.view(asking)).text
        assert "1 quote of their words" in shown
        assert "Zephyrine" in shown
        assert "found nothing left" in (await quoted.forget(asking, sure=True)).text
        assert await everywhere(urls.owner, "Zephyrine") == []
