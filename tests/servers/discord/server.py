"""The server itself: one object that starts everything and that tests talk to."""

from __future__ import annotations

import contextlib
from collections.abc import AsyncIterator, Callable, Iterable, Sequence
from types import TracebackType
from typing import Literal, Self

from aiohttp import web

from tests.servers.discord import intents
from tests.servers.discord.actions import Actions, Draft
from tests.servers.discord.api import PREFIX, Api, Parts
from tests.servers.discord.faults import Request
from tests.servers.discord.gateway import Gateway
from tests.servers.discord.interactions import Interaction, Interactions
from tests.servers.discord.listener import Listener
from tests.servers.discord.people import Person
from tests.servers.discord.places import Places
from tests.servers.discord.routes_interactions import InteractionRoutes
from tests.servers.discord.routes_messages import MessageRoutes, Typed
from tests.servers.discord.routes_places import PlaceRoutes
from tests.servers.discord.session import Connection
from tests.servers.discord.waiting import Signal, T
from tests.servers.discord.world import Channel, Guild, Json, Message, Role, User, World

TOKEN = "MTk4NjIyNDgzNDcxOTI1MjQ4.G0cal0.local-test-token"

Side = Literal["http", "gateway", "both"]


class DiscordServer:
    """Discord on this machine, from `async with` on.

    `privileged` are the privileged intents switched on in the portal. At the end of the block, requests that the server does not know and
    faults of its own are an AssertionError.
    """

    def __init__(self, *, token: str = TOKEN, privileged: int = intents.PRIVILEGED, heartbeat_interval: float = 41.25) -> None:
        self.world = World(token, privileged)
        # Every HTTP request and every typing call of the bot, in order.
        self.requests: list[Request] = []
        self.typed: list[Typed] = []
        self.failures: list[str] = []
        self._signal = Signal()
        self._returned: set[int] = set()
        # The gateway's parts that a fault has to reach: `hub.cut()`, `hub.deafen()`, `hub.invalidate()` and so on.
        self.hub = Gateway(self.world, self._signal, heartbeat_interval)
        self.actions = Actions(self.world, self.hub, self._signal, "")
        self.places = Places(self.world, self.actions)
        self.interactions = Interactions(self.world, self.hub)
        api = Api(self.world, self._signal, self.requests, self.failures)
        self.faults = api.faults
        parts = Parts(self.world, self.actions, self.places)
        MessageRoutes(api, parts, self.typed)
        self.place_routes = PlaceRoutes(api, parts, self.hub)
        InteractionRoutes(api, parts, self.interactions)
        api.app.router.add_get("/attachments/{id}/{name}", self._attachment)
        sockets = web.Application()
        sockets.router.add_get("/", self.hub.handle)
        self._listeners = {"http": Listener(api.app), "gateway": Listener(sockets)}

    async def __aenter__(self) -> Self:
        for listener in self._listeners.values():
            await listener.start()
        self.hub.url = self.gateway
        self.actions.cdn = f"http://127.0.0.1:{self._listeners['http'].port}/attachments"
        return self

    async def __aexit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        for listener in self._listeners.values():
            await listener.stop()
        if error is None and self.failures:
            raise AssertionError("; ".join(self.failures))

    @property
    def api_base(self) -> str:
        """For discord.http.Route.BASE."""
        return f"http://127.0.0.1:{self._listeners['http'].port}{PREFIX}"

    @property
    def gateway(self) -> str:
        """For DiscordWebSocket.DEFAULT_GATEWAY."""
        return f"ws://127.0.0.1:{self._listeners['gateway'].port}/"

    @property
    def token(self) -> str:
        return self.world.application.token

    @property
    def bot(self) -> User:
        return self.world.bot

    # Who and what there is.

    def person(self, name: str, *guilds: Guild, bot: bool = False) -> Person:
        """Somebody, a member of these guilds; without any, they have the app on their account and write direct messages."""
        user = self.world.add_user(name, bot=bot)
        user.installed = not guilds
        person = Person(user, self.world, self.actions, self.places, self.interactions)
        person.join(*guilds)
        return person

    def guild(
        self,
        name: str,
        *,
        channels: Sequence[str] = ("general",),
        owner: Person | None = None,
        shard: tuple[int, int] | None = None,
    ) -> Guild:
        """A guild with the bot in it; `shard` (number, count) picks an id that this shard receives."""
        return self.places.guild(name, owner=owner.user if owner else None, channels=channels, shard=shard)

    def channel(
        self, guild: Guild, name: str, *, private_to: Iterable[Person | Role] | None = None, forum: bool = False
    ) -> Channel:
        """A text channel or forum; a private one is hidden from @everyone and open to these, and to the bot."""
        targets = None if private_to is None else [one.user if isinstance(one, Person) else one for one in private_to]
        return self.places.channel(guild, name, private_to=targets, forum=forum)

    def webhook_says(self, channel: Channel, text: str, name: str = "Build", *, embeds: Sequence[Json] = ()) -> Message:
        """A message by a webhook."""
        user = User(self.world.ids.next(), name, bot=True)
        return self.actions.create(channel, user, Draft(text, webhook_id=user.id, embeds=[*embeds]))

    # What the bot did.

    def messages(self, channel: Channel, author: User | None = None) -> list[Message]:
        """What is in the channel now, oldest first; `author` (`server.bot`) picks one person's."""
        return [message for message in channel.messages.values() if author is None or message.author is author]

    def typing(self, channel: Channel) -> list[float]:
        """When the bot called for "is typing" here."""
        return [typed.at for typed in self.typed if typed.channel is channel]

    def interaction(self, interaction_id: int) -> Interaction:
        return self.interactions.all[interaction_id]

    def requests_of(self, route: str) -> list[Request]:
        """The requests of a route like "POST /channels/{channel_id}/messages"."""
        return [request for request in self.requests if request.route == route]

    @property
    def connections(self) -> list[Connection]:
        """Every gateway connection there was, oldest first."""
        return self.hub.connections

    @property
    def command_syncs(self) -> int:
        return self.world.application.syncs

    # Waiting.

    async def until(self, predicate: Callable[[], T | None], timeout: float = 20.0, what: str = "the condition") -> T:
        """The first answer of the predicate that is true; it is asked whenever anything happened here."""
        return await self._signal.until(predicate, timeout, what)

    async def wait_for_message(
        self,
        channel: Channel,
        predicate: Callable[[Message], bool] | None = None,
        timeout: float = 20.0,
        *,
        after: Message | None = None,
    ) -> Message:
        """The bot's next message here that was not returned before, so that dialogues read in order."""

        def found() -> Message | None:
            for message in self.messages(channel, self.bot):
                if (
                    message.id not in self._returned
                    and (after is None or message.id > after.id)
                    and (predicate is None or predicate(message))
                ):
                    return message
            return None

        message = await self._signal.until(found, timeout, f"a message of the bot in {channel}", channel)
        self._returned.add(message.id)
        return message

    async def wait_for_answer(self, interaction: Interaction, answers: int = 1, timeout: float = 20.0) -> Interaction:
        """Until the person sees this many answers; a response that only says "thinking" is none."""
        await self.until(lambda: len(interaction.answers) >= answers, timeout, f"{answers} answers to {interaction}")
        return interaction

    async def wait_for_acknowledgement(self, interaction: Interaction, timeout: float = 20.0) -> Interaction:
        """Until the callback came, whatever it was: a deferral, a modal, choices."""
        await self.until(lambda: interaction.response is not None, timeout, f"the acknowledgement of {interaction}")
        return interaction

    async def wait_for_request(self, route: str, number: int = 1, timeout: float = 20.0) -> Request:
        """The number-th answered request of a route."""
        requests = await self.until(
            lambda: [one for one in self.requests_of(route) if one.status is not None][number - 1 :],
            timeout,
            f"{route} number {number}",
        )
        return requests[0]

    async def wait_connected(self, connections: int = 1, timeout: float = 10.0) -> Connection:
        """Until the number-th gateway connection in all is identified or resumed. Handlers run from then on; on_ready comes later."""

        def identified() -> Connection | None:
            alive = [one for one in self.connections[connections - 1 :] if one.open and one.session is not None]
            return alive[-1] if alive else None

        return await self.until(identified, timeout, f"gateway connection {connections}")

    # Faults beyond `faults` and `hub`.

    def cut(self, side: Side = "both") -> None:
        """Resets every TCP connection."""
        for listener in self._sides(side):
            listener.cut()

    @contextlib.asynccontextmanager
    async def down(self, side: Side = "both") -> AsyncIterator[None]:
        """Refuses connections inside the block, on the same ports again afterwards; what was connected is cut."""
        for listener in self._sides(side):
            await listener.close()
            listener.cut()
        try:
            yield
        finally:
            for listener in self._sides(side):
                await listener.open()

    def dispatch_raw(self, event: str, data: object, guild: Guild | None = None) -> None:
        """Any dispatch, also a malformed one, whatever the intents."""
        self.hub.dispatch(event, lambda _: data, guild=guild)

    def revoke_token(self) -> None:
        """As when the token is reset in the portal: 401, and the gateway closes with 4004."""
        self.world.application.token = "revoked"
        self.hub.close(4004)

    def _sides(self, side: Side) -> list[Listener]:
        return [listener for name, listener in self._listeners.items() if side in (name, "both")]

    async def _attachment(self, request: web.Request) -> web.Response:
        attachment = self.world.attachments.get(int(request.match_info["id"]))
        if attachment is None or attachment.gone:
            return web.Response(status=404, text="This content is no longer available.")
        kind = attachment.served_type or attachment.content_type or "application/octet-stream"
        return web.Response(body=attachment.content, headers={"Content-Type": kind})
