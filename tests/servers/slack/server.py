"""The server itself: one object that starts everything and that tests talk to."""

from __future__ import annotations

import contextlib
import json
import secrets
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from types import TracebackType
from typing import Any, Self
from zoneinfo import ZoneInfo

from aiohttp import web

from tests.servers.discord.listener import Listener
from tests.servers.discord.waiting import Signal, T
from tests.servers.slack import payloads
from tests.servers.slack.actions import Actions, Draft
from tests.servers.slack.api import Api
from tests.servers.slack.app import App
from tests.servers.slack.delivery import Deliveries, Delivery
from tests.servers.slack.faults import ApiCall
from tests.servers.slack.http_mode import HttpMode, Posted
from tests.servers.slack.interactions import Interaction, Interactions
from tests.servers.slack.methods_chat import ChatMethods
from tests.servers.slack.methods_conversations import ConversationMethods
from tests.servers.slack.methods_files import FileMethods
from tests.servers.slack.methods_people import PeopleMethods
from tests.servers.slack.methods_views import ViewMethods
from tests.servers.slack.people import Person
from tests.servers.slack.places import Places
from tests.servers.slack.socket_mode import Connection, Hub
from tests.servers.slack.world import Channel, Enterprise, Json, Kind, Message, Team, User, View, World


class SlackServer:
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
        self._returned: set[tuple[str, str]] = set()
        self._sent = Deliveries(self._signal)
        self._sent.ack_timeout, self._sent.retries = ack_timeout, retries
        # Socket Mode, with what can be wrong with it.
        self.hub = Hub(self.world, self._signal, self._sent, ping_every)
        self._sent.carrier = self.hub
        self._http = HttpMode(self.world, self._sent)
        self.actions = Actions(self.world, self._sent, self._signal, self.statuses)
        self.places = Places(self.world, self.actions)
        self.interactions = Interactions(self.world, self.actions)
        api = Api(self.world, self._signal, self.calls, self.failures)
        self.faults = api.faults
        self.streams = ChatMethods(api, self.actions)
        ConversationMethods(api, self.actions)
        self._people = PeopleMethods(api, self.hub, self.places)
        self._views = ViewMethods(api, self.actions, self.interactions, self.statuses)
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

    def team(self, name: str, *, enterprise: Enterprise | None = None, installed: bool = True) -> Team:
        """A workspace; `installed` with the app in it."""
        return self.places.team(name, enterprise=enterprise, installed=installed)

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
        return self._sent.send(Delivery("events_api", payloads.event_json(event, team, self.world) | changes))

    def redeliver(self, delivery: Delivery, reason: str = "timeout") -> None:
        """The same event once more, as a retry, however long ago it was."""
        assert self._sent.again(delivery, reason) is not None, "nobody listens"

    # What the bot did.

    @property
    def deliveries(self) -> list[Delivery]:
        return self._sent.all

    def delivered(self, kind: str) -> list[Delivery]:
        """The events, commands or interactions of a type such as "app_mention"."""
        return [delivery for delivery in self.deliveries if delivery.kind == kind]

    def messages(self, channel: Channel, *, bot: bool = False) -> list[Message]:
        """What is in a channel now, oldest first; `bot` picks the app's."""
        return [one for one in channel.messages.values() if not bot or one.author in channel.bots]

    @property
    def ephemerals(self) -> list[Message]:
        return self.world.ephemerals

    def home(self, person: Person) -> View | None:
        """The Home tab they see."""
        return next((view for user in person.users if (view := self.world.homes.get(user.id))), None)

    @property
    def status_log(self) -> list[Any]:
        return self._views.status_log

    @property
    def prompts(self) -> list[Any]:
        return self._views.prompts

    @property
    def sessions(self) -> dict[tuple[str, str | None], str]:
        """Lifecycle states of agent sessions, by channel id and thread."""
        return self._views.sessions

    def status(self, channel: Channel, thread_ts: str) -> str:
        """The status line in a thread, "" for none."""
        return self.statuses.get((channel.id, thread_ts), "")

    def calls_of(self, method: str) -> list[ApiCall]:
        return [call for call in self.calls if call.method == method]

    @property
    def connections(self) -> list[Connection]:
        """Every Socket Mode connection there was, oldest first."""
        return self.hub.connections

    # Waiting.

    async def until(self, predicate: Callable[[], T | None], timeout: float = 5.0, what: str = "the condition") -> T:
        """The first answer of the predicate that is true; it is asked whenever anything happened here."""
        return await self._signal.until(predicate, timeout, what)

    async def wait_for_message(
        self,
        channel: Channel,
        predicate: Callable[[Message], bool] | None = None,
        timeout: float = 5.0,
        *,
        after: Message | None = None,
        streaming: bool = False,
    ) -> Message:
        """The bot's next message here that was not returned before; one being streamed counts when it is done, or `streaming`."""

        def found() -> Message | None:
            for message in self.messages(channel, bot=True):
                fresh = (channel.id, message.ts) not in self._returned and (after is None or float(message.ts) > float(after.ts))
                if fresh and (streaming or not message.streaming) and (predicate is None or predicate(message)):
                    return message
            return None

        return self._take(await self._signal.until(found, timeout, f"a message of the bot in {channel}", channel))

    async def wait_for_ephemeral(
        self, person: Person, predicate: Callable[[Message], bool] | None = None, timeout: float = 5.0
    ) -> Message:
        """The next message only this person sees."""

        def found() -> Message | None:
            for message in self.ephemerals:
                fresh = ("ephemeral", message.ts) not in self._returned and message.only_for in person.users
                if fresh and (predicate is None or predicate(message)):
                    return message
            return None

        return self._take(await self._signal.until(found, timeout, f"a message for {person.user.name} alone"))

    async def wait_for_answer(self, interaction: Interaction, answers: int = 1, timeout: float = 5.0) -> Interaction:
        """Until the person sees this many answers."""
        return await self.until(
            lambda: interaction if len(interaction.answers) >= answers else None, timeout, f"{answers} answers to {interaction}"
        )

    async def wait_for_modal(self, interaction: Interaction, timeout: float = 5.0) -> View:
        return await self.until(lambda: interaction.modal, timeout, f"a modal for {interaction}")

    async def wait_for_home(self, person: Person, predicate: Callable[[View], bool] | None = None, timeout: float = 5.0) -> View:
        """Until their Home tab is there and as the predicate wants it."""

        def found() -> View | None:
            view = self.home(person)
            return view if view is not None and (predicate is None or predicate(view)) else None

        return await self.until(found, timeout, f"the Home tab of {person.user.name}")

    async def wait_for_call(self, method: str, number: int = 1, timeout: float = 5.0) -> ApiCall:
        """The number-th answered call of a method."""
        calls = await self.until(
            lambda: [one for one in self.calls_of(method) if one.status is not None][number - 1 :],
            timeout,
            f"{method} number {number}",
        )
        return calls[0]

    async def wait_for_delivery(self, kind: str, number: int = 1, timeout: float = 5.0) -> Delivery:
        """The number-th acknowledged event, command or interaction of a type."""
        return await self.until(
            lambda: next(iter([one for one in self.delivered(kind) if one.acknowledged.is_set()][number - 1 :]), None),
            timeout,
            f"the acknowledgement of {kind} number {number}",
        )

    async def wait_settled(self, timeout: float = 10.0) -> None:
        """Until everything that was sent is acknowledged or given up."""
        await self.until(lambda: all(one.settled for one in self.deliveries) or None, timeout, "the acknowledgements")

    async def wait_connected(self, connections: int = 1, timeout: float = 10.0) -> Connection:
        """Until the number-th Socket Mode connection in all is greeted."""
        return await self.until(
            lambda: next((one for one in self.connections[connections - 1 :] if one.open and one.greeted), None),
            timeout,
            f"connection {connections}",
        )

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

    # Within.

    def _take(self, message: Message) -> Message:
        self._returned.add(("ephemeral" if message.only_for else message.channel.id, message.ts))
        return message
