"""What the bot did, and waiting for it: the half of the server that only looks."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from tests.servers.discord.waiting import Signal, T
from tests.servers.slack.delivery import Deliveries, Delivery
from tests.servers.slack.faults import ApiCall
from tests.servers.slack.interactions import Interaction
from tests.servers.slack.methods_views import ViewMethods
from tests.servers.slack.people import Person
from tests.servers.slack.socket_mode import Connection, Hub
from tests.servers.slack.world import Channel, Message, View, World


class Watching:
    """Nothing here changes anything. Waiting is by condition and ends with TimeoutError, which says what was waited for."""

    world: World
    hub: Hub
    calls: list[ApiCall]
    statuses: dict[tuple[str, str], str]
    _signal: Signal
    _sent: Deliveries
    _views: ViewMethods

    def __init__(self) -> None:
        # The messages that a wait gave back, so that dialogues read in order.
        self._returned: set[tuple[str, str]] = set()

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
        self, person: Person, predicate: Callable[[Message], bool] | None = None, timeout: float = 20.0
    ) -> Message:
        """The next message only this person sees."""

        def found() -> Message | None:
            for message in self.ephemerals:
                fresh = ("ephemeral", message.ts) not in self._returned and message.only_for in person.users
                if fresh and (predicate is None or predicate(message)):
                    return message
            return None

        return self._take(await self._signal.until(found, timeout, f"a message for {person.user.name} alone"))

    async def wait_for_answer(self, interaction: Interaction, answers: int = 1, timeout: float = 20.0) -> Interaction:
        """Until the person sees this many answers."""
        return await self.until(
            lambda: interaction if len(interaction.answers) >= answers else None, timeout, f"{answers} answers to {interaction}"
        )

    async def wait_for_modal(self, interaction: Interaction, timeout: float = 20.0) -> View:
        return await self.until(lambda: interaction.modal, timeout, f"a modal for {interaction}")

    async def wait_for_home(self, person: Person, predicate: Callable[[View], bool] | None = None, timeout: float = 20.0) -> View:
        """Until their Home tab is there and as the predicate wants it."""

        def found() -> View | None:
            view = self.home(person)
            return view if view is not None and (predicate is None or predicate(view)) else None

        return await self.until(found, timeout, f"the Home tab of {person.user.name}")

    async def wait_for_call(self, method: str, number: int = 1, timeout: float = 20.0) -> ApiCall:
        """The number-th answered call of a method."""
        calls = await self.until(
            lambda: [one for one in self.calls_of(method) if one.status is not None][number - 1 :],
            timeout,
            f"{method} number {number}",
        )
        return calls[0]

    async def wait_for_delivery(self, kind: str, number: int = 1, timeout: float = 20.0) -> Delivery:
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

    # Within.

    def _take(self, message: Message) -> Message:
        self._returned.add(("ephemeral" if message.only_for else message.channel.id, message.ts))
        return message
