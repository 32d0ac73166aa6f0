"""The running bot reminds people of what they asked for, whatever its model does."""

from __future__ import annotations

import psycopg

from bot.embedded import Servers
from tests.conftest import Urls
from tests.scenarios.discord_bot import bot_on
from tests.servers.discord import DiscordServer
from tests.servers.model import Request, ScriptedModel, Status, Step, call, reply
from tests.waiting import until


async def test_reminders_come_though_the_model_stays_silent_or_is_away(urls: Urls, cluster: Servers) -> None:
    away = False

    def model_says(request: Request) -> Step:
        if away:
            return Status(401, "invalid_api_key")
        if "Timer is due" in str(request.messages):
            return reply(None, call("stay_silent"))
        timers = [
            call("set_timer", purpose=what, asked="Remind me in an hour", in_minutes=60)
            for what in ("water the plants", "feed the cat", "call Mum")
        ]
        return reply("I will.", *timers)

    async with DiscordServer() as server, ScriptedModel(policy=model_says) as model:
        ada = server.person("Ada", server.guild("Home", channels=("general",)))
        async with (
            bot_on(server, model, DATABASE__URL=urls.bot, REDIS__URL=cluster.redis_url) as bot,
            await psycopg.AsyncConnection.connect(urls.owner, autocommit=True, options="-c search_path=keepsake") as owner,
        ):
            last = await bot.exchange(ada.dm, lambda: ada.say(text="Remind me in an hour of three things"), "I will.")
            # The bot's own line below the reply, about what was set.
            last = await server.wait_for_message(ada.dm, after=last, timeout=20)
            assert [line.split(",")[0] for line in last.content.splitlines()] == [
                "Reminder: water the plants",
                "Reminder: feed the cat",
                "Reminder: call Mum",
            ]

            async def an_hour_passes(*purposes: str) -> None:
                await owner.execute(
                    "UPDATE timers SET due_at = now(), wall_time = now() AT TIME ZONE zone WHERE purpose = ANY (%s)",
                    (list(purposes),),
                )

            await an_hour_passes("water the plants")
            last = await server.wait_for_message(ada.dm, after=last, timeout=30)
            assert last.content == "Reminder: water the plants"
            away = True
            await an_hour_passes("feed the cat", "call Mum")
            last = await server.wait_for_message(ada.dm, after=last, timeout=30)
            assert sorted(last.content.splitlines()) == ["Reminder: call Mum", "Reminder: feed the cat"]

            async def settled() -> bool:
                row = await (await owner.execute("SELECT count(*) FROM events WHERE status <> 1")).fetchone()
                return row == (0,)

            await until(settled, timeout=20)
            assert [each.content for each in server.messages(ada.dm) if each.content.startswith("Reminder")][2:] == [last.content]
