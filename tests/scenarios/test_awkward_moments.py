"""Changes and clocks at awkward moments, and what the bot's role must not be able to do."""

from __future__ import annotations

import contextlib
from dataclasses import replace
from datetime import timedelta
from types import SimpleNamespace

import psycopg
import pytest

from adapters.base import Changed
from bot.engine import changes, turns
from bot.engine.events import Claim, TurnCancelled
from bot.turn.agent import Agent
from memory.cache import Cache
from tests.bot.dialogue import SETTINGS
from tests.bot.engine.world import NOW, QUICK, place, world
from tests.conftest import Urls


async def _begun(engine, claim):  # type: ignore[no-untyped-def]
    agent = Agent(engine.db, Cache(None), None, None, SETTINGS, SimpleNamespace(), clock=lambda: NOW, limits={})  # type: ignore[arg-type]
    with contextlib.suppress(TurnCancelled):
        await agent._begin(await agent._opened(claim))


@pytest.mark.parametrize("text", [None, "corrected"])
async def test_a_change_between_claim_and_first_step_is_followed(urls: Urls, text: str | None) -> None:
    """The claim's events are never read again: the deleted text was stored and answered, the corrected one never seen."""
    async with world(urls.bot, urls.owner, QUICK) as engine:
        accepted = await engine.say("CANARY old text", message_id="p1")
        claim = await engine.claim(accepted.agent)
        assert await changes.follow(engine.db, Cache(None), Changed("test", "", "dm-ada", ("p1",), text, NOW)) == 1
        await _begun(engine, claim)
        assert not [c for c in await engine.column("SELECT content FROM messages") if "CANARY" in c]


async def test_what_was_said_while_private_stays_private(urls: Urls) -> None:
    """'The stricter of then and now': accepted while the place was private, appended after it had become public."""
    async with world(urls.bot, urls.owner, QUICK) as engine:
        accepted = await engine.say("CANARY", where=place("c1", "private"))
        await engine.say("hello", "bob", where=place("c1", "public"))
        await _begun(engine, await engine.claim(accepted.agent))
        assert await engine.column("SELECT visibility FROM messages WHERE agent_id = %s", accepted.agent) == ["private"]


async def test_a_thread_of_a_private_place_is_never_public(urls: Urls) -> None:
    async with world(urls.bot, urls.owner, QUICK) as engine:
        await engine.say("x", where=place("c1", "private"))
        await engine.say("y", where=replace(place("c1-t", "public"), kind=None, parent="c1"))
        assert await engine.column("SELECT kind FROM places WHERE external_id = 'c1-t'") == ["private"]
        await engine.say("z", where=replace(place("c1-u", "public"), parent="c1", closed=True))
        assert await engine.column("SELECT kind FROM places WHERE external_id IN ('c1', 'c1-u')") == ["private", "private"]


async def test_a_clock_that_was_set_back_delays_nobody(urls: Urls) -> None:
    """created_at an hour ahead: a burst was waited for until then, and the worker slept through it."""
    async with world(urls.bot, urls.owner, QUICK) as engine:
        engine.at = NOW + timedelta(hours=1)
        accepted = await engine.say("hi", burst=1.5)
        engine.at = NOW
        found = await turns.claim(engine.db, accepted.agent, NOW, QUICK)
        assert isinstance(found, Claim) or found.until <= NOW + timedelta(seconds=QUICK.burst_cap)  # type: ignore[union-attr]


async def test_the_bot_role_cannot_route_a_person_to_another_agent(urls: Urls) -> None:
    async with world(urls.bot, urls.owner, QUICK) as engine:
        ada, bob = await engine.say("a", "ada"), await engine.say("b", "bob")
        with pytest.raises(psycopg.errors.InsufficientPrivilege):
            async with engine.db.agent(ada.agent, ada.place_id) as connection:
                await connection.execute("UPDATE identities SET merged_into = %s", (bob.agent,))


async def test_no_row_hangs_on_another_agents_conversation(urls: Urls) -> None:
    async with world(urls.bot, urls.owner, QUICK) as engine:
        ada, bob = await engine.say("a", "ada"), await engine.say("b", "bob")
        (theirs,) = await engine.column("SELECT id FROM conversations WHERE agent_id = %s", bob.agent)
        with pytest.raises(psycopg.Error):
            async with engine.db.agent(ada.agent, ada.place_id) as connection:
                await connection.execute(
                    """INSERT INTO messages (agent_id, conversation_id, place_id, visibility, position, role, kind, content, searchable, created_at)
                       VALUES (%s, %s, %s, 'direct', 1, 'user', 'message', 'x', true, now())""",
                    (ada.agent, theirs, ada.place_id),
                )
