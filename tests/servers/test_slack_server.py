"""The local Slack server, seen by the real slack-bolt and slack_sdk."""

from __future__ import annotations

import asyncio
import contextlib
import json
import logging
import time
from collections.abc import AsyncIterator
from typing import Any

import aiohttp
import pytest
from aiohttp import web
from slack_bolt.adapter.aiohttp import to_aiohttp_response, to_bolt_request
from slack_bolt.adapter.socket_mode.async_handler import AsyncSocketModeHandler
from slack_bolt.app.async_app import AsyncApp
from slack_sdk.errors import SlackApiError
from slack_sdk.http_retry.builtin_async_handlers import AsyncRateLimitErrorRetryHandler
from slack_sdk.web.async_client import AsyncWebClient

from tests.servers.slack import Channel, Person, SlackServer, Team


@pytest.fixture(autouse=True)
def _quiet(monkeypatch: pytest.MonkeyPatch) -> None:
    """The libraries obey proxies even for 127.0.0.1, and log every fault that is made here."""
    for name in ("HTTP_PROXY", "HTTPS_PROXY", "http_proxy", "https_proxy", "ALL_PROXY", "all_proxy"):
        monkeypatch.delenv(name, raising=False)
    logging.getLogger("slack_sdk").setLevel(logging.CRITICAL)
    logging.getLogger("slack_bolt").setLevel(logging.CRITICAL)


class Bot:
    """A small bolt app: echoes direct messages and mentions, has a command, a home, a modal, and notes what it hears."""

    def __init__(self, server: SlackServer, team: Team) -> None:
        self.heard: list[dict[str, Any]] = []
        self.headers: list[dict[str, Any]] = []
        self.client = AsyncWebClient(token=team.bot_token, base_url=server.api_base, timeout=5)
        self.app = AsyncApp(client=self.client, signing_secret=server.signing_secret, process_before_response=True)
        self.app.event("message")(self.on_message)
        self.app.event("app_mention")(self.on_mention)
        for event in ("app_home_opened", "team_join", "user_change", "channel_left", "app_uninstalled", "tokens_revoked"):
            self.app.event(event)(self.on_event)
        self.app.event({"type": "assistant_thread_started"})(self.on_event)
        self.app.command("/keepsake")(self.on_command)
        self.app.action("forget")(self.on_forget)
        self.app.action("edit")(self.on_edit)
        self.app.view("correct")(self.on_correct)

    async def on_message(self, event: dict[str, Any], request: Any) -> None:
        self.heard.append(event)
        self.headers.append(request.headers)
        if event["channel_type"] == "im" and event.get("subtype") in (None, "file_share"):
            await self.client.chat_postMessage(
                channel=event["channel"], text=f"echo: {event['text']}", thread_ts=event.get("thread_ts")
            )

    async def on_mention(self, event: dict[str, Any]) -> None:
        self.heard.append(event)
        await self.client.chat_postMessage(
            channel=event["channel"], text=f"you said {event['text']}", thread_ts=event.get("thread_ts")
        )

    async def on_event(self, event: dict[str, Any], request: Any) -> None:
        self.heard.append(event)
        self.headers.append(request.headers)

    async def on_command(self, ack: Any, command: dict[str, Any], respond: Any) -> None:
        if command["text"] == "slow":
            return
        await ack("one moment" if command["text"] == "twice" else "")
        await respond(
            text="what I know",
            blocks=[
                {"type": "section", "text": {"type": "mrkdwn", "text": f"about {command['text']}"}},
                {
                    "type": "actions",
                    "elements": [
                        {"type": "button", "action_id": "forget", "text": {"type": "plain_text", "text": "Forget"}, "value": "7"},
                        {"type": "button", "action_id": "edit", "text": {"type": "plain_text", "text": "Correct"}},
                    ],
                },
            ],
        )

    async def on_forget(self, ack: Any, respond: Any, action: dict[str, Any]) -> None:
        await ack()
        if action["value"] != "all":
            await respond(text=f"forgot {action['value']}", replace_original=True)

    async def on_edit(self, ack: Any, body: dict[str, Any]) -> None:
        await ack()
        await self.client.views_open(trigger_id=body["trigger_id"], view=modal())

    async def on_correct(self, ack: Any, view: dict[str, Any]) -> None:
        text = view["state"]["values"]["words"]["typed"]["value"]
        if text == "bad":
            await ack(response_action="errors", errors={"words": "not that"})
        else:
            await ack()


def modal() -> dict[str, Any]:
    field = {"type": "plain_text_input", "action_id": "typed", "initial_value": "old"}
    return {
        "type": "modal",
        "callback_id": "correct",
        "title": {"type": "plain_text", "text": "Correct"},
        "submit": {"type": "plain_text", "text": "Save"},
        "blocks": [{"type": "input", "block_id": "words", "label": {"type": "plain_text", "text": "Words"}, "element": field}],
    }


@pytest.fixture
async def server() -> AsyncIterator[SlackServer]:
    async with SlackServer() as made:
        yield made


@pytest.fixture
def acme(server: SlackServer) -> Team:
    return server.team("Acme")


@pytest.fixture
def ada(server: SlackServer, acme: Team) -> Person:
    return server.person("Ada", acme, tz="Europe/Berlin")


@pytest.fixture
def general(server: SlackServer, acme: Team, ada: Person) -> Channel:
    return server.channel(acme, "general", ada)


@pytest.fixture
def client(server: SlackServer, acme: Team) -> AsyncWebClient:
    return AsyncWebClient(token=acme.bot_token, base_url=server.api_base, timeout=5, retry_handlers=[])


@contextlib.asynccontextmanager
async def sockets(server: SlackServer, team: Team, ping_interval: float = 5) -> AsyncIterator[Bot]:
    """The bot in Socket Mode, connected."""
    bot, before = Bot(server, team), len(server.connections)
    handler = AsyncSocketModeHandler(bot.app, team.app.app_token, web_client=bot.client, ping_interval=ping_interval)
    await handler.connect_async()
    try:
        await server.wait_connected(before + 1)
        yield bot
    finally:
        await handler.close_async()


@contextlib.asynccontextmanager
async def http(server: SlackServer, team: Team) -> AsyncIterator[Bot]:
    """The bot behind an HTTP port, through bolt's aiohttp adapter."""
    bot = Bot(server, team)

    async def serve(request: web.Request) -> web.Response:
        return await to_aiohttp_response(await bot.app.async_dispatch(await to_bolt_request(request)))

    app = web.Application(client_max_size=100_000)
    app.router.add_post("/slack/events", serve)
    runner = web.AppRunner(app, access_log=None)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0).start()
    server.http_mode(f"http://127.0.0.1:{runner.addresses[0][1]}/slack/events")
    try:
        yield bot
    finally:
        await runner.cleanup()


async def refused(call: Any) -> str:
    with pytest.raises(SlackApiError) as caught:
        await call
    return str(caught.value.response["error"])


# Tokens and start.


async def test_a_token_says_who_it_is(server: SlackServer, acme: Team, client: AsyncWebClient) -> None:
    answer = await client.auth_test()
    assert (answer["team_id"], answer["user_id"], answer["bot_id"]) == (acme.id, acme.bot.id, acme.bot.bot_id)  # type: ignore[union-attr]
    assert "chat:write" in answer.headers["X-OAuth-Scopes"]


async def test_wrong_tokens_are_refused(server: SlackServer, acme: Team, client: AsyncWebClient) -> None:
    assert await refused(client.auth_test(token="xoxb-wrong")) == "invalid_auth"
    assert await refused(AsyncWebClient(base_url=server.api_base).auth_test()) == "not_authed"
    assert await refused(client.apps_connections_open(app_token=acme.bot_token)) == "not_allowed_token_type"
    assert await refused(client.apps_connections_open(app_token="xapp-wrong")) == "invalid_auth"
    assert await refused(client.chat_postMessage(token=server.app_token, channel="C1", text="x")) == "not_allowed_token_type"
    server.revoke(acme)
    assert await refused(client.auth_test()) == "token_revoked"


# Socket Mode.


async def test_a_direct_message_is_answered_over_a_socket(server: SlackServer, acme: Team, ada: Person) -> None:
    async with sockets(server, acme) as bot:
        hello = ada.say(None, "Tea & <cake> https://example.com/x")
        reply = await server.wait_for_message(ada.dm)
        assert reply.text == "echo: Tea &amp; &lt;cake&gt; <https://example.com/x>"
        assert bot.heard[0]["ts"] == hello.ts
        await server.wait_settled()
        # Its own message came back, and bolt kept it from the listener.
        assert len(server.delivered("message")) == 2
        assert len(bot.heard) == 1


async def test_a_mention_comes_as_twins_in_either_order(server: SlackServer, acme: Team, ada: Person, general: Channel) -> None:
    async with sockets(server, acme) as bot:
        ada.say(general, "just talking")
        first = ada.ask(general, "one?")
        assert (await server.wait_for_message(general)).text == f"you said {first.text}"
        ada.ask(general, "two?", order="mention_first", event_ts_only=True)
        await server.wait_for_message(general)
        await server.wait_settled()
        seen = [delivery.event for delivery in server.deliveries if delivery.event.get("user") == ada.id]
        assert [event["type"] for event in seen] == ["message", "message", "app_mention", "app_mention", "message"]
        assert "ts" not in seen[3]
        assert seen[3]["event_ts"] == seen[4]["ts"]
        assert seen[1]["ts"] == seen[2]["ts"]
        assert len({delivery.payload["event_id"] for delivery in server.deliveries}) == len(server.deliveries)
        assert len(bot.heard) >= 5


async def test_an_event_that_is_not_acknowledged_comes_again(server: SlackServer, acme: Team, ada: Person) -> None:
    server.ack_timeout, server.retries = 0.2, (0.0, 0.05)
    async with sockets(server, acme) as bot:
        server.hub.deafen()
        ada.say(None, "Hello?")
        lost = await server.until(lambda: next((one for one in server.deliveries if one.given_up), None))
        assert [attempt.number for attempt in lost.attempts] == [0, 1, 2]
        assert bot.heard == []
        server.hub.connections[0].deaf = False
        # Hours later, on demand: the same event_id, marked as a retry.
        server.redeliver(lost)
        await server.wait_for_message(ada.dm)
        assert bot.headers[0]["x-slack-retry-num"] == ["3"]
        assert bot.headers[0]["x-slack-retry-reason"] == ["timeout"]
        server.redeliver(lost)
        await server.until(lambda: len(bot.heard) == 2)


async def test_what_is_said_while_nobody_is_connected_comes_as_a_retry(server: SlackServer, acme: Team, ada: Person) -> None:
    ada.say(None, "Anybody?")
    assert server.deliveries[0].attempts == []
    await server.until(lambda: server.deliveries[0].pending)
    async with sockets(server, acme):
        assert (await server.wait_for_message(ada.dm)).text == "echo: Anybody?"


async def test_several_connections_share_the_envelopes(server: SlackServer, acme: Team, ada: Person) -> None:
    async with sockets(server, acme) as one, sockets(server, acme) as other:
        for number in range(6):
            ada.say(None, str(number))
        await server.until(lambda: len(one.heard) + len(other.heard) == 6)
        assert len(one.heard) > 0
        assert len(other.heard) > 0


@pytest.mark.parametrize("fault", ["warn", "refresh", "cut", "close"])
async def test_a_connection_that_ends_is_made_anew(server: SlackServer, acme: Team, ada: Person, fault: str) -> None:
    async with sockets(server, acme, ping_interval=0.2):
        getattr(server.hub, fault)()
        await server.wait_connected(2)
        ada.say(None, "Still there?")
        await server.wait_for_message(ada.dm)


async def test_pings_are_answered_and_a_deaf_connection_still_does(server: SlackServer, acme: Team, ada: Person) -> None:
    async with sockets(server, acme, ping_interval=0.1) as bot:
        server.hub.deafen()
        ada.say(None, "Hello?")
        pings = server.connections[0].pings
        await server.until(lambda: server.connections[0].pings > pings + 3)
        assert len(server.connections) == 1
        assert bot.heard == []


async def test_a_silent_connection_is_given_up_by_the_library(server: SlackServer, acme: Team) -> None:
    async with sockets(server, acme, ping_interval=0.2):
        server.hub.silence()
        await server.wait_connected(2)


async def test_tickets_are_for_one_connection_of_ten(server: SlackServer, acme: Team, client: AsyncWebClient) -> None:
    async with aiohttp.ClientSession() as session, contextlib.AsyncExitStack() as stack:
        for _ in range(11):
            url = (await client.apps_connections_open(app_token=server.app_token))["url"]
            socket = await stack.enter_async_context(session.ws_connect(url))
            first = await socket.receive_json()
        assert (first["type"], first["reason"]) == ("disconnect", "too_many_websockets")
        assert server.connections[9].greeted
        with pytest.raises(aiohttp.WSServerHandshakeError):
            await session.ws_connect(url)


async def test_events_need_subscription_and_scope(server: SlackServer, acme: Team, ada: Person, general: Channel) -> None:
    server.app.events.discard("message.channels")
    server.world.tokens[acme.bot_token].scopes.discard("users:read")
    ada.say(general, "unheard")
    ada.change(tz="Asia/Tokyo")
    outside = server.channel(acme, "outside", ada, bot=False)
    ada.say(outside, f"{acme.bot.mention} not even this")  # type: ignore[union-attr]
    assert server.deliveries == []


# HTTP.


async def test_a_direct_message_is_answered_over_http(server: SlackServer, acme: Team, ada: Person) -> None:
    async with http(server, acme):
        posted = await server.verify_url()
        assert posted.status == 200
        assert json.loads(posted.body)["challenge"]
        ada.say(None, "Hello")
        assert (await server.wait_for_message(ada.dm)).text == "echo: Hello"
        delivery = await server.wait_for_delivery("message")
        assert delivery.attempts[0].status == 200
        assert delivery.attempts[0].latency < 3  # type: ignore[operator]


async def test_forged_and_stale_requests_are_told_apart(server: SlackServer, acme: Team, ada: Person) -> None:
    async with http(server, acme) as bot:
        body = {"type": "event_callback", "event": {"type": "message"}, "team_id": acme.id}
        for how in ({"signature": "v0=" + "0" * 64}, {"age": 301}, {"signed": False}):
            assert (await server.post_raw(body, **how)).status == 401
        assert (await server.post_raw(b"x" * 200_000)).status == 413
        assert bot.heard == []


@contextlib.asynccontextmanager
async def answering(server: SlackServer, *statuses: int | None) -> AsyncIterator[list[tuple[str | None, str | None]]]:
    """An address that answers with these statuses, None not at all; what the retry headers said is noted."""
    tries: list[tuple[str | None, str | None]] = []

    async def answer(request: web.Request) -> web.Response:
        tries.append((request.headers.get("X-Slack-Retry-Num"), request.headers.get("X-Slack-Retry-Reason")))
        status = statuses[len(tries) - 1]
        if status is None:
            await asyncio.Event().wait()
        return web.Response(status=status or 200)

    app = web.Application()
    app.router.add_post("/", answer)
    runner = web.AppRunner(app, handler_cancellation=True, shutdown_timeout=0.1)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0).start()
    server.http_mode(f"http://127.0.0.1:{runner.addresses[0][1]}/")
    try:
        yield tries
    finally:
        await runner.cleanup()


async def test_http_retries_carry_their_number_and_reason(server: SlackServer, ada: Person) -> None:
    server.retries, server.ack_timeout = (0.0, 0.01, 0.02), 0.3
    async with answering(server, 500, None, 200, 200) as tries:
        ada.say(None, "Hello")
        await server.wait_settled()
        server.redeliver(server.deliveries[0])
        await server.until(lambda: server.deliveries[0].attempts[-1].status)
    assert tries == [(None, None), ("1", "http_error"), ("2", "http_timeout"), ("3", "http_timeout")]
    ada.say(None, "Gone?")
    await server.until(lambda: server.deliveries[-1].given_up)
    assert [attempt.reason for attempt in server.deliveries[-1].attempts] == ["", *["connection_failed"] * 3]


async def test_commands_and_buttons_go_over_http_too(server: SlackServer, acme: Team, ada: Person) -> None:
    async with http(server, acme):
        command = await server.wait_for_answer(ada.command("/keepsake memory"))
        pressed = await server.wait_for_answer(ada.press(command.answers[0], "Forget"))
        assert pressed.answers[0].text == "forgot 7"


# Commands, buttons, modals.


async def test_a_command_is_answered_for_one_person(server: SlackServer, acme: Team, ada: Person, general: Channel) -> None:
    async with sockets(server, acme):
        command = await server.wait_for_answer(ada.command("/keepsake memory view", general))
        assert command.answers[0].shown.splitlines() == ["about memory view", "Forget", "Correct"]
        assert command.answers[0].only_for is ada.user
        assert server.messages(general) == []
        await server.until(lambda: command.acknowledged_at)
        twice = await server.wait_for_answer(ada.command("/keepsake twice", general), 2)
        assert {answer.text for answer in twice.answers} == {"one moment", "what I know"}


async def test_a_command_that_is_not_acknowledged_fails_for_the_person(server: SlackServer, acme: Team, ada: Person) -> None:
    server.ack_timeout = 0.2
    assert ada.command("/keepsake before anybody listens").failed is None
    async with sockets(server, acme):
        slow = ada.command("/keepsake slow")
        await server.until(lambda: slow.failed)
        assert slow.failed == "operation_timeout"
    await server.until(lambda: server.interactions.all[0].failed == "dispatch_failed")


async def test_a_button_replaces_its_message(server: SlackServer, acme: Team, ada: Person) -> None:
    async with sockets(server, acme) as bot:
        shown = (await server.wait_for_answer(ada.command("/keepsake memory"))).answers[0]
        await server.wait_for_answer(ada.press(shown, "forget"))
        assert shown.text == "forgot 7"
        assert shown.blocks == []
        with pytest.raises(AssertionError, match="nothing to press"):
            ada.press(shown, "forget")
        button = {"type": "button", "action_id": "forget", "text": {"type": "plain_text", "text": "Forget"}, "value": "8"}
        posted = await bot.client.chat_postMessage(
            channel=ada.dm.id, text="x", blocks=[{"type": "actions", "elements": [button]}]
        )
        public = ada.dm.messages[posted["ts"]]
        await server.wait_for_answer(ada.press(public, "forget"))
        assert (public.text, public.blocks, public.history) == ("forgot 8", [], ["x"])


async def test_a_modal_is_opened_corrected_and_closed(server: SlackServer, acme: Team, ada: Person) -> None:
    async with sockets(server, acme) as bot:
        shown = (await server.wait_for_answer(ada.command("/keepsake memory"))).answers[0]
        view = await server.wait_for_modal(press := ada.press(shown, "Correct"))
        wrong = ada.submit(view, {"Words": "bad"})
        await server.until(lambda: wrong.errors)
        assert view.open
        ada.submit(view, {"words": "better"})
        await server.until(lambda: not view.open)
        assert await refused(bot.client.views_open(trigger_id=press.trigger_id, view=modal())) == "exchanged_trigger_id"
        assert await refused(bot.client.views_open(trigger_id="1.2.3", view=modal())) == "invalid_trigger_id"
        server.interactions.trigger_life = 0.0
        late = await server.wait_for_answer(ada.command("/keepsake memory"))
        assert await refused(bot.client.views_open(trigger_id=late.trigger_id, view=modal())) == "expired_trigger_id"


async def test_a_response_url_takes_five_messages_for_half_an_hour(server: SlackServer, acme: Team, ada: Person) -> None:
    async with sockets(server, acme):
        command = await server.wait_for_answer(ada.command("/keepsake memory"))
    async with aiohttp.ClientSession() as session:

        async def respond() -> int:
            async with session.post(command.response_url, json={"text": "more", "response_type": "in_channel"}) as answer:
                return answer.status

        assert [await respond() for _ in range(5)] == [200, 200, 200, 200, 404]
        assert len(server.messages(ada.dm, bot=True)) == 4
        other = ada.command("/keepsake memory")
        other.expired = True
        async with session.post(other.response_url, json={"text": "late"}) as answer:
            assert (await answer.json())["error"] == "expired_url"


async def test_the_home_tab_is_published_opened_and_pressed(
    server: SlackServer, acme: Team, ada: Person, client: AsyncWebClient
) -> None:
    button = {"type": "button", "action_id": "forget", "text": {"type": "plain_text", "text": "Forget all"}, "value": "all"}
    view = {"type": "home", "blocks": [{"type": "actions", "elements": [button]}]}
    async with sockets(server, acme) as bot:
        ada.open_home("home")
        published = await client.views_publish(user_id=ada.id, view=view)
        home = await server.wait_for_home(ada)
        ada.open_home("home")
        await server.until(lambda: len(bot.heard) == 2)
        assert "view" not in bot.heard[0]
        assert bot.heard[1]["view"]["id"] == home.id
        press = ada.press(home, "Forget all")
        await server.until(lambda: press.acknowledged_at)
        assert press.delivery.payload["container"] == {"type": "view", "view_id": home.id}
        assert "response_url" not in press.delivery.payload
        await client.views_publish(user_id=ada.id, view=view, hash=published["view"]["hash"])
        assert await refused(client.views_publish(user_id=ada.id, view=view, hash=published["view"]["hash"])) == "hash_conflict"


# Posting and what is refused.


async def test_a_post_keeps_its_metadata_blocks_and_thread(
    server: SlackServer, ada: Person, general: Channel, client: AsyncWebClient
) -> None:
    root = ada.say(general, "root")
    metadata = {"event_type": "keepsake_outbox", "event_payload": {"id": "17"}}
    blocks = [{"type": "markdown", "text": "| a | b |"}]
    posted = await client.chat_postMessage(
        channel=general.id, text="a table", blocks=blocks, thread_ts=root.ts, metadata=metadata
    )
    message = await server.wait_for_message(general)
    assert (message.ts, message.thread_ts, message.metadata, message.shown) == (posted["ts"], root.ts, metadata, "| a | b |")
    thread = await client.conversations_replies(channel=general.id, ts=root.ts, include_all_metadata=True)
    assert [one.get("metadata") for one in thread["messages"]] == [None, metadata]
    bare = await client.conversations_replies(channel=general.id, ts=root.ts)
    assert "metadata" not in bare["messages"][1]
    history = await client.conversations_history(channel=general.id)
    assert [one["ts"] for one in history["messages"]] == [root.ts]
    assert history["messages"][0]["reply_count"] == 1


def markdown(*lengths: int) -> list[dict[str, str]]:
    return [{"type": "markdown", "text": "x" * length} for length in lengths]


def section(length: int) -> dict[str, Any]:
    return {"type": "section", "text": {"type": "mrkdwn", "text": "x" * length}}


@pytest.mark.filterwarnings("ignore:The top-level `text` argument is missing:UserWarning")
@pytest.mark.parametrize(
    ("what", "error"),
    [
        ({"text": "x" * 40_001}, "msg_too_long"),
        ({"text": ""}, "no_text"),
        ({"text": " "}, "no_text"),
        ({"markdown_text": "x" * 12_001}, "msg_too_long"),
        ({"markdown_text": "x", "text": "y"}, "markdown_text_conflict"),
        ({"text": "x", "blocks": markdown(12_001)}, "invalid_blocks"),
        ({"text": "x", "blocks": markdown(8_000, 4_001)}, "invalid_blocks"),
        ({"text": "x", "blocks": [section(3_000)] * 5}, "msg_blocks_too_long"),
        ({"text": "x", "blocks": [section(3_001)]}, "invalid_blocks"),
        ({"text": "x", "blocks": [{"type": "divider"}] * 51}, "invalid_blocks"),
        ({"text": "x", "blocks": [{"type": "marquee"}]}, "invalid_blocks"),
        ({"text": "x", "metadata": {"event_type": "x"}}, "invalid_metadata_schema"),
        ({"text": "x", "thread_ts": "1.000000"}, "thread_not_found"),
        ({"text": "x", "channel": "C404"}, "channel_not_found"),
    ],
)
async def test_a_post_slack_would_refuse(general: Channel, client: AsyncWebClient, what: dict[str, Any], error: str) -> None:
    assert await refused(client.chat_postMessage(**{"channel": general.id, **what})) == error


async def test_what_fits_is_taken(general: Channel, client: AsyncWebClient) -> None:
    for what in (
        {"text": "x" * 40_000},
        {"text": "x", "blocks": markdown(6_000, 6_000)},
        {"text": "x", "blocks": [section(3_000)] * 4},
    ):
        await client.chat_postMessage(channel=general.id, **what)


async def test_places_the_bot_cannot_post_in(server: SlackServer, acme: Team, ada: Person, client: AsyncWebClient) -> None:
    outside, hidden = (
        server.channel(acme, "outside", ada, bot=False),
        server.channel(acme, "hidden", ada, private=True, bot=False),
    )
    gone, other = server.channel(acme, "gone", ada), server.team("Other")
    theirs = server.channel(other, "theirs", server.person("Eve", other))
    server.places.archive(gone)
    for channel, error in (
        (outside, "not_in_channel"),
        (hidden, "channel_not_found"),
        (gone, "is_archived"),
        (theirs, "channel_not_found"),
    ):
        assert await refused(client.chat_postMessage(channel=channel.id, text="x")) == error
    assert (await client.conversations_info(channel=outside.id))["channel"]["is_member"] is False
    ada.change(deleted=True)
    assert await refused(client.chat_postMessage(channel=ada.dm.id, text="x")) == "is_archived"
    assert await refused(client.conversations_open(users=ada.id)) == "user_disabled"


async def test_missing_scopes_are_named(server: SlackServer, acme: Team, ada: Person, client: AsyncWebClient) -> None:
    server.world.tokens[acme.bot_token].scopes -= {"dnd:read", "im:history"}
    with pytest.raises(SlackApiError) as caught:
        await client.dnd_info(user=ada.id)
    assert (caught.value.response["error"], caught.value.response["needed"]) == ("missing_scope", "dnd:read")
    assert await refused(client.conversations_history(channel=ada.dm.id)) == "missing_scope"


async def test_updates_and_deletions_are_of_own_messages(ada: Person, general: Channel, client: AsyncWebClient) -> None:
    hers = ada.say(general, "mine")
    assert await refused(client.chat_update(channel=general.id, ts=hers.ts, text="x")) == "cant_update_message"
    assert await refused(client.chat_delete(channel=general.id, ts=hers.ts)) == "cant_delete_message"
    assert await refused(client.chat_update(channel=general.id, ts="1.0", text="x")) == "message_not_found"
    own = await client.chat_postMessage(channel=general.id, text="old", blocks=markdown(3))
    await client.chat_update(channel=general.id, ts=own["ts"], text="new")
    message = general.messages[own["ts"]]
    # A text without blocks takes the old ones away.
    assert (message.text, message.shown, message.history) == ("new", "new", ["old"])
    assert message.edited
    assert await refused(client.chat_update(channel=general.id, ts=own["ts"], text="x" * 4_001)) == "msg_too_long"
    await client.chat_update(channel=general.id, ts=own["ts"], text="x" * 4_000, blocks=markdown(12_000))
    assert len(message.shown) == 12_000
    await client.chat_delete(channel=general.id, ts=own["ts"])
    assert own["ts"] not in general.messages


async def test_an_ephemeral_message_is_seen_by_one(
    server: SlackServer, ada: Person, general: Channel, client: AsyncWebClient
) -> None:
    await client.chat_postEphemeral(channel=general.id, user=ada.id, text="for you")
    assert (await server.wait_for_ephemeral(ada)).text == "for you"
    assert server.messages(general) == []
    assert await refused(client.chat_postEphemeral(channel=general.id, user="U404", text="x")) == "user_not_in_channel"


async def test_what_would_ring_is_known(server: SlackServer, general: Channel, client: AsyncWebClient) -> None:
    await client.chat_postMessage(
        channel=general.id, text="hi <!channel> &lt;!here&gt;", blocks=[section(1), {"type": "markdown", "text": "<@U123>"}]
    )
    assert (await server.wait_for_message(general)).notifies == ["<!channel>", "<@U123>"]
    await client.chat_postMessage(channel=general.id, text="@here", link_names=True)
    assert (await server.wait_for_message(general)).notifies == ["@here"]


async def test_forms_and_json_are_both_read(server: SlackServer, acme: Team, general: Channel) -> None:
    async with aiohttp.ClientSession() as session:
        form = {
            "token": acme.bot_token,
            "channel": general.id,
            "text": "x",
            "blocks": json.dumps(markdown(3)),
            "metadata": "{not json",
        }
        async with session.post(server.api_base + "chat.postMessage", data=form) as answer:
            assert (await answer.json())["error"] == "invalid_metadata_format"
        form.pop("metadata")
        async with session.post(server.api_base + "chat.postMessage", data=form) as answer:
            assert (await answer.json())["ok"]
        async with session.post(server.api_base + "chat.sing", data=form) as answer:
            assert (await answer.json())["error"] == "unknown_method"
    assert server.failures.pop() == "unknown method: chat.sing"


# Streams and status.


async def test_a_stream_grows_and_ends(server: SlackServer, ada: Person, client: AsyncWebClient) -> None:
    root = ada.say(None, "tell me")
    stream = await client.chat_stream(channel=ada.dm.id, thread_ts=root.ts, buffer_size=1)
    for word in ("once ", "upon ", "a time"):
        await stream.append(markdown_text=word)
    growing = await server.wait_for_message(ada.dm, streaming=True)
    assert growing.streaming
    assert await refused(client.chat_update(channel=ada.dm.id, ts=growing.ts, text="x")) == "streaming_state_conflict"
    await stream.stop()
    assert (growing.text, growing.streaming, growing.thread_ts) == ("once upon a time", False, root.ts)
    assert (
        await refused(client.chat_appendStream(channel=ada.dm.id, ts=growing.ts, markdown_text="x"))
        == "message_not_in_streaming_state"
    )


async def test_a_stream_dies_of_age_or_length(server: SlackServer, ada: Person, client: AsyncWebClient) -> None:
    root = ada.say(None, "tell me")
    server.streams.stream_limit = 15_000
    one = await client.chat_startStream(channel=ada.dm.id, thread_ts=root.ts, markdown_text="x" * 12_000)
    assert await refused(client.chat_appendStream(channel=ada.dm.id, ts=one["ts"], markdown_text="x" * 12_001)) == "msg_too_long"
    assert await refused(client.chat_appendStream(channel=ada.dm.id, ts=one["ts"], markdown_text="x" * 3_001)) == "msg_too_long"
    server.end_streams()
    assert await refused(client.chat_stopStream(channel=ada.dm.id, ts=one["ts"])) == "message_not_in_streaming_state"
    server.streams.stream_life = 0.0
    two = await client.chat_startStream(channel=ada.dm.id, thread_ts=root.ts)
    assert (
        await refused(client.chat_appendStream(channel=ada.dm.id, ts=two["ts"], markdown_text="x"))
        == "message_not_in_streaming_state"
    )
    await client.chat_update(channel=ada.dm.id, ts=two["ts"], text="the rest")


async def test_a_stream_in_a_channel_names_its_reader(ada: Person, general: Channel, client: AsyncWebClient) -> None:
    root = ada.say(general, "tell us")
    start: dict[str, Any] = {"channel": general.id, "thread_ts": root.ts}
    assert await refused(client.chat_startStream(**start)) == "missing_recipient_user_id"
    assert await refused(client.chat_startStream(**start, recipient_user_id=ada.id)) == "missing_recipient_team_id"
    await client.chat_startStream(**start, recipient_user_id=ada.id, recipient_team_id=ada.team.id)
    assert await refused(client.chat_startStream(channel=ada.dm.id, thread_ts="")) == "invalid_arguments"


async def test_a_status_goes_with_the_next_post(server: SlackServer, ada: Person, client: AsyncWebClient) -> None:
    root = ada.say(None, "tell me")
    await client.assistant_threads_setStatus(channel_id=ada.dm.id, thread_ts=root.ts, status="is thinking...")
    assert server.status(ada.dm, root.ts) == "is thinking..."
    await client.chat_postMessage(channel=ada.dm.id, thread_ts=root.ts, text="done")
    assert server.status(ada.dm, root.ts) == ""
    await client.assistant_threads_setStatus(channel_id=ada.dm.id, thread_ts=root.ts, status="stuck")
    await client.assistant_threads_setStatus(channel_id=ada.dm.id, thread_ts=root.ts, status="")
    assert server.statuses == {}
    assert [one.status for one in server.status_log] == ["is thinking...", "stuck", ""]
    await client.assistant_threads_setSuggestedPrompts(channel_id=ada.dm.id, prompts=[{"title": "Hi", "message": "Hello"}])
    assert server.prompts[0].prompts[0]["message"] == "Hello"
    await client.agents_sessions_setStatus(channel_id=ada.dm.id, thread_ts=root.ts, status="processing")
    assert server.sessions == {(ada.dm.id, root.ts): "processing"}


# Faults.


async def test_a_lost_answer_posts_twice_with_the_default_handler(server: SlackServer, acme: Team, general: Channel) -> None:
    server.faults.lose_answer("chat.postMessage")
    await AsyncWebClient(token=acme.bot_token, base_url=server.api_base).chat_postMessage(channel=general.id, text="once")
    assert [message.text for message in server.messages(general)] == ["once", "once"]
    assert [call.status for call in server.calls] == [0, 200]


async def test_faults_by_method(server: SlackServer, general: Channel, client: AsyncWebClient) -> None:
    server.faults.cut("chat.postMessage")
    with pytest.raises((aiohttp.ClientError, OSError)):
        await client.chat_postMessage(channel=general.id, text="x")
    server.faults.status("chat.postMessage", 503, times=2)
    for _ in range(2):
        with pytest.raises(SlackApiError):
            await client.chat_postMessage(channel=general.id, text="x")
    server.faults.error("chat.postMessage", "fatal_error", where=lambda call: call.args["text"] == "y")
    await client.chat_postMessage(channel=general.id, text="x")
    assert await refused(client.chat_postMessage(channel=general.id, text="y")) == "fatal_error"
    hold = server.faults.hold("chat.postMessage")
    task = asyncio.create_task(client.chat_postMessage(channel=general.id, text="held"))
    await hold.reached.wait()
    assert len(server.messages(general)) == 1
    hold.release()
    await task
    server.faults.hang("*")
    client.timeout = 0.2
    with pytest.raises(TimeoutError):
        await client.auth_test()


async def test_rate_limits_name_their_wait(
    server: SlackServer, acme: Team, ada: Person, general: Channel, client: AsyncWebClient
) -> None:
    server.faults.bucket("chat.postMessage")
    await client.chat_postMessage(channel=general.id, text="1")
    with pytest.raises(SlackApiError) as caught:
        await client.chat_postMessage(channel=general.id, text="2")
    assert (caught.value.response.status_code, caught.value.response.headers["Retry-After"]) == (429, "1")
    await client.chat_postMessage(channel=ada.dm.id, text="other channel")
    patient = AsyncWebClient(token=acme.bot_token, base_url=server.api_base, retry_handlers=[AsyncRateLimitErrorRetryHandler()])
    await patient.chat_postMessage(channel=general.id, text="2")
    assert [message.text for message in server.messages(general)] == ["1", "2"]


async def test_the_api_can_be_down_for_a_while(server: SlackServer, client: AsyncWebClient) -> None:
    async with server.down():
        with pytest.raises(aiohttp.ClientError):
            await client.auth_test()
    await client.auth_test()


# Files.


@pytest.mark.parametrize(
    ("served", "kept", "content"),
    [
        ("plain", True, b"tea"),
        ("redirect", True, b"tea"),
        ("elsewhere", False, None),
        ("elsewhere", True, b"tea"),
        ("login", True, None),
    ],
)
async def test_a_download_wants_the_token_to_the_end(
    server: SlackServer, acme: Team, ada: Person, served: Any, kept: bool, content: bytes | None
) -> None:
    shared = ada.say(None, "", files=[ada.file("list.txt", "tea", served=served)])
    event = server.delivered("message")[0].event
    assert event["subtype"] == "file_share"
    url = event["files"][0]["url_private_download"]
    headers = {"Authorization": f"Bearer {acme.bot_token}"}
    async with aiohttp.ClientSession() as session:
        async with session.get(url, headers=headers, allow_redirects=not kept) as answer:
            status, place, body, kind = answer.status, answer.headers.get("Location"), await answer.read(), answer.content_type
        if status == 302 and place:
            async with session.get(place, headers=headers) as answer:
                status, body, kind = answer.status, await answer.read(), answer.content_type
    assert status == 200
    assert (kind, body) == ("text/plain", content) if content else kind == "text/html"
    assert shared.files[0].downloads[-1][1] is not (served == "elsewhere" and not kept)


async def test_without_the_scope_a_download_is_a_login_page(
    server: SlackServer, acme: Team, ada: Person, client: AsyncWebClient
) -> None:
    file = ada.file("list.txt", "tea", hidden=True)
    ada.say(None, "look", files=[file])
    assert server.delivered("message")[0].event["files"][0]["file_access"] == "check_file_info"
    told = (await client.files_info(file=file.id))["file"]
    server.world.tokens[acme.bot_token].scopes.discard("files:read")
    headers = {"Authorization": f"Bearer {acme.bot_token}"}
    async with aiohttp.ClientSession() as session, session.get(told["url_private"], headers=headers) as answer:
        assert (answer.status, answer.content_type) == (200, "text/html")


async def test_the_bot_sends_a_file(server: SlackServer, ada: Person, client: AsyncWebClient) -> None:
    await client.files_upload_v2(channel=ada.dm.id, filename="memory.json", content="{}", initial_comment="yours")
    message = await server.wait_for_message(ada.dm)
    assert (message.text, message.files[0].name, message.files[0].content) == ("yours", "memory.json", b"{}")


# People, places, organisations.


async def test_people_as_users_info_shows_them(server: SlackServer, acme: Team, ada: Person, client: AsyncWebClient) -> None:
    user = (await client.users_info(user=ada.id, include_locale=True))["user"]
    assert (user["tz"], user["locale"], user["team_id"], user["is_admin"]) == ("Europe/Berlin", "en-US", acme.id, False)
    ada.set_dnd(1000, 2000)
    dnd = await client.dnd_info(user=ada.id)
    assert (dnd["dnd_enabled"], dnd["next_dnd_start_ts"], dnd["next_dnd_end_ts"]) == (True, 1000, 2000)
    ada.change(deleted=True)
    assert server.delivered("user_change")[-1].event["user"]["deleted"] is True
    assert await refused(client.users_info(user="U404")) == "user_not_found"
    assert (await client.conversations_members(channel=ada.dm.id))["members"] == [ada.id, acme.bot.id]  # type: ignore[union-attr]


async def test_edits_unfurls_and_deletions(server: SlackServer, ada: Person, general: Channel) -> None:
    message = ada.say(general, "see https://example.com")
    ada.unfurl(message)
    ada.edit(message, "changed")
    reply = ada.say(general, "reply", thread=message)
    ada.delete(reply)
    ada.delete(ada.say(general, "gone"))
    ada.say(general, "again", thread=message)
    ada.delete(message)
    events = [delivery.event for delivery in server.deliveries]
    kinds = [event.get("subtype") for event in events]
    assert kinds == [
        None,
        "message_changed",
        "message_changed",
        None,
        "message_deleted",
        None,
        "message_deleted",
        None,
        "message_changed",
    ]
    unfurl, edit, tombstone = events[1], events[2], events[-1]
    assert unfurl["message"]["text"] == unfurl["previous_message"]["text"]
    assert "edited" not in unfurl["message"]
    assert (edit["message"]["text"], edit["message"]["edited"]["user"]) == ("changed", ada.id)
    assert edit["previous_message"]["text"] == "see <https://example.com>"
    assert events[4]["deleted_ts"] == reply.ts
    assert tombstone["message"]["subtype"] == "tombstone"


async def test_what_happens_to_channels_and_installations(server: SlackServer, acme: Team, ada: Person, general: Channel) -> None:
    server.bot_says(general, "built")
    server.bot_says(general, "built", webhook=True)
    server.places.make_private(general)
    old = server.places.change_id(general)
    server.places.archive(general)
    server.places.remove_bot(general)
    ada.join_team()
    ada.open_home("messages", looking_at=general)
    thread = ada.open_assistant(general)
    ada.say(None, "in it", thread=thread)
    server.uninstall(acme)
    events = [delivery.event for delivery in server.deliveries]
    assert [event["type"] for event in events if event["type"] != "message"] == [
        "channel_id_changed",
        "group_archive",
        "group_left",
        "team_join",
        "app_home_opened",
        "assistant_thread_started",
        "tokens_revoked",
        "app_uninstalled",
    ]
    assert events[0]["bot_id"].startswith("B")
    assert (events[1]["subtype"], "user" in events[1]) == ("bot_message", False)
    assert (events[2]["subtype"], events[2]["channel_type"]) == ("channel_convert_to_private", "group")
    assert events[3]["old_channel_id"] == old
    client = AsyncWebClient(token=acme.bot_token, base_url=server.api_base)
    assert await refused(client.auth_test()) == "account_inactive"


async def test_strangers_in_a_shared_channel(server: SlackServer, acme: Team, general: Channel, client: AsyncWebClient) -> None:
    other = server.team("Other", installed=False)
    eve = server.person("Eve", other)
    server.places.share(general, other, [eve.user])
    eve.ask(general, "hello?")
    message, mention = server.delivered("message")[-1].payload, server.delivered("app_mention")[0].payload
    assert (message["team_id"], message["is_ext_shared_channel"], message["event"]["user_team"]) == (acme.id, True, other.id)
    assert mention["event"]["user_team"] == other.id
    told = (await client.users_info(user=eve.id))["user"]
    assert (told["team_id"], told["is_stranger"]) == (other.id, True)
    assert (await client.conversations_info(channel=general.id))["channel"]["is_ext_shared"] is True
    server.places.unshare(general, other)
    gone = server.delivered("channel_unshared")[0].event
    assert (gone["previously_connected_team_id"], gone["is_ext_shared"]) == (other.id, False)
    assert eve.id not in general.members
    assert (await client.conversations_info(channel=general.id))["channel"]["is_ext_shared"] is False


async def test_a_channel_that_turns_private_and_public_again(
    server: SlackServer, general: Channel, client: AsyncWebClient
) -> None:
    server.places.make_private(general)
    assert (await client.conversations_info(channel=general.id))["channel"]["is_private"] is True
    server.places.make_public(general)
    told = server.delivered("message")[-1].event
    assert (told["subtype"], told["channel_type"]) == ("channel_convert_to_public", "channel")
    assert (await client.conversations_info(channel=general.id))["channel"]["is_private"] is False
    server.places.make_private(general)
    server.places.remove_bot(general)
    assert await refused(client.conversations_info(channel=general.id)) == "channel_not_found"


# slack_sdk gives aiohttp's BasicAuth, which aiohttp 3.14 deprecates.
@pytest.mark.filterwarnings("ignore:BasicAuth is deprecated:DeprecationWarning")
async def test_two_workspaces_have_tokens_of_their_own(server: SlackServer, acme: Team, ada: Person) -> None:
    other = server.team("Other")
    bob = server.person("Bob", other)
    async with sockets(server, acme):
        ada.say(None, "Hello")
        await server.wait_for_message(ada.dm)
    assert (
        await refused(AsyncWebClient(token=acme.bot_token, base_url=server.api_base).users_info(user=bob.id)) == "user_not_found"
    )
    # Each workspace with an app of its own: another app token, another socket.
    third = server.team("Third", app=server.another_app())
    cleo = server.person("Cleo", third)
    async with sockets(server, acme) as first, sockets(server, third) as second:
        ada.say(None, "one")
        cleo.say(None, "two")
        assert (await server.wait_for_message(cleo.dm)).author is third.bot
        await server.until(lambda: first.heard)
        assert [event["text"] for event in first.heard] == ["one"]
        assert [event["text"] for event in second.heard] == ["two"]
        hers = next(one for one in server.delivered("message") if one.event["user"] == cleo.id)
        assert hers.payload["api_app_id"] == third.app.id
    code = server.oauth_code(other)
    fresh = AsyncWebClient(base_url=server.api_base)
    who = {"client_id": server.app.client_id, "client_secret": server.app.client_secret}
    answer = await fresh.oauth_v2_access(**who, code=code)
    assert (answer["access_token"], answer["team"]["id"]) == (other.bot_token, other.id)
    assert await refused(fresh.oauth_v2_access(**who, code=code)) == "invalid_code"


async def test_an_organisation_with_one_install(server: SlackServer) -> None:
    org = server.enterprise("Globex")
    north, south = server.team("North", enterprise=org), server.team("South", enterprise=org)
    ada = server.person("Ada", north, south)
    client = AsyncWebClient(token=org.bot_token, base_url=server.api_base)
    assert (await client.auth_test())["is_enterprise_install"] is True
    ada.say(ada.dm_in(south), "Hello")
    payload = server.deliveries[0].payload
    assert payload["team_id"] == south.id
    assert payload["authorizations"][0] == {
        "enterprise_id": org.id,
        "team_id": None,
        "user_id": south.bot.id,  # type: ignore[union-attr]
        "is_bot": True,
        "is_enterprise_install": True,
    }
    users = [(await client.users_info(user=user.id))["user"] for user in ada.users]
    assert users[0]["id"] != users[1]["id"]
    assert users[0]["enterprise_user"]["id"] == users[1]["enterprise_user"]["id"]
    assert await refused(client.conversations_list()) == "missing_argument"
    assert [one["id"] for one in (await client.conversations_list(team_id=south.id, types="im"))["channels"]] == [
        ada.dm_in(south).id
    ]
    command = ada.command("/keepsake memory", ada.dm_in(south))
    assert (command.delivery.payload["team_id"], command.delivery.payload["is_enterprise_install"]) == (south.id, "true")
    posted = await client.chat_postMessage(channel=ada.dm_in(south).id, text="x", blocks=[one_button()])
    press = ada.press(ada.dm_in(south).messages[posted["ts"]], "go")
    assert press.delivery.payload["team"] is None
    assert press.delivery.payload["enterprise"]["id"] == org.id
    assert press.delivery.payload["user"]["team_id"] == south.id


def one_button() -> dict[str, Any]:
    return {"type": "actions", "elements": [{"type": "button", "action_id": "go", "text": {"type": "plain_text", "text": "Go"}}]}


async def test_history_is_paged(server: SlackServer, ada: Person, general: Channel, client: AsyncWebClient) -> None:
    said = [ada.say(general, str(number)) for number in range(5)]
    pages = [page["messages"] async for page in await client.conversations_history(channel=general.id, limit=2)]
    assert [[message["text"] for message in page] for page in pages] == [["4", "3"], ["2", "1"], ["0"]]
    some = await client.conversations_history(channel=general.id, oldest=said[1].ts, latest=said[3].ts)
    assert [message["text"] for message in some["messages"]] == ["2"]
    assert await refused(client.conversations_replies(channel=general.id, ts="1.0")) == "thread_not_found"


# The app's settings.


async def test_a_manifest_sets_scopes_events_and_commands() -> None:
    manifest = {
        "features": {"slash_commands": [{"command": "/remember"}], "app_home": {"home_tab_enabled": True}},
        "oauth_config": {"scopes": {"bot": ["chat:write", "im:history"]}},
        "settings": {
            "event_subscriptions": {"bot_events": ["message.im"]},
            "interactivity": {"is_enabled": True},
            "socket_mode_enabled": True,
        },
    }
    async with SlackServer(manifest=manifest) as server:
        acme = server.team("Acme")
        ada = server.person("Ada", acme)
        ada.say(None, "heard")
        ada.open_home()
        assert [delivery.kind for delivery in server.deliveries] == ["message"]
        with pytest.raises(AssertionError, match="no command"):
            ada.command("/keepsake")
        client = AsyncWebClient(token=acme.bot_token, base_url=server.api_base)
        assert await refused(client.users_info(user=ada.id)) == "missing_scope"
    manifest["settings"]["event_subscriptions"]["bot_events"].append("app_mention")  # type: ignore[index]
    with pytest.raises(AssertionError, match="without their scopes"):
        SlackServer(manifest=manifest)


async def test_fast_enough_for_a_crowd(server: SlackServer, acme: Team) -> None:
    people = [server.person(f"P{number}", acme) for number in range(50)]
    began = time.monotonic()
    async with sockets(server, acme):
        for person in people:
            person.say(None, "Hello")
        await asyncio.gather(*(server.wait_for_message(person.dm) for person in people))
    assert time.monotonic() - began < 10


async def test_the_stop_button_ends_a_stream_and_says_so(server: SlackServer, ada: Person, client: AsyncWebClient) -> None:
    root = ada.say(None, "tell me")
    stream = await client.chat_startStream(channel=ada.dm.id, thread_ts=root.ts, markdown_text="once")
    ada.press_stop(root)
    event = server.delivered("agent_session_stopped")[0].event
    assert (event["thread_ts"], event["streaming_message_ts"], event["user"]) == (root.ts, [stream["ts"]], ada.id)
    assert await refused(client.chat_appendStream(channel=ada.dm.id, ts=stream["ts"], markdown_text="x")) == "stopped_by_user"
    assert await refused(client.chat_stopStream(channel=ada.dm.id, ts=stream["ts"])) == "message_not_in_streaming_state"


async def test_a_stream_stays_in_its_mode(server: SlackServer, ada: Person, client: AsyncWebClient) -> None:
    root = ada.say(None, "tell me")
    chunk = {"type": "markdown_text", "text": "once"}
    ts = (await client.chat_startStream(channel=ada.dm.id, thread_ts=root.ts))["ts"]
    assert server.sessions == {(ada.dm.id, root.ts): "processing"}
    assert await refused(client.chat_appendStream(channel=ada.dm.id, ts=ts)) == "markdown_text_or_chunks_required"
    both = client.chat_appendStream(channel=ada.dm.id, ts=ts, markdown_text="x", chunks=[chunk])
    assert await refused(both) == "cannot_provide_both_markdown_text_and_chunks"
    await client.chat_appendStream(channel=ada.dm.id, ts=ts, markdown_text="x")
    assert await refused(client.chat_appendStream(channel=ada.dm.id, ts=ts, chunks=[chunk])) == "streaming_mode_mismatch"
    assert await refused(client.chat_delete(channel=ada.dm.id, ts=ts)) == "cant_delete_message"
    await client.chat_stopStream(channel=ada.dm.id, ts=ts)
    assert server.sessions == {(ada.dm.id, root.ts): "active"}


async def test_a_stream_shows_its_text_above_its_blocks(server: SlackServer, ada: Person, client: AsyncWebClient) -> None:
    root = ada.say(None, "tell me")
    stream = await client.chat_startStream(
        channel=ada.dm.id, thread_ts=root.ts, chunks=[{"type": "markdown_text", "text": "once"}]
    )
    metadata = {"event_type": "keepsake_outbox", "event_payload": {"id": "1"}}
    await client.chat_stopStream(channel=ada.dm.id, ts=stream["ts"], blocks=[one_button()], metadata=metadata)
    message = await server.wait_for_message(ada.dm)
    assert message.shown == "once\nGo"
    assert message.metadata == metadata
    assert (
        await refused(client.chat_startStream(channel=ada.dm.id, thread_ts=root.ts, chunks=[{"type": "x"}])) == "invalid_chunks"
    )


async def test_what_an_agent_app_is_told_of_the_screen(server: SlackServer, ada: Person, general: Channel) -> None:
    ada.open_home("messages", looking_at=general)
    ada.look_at(None)
    thread = ada.open_assistant()
    ada.change_assistant_context(thread, general)
    events = [delivery.event for delivery in server.deliveries if delivery.kind != "message"]
    assert events[0]["context"]["entities"][0]["value"] == general.id
    assert events[1]["context"] == {}
    assert events[2]["assistant_thread"]["thread_ts"] == thread.ts
    assert events[3]["assistant_thread"]["context"]["channel_id"] == general.id


async def test_socket_mode_switched_off(server: SlackServer, acme: Team, client: AsyncWebClient) -> None:
    async with aiohttp.ClientSession() as session:
        url = (await client.apps_connections_open(app_token=server.app_token))["url"]
        async with session.ws_connect(url) as socket:
            hello = await socket.receive_json()
            assert (hello["num_connections"], hello["debug_info"]["approximate_connection_time"]) == (1, 18060)
            server.hub.disable()
            assert (await socket.receive_json())["reason"] == "link_disabled"
            assert (await socket.receive()).type == aiohttp.WSMsgType.CLOSE
        url = (await client.apps_connections_open(app_token=server.app_token))["url"]
        with pytest.raises(aiohttp.WSServerHandshakeError):
            await session.ws_connect(url)


async def test_envelopes_have_slacks_shape(server: SlackServer, acme: Team, ada: Person, client: AsyncWebClient) -> None:
    server.ack_timeout, server.retries = 0.1, (0.0, 60.0)
    async with aiohttp.ClientSession() as session:
        url = (await client.apps_connections_open(app_token=server.app_token))["url"]
        async with session.ws_connect(url) as socket:
            await socket.receive_json()
            ada.say(None, "Hello")
            first, second = await socket.receive_json(), await socket.receive_json()
            assert first["envelope_id"] != second["envelope_id"]
            assert first["payload"]["event_id"] == second["payload"]["event_id"]
            assert [(one["type"], one["accepts_response_payload"], one["retry_attempt"]) for one in (first, second)] == [
                ("events_api", False, 0),
                ("events_api", False, 1),
            ]
            await socket.send_json({"envelope_id": second["envelope_id"]})
            await server.wait_for_delivery("message")
            command = ada.command("/keepsake memory")
            envelope = await socket.receive_json()
            assert (envelope["type"], envelope["accepts_response_payload"]) == ("slash_commands", True)
            assert "retry_attempt" not in envelope
            assert "thread_ts" not in envelope["payload"]
            await socket.send_json({"envelope_id": envelope["envelope_id"], "payload": {"text": "here"}})
            assert (await server.wait_for_answer(command)).texts == ["here"]


async def test_modals_are_pushed_updated_and_seen_closing(server: SlackServer, acme: Team, ada: Person) -> None:
    async with sockets(server, acme) as bot:
        first = ada.press((await server.wait_for_answer(ada.command("/keepsake memory"))).answers[0], "edit")
        view = await server.wait_for_modal(first)
        changed = modal() | {"notify_on_close": True, "blocks": [*modal()["blocks"], one_button()]}
        await bot.client.views_update(view_id=view.id, view=changed, hash=view.hash)
        assert await refused(bot.client.views_update(view_id=view.id, view=changed, hash="1.2")) == "hash_conflict"
        press = ada.press(view, "go", state={"Words": "typed"})
        assert press.delivery.payload["state"]["values"]["words"]["typed"]["value"] == "typed"
        pushed = await bot.client.views_push(trigger_id=press.trigger_id, view=modal())
        assert pushed["view"]["previous_view_id"] == view.id
        ada.close(view)
        assert server.delivered("view_closed")[0].payload["view"]["id"] == view.id
        assert await refused(bot.client.views_update(view_id=view.id, view=changed)) == "not_found"
        bad = modal() | {"title": {"type": "plain_text", "text": "x" * 25}}
        assert await refused(bot.client.views_update(view_id=pushed["view"]["id"], view=bad)) == "invalid_arguments"


async def test_the_lesser_methods(server: SlackServer, acme: Team, ada: Person, general: Channel, client: AsyncWebClient) -> None:
    message = ada.say(general, "Hello")
    await client.reactions_add(channel=general.id, timestamp=message.ts, name="eyes")
    assert await refused(client.reactions_add(channel=general.id, timestamp=message.ts, name="eyes")) == "already_reacted"
    ada.react(message, "tada")
    assert server.delivered("reaction_added")[0].event["item"]["ts"] == message.ts
    assert (await client.team_info())["team"]["name"] == "Acme"
    assert (await client.bots_info(bot=acme.bot.bot_id))["bot"]["user_id"] == acme.bot.id  # type: ignore[union-attr]
    assert {user["id"] for user in (await client.users_list())["members"]} == {ada.id, acme.bot.id}  # type: ignore[union-attr]
    assert (await client.conversations_open(users=ada.id))["channel"]["id"] == ada.dm.id
    assert (await client.chat_postMessage(channel=ada.id, text="by person"))["channel"] == ada.dm.id
    assert [one["name"] for one in (await client.conversations_list())["channels"]] == ["general"]
    ada.set_dnd(0, 0, enabled=False, snooze_until=time.time() + 60)
    assert (await client.dnd_info(user=ada.id))["snooze_enabled"] is True
    assert await refused(client.conversations_info(channel="C404")) == "channel_not_found"


async def test_any_event_can_be_sent(server: SlackServer, acme: Team) -> None:
    async with sockets(server, acme) as bot:
        server.event({"type": "message", "channel_type": "im", "subtype": "odd", "text": None}, acme, team_id=None)
        await server.until(lambda: bot.heard)
        assert bot.heard[0]["text"] is None


async def test_an_unknown_method_fails_the_block() -> None:
    with pytest.raises(AssertionError, match=r"unknown method: chat\.sing"):  # noqa: PT012 - the block's end is what raises
        async with SlackServer() as server:
            team = server.team("Acme")
            await refused(AsyncWebClient(token=team.bot_token, base_url=server.api_base).api_call("chat.sing"))


async def test_a_test_that_misuses_the_client_is_stopped(server: SlackServer, acme: Team, ada: Person, general: Channel) -> None:
    bob = server.person("Bob", acme)
    with pytest.raises(AssertionError, match="not in"):
        bob.say(general, "let me in")
    server.places.archive(general)
    with pytest.raises(AssertionError, match="archived"):
        ada.say(general, "too late")
    with pytest.raises(AssertionError, match="no command"):
        ada.command("/other")
