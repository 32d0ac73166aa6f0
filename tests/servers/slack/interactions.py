"""Commands, buttons and modals: what people start, the trigger and the response_url that go with it, and what came back."""

from __future__ import annotations

import secrets
import time
from collections.abc import Callable
from dataclasses import dataclass, field

from aiohttp import web

from tests.servers.discord.faults import Answer
from tests.servers.slack import blocks as kit
from tests.servers.slack.actions import Actions, Draft
from tests.servers.slack.api import Api
from tests.servers.slack.delivery import Delivery, Sort
from tests.servers.slack.errors import SlackError
from tests.servers.slack.world import Channel, Json, Message, Team, User, View, World

# How often and for how many seconds a response_url takes messages.
USES, LIFE = 5, 1800.0


@dataclass(eq=False, slots=True, repr=False)
class Interaction:
    """A command, press or submission. `failed` is what the person's client says when nothing came back in time."""

    user: User
    team: Team
    channel: Channel | None
    delivery: Delivery
    trigger_id: str
    response_url: str = ""
    # What the person got to see, through the acknowledgement or the response_url.
    answers: list[Message] = field(default_factory=list)
    # The modal that was opened or pushed with its trigger.
    modal: View | None = None
    view: View | None = None
    message: Message | None = None
    # Of a submission: the errors shown under the fields.
    errors: dict[str, str] = field(default_factory=dict)
    uses: int = 0
    trigger_used: bool = False
    failed: str | None = None
    at: float = field(default_factory=time.monotonic)
    expired: bool = False

    def __repr__(self) -> str:
        return f"Interaction({self.delivery.kind} of {self.user.name}, {len(self.answers)} answers)"

    @property
    def acknowledged_at(self) -> float | None:
        return next((attempt.acknowledged_at for attempt in self.delivery.attempts if attempt.acknowledged_at), None)

    @property
    def texts(self) -> list[str]:
        return [answer.shown for answer in self.answers]


class Interactions:
    """`trigger_life` is how many seconds a trigger_id opens a view."""

    def __init__(self, world: World, actions: Actions) -> None:
        self.all: list[Interaction] = []
        self.base = ""
        self.trigger_life = 3.0
        self._world = world
        self._actions = actions
        self._by_trigger: dict[str, Interaction] = {}
        self._by_url: dict[str, Interaction] = {}

    def start(
        self,
        sort: Sort,
        user: User,
        team: Team,
        body: Json,
        *,
        channel: Channel | None = None,
        view: View | None = None,
        message: Message | None = None,
        taken: Callable[[Interaction, object], None],
        response_url: bool = True,
    ) -> Interaction:
        """Sends it; `taken` gets what came with the acknowledgement."""
        number = secrets.token_hex(8)
        trigger = f"{number}.{team.app.id}.{secrets.token_hex(16)}"
        url = f"{self.base}/response/{team.id}/{number}" if response_url else ""
        body["trigger_id"] = trigger
        if response_url:
            body["response_url"] = url
        delivery = Delivery(sort, body, team.app)
        interaction = Interaction(user, team, channel, delivery, trigger, url, view=view, message=message)
        delivery.on_answer = lambda answer: taken(interaction, answer)
        self.all.append(interaction)
        self._by_trigger[trigger], self._by_url[number] = interaction, interaction
        self._actions.deliveries.send(delivery, lambda why: setattr(interaction, "failed", why))
        return interaction

    def trigger(self, trigger_id: str) -> Interaction:
        """The interaction a view may be opened for, once and in time."""
        interaction = self._by_trigger.get(trigger_id)
        if interaction is None:
            raise SlackError("invalid_trigger_id")
        if interaction.trigger_used:
            raise SlackError("exchanged_trigger_id")
        if time.monotonic() - interaction.at > self.trigger_life:
            raise SlackError("expired_trigger_id")
        interaction.trigger_used = True
        return interaction

    def serve(self, api: Api) -> None:
        """Takes what is posted to response_urls."""

        async def respond(http: web.Request) -> web.StreamResponse:
            try:
                body = await http.json()
            except ValueError:
                return web.Response(status=400, text="invalid_payload")
            log = api.logged("response_url", None, body)

            def run() -> Answer:
                try:
                    self.respond(http.match_info["number"], body)
                except SlackError as refused:
                    return Answer(404 if "url" in refused.body["error"] else 400, refused.body)
                return Answer(200, "ok")

            return await api.around(http, log, run)

        api.app.router.add_post("/response/{team}/{number}", respond)

    def respond(self, number: str, body: Json) -> None:
        """A message to a response_url. SlackError says why it is refused."""
        interaction = self._by_url.get(number)
        if interaction is None:
            raise SlackError("invalid_url")
        if interaction.expired or time.monotonic() - interaction.at > LIFE:
            raise SlackError("expired_url")
        if interaction.uses >= USES:
            raise SlackError("used_url")
        interaction.uses += 1
        self.answer(interaction, body)

    def answer(self, interaction: Interaction, body: Json) -> None:
        """A message back: only for the person unless it says in_channel; or it replaces or deletes the one that was pressed."""
        if body.get("delete_original") and interaction.message is not None:
            return self._delete(interaction.message)
        text, blocks = body.get("text") or "", body.get("blocks") or []
        if not text and not blocks and not body.get("attachments"):
            raise SlackError("no_text")
        kit.check_text(text)
        kit.check_message(blocks)
        channel, bot = interaction.channel, interaction.team.bot
        assert channel is not None
        assert bot is not None
        if interaction.message is not None and body.get("replace_original", True) and body.get("response_type") != "in_channel":
            return self._replace(interaction, interaction.message, text, blocks)
        draft = Draft(text, blocks, thread_ts=body.get("thread_ts"), bot_id=bot.bot_id, raw=body)
        if body.get("response_type") == "in_channel":
            made = self._actions.create(channel, bot, draft)
        else:
            made = self._actions.ephemeral(channel, bot, interaction.user, draft)
        interaction.answers.append(made)
        self._actions.signal.notify()
        return None

    def _replace(self, interaction: Interaction, message: Message, text: str, blocks: list[Json]) -> None:
        if message.only_for is None:
            self._actions.edit(message, text, blocks=blocks)
        else:
            message.history.append(message.text)
            message.text, message.blocks = text, blocks
        interaction.answers.append(message)
        self._actions.signal.notify()

    def _delete(self, message: Message) -> None:
        if message.only_for is None:
            self._actions.delete(message)
        else:
            message.deleted = True
            self._world.ephemerals.remove(message)
        self._actions.signal.notify()

    # Views.

    def open_view(self, interaction: Interaction, body: Json, previous: View | None = None) -> View:
        view = self.make_view(interaction.user, interaction.team, body)
        view.previous = previous
        view.root_id = previous.root_id if previous else view.id
        interaction.modal = view
        self._actions.signal.notify()
        return view

    def make_view(self, user: User, team: Team, body: Json) -> View:
        body = {**body, "blocks": [_named(block, number) for number, block in enumerate(body["blocks"])]}
        view = View(self._world.id("V"), body["type"], user, team, body, self._stamp())
        self._world.views[view.id] = view
        return view

    def update_view(self, view: View, body: Json) -> None:
        view.body = {**body, "blocks": [_named(block, number) for number, block in enumerate(body["blocks"])]}
        view.hash = self._stamp()
        self._actions.signal.notify()

    def _stamp(self) -> str:
        return f"{self._world.ts()}.{secrets.token_hex(4)}"


def _named(block: Json, number: int) -> Json:
    """Slack gives every block and element an id."""
    return {"block_id": f"b{number}", **block}
