"""The local Discord server, seen by the real discord.py."""

from __future__ import annotations

import asyncio
import contextlib
import json
import logging
import warnings
from collections.abc import AsyncIterator, Iterator
from typing import Any

import aiohttp
import pytest
import yarl

with warnings.catch_warnings():
    # discord.py imports audioop, which warns on Python 3.11 and 3.12.
    warnings.simplefilter("ignore", DeprecationWarning)
    import discord
from discord import app_commands
from discord.gateway import DiscordWebSocket
from discord.http import Route

from tests.servers.discord import TOKEN, DiscordServer
from tests.servers.discord import intents as gateway_intents
from tests.servers.discord.permissions import MANAGE_MESSAGES, SEND_MESSAGES, VIEW_CHANNEL
from tests.waiting import until

POST = "POST /channels/{channel_id}/messages"


class Bot(discord.Client):
    """A small bot: answers direct messages and mentions with "echo: ...", has a few commands, and notes what it hears."""

    def __init__(self, intents: discord.Intents, **options: Any) -> None:
        super().__init__(intents=intents, guild_ready_timeout=0.05, **options)
        self.heard: list[discord.Message] = []
        self.events: list[tuple[str, Any]] = []
        self.errors: list[BaseException] = []
        self.running: asyncio.Task[None] | None = None
        self.tree = app_commands.CommandTree(self)
        _add_commands(self.tree)

    async def setup_hook(self) -> None:
        await self.tree.sync()

    async def before_identify_hook(self, shard_id: int | None, *, initial: bool = False) -> None:
        """discord.py waits 5 s here before every IDENTIFY but the first."""

    def dispatch(self, event: str, /, *args: Any, **kwargs: Any) -> None:
        self.events.append((event, args[0] if args else None))
        super().dispatch(event, *args, **kwargs)

    async def on_message(self, message: discord.Message) -> None:
        if message.author == self.user:
            return
        self.heard.append(message)
        if message.guild is None or self.user in message.mentions:
            try:
                await message.reply(f"echo: {message.clean_content}", mention_author=True)
            except (discord.HTTPException, aiohttp.ClientError, OSError) as error:
                self.errors.append(error)

    def seen(self, event: str) -> list[Any]:
        return [argument for name, argument in self.events if name == event]


def _add_commands(tree: app_commands.CommandTree[Bot]) -> None:
    group = app_commands.Group(name="memory", description="What I remember")

    @group.command(description="Show it")
    async def view(interaction: discord.Interaction, page: int = 1, about: discord.User | None = None) -> None:
        await interaction.response.defer(ephemeral=True)
        await interaction.followup.send(f"page {page} about {about.name if about else 'you'}", ephemeral=True)
        await interaction.followup.send("that was all", ephemeral=True)

    @tree.command(description="Ask for something")
    async def form(interaction: discord.Interaction) -> None:
        view = discord.ui.View(timeout=None)
        button: discord.ui.Button[discord.ui.View] = discord.ui.Button(label="Open", custom_id="open")

        async def pressed(press: discord.Interaction) -> None:
            await press.response.send_modal(Form())

        button.callback = pressed  # type: ignore[method-assign, assignment]
        view.add_item(button)
        await interaction.response.send_message("press it", view=view)

    @tree.command(description="Pick one")
    async def pick(interaction: discord.Interaction, fruit: str) -> None:
        await interaction.response.send_message(f"you get a {fruit}")

    @pick.autocomplete("fruit")
    async def fruits(_: discord.Interaction, typed: str) -> list[app_commands.Choice[str]]:
        return [app_commands.Choice(name=name, value=name) for name in ("pear", "apple", "peach") if name.startswith(typed)]

    @tree.command(description="Comes too late and twice")
    async def late(interaction: discord.Interaction) -> None:
        client: Bot = interaction.client  # type: ignore[assignment]
        for _ in range(2):
            try:
                await interaction.response.send_message("here")
            except discord.HTTPException as error:
                client.errors.append(error)
            interaction.response._response_type = None

    tree.add_command(group)


class Form(discord.ui.Modal, title="A form"):
    field: discord.ui.TextInput[Form] = discord.ui.TextInput(label="Zone", custom_id="zone")

    async def on_submit(self, interaction: discord.Interaction) -> None:
        await interaction.response.send_message(f"zone is {self.field.value}", ephemeral=True)


@pytest.fixture(autouse=True)
def _library() -> Iterator[None]:
    """The library's two addresses are class attributes; they are put back."""
    kept = Route.BASE, DiscordWebSocket.DEFAULT_GATEWAY
    logging.getLogger("discord").setLevel(logging.CRITICAL)
    yield
    Route.BASE, DiscordWebSocket.DEFAULT_GATEWAY = kept


@pytest.fixture
async def server() -> AsyncIterator[DiscordServer]:
    async with DiscordServer() as made:
        yield made


@contextlib.asynccontextmanager
async def running(server: DiscordServer, intents: discord.Intents | None = None, **options: Any) -> AsyncIterator[Bot]:
    """The bot, connected."""
    Route.BASE, DiscordWebSocket.DEFAULT_GATEWAY = server.api_base, yarl.URL(server.gateway)
    before = len(server.connections)
    bot = Bot(intents or discord.Intents.all(), **options)
    async with bot:
        bot.running = task = asyncio.create_task(bot.start(server.token))
        try:
            await server.wait_connected(before + 1)
            await until(lambda: bot.seen("ready") or task.done())
            yield bot
        finally:
            await bot.close()
            with contextlib.suppress(Exception):
                await task


async def started(server: DiscordServer, intents: discord.Intents, token: str) -> None:
    """Runs a bot until it gives up."""
    Route.BASE, DiscordWebSocket.DEFAULT_GATEWAY = server.api_base, yarl.URL(server.gateway)
    async with Bot(intents) as bot:
        await asyncio.wait_for(bot.start(token), 5)


def only(**on: bool) -> discord.Intents:
    intents = discord.Intents.default()
    for name, value in on.items():
        setattr(intents, name, value)
    return intents


# Login.


async def test_ready_names_the_guilds_and_commands_are_synced_once(server: DiscordServer) -> None:
    home = server.guild("Home", channels=("general", "random"))
    server.person("Ada", home)
    secret = server.channel(home, "secret")
    server.places.overwrite(secret, home.everyone, deny=VIEW_CHANNEL)
    async with running(server) as bot:
        assert bot.user is not None
        assert bot.user.id == server.bot.id
        assert [guild.name for guild in bot.guilds] == ["Home"]
        assert [channel.name for channel in bot.guilds[0].text_channels] == ["general", "random", "___hidden___"]
        assert {member.name for member in bot.guilds[0].members} == {"Keepsake", "operator", "ada"}
        assert server.command_syncs == 1
        assert server.connections[0].compressed
        assert bot.seen("guild_available")
        assert not bot.seen("guild_join")
        await server.until(lambda: server.connections[0].heartbeats)
    # discord.py's own close arrives as 4000, so the session lingers.
    await server.until(lambda: server.connections[0].closed == 4000)
    assert server.hub.sessions


async def test_a_wrong_token_is_refused(server: DiscordServer) -> None:
    with pytest.raises(discord.LoginFailure):
        await started(server, only(), "wrong")
    assert [request.status for request in server.requests] == [401]


async def test_a_wrong_token_at_the_gateway_closes_with_4004(server: DiscordServer) -> None:
    async with running(server) as bot:
        server.revoke_token()
        await until(bot.is_closed)
    assert server.connections[0].closed == 4004


async def test_disallowed_intents_close_with_4014() -> None:
    async with DiscordServer(privileged=gateway_intents.MESSAGE_CONTENT) as server:
        with pytest.raises(discord.PrivilegedIntentsRequired):
            await started(server, only(presences=True), server.token)
        await server.until(lambda: server.connections[0].closed == 4014)


async def test_an_unknown_route_fails_the_block() -> None:
    async def asks() -> None:
        async with DiscordServer() as server, aiohttp.ClientSession() as session:
            answer = await session.get(server.api_base + "/nonsense")
            assert answer.status == 404

    with pytest.raises(AssertionError, match="unknown route: GET /api/v10/nonsense"):
        await asks()


# Messages.


async def test_a_direct_message_is_answered(server: DiscordServer) -> None:
    ada = server.person("Ada")
    async with running(server) as bot:
        said = ada.say(text="Hello")
        reply = await server.wait_for_message(ada.dm)
        assert reply.content == "echo: Hello"
        assert reply.reference is not None
        assert reply.reference.message_id == said.id
        assert reply.mentions == [ada.user]
        ada.say(text="again")
        assert (await server.wait_for_message(ada.dm)).content == "echo: again"
        history = [one async for one in (await bot.fetch_channel(ada.dm.id)).history(limit=3, oldest_first=True)]  # type: ignore[union-attr]
        assert [one.content for one in history] == ["Hello", "echo: Hello", "again"]


async def test_only_a_mention_is_one(server: DiscordServer) -> None:
    home = server.guild("Home")
    ada, general = server.person("Ada", home), home.channel("general")
    async with running(server) as bot:
        ada.say(general, "Nice weather")
        ada.say(general, "@everyone hello")
        ada.ask(general, "Hello")
        assert (await server.wait_for_message(general)).content == "echo: @Keepsake Hello"
        assert [message.mention_everyone for message in bot.heard] == [False, True, False]
        assert len(server.messages(general, server.bot)) == 1


async def test_forward_attachment_edit_and_deletion_arrive(server: DiscordServer) -> None:
    home = server.guild("Home")
    ada, general = server.person("Ada", home), home.channel("general")
    async with running(server) as bot:
        paste = ada.say(general, attachments=[ada.file("message.txt", "long text", served_type="text/plain; charset=utf-8")])
        ada.say(general, forward=paste)
        reply = ada.say(general, "this one", reply_to=paste)
        await until(lambda: len(bot.heard) == 3)
        first, second, third = bot.heard
        assert first.attachments[0].content_type is None
        assert await first.attachments[0].read() == b"long text"
        assert second.message_snapshots[0].attachments[0].filename == "message.txt"
        assert third.reference is not None
        assert isinstance(third.reference.resolved, discord.Message)
        server.actions.unfurl(reply)
        ada.edit(reply, "that one")
        await until(lambda: len(bot.seen("raw_message_edit")) == 2)
        assert [event.data["edited_timestamp"] is None for event in bot.seen("raw_message_edit")] == [True, False]
        ada.delete(reply)
        ada.delete(paste, server.messages(general)[1])
        await until(lambda: bot.seen("raw_bulk_message_delete"))
        assert bot.seen("raw_message_delete")[0].message_id == reply.id


async def test_without_the_intent_content_is_empty_save_for_the_documented_exceptions(server: DiscordServer) -> None:
    home = server.guild("Home")
    ada, general = server.person("Ada", home), home.channel("general")
    async with running(server, only()) as bot:
        ada.say(general, "secret", attachments=[ada.file("a.txt", "a")])
        ada.ask(general, "open")
        ada.say(text="direct")
        reply = await server.wait_for_message(general)
        ada.say(general, "pinged", reply_to=reply)
        ada.say(general, "not pinged", reply_to=reply, ping=False)
        await until(lambda: len(bot.heard) == 5)
        assert [message.content for message in bot.heard] == ["", f"{server.bot.mention} open", "direct", "pinged", ""]
        assert bot.heard[0].attachments == []
        assert bot.heard[4].reference is not None
        resolved = bot.heard[4].reference.resolved
        assert isinstance(resolved, discord.Message)
        assert resolved.content == "echo: @Keepsake open"


async def test_what_discord_refuses(server: DiscordServer) -> None:
    home = server.guild("Home")
    ada, bob = server.person("Ada", home), server.person("Bob", home)
    general, hidden = home.channel("general"), server.channel(home, "hidden")
    server.places.overwrite(hidden, home.everyone, deny=VIEW_CHANNEL)
    silent = server.channel(home, "silent")
    server.places.overwrite(silent, home.everyone, deny=SEND_MESSAGES)
    locked, gone = ada.thread(general, "locked"), ada.say(general, "gone")
    ada.lock(locked)
    ada.delete(gone)
    bob.leave(home)
    async with running(server) as bot:

        async def code(channel_id: int, text: str, **more: Any) -> int:
            target = bot.get_partial_messageable(channel_id, guild_id=home.id)
            with pytest.raises(discord.HTTPException) as refused:
                await target.send(text, **more)
            return refused.value.code

        ada.user.dms_open = False
        assert await code(ada.dm.id, "x") == 50007
        assert await code(bob.dm.id, "x") == 50278
        assert await code(general.id, " ") == 50006
        assert await code(general.id, "😀" * 2001) == 50035
        assert await code(12345, "x") == 10003
        assert await code(hidden.id, "x") == 50001
        assert await code(silent.id, "x") == 50013
        assert await code(locked.id, "x") == 160005
        ada.archive(locked)
        assert await code(locked.id, "x") == 50083
        pointer = discord.MessageReference(message_id=gone.id, channel_id=general.id)
        assert await code(general.id, "x", reference=pointer) == 50035
        pointer.fail_if_not_exists = False
        sent = await bot.get_partial_messageable(general.id).send("😀" * 2000, reference=pointer)
        assert sent.reference is None
        assert len(sent.content) == 2000


async def test_the_bot_pings_only_whom_it_may(server: DiscordServer) -> None:
    home = server.guild("Home")
    ada, general = server.person("Ada", home), home.channel("general")
    text = f"@everyone {ada.mention} {server.places.role(home, 'team').mention}"
    async with running(server) as bot:
        target = bot.get_partial_messageable(general.id)
        await target.send(text)
        await target.send(text, allowed_mentions=discord.AllowedMentions.none())
        await target.send(text, file=discord.File(fp=__file__, filename="me.py"))
    loud, quiet, multipart = server.messages(general, server.bot)
    assert (loud.mention_everyone, loud.mentions, len(loud.mention_roles)) == (True, [ada.user], 1)
    assert (quiet.mention_everyone, quiet.mentions, quiet.mention_roles) == (False, [], [])
    assert multipart.attachments[0].content.startswith(b'"""The local Discord')


# Threads.


async def test_a_thread_exists_once_and_a_forum_post_begins_with_its_message(server: DiscordServer) -> None:
    home = server.guild("Home")
    ada, general, forum = server.person("Ada", home), home.channel("general"), server.channel(home, "forum", forum=True)
    async with running(server) as bot:
        message = ada.say(general, "Let us talk")
        await until(lambda: bot.heard)
        thread = await bot.heard[0].create_thread(name="talk")
        assert thread.id == message.id
        with pytest.raises(discord.HTTPException) as refused:
            await bot.heard[0].create_thread(name="talk again")
        assert refused.value.code == 160004
        assert message.thread is not None
        await until(lambda: bot.seen("raw_message_edit"))
        assert bot.seen("raw_message_edit")[0].message.flags.has_thread
        ada.ask(message.thread, "inside")
        await server.wait_for_message(message.thread, lambda one: "inside" in one.content)
        ada.post(forum, "A question", "why?", mentions=[server.bot])
        post = forum.guild.channel("A question") if forum.guild else None
        assert post is not None
        assert (await server.wait_for_message(post)).content == "echo: @Keepsake why?"
        assert post.messages[post.id].content.endswith("why?")


async def test_a_private_thread_is_seen_once_the_bot_is_added(server: DiscordServer) -> None:
    home = server.guild("Home")
    ada = server.person("Ada", home)
    async with running(server):
        thread = ada.thread(home.channel("general"), "hush", private=True)
        ada.ask(thread, "nobody hears")
        ada.add(thread, server.bot)
        ada.ask(thread, "now you do")
        assert (await server.wait_for_message(thread)).content == "echo: @Keepsake now you do"


async def test_the_bot_writes_edits_deletes_and_reads_around(server: DiscordServer) -> None:
    home = server.guild("Home")
    ada, general, forum = server.person("Ada", home), home.channel("general"), server.channel(home, "forum", forum=True)
    async with running(server) as bot:
        guild = bot.guilds[0]
        channel = guild.get_channel(general.id)
        assert isinstance(channel, discord.TextChannel)
        sent = await channel.send("draft")
        await sent.edit(content="final")
        assert server.messages(general)[0].history == ["draft"]
        assert (await channel.fetch_message(sent.id)).edited_at is not None
        await sent.delete()
        assert not server.messages(general)
        assert (await guild.fetch_member(ada.id)).display_name == "Ada"
        assert (await bot.fetch_user(ada.id)).name == "ada"
        assert (await bot.fetch_guild(home.id)).name == "Home"
        thread = await channel.create_thread(name="bare", type=discord.ChannelType.public_thread)
        await thread.edit(archived=True)
        assert [one.name async for one in channel.archived_threads()] == ["bare"]
        await thread.send("awake")
        assert not home.channel("bare").archived
        board = guild.get_channel(forum.id)
        assert isinstance(board, discord.ForumChannel)
        post = await board.create_thread(name="post", content="first")
        assert post.message.id == post.thread.id
        said = ada.say(general, "mine")
        with pytest.raises(discord.Forbidden):
            await channel.get_partial_message(said.id).edit(content="yours")
        with pytest.raises(discord.Forbidden):
            await channel.get_partial_message(said.id).delete()
        server.places.role(home, "moderators", MANAGE_MESSAGES, [server.bot])
        await channel.get_partial_message(said.id).delete()
        server.actions.pin(ada.say(general, "keep"), ada.user)
        assert [one.type.name async for one in channel.history(limit=1)] == ["pins_add"]


async def test_channels_and_guilds_come_and_go(server: DiscordServer) -> None:
    home = server.guild("Home")
    async with running(server) as bot:
        new = server.channel(home, "new", private_to=[])
        await until(lambda: bot.seen("guild_channel_create"))
        server.places.delete_channel(new)
        await until(lambda: bot.seen("guild_channel_delete"))
        server.guild("Second")
        await until(lambda: bot.seen("guild_join"))
        server.places.remove_bot(home)
        await until(lambda: bot.seen("guild_remove"))
        assert [guild.name for guild in bot.guilds] == ["Second"]


# People.


async def test_presence_comes_once_per_guild_and_members_join_and_leave(server: DiscordServer) -> None:
    guilds = [server.guild(name) for name in ("One", "Two", "Three")]
    ada = server.person("Ada", *guilds)
    async with running(server) as bot:
        ada.online()
        await until(lambda: len(bot.seen("presence_update")) == 3)
        bob = server.person("Bob", guilds[0])
        bob.leave(guilds[0])
        await until(lambda: bot.seen("raw_member_remove"))
        assert [member.name for member in bot.seen("member_join")] == ["bob"]
        ada.type(guilds[0].channel("general"))
        await until(lambda: bot.seen("typing"))


async def test_presence_and_members_need_their_intents(server: DiscordServer) -> None:
    home = server.guild("Home")
    ada = server.person("Ada", home)
    async with running(server, only(), enable_raw_presences=True) as bot:
        ada.online()
        server.person("Bob", home)
        ada.ask(home.channel("general"), "still there?")
        await server.wait_for_message(home.channel("general"))
        assert not bot.seen("raw_presence_update")
        assert not bot.seen("member_join")


# Interactions.


async def test_a_command_is_deferred_and_followed_up(server: DiscordServer) -> None:
    home = server.guild("Home")
    ada = server.person("Ada", home)
    async with running(server):
        for channel in (home.channel("general"), ada.dm):
            gate = server.faults.hold("POST /webhooks/{application_id}/{token}")
            used = ada.command("memory view", channel, page=2, about=ada)
            await gate.reached.wait()
            assert not used.answers
            gate.release()
            await server.wait_for_answer(used, 2)
            assert [one.content for one in used.answers] == ["page 2 about ada", "that was all"]
            assert used.deferred
            assert used.ephemeral
            assert used.delay is not None
            assert used.delay < 3
            assert not server.messages(channel, server.bot)
        with pytest.raises(AssertionError, match="no subcommand forget"):
            ada.command("memory forget")


async def test_a_button_opens_a_modal(server: DiscordServer) -> None:
    ada = server.person("Ada")
    async with running(server):
        asked = await server.wait_for_answer(ada.command("form"))
        pressed = await server.wait_for_acknowledgement(ada.press(asked.answers[0], "Open"))
        sent = await server.wait_for_answer(ada.submit(pressed, {"Zone": "Europe/Berlin"}))
        assert sent.text == "zone is Europe/Berlin"
        assert not asked.ephemeral
        assert server.messages(ada.dm, server.bot) == asked.answers


async def test_late_and_double_acknowledgements_are_refused(server: DiscordServer) -> None:
    ada = server.person("Ada")
    async with running(server) as bot:
        twice = ada.command("late")
        await server.until(lambda: twice.refused)
        server.interactions.deadline = 0.0
        late = ada.command("late")
        await server.until(lambda: len(late.refused) == 2)
        assert (twice.refused, late.refused) == ([40060], [10062, 10062])
        await until(lambda: [getattr(error, "code", None) for error in bot.errors] == [40060, 10062, 10062])


async def test_options_are_completed_while_somebody_types(server: DiscordServer) -> None:
    ada = server.person("Ada", server.guild("Home"))
    async with running(server):
        asked = await server.wait_for_acknowledgement(ada.autocomplete("pick", "fruit", "pe"))
        assert asked.choices == [{"name": "pear", "value": "pear"}, {"name": "peach", "value": "peach"}]
        used = await server.wait_for_answer(ada.command("pick", fruit="pear"))
        assert used.text == "you get a pear"
        with pytest.raises(AssertionError, match=r"needs \['fruit'\]"):
            ada.command("pick")


# The connection.


async def test_missed_events_are_replayed_after_a_cut(server: DiscordServer) -> None:
    ada = server.person("Ada")
    async with running(server) as bot:
        async with server.down():
            await server.until(lambda: not server.connections[0].open)
            ada.say(text="while you were away")
        await server.wait_connected(2)
        assert (await server.wait_for_message(ada.dm)).content == "echo: while you were away"
        assert server.connections[-1].resumed
        assert bot.seen("resumed")
        assert [message.content for message in bot.heard] == ["while you were away"]


async def test_a_session_that_is_invalid_begins_anew(server: DiscordServer) -> None:
    ada = server.person("Ada")
    async with running(server):
        server.hub.invalidate()
        await server.wait_connected(2)
        assert not server.connections[1].resumed
        assert server.connections[1].identify is not None
        server.hub.invalidate(resumable=True)
        await server.wait_connected(3)
        assert server.connections[2].resumed
        server.hub.reconnect()
        await server.wait_connected(4)
        assert server.connections[3].resumed
        server.hub.forget_sessions()
        server.cut("gateway")
        await server.wait_connected(6)
        assert server.connections[4].resume is not None
        assert server.connections[5].identify is not None
        ada.say(text="Hello")
        await server.wait_for_message(ada.dm)


async def test_a_deaf_gateway_is_left_and_resumed(server: DiscordServer) -> None:
    ada = server.person("Ada")
    async with running(server, heartbeat_timeout=0.3):
        server.hub.deafen()
        ada.say(text="do you hear?")
        assert (await server.wait_for_message(ada.dm)).content == "echo: do you hear?"
        assert server.connections[-1].resumed


async def test_a_malformed_dispatch_ends_discord_py(server: DiscordServer) -> None:
    async with running(server) as bot:
        server.dispatch_raw("MESSAGE_CREATE", {"id": None, "channel_id": "1"})
        assert bot.running is not None
        with pytest.raises(TypeError):
            await bot.running


async def test_without_heartbeats_the_server_closes() -> None:
    async with DiscordServer(heartbeat_interval=0.1) as server, aiohttp.ClientSession() as session:
        socket = await session.ws_connect(server.gateway + "?v=10&encoding=json")
        hello = await socket.receive_json()
        assert hello["op"] == 10
        assert (await socket.receive()).data == 4009
        await socket.close()


async def test_shards_get_their_guilds_and_direct_messages_come_on_shard_0(server: DiscordServer) -> None:
    guilds = [server.guild(f"Shard {number}", shard=(number, 2)) for number in (0, 1)]
    ada = server.person("Ada", *guilds)
    async with running(server, shard_id=1, shard_count=2) as bot:
        assert [guild.name for guild in bot.guilds] == ["Shard 1"]
        ada.say(text="direct")
        ada.ask(guilds[0].channel("general"), "other shard")
        ada.ask(guilds[1].channel("general"), "here")
        await server.wait_for_message(guilds[1].channel("general"))
        assert len(bot.heard) == 1


async def test_shard_and_gateway_of_the_api_are_used_by_the_sharded_client(server: DiscordServer) -> None:
    guilds = [server.guild(f"Shard {number}", shard=(number, 2)) for number in (0, 1)]
    ada = server.person("Ada", *guilds)
    server.place_routes.shards = 2
    Route.BASE = server.api_base
    heard: list[str] = []
    async with Sharded(intents=discord.Intents.all()) as bot:
        bot.heard = heard
        task = asyncio.create_task(bot.start(server.token))
        await server.wait_connected(2)
        for channel in (guilds[0].channel("general"), guilds[1].channel("general"), ada.dm):
            ada.say(channel, f"in {channel.id}")
            await until(lambda channel=channel: f"in {channel.id}" in heard)  # type: ignore[misc]
        await bot.close()
        await task
    assert [connection.identify["shard"] for connection in server.connections if connection.identify] == [[0, 2], [1, 2]]


class Sharded(discord.AutoShardedClient):
    heard: list[str]

    async def before_identify_hook(self, shard_id: int | None, *, initial: bool = False) -> None: ...

    async def on_message(self, message: discord.Message) -> None:
        self.heard.append(message.content)


@pytest.mark.parametrize(
    ("sent", "code"),
    [
        ("nonsense", 4002),
        ({"op": 3, "d": {}}, 4003),
        ({"op": 2, "d": {"token": "wrong", "intents": 0}}, 4004),
        ({"op": 2, "d": {"token": TOKEN, "intents": 0, "shard": [2, 2]}}, 4010),
        ({"op": 2, "d": {"token": TOKEN, "intents": 1 << 40}}, 4013),
        ({"op": 6, "d": {"token": "wrong", "session_id": "x", "seq": 1}}, 4004),
    ],
)
async def test_what_the_gateway_refuses(server: DiscordServer, sent: object, code: int) -> None:
    async with aiohttp.ClientSession() as session, session.ws_connect(server.gateway + "?v=10") as socket:
        assert (await socket.receive_json())["op"] == 10
        await socket.send_str(sent if isinstance(sent, str) else json.dumps(sent))
        assert (await socket.receive()).data == code


async def test_plain_connections_number_their_dispatches_and_bad_resumes_are_refused(server: DiscordServer) -> None:
    server.guild("Home")
    identify = {"op": 2, "d": {"token": TOKEN, "intents": 1}}
    async with aiohttp.ClientSession() as session:
        async with session.ws_connect(server.gateway + "?v=10") as socket:
            await socket.receive_json()
            await socket.send_json(identify)
            ready, guild = await socket.receive_json(), await socket.receive_json()
            assert [(one["t"], one["s"]) for one in (ready, guild)] == [("READY", 1), ("GUILD_CREATE", 2)]
            assert guild["d"]["channels"][0]["name"] == "general"
            await socket.send_json({"op": 1, "d": 2})
            assert (await socket.receive_json())["op"] == 11
            await socket.send_json(identify)
            assert (await socket.receive()).data == 4005
        name = ready["d"]["session_id"]
        for seq, answer in ((1, {"GUILD_CREATE", "RESUMED"}), (3, {"RESUMED"}), (99, 4007), (1, 9)):
            async with session.ws_connect(server.gateway + "?v=10") as socket:
                await socket.receive_json()
                await socket.send_json({"op": 6, "d": {"token": TOKEN, "session_id": name, "seq": seq}})
                if isinstance(answer, set):
                    assert {(await socket.receive_json())["t"] for _ in answer} == answer
                    server.hub.cut()
                elif answer == 9:
                    assert await socket.receive_json() == {"op": 9, "d": False, "s": None, "t": None}
                else:
                    assert (await socket.receive()).data == answer
        assert not server.hub.sessions
        for end, left in ((1000, 0), (4000, 1)):
            async with session.ws_connect(server.gateway + "?v=10") as socket:
                await socket.receive_json()
                await socket.send_json(identify)
                await socket.receive_json()
                await socket.close(code=end)
            await server.until(lambda end=end: server.connections[-1].closed == end)  # type: ignore[misc]
            assert len(server.hub.sessions) == left


# The HTTP API's faults.


async def test_429_with_via_is_waited_out_and_without_it_is_an_error(server: DiscordServer) -> None:
    ada = server.person("Ada")
    async with running(server) as bot:
        server.faults.rate_limit(POST, 0.2)
        ada.say(text="one")
        await server.wait_for_message(ada.dm)
        first, second = server.requests_of(POST)
        assert (first.status, second.status) == (429, 200)
        assert second.at - first.at >= 0.2
        server.faults.rate_limit(POST, 0.2, via=False)
        ada.say(text="two")
        await until(lambda: bot.errors)
        server.faults.bucket(POST, 1, 0.3)
        ada.say(text="three")
        ada.say(text="four")
        await server.wait_for_message(ada.dm)
        await server.wait_for_message(ada.dm)
        assert [request.status for request in server.requests_of(POST)] == [429, 200, 429, 200, 200]


async def test_500_is_tried_again_and_503_is_not(server: DiscordServer) -> None:
    ada = server.person("Ada")
    async with running(server) as bot:
        server.faults.status(POST, 500)
        ada.say(text="one")
        assert (await server.wait_for_message(ada.dm)).content == "echo: one"
        server.faults.status(POST, 503)
        ada.say(text="two")
        await until(lambda: bot.errors)
        assert [request.status for request in server.requests_of(POST)] == [500, 200, 503]


async def test_a_lost_answer_leaves_one_message_when_the_nonce_is_the_same(server: DiscordServer) -> None:
    ada = server.person("Ada")
    async with running(server) as bot:
        target = bot.get_partial_messageable(ada.dm.id)
        server.faults.lose_answer(POST)
        with pytest.raises((aiohttp.ClientError, OSError)):
            await target.send("once", nonce="outbox-1")
        again = await target.send("once", nonce="outbox-1")
        other = await target.send("twice", nonce="outbox-2")
        assert [message.id for message in server.messages(ada.dm)] == [again.id, other.id]
        assert [request.status for request in server.requests_of(POST)] == [0, 200, 200]


async def test_a_held_request_waits_and_a_refusal_has_its_code(server: DiscordServer) -> None:
    ada, bob = server.person("Ada"), server.person("Bob")
    async with running(server) as bot:
        gate = server.faults.hold(POST, where=lambda request: request.params["channel_id"] == str(ada.dm.id))
        ada.say(text="slow")
        await gate.reached.wait()
        bob.say(text="quick")
        await server.wait_for_message(bob.dm)
        gate.release()
        await server.wait_for_message(ada.dm)
        server.faults.error(POST, 403, 50007, "Cannot send messages to this user")
        ada.say(text="refused")
        await until(lambda: bot.errors)
        assert getattr(bot.errors[0], "code", None) == 50007


async def test_typing_is_logged(server: DiscordServer) -> None:
    ada = server.person("Ada")
    async with running(server) as bot:
        async with bot.get_partial_messageable(ada.dm.id).typing():
            await server.until(lambda: server.typing(ada.dm))
        assert len(server.typing(ada.dm)) == 1


async def test_what_comes_before_the_handler(server: DiscordServer) -> None:
    async with aiohttp.ClientSession(headers={"Authorization": f"Bot {TOKEN}"}) as session:
        ada = server.person("Ada")
        path = f"{server.api_base}/channels/{ada.dm.id}/messages"
        answer = await session.post(path, data=b"{broken", headers={"Content-Type": "application/json"})
        assert (answer.status, (await answer.json())["code"]) == (400, 50109)
        assert answer.headers["Content-Type"] == "application/json"
        for query, texts in (
            ("", "edcba"),
            ("?limit=2", "ed"),
            ("?after={b}&limit=2", "dc"),
            ("?before={d}&limit=2", "cb"),
            ("?around={c}&limit=3", "dcb"),
        ):
            ids = {one.content: one.id for one in server.messages(ada.dm)} or {text: ada.say(text=text).id for text in "abcde"}
            found = await (await session.get(path + query.format(**ids))).json()
            assert "".join(one["content"] for one in found) == texts
        assert (await session.get(path + "?limit=101")).status == 400
        gone = ada.file("a.png", b"x", "image/png", served_type="text/html")
        assert (await session.get(gone.url)).content_type == "text/html"
        gone.gone = True
        assert (await session.get(gone.url)).status == 404


async def test_while_the_listener_is_closed_nobody_connects(server: DiscordServer) -> None:
    base = server.api_base
    async with aiohttp.ClientSession(headers={"Authorization": f"Bot {TOKEN}"}) as session:
        async with server.down("http"):
            with pytest.raises(aiohttp.ClientConnectorError):
                await session.get(base + "/users/@me")
            await session.ws_connect(server.gateway + "?v=10")
        assert (await session.get(base + "/users/@me")).status == 200
        # aiohttp itself sends a GET again when a kept connection breaks.
        server.faults.cut("*", 2)
        with pytest.raises((aiohttp.ClientError, OSError)):
            await session.get(base + "/users/@me")
        server.faults.delay("*", 0.05)
        assert (await session.get(base + "/users/@me")).status == 200
