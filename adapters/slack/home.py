"""App Home: what is remembered of a person and their settings, with buttons that serve only them."""

from __future__ import annotations

import logging
from collections import OrderedDict
from collections.abc import Sequence

from adapters.base import Answer, Bot, Person, PlaceOf
from adapters.catalogue import say
from adapters.slack import blocks
from adapters.slack.lines import Slash
from adapters.slack.names import Scope, place_of
from adapters.slack.people import FAILURES
from adapters.slack.workspaces import Workspace

log = logging.getLogger(__name__)

PAGES = (("platform.remembered", "memory view"), ("platform.settings", "settings"))
REMEMBERED = 20_000


class Home:
    """Publishes it."""

    def __init__(self, bot: Bot, slashes: Sequence[Slash]) -> None:
        names = {slash.name for slash in slashes}
        self._bot = bot
        self._pages = [(heading, f"/{name}") for heading, name in PAGES if name in names]
        self._direct: OrderedDict[tuple[str, str], str] = OrderedDict()

    async def direct(self, workspace: Workspace, user: str) -> str:
        """The channel of somebody's direct messages with the bot."""
        key = workspace.key, user
        if key not in self._direct:
            answer = await workspace.client.conversations_open(users=user)
            self.learn(workspace, user, str(answer["channel"]["id"]))
        return self._direct[key]

    def learn(self, workspace: Workspace, user: str, channel: str) -> None:
        """Where somebody's direct messages are."""
        self._direct[workspace.key, user] = channel
        while len(self._direct) > REMEMBERED:
            self._direct.popitem(last=False)

    async def place(self, workspace: Workspace, scope: Scope, user: str) -> PlaceOf:
        """A person's direct messages as a place."""
        return place_of(scope, await self.direct(workspace, user), None, "direct", "")

    async def publish(
        self, workspace: Workspace, scope: Scope, person: Person, user: str, just_now: Answer | None = None
    ) -> None:
        """Show it as it is now, with what was just done above."""
        try:
            place = await self.place(workspace, scope, user)
            parts = [(say("platform.just_now", person.locale), just_now)] if just_now is not None else []
            for heading, line in self._pages:
                said = await self._bot.command(person, place, line)
                if said is not None:
                    parts.append((say(heading, person.locale), said))
            await workspace.client.views_publish(user_id=user, view=blocks.home(parts, person.author_id))
        except FAILURES as error:
            log.info("App Home could not be shown: %s", type(error).__name__)

    async def after(
        self, workspace: Workspace, scope: Scope, person: Person, user: str, line: str, made_for: str, said: Answer | None = None
    ) -> None:
        """A button there was pressed: run its line and show everything anew."""
        if said is None:
            place = await self.place(workspace, scope, user)
            said = await self._bot.command(person, place, line, made_for=made_for)
        await self.publish(workspace, scope, person, user, said or Answer(say("platform.done", person.locale)))
