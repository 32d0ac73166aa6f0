"""What the operator chose on Slack, several workspaces, Enterprise Grid, strangers, and replies that grow."""

from __future__ import annotations

from tests.scenarios.discord_bot import echo, quoted, said
from tests.scenarios.slack_bot import bot_on, slack_server
from tests.servers.model import Growing, ScriptedModel, call, reply
from tests.servers.slack import Message
from tests.servers.slack.world import block_texts
from tests.waiting import until


def text_of(message: Message) -> str:
    """What a message says in the end: by its block after an update, else by what was streamed."""
    return "\n".join(block_texts(message.blocks)) or message.text


async def test_two_workspaces_have_people_limits_and_rules_of_their_own() -> None:
    async with slack_server() as server, ScriptedModel(policy=echo) as model:
        acme, beta = server.team("Acme"), server.team("Beta", app=server.another_app())
        ada, ben = server.person("Ada", acme), server.person("Ben", beta)
        hall, quiet = server.channel(acme, "hall", ada), server.channel(acme, "quiet", ada)
        private = server.channel(acme, "board", ada, private=True)
        places = f'{{"{beta.id}": {{"daily_limit": 2}}, "{quiet.id}": {{"mentions": false}}}}'
        async with bot_on(server, model, acme, beta, SLACK_PLACES=places, SLACK_ANSWER_IN_THREAD="false") as bot:
            await bot.exchange(ada.dm, lambda: ada.say(None, "remember Biscuit is my dog"), "Noted.")
            await bot.exchange(ben.dm, lambda: ben.say(None, "what is kept?"), "kept:")
            # Told not to answer in threads, it answers in the channel; a channel's own choice wins.
            ada.ask(quiet, "are you there?")
            answer = await bot.exchange(hall, lambda: ada.ask(hall, "hello"), "re: hello", thread=False)
            assert answer.thread_ts is None
            assert not server.messages(quiet, bot=True)
            # What was said in a private channel is nothing for a public one.
            await bot.exchange(private, lambda: ada.ask(private, "remember Clara is leaving"), "Noted.")
            await bot.exchange(hall, lambda: ada.ask(hall, "what is kept?"), "kept:")
            await bot.exchange(private, lambda: ada.ask(private, "what is kept?"), "kept: Clara")
            await bot.exchange(ben.dm, lambda: ben.say(None, "two"), "re: two")
            ben.say(None, "three")
            assert "today's limit" in (await server.wait_for_message(ben.dm)).shown
            before = len(server.messages(ben.dm, bot=True))
            ben.say(None, "four")
            await until(lambda: bot.counted("slack_ignored_daily_limit", above=1))
            await bot.exchange(ada.dm, lambda: ada.say(None, "still for me?"), "re: still for me?")
            assert len(server.messages(ben.dm, bot=True)) == before
            # After a restart each still gets its own.
            await bot.stop()
            await bot.start()
            await bot.exchange(ada.dm, lambda: ada.say(None, "again"), "re: again")


async def test_on_enterprise_grid_a_person_is_one_in_all_workspaces_and_an_organisations_installation_serves_them() -> None:
    async with slack_server() as server, ScriptedModel(policy=echo) as model:
        org = server.enterprise("Org")
        north, south = server.team("North", enterprise=org), server.team("South", enterprise=org)
        ada = server.person("Ada", north, south)
        hall = server.channel(south, "hall", ada)
        async with bot_on(server, model, north) as bot:
            here, there = ada.dm_in(north), ada.dm_in(south)
            await bot.exchange(here, lambda: ada.say(here, "remember Biscuit is my dog"), "Noted.")
            await bot.exchange(there, lambda: ada.say(there, "what is kept?"), "kept: Biscuit")
            await bot.exchange(hall, lambda: ada.ask(hall, "hello"), "re: hello")
            told = await server.wait_for_answer(ada.command("/keepsake whoami", here))
            assert str(ada.user.grid_id) in told.texts[0]


async def test_strangers_from_shared_channels_get_no_memory_unless_allowed() -> None:
    async with slack_server() as server, ScriptedModel(policy=echo) as model:
        acme, away = server.team("Acme"), server.team("Away", installed=False)
        ada, eve = server.person("Ada", acme), server.person("Eve", away)
        bridge = server.channel(acme, "bridge", ada)
        server.places.share(bridge, away, [eve.user])
        async with bot_on(server, model, acme) as bot:
            before = len(model.requests)
            eve.ask(bridge, "remember me")
            assert "members of this workspace" in (await server.wait_for_ephemeral(eve)).shown
            await bot.exchange(bridge, lambda: ada.ask(bridge, "hello"), "re: hello")
            assert len(model.requests) == before + 1
            assert ("eve", "@Keepsake remember me") in quoted(model.requests[-1]) or any(
                "remember me" in text for _, text in quoted(model.requests[-1])
            )
            # What outsiders can read is nobody's public place: nothing said there is used elsewhere.
            await bot.exchange(bridge, lambda: ada.ask(bridge, "remember Biscuit is sick"), "Noted.")
            hall = server.channel(acme, "hall", ada)
            await bot.exchange(hall, lambda: ada.ask(hall, "what is kept?"), "kept:")
        async with bot_on(server, model, acme, SLACK_STRANGERS="true") as bot:
            await bot.exchange(bridge, lambda: eve.ask(bridge, "hello"), "re: hello")


async def test_a_time_zone_a_join_and_do_not_disturb_come_from_slack() -> None:
    async with slack_server() as server, ScriptedModel(policy=echo) as model:
        acme = server.team("Acme")
        ada = server.person("Ada", acme, tz="Pacific/Kiritimati")
        lobby = server.channel(acme, "lobby", ada)
        async with bot_on(server, model, acme, SLACK_JOIN_CHANNELS=lobby.id, WELCOME__TEXT="Welcome, {name}!") as bot:
            await bot.exchange(ada.dm, lambda: ada.say(None, "what time is it?"), "re: what time is it?")
            assert "+14:00" in str(model.requests[-1].messages) or "Kiritimati" in str(model.requests[-1].messages)
            assert said(model.requests[-1]) == ["what time is it?"]
            server.person("Zoe", acme, join=True)
            assert (await server.wait_for_message(lobby, timeout=20)).shown == "Welcome, zoe!"
            assert await bot.counted("slack_join") == 1


async def test_replies_grow_in_streams_and_are_repaired_when_the_stream_dies() -> None:
    async with slack_server() as server, ScriptedModel(policy=echo) as model:
        acme = server.team("Acme")
        ada = server.person("Ada", acme)
        hall = server.channel(acme, "hall", ada)
        text = " ".join(f"word{number}" for number in range(300)) + " <!channel> end"
        shown = text.replace("<!channel>", "‹!channel›")
        async with bot_on(server, model, acme, SLACK_STREAMING="true") as bot:
            growing = Growing(reply(None, call("send_message", text=text)), shown=1200)
            model.add(growing)
            server.faults.delay("chat.startStream", 0.5, after=True)
            asked = ada.ask(hall, "at length")
            began = await server.wait_for_message(hall, streaming=True, timeout=20)
            assert began.streaming
            assert began.thread_ts == asked.ts
            await growing.reached.wait()
            await server.wait_for_call("chat.appendStream")
            growing.release()
            await server.until(lambda: (not began.streaming and text_of(began) == shown) or None, timeout=20)
            assert server.calls_of("chat.appendStream")
            assert not began.notifies
            # One that Slack ends meanwhile gets its whole text by an update.
            growing = Growing(reply(None, call("send_message", text=text)), shown=600)
            model.add(growing)
            ada.say(hall, "once more", thread=asked)
            began = await server.wait_for_message(hall, streaming=True, timeout=20)
            await growing.reached.wait()
            server.end_streams()
            growing.release()
            await server.until(lambda: text_of(began) == shown or None, timeout=20)
            # One that cannot be updated either is finished by a message with the rest.
            growing = Growing(reply(None, call("send_message", text=text)), shown=600)
            model.add(growing)
            ada.say(hall, "and again", thread=asked)
            began = await server.wait_for_message(hall, streaming=True, timeout=20)
            await growing.reached.wait()
            server.end_streams()
            server.faults.error("chat.update", "cant_update_message", 3)
            growing.release()
            rest = await server.wait_for_message(hall, timeout=20)
            assert began.shown + rest.shown == shown
            server.faults.clear()
            # One that somebody deleted meanwhile is said anew, from its beginning.
            growing = Growing(reply(None, call("send_message", text=text)), shown=600)
            model.add(growing)
            ada.say(hall, "and deleted", thread=asked)
            began = await server.wait_for_message(hall, streaming=True, timeout=20)
            await growing.reached.wait()
            server.actions.delete(began)
            growing.release()
            anew = await server.wait_for_message(hall, timeout=20)
            assert text_of(anew) == shown
            # Without a thread there are no streams: the message grows by edits.
            growing = Growing(reply(None, call("send_message", text=text)), shown=600)
            model.add(growing)
            ada.say(None, "here too")
            began = await server.wait_for_message(ada.dm, timeout=20)
            await growing.reached.wait()
            assert began.shown != shown
            growing.release()
            await server.until(lambda: text_of(began) == shown or None, timeout=20)
            assert len(server.messages(ada.dm, bot=True)) == 1
            # Killed in the midst of it: the message is finished by who comes next.
            growing = Growing(reply(None, call("send_message", text=text)), shown=600)
            model.add(growing)
            ada.say(hall, "and then?", thread=asked)
            began = await server.wait_for_message(hall, streaming=True, timeout=20)
            await growing.reached.wait()
            await bot.kill()
            model.add(reply(None, call("send_message", text="the end")))
            growing.release()
            await bot.start()
            await server.until(lambda: (not began.streaming and "the end" in text_of(began)) or None, timeout=30)


async def test_everything_is_acknowledged_in_time_while_slack_itself_is_slow() -> None:
    async with slack_server() as server, ScriptedModel(policy=echo) as model:
        acme = server.team("Acme")
        ada = server.person("Ada", acme)
        hall = server.channel(acme, "hall", ada)
        async with bot_on(server, model, acme) as bot:
            for method in ("users.info", "conversations.info", "conversations.history", "files.download"):
                server.faults.delay(method, 2.5, times=20)
            file = ada.file("late.txt", "the late content")
            asked = ada.ask(hall, "look", files=[file])
            await server.wait_settled()
            # The server sends again what is not acknowledged within three seconds.
            assert all(not attempt.number for one in server.deliveries for attempt in one.attempts)
            assert await bot.counted("slack_late")
            # The content of the file follows as a correction of what is remembered.
            await server.wait_for_message(hall, timeout=20)
            await server.wait_for_call("files.download", timeout=20)

            async def corrected() -> bool:
                after = ada.say(hall, "and?", thread=asked)
                await server.wait_for_message(hall, after=after, timeout=20)
                return any("the late content" in text for text in said(model.requests[-1]))

            await until(corrected, timeout=30)
