"""Two processes share a bot on Discord: each has one of its two connections, and one of them dies."""

from __future__ import annotations

import asyncio

from tests.chaos.stores import Stores, stores_of
from tests.scenarios.discord_bot import Bot, bot_on, echo
from tests.servers.discord import DiscordServer
from tests.servers.model import ScriptedModel
from tests.waiting import until


def beside(bot: Bot, shards: str) -> Bot:
    """Another process on the same data folder."""
    return Bot(bot.model, bot.data, {**bot.settings, "KEEPSAKE__DISCORD__SHARDS": shards}, server=bot.server)


async def _both(stores: Stores, marks: str) -> bool:
    """Each process notes for itself up to where it heard: after a long absence of one, the other's mark lies behind its gap."""
    return await stores.one(marks) == 2


async def test_two_gateways_hear_their_shards_and_what_one_misses_is_caught_up_by_it() -> None:
    async with DiscordServer() as server, ScriptedModel(policy=echo) as model:
        home = server.guild("Home", channels=("general",), shard=(0, 2))
        other = server.guild("Other", channels=("general",), shard=(1, 2))
        ada, ben = server.person("Ada", home), server.person("Ben", other)
        here, there = home.channel("general"), other.channel("general")
        async with bot_on(server, model, start=False, DISCORD__SHARDS="0/2") as first:
            second = beside(first, "1/2")
            await first.start()
            try:
                await second.start()
                await until(
                    lambda: sorted(one.session.shard for one in server.hub.live() if one.session) == [(0, 2), (1, 2)], timeout=30
                )
                for bot, channel, person in ((first, here, ada), (second, there, ben)):
                    await bot.exchange(channel, lambda: person.ask(channel, "hello"), "re: hello")  # noqa: B023
                await first.exchange(ada.dm, lambda: ada.say(text="in private"), "re: in private")
                await second.kill()
                missed = ben.ask(there, "is anybody there?")
                # What the other one hears meanwhile comes later, and must not count as heard by this one.
                for text in ("one", "two", "three"):
                    await first.exchange(here, lambda: ada.ask(here, text), f"re: {text}")  # noqa: B023
                await second.start()
                answer = await server.wait_for_message(there, after=missed, timeout=40)
                assert answer.content == "re: is anybody there?"
                assert [message.content for message in server.messages(there, server.bot)] == ["re: hello", answer.content]
                stores = await asyncio.to_thread(stores_of, first.data)
                marks = "SELECT count(*) FROM heard WHERE platform IN ('discord 0/2', 'discord 1/2')"
                await until(lambda: _both(stores, marks), timeout=30)
            finally:
                assert await second.stop() == 0, second.lines
