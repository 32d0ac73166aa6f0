"""The contract on Slack."""

from __future__ import annotations

import json
import time
from collections.abc import AsyncIterator
from contextlib import AbstractAsyncContextManager, asynccontextmanager

from adapters.base import Button, Outgoing, Person, Quiets
from adapters.slack.adapter import SlackAdapter
from adapters.slack.lines import Slash
from adapters.slack.manifest import manifest
from adapters.slack.settings import Settings, Tokens
from tests.adapters.contract import AdapterContract, Recorder, Stage, running, sent
from tests.servers.slack import Person as Somebody
from tests.servers.slack import SlackServer


class SlackStage(Stage):
    def __init__(self, server: SlackServer, ada: Somebody, adapter: SlackAdapter) -> None:
        self.server, self.ada = server, ada
        self.adapter: SlackAdapter = adapter

    @property
    def channel(self) -> str:
        return self.ada.dm.id

    async def say(self, text: str) -> None:
        self.ada.say(None, text)

    def heard(self) -> list[str]:
        return [one.shown for one in self.server.messages(self.ada.dm, bot=True)]

    async def again(self) -> None:
        self.server.redeliver(self.server.delivered("message")[-1])


@asynccontextmanager
async def on_slack(bot: Recorder) -> AsyncIterator[Stage]:
    async with SlackServer(manifest=manifest("Keepsake")) as server:
        acme = server.team("Acme")
        settings = Settings(tokens=(Tokens(acme.bot_token, server.app_token),), api_base=server.api_base, silence=6)
        adapter = SlackAdapter(settings, [Slash("help")])
        async with running(adapter, bot):
            await server.wait_connected()
            yield SlackStage(server, server.person("Ada", acme), adapter)


class TestSlack(AdapterContract):
    def stage(self, bot: Recorder) -> AbstractAsyncContextManager[Stage]:
        return on_slack(bot)

    async def test_do_not_disturb_is_told(self) -> None:
        bot = Recorder()
        async with on_slack(bot) as stage:
            assert isinstance(stage, SlackStage)
            adapter, ada, now = stage.adapter, stage.ada, time.time()
            assert isinstance(adapter, Quiets)
            person = Person("slack", ada.team.id, ada.id, "Ada")
            await sent(adapter, Outgoing(1, stage.channel, "here"))
            assert await adapter.quiet(person) is None
            ada.set_dnd(now - 60, now + 600)
            until = await adapter.quiet(person)
            assert until is not None
            assert abs(until.timestamp() - now - 600) < 2
            ada.set_dnd(0, 0, enabled=False, snooze_until=now + 60)
            assert await adapter.quiet(person) is not None
            stage.server.faults.error("dnd.info", "internal_error")
            assert await adapter.quiet(person) is None
            assert await adapter.quiet(Person("slack", "T0NOBODY", "U1", "x")) is None

    async def test_a_timed_message_notifies_its_person_alone_and_has_buttons(self) -> None:
        async with on_slack(Recorder()) as stage:
            assert isinstance(stage, SlackStage)
            server, ada = stage.server, stage.ada
            bob = server.person("Bob", ada.team)
            channel = server.channel(ada.team, "general", ada, bob)
            buttons = (Button("Later", "/reminders snooze t1 10"), Button("Done", "/reminders done t1", "good"))
            author = f"slack:{ada.team.id}:{ada.id}"
            text = f"Reminder: tell <@{bob.id}> and <!channel>"
            one = Outgoing(7, channel.id, text, workspace=ada.team.id, mention=ada.id, buttons=buttons, made_for=author)
            sent_as = await sent(stage.adapter, one)
            [shown] = server.messages(channel, bot=True)
            words = shown.blocks[0]["text"]
            assert words.startswith(f"<@{ada.id}> Reminder: tell ")
            assert f"<@{bob.id}>" not in words
            assert "<!channel>" not in words
            assert shown.text.startswith(f"<@{ada.id}> ")
            values = [json.loads(element["value"]) for element in shown.blocks[1]["elements"]]
            assert [(value["line"], value["for"]) for value in values] == [(button.line, author) for button in buttons]
            assert await stage.adapter.find(one) == sent_as
