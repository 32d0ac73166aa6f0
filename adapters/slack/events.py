"""Which event goes where: bolt's app with our listeners.

Bolt acknowledges an event before its listener runs, so that a crash between the two would lose it. With `process_before_response` it
waits for the listener instead: an event is acknowledged when it is in the inbox, and one that could not be taken is not acknowledged
(Socket Mode) or answered with 500 (HTTP), so Slack tells it again. Commands, buttons and windows are acknowledged at once.
"""

from __future__ import annotations

import asyncio
import logging
import re
import time
from collections.abc import Awaitable, Callable, Coroutine, Mapping
from datetime import UTC, datetime
from typing import Any

from slack_bolt.async_app import AsyncApp
from slack_bolt.authorization import AuthorizeResult
from slack_sdk.web.async_client import AsyncWebClient

from adapters.base import Bot, Incoming, Person, PlaceOf
from adapters.slack import blocks
from adapters.slack.commands import Commands, Reply
from adapters.slack.home import Home
from adapters.slack.inbound import Inbound
from adapters.slack.looks import CONVERSIONS, Looks
from adapters.slack.names import Scope, moment, place_of, scope_of
from adapters.slack.outbound import Outbound
from adapters.slack.people import FAILURES, People, person_of
from adapters.slack.rooms import Rooms
from adapters.slack.settings import Settings
from adapters.slack.socket import Ears
from adapters.slack.workspaces import Workspace, Workspaces
from adapters.slack.written import Written

log = logging.getLogger(__name__)

FLAP = 600.0
"""Seconds in which somebody who opens the app again is not seen again."""
ANYTHING = re.compile("")


class Events:
    """Takes the events of all workspaces. `ears` is told, by workspace, which connection hears it."""

    def __init__(
        self,
        settings: Settings,
        bot: Bot,
        workspaces: Workspaces,
        people: People,
        rooms: Rooms,
        inbound: Inbound,
        outbound: Outbound,
        commands: Commands,
        home: Home,
        start: Callable[[Coroutine[Any, Any, None]], None],
        count: Callable[[str], None],
        ears: dict[str, Ears],
        looks: Looks,
    ) -> None:
        self._settings, self._bot, self._workspaces, self._people, self._rooms = settings, bot, workspaces, people, rooms
        self._inbound, self._outbound, self._commands, self._home = inbound, outbound, commands, home
        self._start, self._count, self._ears, self._looks = start, count, ears, looks
        self._handlers: Mapping[str, Callable[[Written], Awaitable[None]]] = {
            "message": self._message,
            "app_mention": self._mention,
            "app_home_opened": self._opened,
            "channel_deleted": self._looks.deleted,
            "group_deleted": self._looks.deleted,
            "team_join": self._joined,
            "user_change": self._user_changed,
            "app_uninstalled": self._uninstalled,
            "tokens_revoked": self._revoked,
            "assistant_thread_started": self._assistant,
            "agent_session_stopped": self._stopped,
        }

    def app(self, client: AsyncWebClient, signing_secret: str, ears: Ears) -> AsyncApp:
        """Bolt's app; without a signing secret for Socket Mode. `ears` hears what comes in."""
        quiet = logging.getLogger("slack_bolt")
        quiet.setLevel(logging.ERROR)  # it warns of environment variables that it would have read itself

        async def authorize(enterprise_id: str | None, team_id: str | None) -> Any:
            return await self._authorize(enterprise_id, team_id)

        app = AsyncApp(
            name="keepsake",
            logger=quiet,
            client=client,
            authorize=authorize,
            process_before_response=True,
            signing_secret=signing_secret or "none",
            request_verification_enabled=bool(signing_secret),
            ignoring_self_events_enabled=False,
            attaching_conversation_kwargs_enabled=False,
        )

        async def on_event(body: dict[str, Any]) -> None:
            await self.take(body, ears)

        async def on_command(ack: Any, body: dict[str, Any]) -> None:
            await ack()
            ears.heard(own=False)
            self._start(self._with(self._commands.slash, body))

        async def on_press(ack: Any, body: dict[str, Any]) -> None:
            await ack()
            ears.heard(own=False)
            self._start(self._with(self._commands.pressed, body))

        async def on_window(ack: Any, body: dict[str, Any]) -> None:
            await ack()
            ears.heard(own=False)
            self._start(self._with(self._commands.submitted, body))

        app.event(ANYTHING)(on_event)
        app.command(ANYTHING)(on_command)
        app.action(ANYTHING)(on_press)
        app.view(blocks.ASK)(on_window)
        app.error(self._failed)
        return app

    async def _authorize(self, enterprise_id: str | None, team_id: str | None) -> AuthorizeResult | None:
        found = await self._workspaces.of(Scope(team_id or "", enterprise_id or "", not team_id))
        if found is None:
            return None
        return AuthorizeResult(
            enterprise_id=enterprise_id, team_id=team_id, bot_user_id=found.bot_user, bot_id=found.bot_id, bot_token=found.token
        )

    async def _failed(self, error: Exception) -> None:
        """An event that could not be taken is not acknowledged; what it says is not looked at."""
        self._count("slack_handler_failed")
        log.error("something of Slack's could not be handled: %s", type(error).__name__, exc_info=error)

    async def _with(self, run: Callable[[Workspace, Scope, dict[str, Any]], Awaitable[None]], body: dict[str, Any]) -> None:
        scope = scope_of(body)
        if (workspace := await self._workspaces.of(scope)) is not None:
            await run(workspace, scope, body)

    async def take(self, body: Mapping[str, Any], ears: Ears) -> None:
        """One event. Returns when it may be acknowledged."""
        arrived = time.monotonic()
        event = body.get("event") or {}
        scope = scope_of(body)
        workspace = await self._workspaces.of(scope)
        if workspace is None:
            self._count("slack_not_installed")
            return
        first = (body.get("authorizations") or [{}])[0]
        me = str(first.get("user_id") or "") if first.get("is_bot") else ""
        written = Written(workspace, scope, event, me or workspace.bot_user, arrived, body.get("is_ext_shared_channel") is True)
        self._ears[workspace.key] = ears
        ears.heard(own=written.own)
        if written.channel:
            self._workspaces.seen(written.channel, workspace)
        handler = self._handlers.get(str(event.get("type")))
        if handler is not None:
            await handler(written)
        elif str(event.get("type")).startswith(("channel_", "group_")):
            await self._looks.changed(written)

    async def _message(self, written: Written) -> None:
        match written.event.get("subtype"):
            case "message_changed":
                await self._inbound.edited(written)
            case "message_deleted":
                await self._inbound.deleted(written)
            case "message_replied":
                return
            case subtype if subtype in CONVERSIONS:
                await self._looks.changed(written)
            case _:
                if written.event.get("channel_type") == "im" and written.user and written.user != written.me:
                    self._outbound.heard(written.channel)
                    self._home.learn(written.workspace, written.user, written.channel)
                await self._inbound.message(written)

    async def _mention(self, written: Written) -> None:
        await self._inbound.message(written)

    async def _opened(self, written: Written) -> None:
        """Somebody opened the app: App Home is shown, or the messages, which is a login."""
        workspace, scope, user = written.workspace, written.scope, written.user
        if written.event.get("tab") == "home":
            self._start(self._show_home(workspace, scope, user))
            return
        if not written.channel:
            return
        self._home.learn(workspace, user, written.channel)
        self._start(self._suggest(workspace, written.channel, None))
        if not self._settings.login_events:
            return
        at = moment(str(written.event.get("event_ts") or ""))
        person = person_of(scope, user, await self._people.of(workspace, user))
        if await self._bot.wants_login(person, at, FLAP):
            place = place_of(scope, written.channel, None, "direct", "")
            key = f"login:{scope.workspace}:{user}:{at.timestamp():.0f}"
            await self._bot.receive(Incoming("login", person, place, key, at, addressed=False))
            self._count("slack_login")

    async def _show_home(self, workspace: Workspace, scope: Scope, user: str) -> None:
        person = await self._commands.person(workspace, scope, user)
        await self._home.publish(workspace, scope, person, user)

    async def _suggest(self, workspace: Workspace, channel: str, thread: str | None) -> None:
        """The first words that are offered."""
        prompts = [{"title": prompt, "message": prompt} for prompt in self._settings.prompts[:4]]
        if not prompts:
            return
        try:
            await workspace.client.assistant_threads_setSuggestedPrompts(channel_id=channel, thread_ts=thread, prompts=prompts)
        except FAILURES as error:
            log.info("no prompts could be suggested: %s", type(error).__name__)

    async def _assistant(self, written: Written) -> None:
        """The older way in: a thread was opened in the assistant's pane."""
        thread = written.event.get("assistant_thread") or {}
        channel, ts = str(thread.get("channel_id") or ""), str(thread.get("thread_ts") or "")
        if channel:
            self._workspaces.seen(channel, written.workspace)
            self._start(self._suggest(written.workspace, channel, ts or None))

    async def _stopped(self, written: Written) -> None:
        """The stop button beside an answer that is being made."""
        thread = str(written.event.get("thread_ts") or "") or None
        direct = written.channel.startswith("D")
        room = await self._rooms.of(written.workspace, written.channel)
        place = place_of(written.scope, written.channel, thread, "direct" if direct else room.kind, room.name)
        person = await self._commands.person(written.workspace, written.scope, written.user)
        self._start(self._stop(person, place))

    async def _stop(self, person: Person, place: PlaceOf) -> None:
        await self._bot.command(person, place, "/stop")

    async def _joined(self, written: Written) -> None:
        """Somebody new, where the operator named a channel of that workspace for it."""
        user = written.event.get("user") or {}
        workspace, scope = written.workspace, written.scope
        profile = self._people.learn(workspace, user)
        if profile.bot or not self._settings.join_channels:
            return
        for channel in sorted(self._settings.join_channels):
            room = await self._rooms.of(workspace, channel)
            if not room.name:
                continue  # of another workspace, or not there
            key = f"join:{scope.workspace}:{profile.user_id}"
            place = place_of(scope, channel, None, room.kind, room.name, "" if scope.team else room.workspace)
            self._workspaces.seen(channel, workspace)
            person = person_of(scope, profile.user_id, profile)
            await self._bot.receive(Incoming("join", person, place, key, datetime.now(UTC), addressed=False))
            self._count("slack_join")
            return

    async def _user_changed(self, written: Written) -> None:
        user = written.event.get("user") or {}
        profile = self._people.learn(written.workspace, user)
        if profile.deleted:
            try:
                self._outbound.close(await self._home.direct(written.workspace, profile.user_id))
            except FAILURES as error:
                log.info("the direct messages of a closed account are not known: %s", type(error).__name__)

    async def _uninstalled(self, written: Written) -> None:
        await self._workspaces.gone(written.workspace, "the app was removed")
        await self._bot.workspace_gone("slack", written.workspace.team, written.workspace.team, gone=True)

    async def _revoked(self, written: Written) -> None:
        bots = (written.event.get("tokens") or {}).get("bot") or []
        if bots:
            await self._workspaces.gone(written.workspace, "its token was revoked")

    async def tell(self, written: Written, text: str) -> None:
        """Say something to one person alone where they wrote."""
        direct = written.event.get("channel_type") == "im" or written.channel.startswith("D")
        thread = str(written.event.get("thread_ts") or "") or None
        reply = Reply(written.workspace, written.user, written.channel, thread, direct)
        await self._commands.show(reply, blocks.message(text))


class Started:
    """Work beside the events; it ends with the adapter."""

    def __init__(self, count: Callable[[str], None]) -> None:
        self._count = count
        self._tasks: set[asyncio.Task[None]] = set()

    def start(self, work: Coroutine[Any, Any, None]) -> None:
        """Have something done."""
        task = asyncio.create_task(work, name="slack work")
        self._tasks.add(task)
        task.add_done_callback(self._ended)

    def _ended(self, task: asyncio.Task[None]) -> None:
        self._tasks.discard(task)
        if not task.cancelled() and (error := task.exception()) is not None:
            self._count("slack_work_failed")
            log.error("work for Slack broke off: %s", type(error).__name__, exc_info=error)

    async def settle(self, seconds: float) -> None:
        """Let it come to its end."""
        if self._tasks:
            _, late = await asyncio.wait(self._tasks, timeout=seconds)
            for task in late:
                task.cancel()
