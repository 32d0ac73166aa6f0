"""The server itself: one object that starts everything and that tests talk to."""

from __future__ import annotations

import contextlib
import json
import secrets
from collections.abc import AsyncIterator, Mapping, Sequence
from types import TracebackType
from typing import Any, Self
from zoneinfo import ZoneInfo

from aiohttp import web

from tests.servers.discord.listener import Listener
from tests.servers.discord.waiting import Signal
from tests.servers.slack import payloads
from tests.servers.slack.actions import Actions, Draft
from tests.servers.slack.api import Api
from tests.servers.slack.app import App
from tests.servers.slack.delivery import Deliveries, Delivery
from tests.servers.slack.faults import ApiCall
from tests.servers.slack.http_mode import HttpMode, Posted
from tests.servers.slack.interactions import Interactions
from tests.servers.slack.methods_chat import ChatMethods
from tests.servers.slack.methods_conversations import ConversationMethods
from tests.servers.slack.methods_files import FileMethods
from tests.servers.slack.methods_people import PeopleMethods
from tests.servers.slack.methods_views import ViewMethods
from tests.servers.slack.people import Person
from tests.servers.slack.places import Places
from tests.servers.slack.socket_mode import Hub
from tests.servers.slack.watching import Watching
from tests.servers.slack.world import Channel, Enterprise, Json, Kind, Message, Team, User, World


class SlackServer(Watching):
    """Slack on this machine, from `async with` on.

    `manifest` is the app's, as `bot slack manifest` prints it; without one the app has every scope and event this server knows.
    `ack_timeout` and `retries` (seconds) say how long an acknowledgement may take and when an event comes again. At the end of the
    block, unknown methods and faults of the server's own are an AssertionError.
    """

    def __init__(
        self,
        *,
        manifest: Mapping[str, Any] | None = None,
        ack_timeout: float = 3.0,
        retries: tuple[float, ...] = (0.0, 60.0, 300.0),
        ping_every: float = 10.0,
    ) -> None:
        super().__init__()
        self.app = App()
        if manifest is not None:
            self.app.configure(manifest)
        self.world = World(self.app)
        # Every API call of the bot, in order.
        self.calls: list[ApiCall] = []
        self.failures: list[str] = []
        # The status lines that are shown now, by channel id and thread.
        self.statuses: dict[tuple[str, str], str] = {}
        self._signal = Signal()
        self._sent = Deliveries(self._signal)
        self._sent.ack_timeout, self._sent.retries = ack_timeout, retries
        # Socket Mode, with what can be wrong with it.
        self.hub = Hub(self._signal, self._sent, ping_every)
        self._sent.carrier = self.hub
        self._http = HttpMode(self.world, self._sent)
        self.actions = Actions(self.world, self._sent, self._signal, self.statuses)
        self.places = Places(self.world, self.actions)
        self.interactions = Interactions(self.world, self.actions)
        api = Api(self.world, self._signal, self.calls, self.failures)
        self.faults = api.faults
        ConversationMethods(api, self.actions)
        self._people = PeopleMethods(api, self.hub, self.places)
        self._views = ViewMethods(api, self.actions, self.interactions, self.statuses)
        self.streams = ChatMethods(api, self.actions, self._views.sessions)
        self._files = FileMethods(api, self.actions)
        self.interactions.serve(api)
        sockets = web.Application()
        sockets.router.add_get("/link/", self.hub.handle)
        self._listeners = {"http": Listener(api.app), "sockets": Listener(sockets), "other": Listener(self._files.other)}

    async def __aenter__(self) -> Self:
        for listener in self._listeners.values():
            await listener.start()
        self.actions.base = self.interactions.base = f"http://127.0.0.1:{self._listeners['http'].port}"
        self._files.elsewhere = f"http://127.0.0.1:{self._listeners['other'].port}"
        self.hub.url = f"ws://127.0.0.1:{self._listeners['sockets'].port}/link/"
        return self

    async def __aexit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self.faults.clear()
        await self._sent.stop()
        await self._http.stop()
        for listener in self._listeners.values():
            await listener.stop()
        if error is None and self.failures:
            raise AssertionError("; ".join(self.failures))

    @property
    def api_base(self) -> str:
        """For AsyncWebClient(base_url=...)."""
        return f"{self.actions.base}/api/"

    @property
    def app_token(self) -> str:
        return self.app.app_token

    @property
    def signing_secret(self) -> str:
        return self.app.signing_secret

    @property
    def ack_timeout(self) -> float:
        """How long an acknowledgement may take, in seconds."""
        return self._sent.ack_timeout

    @ack_timeout.setter
    def ack_timeout(self, seconds: float) -> None:
        self._sent.ack_timeout = seconds

    @property
    def retries(self) -> Sequence[float]:
        """The pauses before an unacknowledged event comes again, in seconds."""
        return self._sent.retries

    @retries.setter
    def retries(self, pauses: Sequence[float]) -> None:
        self._sent.retries = pauses

    # Who and what there is.

    def enterprise(self, name: str, *, org_wide: bool = True) -> Enterprise:
        """An Enterprise Grid organisation, by default with the app installed for all of it (`.bot_token`, `team: null`)."""
        return self.places.enterprise(name, org_wide=org_wide)

    def another_app(self, name: str = "Keepsake too") -> App:
        """An app with tokens and secrets of its own, for workspaces that are given it."""
        app = App.another(name, len(self.world.apps) + 1)
        self.world.apps.append(app)
        return app

    def team(self, name: str, *, enterprise: Enterprise | None = None, installed: bool = True, app: App | None = None) -> Team:
        """A workspace; `installed` with the app in it, which is the first unless another is given."""
        return self.places.team(name, enterprise=enterprise, installed=installed, app=app)

    def person(
        self,
        name: str,
        *teams: Team,
        tz: str | None = "America/Los_Angeles",
        locale: str = "en-US",
        admin: bool = False,
        owner: bool = False,
        guest: bool = False,
        join: bool = False,
    ) -> Person:
        """Somebody in these workspaces, which are several only on Grid. `join` says so to the app (team_join)."""
        assert teams, "people are in a workspace"
        assert tz is None or ZoneInfo(tz)
        grid = self.world.id("W") if teams[0].enterprise else None
        users = []
        for team in teams:
            user = User(self.world.id("U"), name, team, tz=tz, locale=locale, is_admin=admin, is_owner=owner, is_restricted=guest)
            user.grid_id = grid
            self.world.keep(user)
            users.append(user)
        person = Person(users, self.world, self.actions, self.places, self.interactions)
        if join:
            person.join_team()
        return person

    def channel(
        self,
        team: Team,
        name: str,
        *members: Person,
        private: bool = False,
        mpim: bool = False,
        bot: bool = True,
        general: bool = False,
    ) -> Channel:
        """A channel with these people and, unless told otherwise, the bot."""
        users = [next((user for user in person.users if user.team is team), person.user) for person in members]
        kind: Kind = "mpim" if mpim else "group" if private else "channel"
        return self.places.channel(team, name, users, kind=kind, bot=bot, general=general)

    def other_bot(self, team: Team, name: str = "Build") -> User:
        """Another app's bot."""
        user = User(self.world.id("U"), name, team, is_bot=True, bot_id=self.world.id("B"), app_id="A0OTHERAPP1")
        self.world.keep(user)
        return user

    def bot_says(
        self, channel: Channel, text: str, bot: User | None = None, *, webhook: bool = False, thread: Message | None = None
    ) -> Message:
        """A message by another app: with a user of its own, or (`webhook`) a bot_message without one."""
        bot = bot or self.other_bot(channel.team)
        root = None if thread is None else thread.thread_ts or thread.ts
        draft = Draft(text, bot_id=bot.bot_id, thread_ts=root)
        if webhook:
            draft.subtype, draft.username = "bot_message", bot.name
        return self.actions.create(channel, bot, draft)

    def oauth_code(self, team: Team) -> str:
        """A code as Slack hands it to the redirect address after somebody agreed; good once."""
        code = secrets.token_urlsafe(12)
        self._people.codes[code] = team
        return code

    def uninstall(self, team: Team) -> None:
        """The app is removed from a workspace."""
        self.places.uninstall(team)

    def revoke(self, team: Team) -> None:
        self.places.revoke(team)

    # How the app is told.

    def http_mode(self, url: str, *, commands: str | None = None, interactions: str | None = None) -> None:
        """From now on signed requests go to these addresses, and nothing over sockets."""
        self._http.url, self._http.commands_url, self._http.interactions_url = url, commands, interactions
        self._sent.carrier = self._http

    async def post_raw(self, body: bytes | str | Json, **how: Any) -> Posted:
        """One request to the app's address: signature="v0=...", age=seconds, signed=False, kind=content type, url=..., headers={}."""
        data = body if isinstance(body, bytes) else (body if isinstance(body, str) else json.dumps(body)).encode()
        return await self._http.post(data, **how)

    async def verify_url(self) -> Posted:
        """The url_verification Slack sends when the address is entered; the answer has to hold the challenge."""
        body = {"token": self.app.verification_token, "challenge": secrets.token_hex(8), "type": "url_verification"}
        return await self.post_raw(body)

    def event(self, event: Json, team: Team, **changes: object) -> Delivery:
        """Any event, also a malformed one, whatever the subscriptions; `changes` are of the wrapper."""
        return self._sent.send(Delivery("events_api", payloads.event_json(event, team, self.world) | changes, team.app))

    def redeliver(self, delivery: Delivery, reason: str = "timeout") -> None:
        """The same event once more, as a retry, however long ago it was."""
        assert self._sent.again(delivery, reason) is not None, "nobody listens"

    # Faults beyond `faults` and `hub`.

    def end_streams(self) -> None:
        """Every running stream dies as it does at Slack after some minutes."""
        for channel in self.world.channels():
            for message in list(channel.messages.values()):
                if message.streaming:
                    self.actions.end_stream(message)

    @contextlib.asynccontextmanager
    async def down(self, *sides: str) -> AsyncIterator[None]:
        """Refuses connections inside the block ("http", "sockets"; both by default), on the same ports again afterwards."""
        listeners = [self._listeners[side] for side in sides or ("http", "sockets")]
        for listener in listeners:
            await listener.close()
            listener.cut()
        try:
            yield
        finally:
            for listener in listeners:
                await listener.open()
