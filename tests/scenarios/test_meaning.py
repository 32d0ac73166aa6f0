"""What was just said is found by meaning in the running bot."""

from __future__ import annotations

import psycopg

from bot.embedded import Servers
from tests.conftest import Urls
from tests.memory.people import ByTopic
from tests.scenarios.discord_bot import bot_on, said
from tests.servers.discord import DiscordServer
from tests.servers.model import Request, ScriptedModel, Step, call, reply
from tests.waiting import until

FACT = "Biscuit is my retriever"
SOON = 1.0
"""Seconds within which it is to be found; the machine gets eight times as much, and the look that needs no wake-up comes every 30 s."""


def topics(text: str) -> list[float]:
    """A number a topic; no word of a question need stand in what it finds."""
    words = text.lower().split()
    return [float(sum(word in topic.split() for word in words)) for topic in ByTopic.topics] + [0.0, 0.0, 0.0, 0.2]


def model_says(request: Request) -> Step:
    if request.contents("tool"):
        return reply("found" if FACT in request.contents("tool")[-1] else "not found")
    if said(request)[-1] == "which pet?":
        return reply(None, call("recall_storage_search", query="puppy dog pet"))
    return reply("Nice.")


async def test_a_told_fact_is_found_by_meaning_within_a_second(urls: Urls, cluster: Servers) -> None:
    settings = {"DATABASE__URL": urls.bot, "REDIS__URL": cluster.redis_url, "MODEL__EMBEDDING": "topics", "ENGINE__DEBOUNCE": "0"}
    async with DiscordServer() as server, ScriptedModel(policy=model_says, embed=topics) as model:
        ada = server.person("Ada", server.guild("Home", channels=("general",)))
        async with (
            bot_on(server, model, **settings) as bot,
            await psycopg.AsyncConnection.connect(urls.owner, autocommit=True, options="-c search_path=keepsake") as owner,
        ):

            async def understood(text: str) -> bool:
                statement = "SELECT FROM embeddings e JOIN messages m ON m.id = e.message_id WHERE m.content = %s"
                return await (await owner.execute(statement, (text,))).fetchone() is not None

            told = ada.say(text="Biscuit is my cake")
            await server.wait_for_message(ada.dm, after=told, timeout=20)
            await until(lambda: understood("Biscuit is my cake"), timeout=8 * SOON)
            ada.edit(told, FACT)
            await until(lambda: understood(FACT), timeout=8 * SOON)
            # What the prompt shows is left out of results.
            await server.wait_for_answer(ada.command("fresh"), timeout=15)
            await bot.exchange(ada.dm, lambda: ada.say(text="which pet?"), "found")
