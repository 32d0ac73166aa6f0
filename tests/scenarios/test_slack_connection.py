"""What may go wrong between Slack and the bot: killed processes, lost connections, deaf sockets, wrong tokens, thrown-out apps."""

from __future__ import annotations

import pytest

from tests.scenarios.discord_bot import echo, said
from tests.scenarios.slack_bot import POST, Bot, bot_on, slack_server
from tests.servers.model import Gate, ScriptedModel, reply
from tests.waiting import until


async def test_what_was_not_committed_is_not_acknowledged_and_what_was_acknowledged_survives_a_kill() -> None:
    async with slack_server(retries=(0.5, 0.5, 0.5, 0.5, 0.5, 0.5)) as server, ScriptedModel(policy=echo) as model:
        acme = server.team("Acme")
        ada, ben = server.person("Ada", acme), server.person("Ben", acme)
        async with bot_on(server, model, acme) as bot:
            # Killed before the commit: Slack was not told, and tells it again.
            hold = server.faults.hold("users.info")
            ada.say(None, "first")
            await server.until(lambda: server.calls_of("users.info") or None)
            delivery = server.delivered("message")[-1]
            await bot.kill()
            assert not delivery.acknowledged.is_set()
            server.faults.clear()
            del hold
            await bot.start()
            assert (await server.wait_for_message(ada.dm, timeout=20)).shown == "re: first"
            # Killed as soon as Slack was told: it is in the inbox, and answered though nobody tells it again.
            server.retries = ()
            gate = Gate(reply("too early"))
            model.add(gate)
            ben.say(None, "second")
            delivery = server.delivered("message")[-1]
            await server.until(lambda: delivery.acknowledged.is_set() or None)
            await bot.kill()
            gate.release()
            await bot.start()
            assert (await server.wait_for_message(ben.dm, timeout=20)).shown in ("re: second", "too early")
            # Delivered once more after the restart: known.
            server.redeliver(delivery)
            await server.wait_settled()
            await bot.exchange(ben.dm, lambda: ben.say(None, "third"), "re: third")
            assert len(server.messages(ben.dm, bot=True)) == 2
            assert len(server.messages(ada.dm, bot=True)) == 1


async def test_a_deaf_mute_cut_or_refreshed_socket_is_mended_and_shows_in_the_probe() -> None:
    async with slack_server(retries=(1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0)) as server, ScriptedModel(policy=echo) as model:
        acme = server.team("Acme")
        ada = server.person("Ada", acme)
        async with bot_on(server, model, acme, SLACK_SILENCE="2", SLACK_REFRESH="5") as bot:
            await bot.exchange(ada.dm, lambda: ada.say(None, "hello"), "re: hello")
            await bot.until_ready()
            server.hub.refresh()
            await bot.exchange(ada.dm, lambda: ada.say(None, "after a refresh"), "re: after a refresh", timeout=30)
            server.hub.cut()
            await bot.exchange(ada.dm, lambda: ada.say(None, "after a cut"), "re: after a cut", timeout=30)
            # Alive but deaf: nothing comes, nobody says so.
            before = len(server.connections)
            server.hub.deafen()
            await bot.exchange(ada.dm, lambda: ada.say(None, "can you hear?"), "re: can you hear?", timeout=40)
            assert len(server.connections) > before
            server.hub.silence()
            await bot.exchange(ada.dm, lambda: ada.say(None, "and now?"), "re: and now?", timeout=40)
            async with server.down():
                await until(lambda: _not_ready(bot), timeout=30)
            await until(bot.ready, timeout=40)
            await bot.exchange(ada.dm, lambda: ada.say(None, "back"), "re: back", timeout=40)


async def _not_ready(bot: object) -> bool:
    return not await bot.ready()  # type: ignore[attr-defined]


@pytest.mark.parametrize(
    ("variable", "value", "line"),
    [
        ("SLACK_BOT_TOKEN", "xoxb-wrong", "does not accept the token in SLACK_BOT_TOKEN"),
        ("SLACK_APP_TOKEN", "xapp-wrong", "does not accept the token in SLACK_APP_TOKEN"),
        ("SLACK_APP_TOKEN", "", "the environment variable SLACK_APP_TOKEN is not set"),
    ],
)
async def test_a_wrong_token_ends_the_start_with_a_clear_line(variable: str, value: str, line: str) -> None:
    async with slack_server() as server, ScriptedModel(policy=echo) as model:
        acme = server.team("Acme")
        async with bot_on(server, model, acme, start=False) as bot:
            bot.settings[variable] = value
            await bot.start(listening=False)
            assert await bot.ended() == 2
            assert any(line in one for one in bot.lines), bot.lines
            assert not any("xoxb-" in one or "xapp-" in one for one in bot.lines if "(xapp-)" not in one and "(xoxb-)" not in one)


async def test_a_workspace_that_throws_the_app_out_is_told_once_and_others_go_on() -> None:
    async with slack_server() as server, ScriptedModel(policy=echo) as model:
        acme, beta = server.team("Acme"), server.team("Beta")
        ada, ben = server.person("Ada", acme), server.person("Ben", beta)
        async with bot_on(server, model, acme, beta) as bot:
            await bot.exchange(ada.dm, lambda: ada.say(None, "hello"), "re: hello")
            await bot.exchange(ben.dm, lambda: ben.say(None, "hello"), "re: hello")
            gate = Gate(reply("kept"))
            model.add(gate)
            ada.say(None, "quick")
            await gate.reached.wait()
            server.uninstall(acme)
            gate.release()
            await bot.heard("no longer accepts")
            await bot.exchange(ben.dm, lambda: ben.say(None, "others go on"), "re: others go on")
            assert len([line for line in bot.lines if "no longer accepts" in line]) == 1
            server.revoke(beta)
            await bot.heard("no workspace accepts")
            assert await bot.ended() == 2


async def test_an_account_that_was_closed_is_not_written_to() -> None:
    async with slack_server() as server, ScriptedModel(policy=echo) as model:
        acme = server.team("Acme")
        ada = server.person("Ada", acme)
        async with bot_on(server, model, acme) as bot:
            await bot.exchange(ada.dm, lambda: ada.say(None, "hello"), "re: hello")
            gate = Gate(reply("too late"))
            model.add(gate)
            ada.say(None, "bye")
            await gate.reached.wait()
            ada.change(deleted=True)
            await server.wait_settled()
            before = len(server.calls_of(POST))
            gate.release()
            await bot.heard("undeliverable")
            assert len(server.calls_of(POST)) == before


async def test_a_message_that_is_told_again_after_its_deletion_is_not_taken() -> None:
    async with slack_server(retries=()) as server, ScriptedModel(policy=echo) as model:
        acme = server.team("Acme")
        ada = server.person("Ada", acme)
        async with bot_on(server, model, acme) as bot:
            await bot.exchange(ada.dm, lambda: ada.say(None, "hello"), "re: hello")
            server.hub.deafen()
            secret = ada.say(None, "secret")
            unheard = server.delivered("message")[-1]
            server.hub.cut()
            ada.delete(secret)
            await until(lambda: bot.counted("slack_deleted", above=0), timeout=30)
            server.redeliver(unheard)
            await until(lambda: bot.counted("slack_ignored_deleted", above=0), timeout=20)
            await bot.exchange(ada.dm, lambda: ada.say(None, "and now?"), "re: and now?")
            assert not any("secret" in said(request) for request in model.requests)


async def test_a_deletion_that_overtakes_its_message_in_another_process_is_followed() -> None:
    async with slack_server() as server, ScriptedModel(policy=echo) as model:
        acme = server.team("Acme")
        ada = server.person("Ada", acme)
        async with bot_on(server, model, acme) as bot:
            two = Bot(model, bot.data, dict(bot.settings), server=server, teams=bot.teams)
            try:
                await two.start()
                # The two share one app's events in turn: one is still asking who Ada is when the other is told of the deletion.
                server.faults.delay("users.info", 1.2)
                ada.delete(ada.say(None, "secret"))
                assert (await server.wait_for_message(ada.dm, timeout=20)).shown == "re: secret"

                async def forgotten() -> bool:
                    await bot.exchange(ada.dm, lambda: ada.say(None, "and now?"), "re: and now?")
                    return "secret" not in said(model.requests[-1])

                await until(forgotten, timeout=20)
            finally:
                await two.stop()
