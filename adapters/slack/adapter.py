"""Slack as the bot sees it: the contract of `adapters.base`, put together from this package."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import AbstractAsyncContextManager, AsyncExitStack, asynccontextmanager
from datetime import UTC, datetime

import aiohttp
from slack_sdk.errors import SlackApiError

from adapters.base import Bot, Outgoing, Person
from adapters.slack.commands import Commands
from adapters.slack.events import Events, Started
from adapters.slack.home import Home
from adapters.slack.inbound import Inbound
from adapters.slack.installs import Installed, Vault
from adapters.slack.lines import Slash
from adapters.slack.looks import Looks
from adapters.slack.names import PLATFORM, parted
from adapters.slack.outbound import Outbound
from adapters.slack.people import FAILURES, People, undisturbed_until
from adapters.slack.rooms import Rooms
from adapters.slack.settings import INSTALL, LIMIT, REDIRECT, Settings
from adapters.slack.socket import Ears, Socket, Unheard
from adapters.slack.status import Statuses
from adapters.slack.streams import PACE, SlackStreams
from adapters.slack.web import Door
from adapters.slack.workspaces import Clients, PlatformRefused, Workspaces, error_of

log = logging.getLogger(__name__)

GRACE = 3.0
"""Seconds that what is under way gets at the end."""
FIRST = 1.0
GONE = "Slack: no workspace accepts the app any more."


class SlackAdapter:
    """Slack in this process.

    Args:
        settings: what the operator chose.
        slashes: the bot's commands.
        count: is told reason codes.
        say: is told, once, what the operator should read.
        vault: where workspaces' own installations are kept; None: only those in the settings.
    """

    platform = PLATFORM
    channels = None
    limit = LIMIT

    def __init__(
        self,
        settings: Settings,
        slashes: Sequence[Slash],
        *,
        count: Callable[[str], None] = lambda _: None,
        say: Callable[[str], None] = lambda _: None,
        vault: Vault | None = None,
    ) -> None:
        self._settings, self._slashes, self._count, self._say = settings, slashes, count, say
        self._clients = Clients(settings.api_base)
        installed = (
            Installed(settings.oauth, vault, self._clients.client()) if settings.oauth is not None and vault is not None else None
        )
        self._installed = installed
        self._workspaces = Workspaces(settings, self._clients, say, installed)
        self._ears: dict[str, Ears] = {}
        self._statuses = Statuses(self._write_status)
        # In direct messages: under which message the status of a place stands now.
        self._status_under: dict[str, str] = {}
        self._outbound = Outbound(self._workspaces, say, self._posted)
        self._streams = SlackStreams(self._outbound, self._recipient, count)
        self._inbound: Inbound | None = None
        self._sockets: list[Socket] = []
        self._listening = False
        self._ending = False
        self.refused: str | None = None
        """Why Slack will not have the bot, in a line for the operator; `run` has ended then."""

    @property
    def pace(self) -> float | None:
        """Seconds between two changes of a growing reply; None: replies come whole."""
        return PACE if self._settings.streaming else None

    async def run(self, bot: Bot) -> None:
        """Take events in until cancelled, or until Slack refuses for good."""
        try:
            async with self._clients.opened():
                await self._sign_in()
                await self._take_in(bot)
        except PlatformRefused as refused:
            self.refused = str(refused)
            self._say(self.refused)
        except BaseExceptionGroup as group:
            refusals, rest = group.split(PlatformRefused)
            if refusals is None or rest is not None:
                raise
            self.refused = str(_first(refusals))
            self._say(self.refused)
        finally:
            self._ending = True

    async def _sign_in(self) -> None:
        """Until Slack can be reached. Raises Refused for a wrong token."""
        delay = FIRST
        while True:
            try:
                await self._workspaces.sign_in()
                return
            except (SlackApiError, aiohttp.ClientError, OSError, TimeoutError) as error:
                code = error_of(error) if isinstance(error, SlackApiError) else type(error).__name__
                self._count("slack_restart")
                log.warning("Slack cannot be reached: %s; another try in %.0f s", code, delay)
                await asyncio.sleep(delay)
                delay = min(self._settings.restart_cap, delay * 2)

    async def _take_in(self, bot: Bot) -> None:
        session = self._clients.session
        assert session is not None
        started = Started(self._count)
        people, rooms, home = People(), Rooms(), Home(bot, self._slashes)
        commands = Commands(bot, people, rooms, home, self._slashes, session, started.start, self._count)
        inbound = Inbound(
            self._settings, bot, people, rooms, session, self._count, lambda *said: events.tell(*said), commands.line
        )
        looks = Looks(bot, self._workspaces, rooms, inbound, self._count, mark=self._settings.mark_deleted)
        events = Events(
            self._settings,
            bot,
            self._workspaces,
            people,
            rooms,
            inbound,
            self._outbound,
            commands,
            home,
            started.start,
            self._count,
            self._ears,
            looks,
        )
        self._inbound = inbound
        for known in reversed(await bot.newest(PLATFORM)):  # the newest last: what is followed first is forgotten first
            channel, thread = parted(known.channel)
            self._workspaces.load([(channel, known.workspace)])
            if thread:
                inbound.follow(known.channel)
        try:
            async with looks.watching(), self._intake(events):
                self._listening = True
                await self._until_gone()
        finally:
            self._listening = False
            await inbound.settle(GRACE)
            await started.settle(GRACE)
            await self._statuses.settle(GRACE)

    async def _until_gone(self) -> None:
        """For ever, or until the last workspace has thrown the app out and none can install it."""
        await (self._workspaces.empty if self._installed is None else asyncio.Event()).wait()
        raise PlatformRefused(GONE)

    @asynccontextmanager
    async def _intake(self, events: Events) -> AsyncIterator[None]:
        """Socket Mode, or the address that Slack sends to."""
        settings, client = self._settings, self._clients.client()
        async with AsyncExitStack() as stack:
            if settings.bind:
                secrets = [tokens.signing_secret for tokens in settings.tokens]
                secrets += [settings.oauth.signing_secret] if settings.oauth else []
                apps = [(secret, events.app(client, secret, Ears())) for secret in dict.fromkeys(secrets) if secret]
                flow = self._installed.flow() if self._installed is not None else None
                pages = {INSTALL: flow.handle_installation, REDIRECT: flow.handle_callback} if flow is not None else {}
                host, _, port = settings.bind.rpartition(":")
                try:
                    await stack.enter_async_context(Door(apps, self._count, pages).open(host.strip("[]"), int(port)))
                except OSError as error:
                    raise PlatformRefused(
                        f"slack.bind: {settings.bind} cannot be used ({error.strerror}). Name a free address."
                    ) from error
                yield
                return
            group = await stack.enter_async_context(asyncio.TaskGroup())
            by_token = {tokens.app: tokens.app_env for tokens in settings.tokens}
            for token, env in by_token.items():
                ears = Ears()
                self._sockets.append(Socket(settings, events.app(client, "", ears), token, env, client, ears, self._count))
            tasks = [group.create_task(socket.run(), name="slack socket") for socket in self._sockets]
            try:
                yield
            finally:
                for task in tasks:
                    task.cancel()

    async def check(self) -> None:
        """Raises Unheard when the bot does not hear Slack now."""
        if not self._listening:
            raise Unheard("not started")
        for socket in self._sockets:
            await socket.check()

    async def send(self, outgoing: Outgoing) -> str:
        """Send one message; see `Outbound.send`."""
        return await self._outbound.send(outgoing)

    async def find(self, outgoing: Outgoing) -> str | None:
        """The id of a message that was perhaps sent; see `Outbound.find`."""
        return await self._outbound.find(outgoing)

    async def begin(self, outgoing: Outgoing) -> str:
        """Send the beginning of a reply that grows."""
        return await self._streams.begin(outgoing)

    async def extend(self, outgoing: Outgoing, platform_id: str) -> None:
        """Let it show more."""
        await self._streams.extend(outgoing, platform_id)

    async def finish(self, outgoing: Outgoing, platform_id: str) -> str:
        """Give it its final text."""
        return await self._streams.finish(outgoing, platform_id)

    async def quiet(self, person: Person) -> datetime | None:
        """Until when somebody does not want to be disturbed, by their own settings in Slack; None: they may be, or nobody knows."""
        workspace = await self._workspaces.named(person.realm)
        if workspace is None:
            return None
        try:
            answer = await workspace.client.dnd_info(user=person.user_id)
        except FAILURES as error:
            log.info("dnd.info failed: %s", type(error).__name__)
            return None
        return undisturbed_until(answer.data if isinstance(answer.data, dict) else {}, datetime.now(UTC))

    def working(self, channel: str) -> AbstractAsyncContextManager[None]:
        """A status line shows as long as the context is open; at the end of the process it is waited for until it is gone."""
        shown = self._statuses.working(channel)
        if not self._ending:
            return shown

        @asynccontextmanager
        async def waited() -> AsyncIterator[None]:
            async with shown:
                yield
            await self._statuses.settle(GRACE)

        return waited()

    def _posted(self, place: str, workspace: str) -> None:
        if (ears := self._ears.get(workspace)) is not None:
            ears.posted()
        self._statuses.posted(place)

    def _recipient(self, place: str) -> str | None:
        return self._inbound.last_by.get(place, ("", ""))[1] or None if self._inbound is not None else None

    async def _write_status(self, place: str, status: str) -> bool:
        """In a thread its own line, in direct messages that of the message that is being answered, also when more were written since."""
        channel, thread = parted(place)
        last = self._inbound.last_by.get(place, ("", ""))[0] if self._inbound is not None else ""
        ts = thread or self._status_under.get(place) or (last if channel.startswith("D") else "")
        if status and ts:
            self._status_under[place] = ts
        else:
            self._status_under.pop(place, None)
        try:
            workspace = await self._workspaces.for_channel(channel) if ts else None
            if workspace is None:
                return False
            await workspace.client.assistant_threads_setStatus(channel_id=channel, thread_ts=ts, status=status)
        except FAILURES as error:
            log.info("a status could not be set: %s", type(error).__name__)
            return not isinstance(error, SlackApiError)
        return True


def _first(group: BaseExceptionGroup[PlatformRefused]) -> BaseException:
    error: BaseException = group
    while isinstance(error, BaseExceptionGroup):
        error = error.exceptions[0]
    return error
