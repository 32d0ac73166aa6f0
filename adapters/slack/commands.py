"""Commands in all their forms: after a slash, as words, as buttons, out of windows. Acknowledged first, answered for the asker alone."""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import aiohttp

from adapters.base import Answer, Bot, Button, Person, PlaceOf
from adapters.catalogue import say
from adapters.slack import blocks
from adapters.slack.home import Home
from adapters.slack.lines import Slash, command_in
from adapters.slack.names import Json, Scope, parted, place_of
from adapters.slack.outbound import TOLD
from adapters.slack.people import FAILURES, People, person_of
from adapters.slack.rooms import Room, Rooms
from adapters.slack.settings import LIMIT
from adapters.slack.workspaces import Workspace
from adapters.slack.written import Written
from adapters.text import split

log = logging.getLogger(__name__)

FRESH_ROLES = 60.0
"""Seconds for which Slack's word on who is an admin is believed when a command is run."""
PARTS = 4
"""The most messages of one answer; a longer one comes as a file. A response_url is good for five."""


@dataclass(frozen=True, slots=True)
class Reply:
    """Where an answer goes: to a response_url, as long as it is good, else to the person alone in a channel, or openly in their own."""

    workspace: Workspace
    user: str
    channel: str
    thread: str | None
    direct: bool
    response_url: str = ""


class Commands:
    """Runs the bot's commands for people."""

    def __init__(
        self,
        bot: Bot,
        people: People,
        rooms: Rooms,
        home: Home,
        slashes: Sequence[Slash],
        session: aiohttp.ClientSession,
        start: Callable[[Any], None],
        count: Callable[[str], None],
    ) -> None:
        self._bot, self._people, self._rooms, self._home = bot, people, rooms, home
        self._slashes, self._session, self._start, self._count = slashes, session, start, count

    def line(self, written: Written, place: PlaceOf, words: str) -> bool:
        """Whether a message is a command; then it is being run."""
        line = command_in(words, self._slashes)
        if line is None or (line.startswith("/") and words.strip().startswith("/") and not self._known(line)):
            return False
        channel, thread = parted(place.external_id)
        reply = Reply(written.workspace, written.user, channel, thread, place.kind == "direct")
        self._start(self._run(written.scope, reply, place, line, quiet=True))
        return True

    def _known(self, line: str) -> bool:
        """Whether a line with a slash has a command's name; a path or a smiley has not."""
        first = line[1:].split()[:1]
        return bool(first) and any(slash.name.split()[0] == first[0].casefold() for slash in self._slashes)

    async def slash(self, workspace: Workspace, scope: Scope, body: Mapping[str, Any]) -> None:
        """`/keepsake …`."""
        user, channel = str(body.get("user_id") or ""), str(body.get("channel_id") or "")
        room = await self._own(workspace, channel, user)
        reply = Reply(workspace, user, channel, None, room.kind == "direct", str(body.get("response_url") or ""))
        place = place_of(scope, channel, None, room.kind, room.name, "" if scope.team else room.workspace)
        await self._run(scope, reply, place, "/" + (str(body.get("text") or "").strip().removeprefix("/") or "help"))

    async def _own(self, workspace: Workspace, channel: str, user: str) -> Room:
        """The channel; direct messages are direct only when they are this person's with the bot."""
        room = await self._rooms.of(workspace, channel)
        return Room("private") if room.kind == "direct" and room.user != user else room

    async def _run(
        self, scope: Scope, reply: Reply, place: PlaceOf, line: str, *, made_for: str | None = None, quiet: bool = False
    ) -> None:
        person = await self.person(reply.workspace, scope, reply.user)
        said = await self._bot.command(person, place, line, made_for=made_for)
        if said is None:
            said = Answer(say("platform.no_command", person.locale))
        if said.text or said.buttons or not quiet:
            await self.answer(reply, said, person)

    async def person(self, workspace: Workspace, scope: Scope, user: str) -> Person:
        """Who asks, with the roles that Slack says they have now."""
        profile = await self._people.of(workspace, user, age=FRESH_ROLES)
        home = profile.team if profile and profile.team not in ("", scope.team) and profile.grid != scope.enterprise else ""
        return person_of(
            scope, user, profile, home if not scope.enterprise else "", profile.roles if profile and not home else ()
        )

    async def pressed(self, workspace: Workspace, scope: Scope, body: Mapping[str, Any]) -> None:
        """A button: runs its line, or asks first. The line is checked against whom it was made for by the bot."""
        user = str((body.get("user") or {}).get("id") or "")
        for action in body.get("actions") or []:
            if (found := blocks.pressed(action.get("value"))) is None:
                continue
            line, made_for, ask = found
            memo = self._memo(body, line, made_for)
            person = await self.person(workspace, scope, user)
            if ask and person.author_id == made_for:
                try:
                    await workspace.client.views_open(
                        trigger_id=str(body.get("trigger_id") or ""), view=blocks.modal(ask, memo, person.locale)
                    )
                except FAILURES as error:
                    log.info("a window could not be opened: %s", type(error).__name__)
                    await self._lead_on(workspace, scope, user, memo, said=Answer(say("platform.failed", person.locale)))
                continue
            await self._lead_on(workspace, scope, user, memo)

    def _memo(self, body: Mapping[str, Any], line: str, made_for: str) -> Json:
        container, message = body.get("container") or {}, body.get("message") or {}
        at_home = (body.get("view") or {}).get("type") == "home"
        return {
            "line": line,
            "for": made_for,
            "home": at_home,
            "url": str(body.get("response_url") or ""),
            "channel": str((body.get("channel") or {}).get("id") or container.get("channel_id") or ""),
            "thread": str(container.get("thread_ts") or message.get("thread_ts") or ""),
        }

    async def submitted(self, workspace: Workspace, scope: Scope, body: Mapping[str, Any]) -> None:
        """What was typed into a window belongs to the line of the button that opened it."""
        if (found := blocks.submitted(body.get("view"))) is None:
            return
        memo, typed = found
        memo = {**memo, "line": f"{memo.get('line', '')} {typed}".strip()}
        await self._lead_on(workspace, scope, str((body.get("user") or {}).get("id") or ""), memo)

    async def _lead_on(self, workspace: Workspace, scope: Scope, user: str, memo: Json, *, said: Answer | None = None) -> None:
        """Run a button's line where the button stood, and answer there."""
        self._count("slack_button")
        line, made_for = str(memo.get("line")), str(memo.get("for"))
        if memo.get("home"):
            person = await self.person(workspace, scope, user)
            await self._home.after(workspace, scope, person, user, line, made_for, said)
            return
        channel, thread = str(memo.get("channel") or ""), str(memo.get("thread") or "") or None
        room = await self._own(workspace, channel, user)
        reply = Reply(workspace, user, channel, thread, room.kind == "direct", str(memo.get("url") or ""))
        if said is not None:
            await self.answer(reply, said, await self.person(workspace, scope, user))
            return
        place = place_of(scope, channel, thread, room.kind, room.name, "" if scope.team else room.workspace)
        await self._run(scope, reply, place, line, made_for=made_for)

    async def answer(self, reply: Reply, said: Answer, person: Person) -> None:
        """Say something to one person where they asked."""
        parts = split(said.text or say("platform.done", person.locale), LIMIT)
        if len(parts) > PARTS and await self._as_file(reply, said.text):
            parts = [say("platform.long_direct", person.locale)]
        for number, part in enumerate(parts, 1):
            buttons: tuple[Button, ...] = said.buttons if number == len(parts) else ()
            await self.show(reply, blocks.answer(part, buttons, person.author_id))

    async def show(self, reply: Reply, shown: Json) -> None:
        """One message, by the way that is open."""
        if reply.response_url and await self._respond(reply.response_url, shown):
            return
        client = reply.workspace.client
        try:
            if reply.direct:
                mark = {"event_type": TOLD, "event_payload": {}}
                where: Json = {"channel": reply.channel, "thread_ts": reply.thread, "metadata": mark}
                await client.chat_postMessage(unfurl_links=False, unfurl_media=False, **where, **shown)
            else:
                await client.chat_postEphemeral(channel=reply.channel, user=reply.user, thread_ts=reply.thread, **shown)
        except FAILURES as error:
            log.info("nobody could be told: %s", type(error).__name__)

    async def _respond(self, url: str, shown: Json) -> bool:
        try:
            async with self._session.post(
                url, json={"response_type": "ephemeral", "replace_original": False, **shown}
            ) as response:
                return response.status == 200
        except (aiohttp.ClientError, TimeoutError, ValueError) as error:
            log.info("a response_url failed: %s", type(error).__name__)
            return False

    async def _as_file(self, reply: Reply, text: str) -> bool:
        try:
            channel = await self._home.direct(reply.workspace, reply.user)
            name = "keepsake.json" if text.startswith("{") else "keepsake.md"
            await reply.workspace.client.files_upload_v2(channel=channel, content=text, filename=name, title="Keepsake")
        except FAILURES as error:
            log.info("a file could not be sent: %s", type(error).__name__)
            return False
        return True
