"""What people do in Slack's client."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Literal

from tests.servers.slack import blocks as kit
from tests.servers.slack import payloads, typing_in
from tests.servers.slack.actions import Actions, Draft, Order
from tests.servers.slack.interactions import Interaction, Interactions
from tests.servers.slack.places import Places
from tests.servers.slack.pressing import action_json, answered, container_json, place_json, state_json, submitted
from tests.servers.slack.world import Channel, File, Json, Message, Team, User, View, World

Served = Literal["plain", "login", "redirect", "elsewhere", "gone"]


class Person:
    """Somebody. What their client would not let them do is an AssertionError.

    A channel that is None is the person's direct messages with the bot. On Grid a person has one `User` in each workspace.
    """

    def __init__(self, users: Sequence[User], world: World, actions: Actions, places: Places, interactions: Interactions) -> None:
        self.users = list(users)
        self._world = world
        self._actions = actions
        self._places = places
        self._interactions = interactions

    @property
    def user(self) -> User:
        return self.users[0]

    @property
    def id(self) -> str:
        return self.user.id

    @property
    def mention(self) -> str:
        return self.user.mention

    @property
    def team(self) -> Team:
        return self.user.team

    @property
    def dm(self) -> Channel:
        """The direct messages with the bot."""
        return self._world.direct(self.user)

    def dm_in(self, team: Team) -> Channel:
        return self._world.direct(self._in(team))

    # Messages.

    def say(
        self,
        channel: Channel | None = None,
        text: str = "",
        *,
        thread: Message | None = None,
        files: Sequence[File] = (),
        broadcast: bool = False,
        me: bool = False,
        order: Order = "message_first",
        event_ts_only: bool = False,
        raw: bool = False,
    ) -> Message:
        """A message, with `files` a file_share; `broadcast` shows a reply in the channel too; `raw` text is sent as it stands."""
        channel, user = self._speaks(channel)
        assert text or files, "an empty message"
        text = text if raw else typing_in.encode(text)
        subtype = "file_share" if files else "thread_broadcast" if broadcast else "me_message" if me else None
        root = None if thread is None else thread.thread_ts or thread.ts
        draft = Draft(
            text, typing_in.rich_text(text) if text else [], thread_ts=root, files=files, subtype=subtype, broadcast=broadcast
        )
        for file in files:
            self._shared(file, channel)
        return self._actions.create(channel, user, draft, order, bare=event_ts_only)

    def ask(
        self,
        channel: Channel,
        text: str,
        *,
        thread: Message | None = None,
        files: Sequence[File] = (),
        order: Order = "message_first",
        event_ts_only: bool = False,
    ) -> Message:
        """`say` that begins with a mention of the bot. `order` says which twin comes first, `event_ts_only` strips the mention's ts."""
        bot = channel.bots[0]
        return self.say(channel, f"{bot.mention} {text}", thread=thread, files=files, order=order, event_ts_only=event_ts_only)

    def file(
        self,
        name: str,
        content: bytes | str,
        mimetype: str = "text/plain",
        *,
        served: Served = "plain",
        served_type: str | None = None,
        hidden: bool = False,
    ) -> File:
        """A file to send. `served` says how its download answers: the file, Slack's login page, a redirect on this host or to another,
        or 404; `hidden` messages show only its id, as in shared channels (files.info tells the rest)."""
        data = content.encode() if isinstance(content, str) else content
        made = File(self._world.id("F"), name, data, mimetype, self.user, served, served_type, "check" if hidden else "hosted")
        self._world.files[made.id] = made
        return made

    def edit(self, message: Message, text: str) -> None:
        assert message.author in self.users
        text = typing_in.encode(text)
        self._actions.edit(message, text, blocks=typing_in.rich_text(text))

    def delete(self, message: Message) -> None:
        assert message.author in self.users or self.user.is_admin or self.user.is_owner
        self._actions.delete(message)

    def delete_file(self, message: Message, file: File) -> None:
        """A file is deleted: file_deleted without a channel, and message_changed without `edited`; the message stays."""
        body = {"type": "file_deleted", "file_id": file.id, "event_ts": self._world.ts()}
        self._actions.in_channel("file_deleted", body, message.channel)
        before = self._actions.body(message)
        file.mode = "tombstone"
        self._actions.changed(message, before)

    def unfurl(self, message: Message, title: str = "A page", url: str = "https://example.com/") -> None:
        """Slack adds the preview of a link: message_changed with the same text."""
        preview = {"id": 1, "title": title, "title_link": url, "from_url": url, "fallback": title, "service_name": "example.com"}
        self._actions.change(message, attachments=[*message.attachments, preview])

    def react(self, message: Message, name: str) -> None:
        message.reactions.setdefault(name, []).append(self.id)
        item = {"type": "message", "channel": message.channel.id, "ts": message.ts}
        body = {"type": "reaction_added", "user": self.id, "reaction": name, "item": item, "item_user": message.author.id}
        self._actions.in_channel("reaction_added", {**body, "event_ts": self._world.ts()}, message.channel)

    # The app's own places.

    def open_home(self, tab: Literal["home", "messages"] = "messages", *, looking_at: Channel | None = None) -> None:
        """app_home_opened. In an agent app the event says what the person looks at."""
        body: Json = {"type": "app_home_opened", "user": self.id, "channel": self.dm.id, "tab": tab, "event_ts": self._world.ts()}
        view = self._world.homes.get(self.id)
        if tab == "home" and view is not None:
            body["view"] = payloads.view_json(view, self._world)
        if self.team.app.agent:
            body["context"] = self._context(looking_at)
        self._actions.emit("app_home_opened", body, self.team)

    def look_at(self, channel: Channel | None) -> None:
        """app_context_changed, which only agent apps get."""
        assert self.team.app.agent
        self._actions.emit("app_context_changed", {"type": "app_context_changed", "context": self._context(channel)}, self.team)

    def open_assistant(self, looking_at: Channel | None = None) -> Message:
        """The older assistant_thread_started; the thread's root is returned, to be written under with `say(thread=...)`."""
        assert self.team.bot is not None
        draft = Draft("New Assistant Thread", bot_id=self.team.bot.bot_id, subtype="assistant_app_thread")
        root = self._actions.create(self.dm, self.team.bot, draft)
        body = {"type": "assistant_thread_started", "assistant_thread": self._assistant(root.ts, looking_at)}
        self._actions.emit("assistant_thread_started", {**body, "event_ts": self._world.ts()}, self.team)
        return root

    def change_assistant_context(self, thread: Message, channel: Channel) -> None:
        body = {"type": "assistant_thread_context_changed", "assistant_thread": self._assistant(thread.ts, channel)}
        self._actions.emit("assistant_thread_context_changed", {**body, "event_ts": self._world.ts()}, self.team)

    def press_stop(self, thread: Message, channel: Channel | None = None) -> None:
        """The stop button of an agent's session: its streams end, and the app is told."""
        channel, user = self._speaks(channel)
        root = thread.thread_ts or thread.ts
        streams = [message for message in channel.thread(root) if message.streaming]
        for message in streams:
            message.stopped = True
            self._actions.end_stream(message)
        body = {"type": "agent_session_stopped", "user": user.id, "channel": channel.id, "thread_ts": root}
        body |= {"streaming_message_ts": [message.ts for message in streams], "event_ts": self._world.ts()}  # type: ignore[dict-item]
        self._actions.emit("agent_session_stopped", body, channel.team)

    # Commands, buttons, modals.

    def command(self, line: str, channel: Channel | None = None) -> Interaction:
        """A slash command with its text. There are none in threads."""
        name, _, text = line.partition(" ")
        channel, user = self._speaks(channel)
        team = channel.team
        assert name in team.app.commands, f"no command {name} in the app's settings"
        body: Json = {
            "token": team.app.verification_token,
            "team_id": team.id,
            "team_domain": team.domain,
            "channel_id": channel.id,
            "channel_name": {"im": "directmessage", "group": "privategroup", "mpim": "mpdm"}.get(channel.kind, channel.name),
            "user_id": user.id,
            "user_name": user.name.lower(),
            "command": name,
            "text": text.strip(),
            "api_app_id": team.app.id,
            "is_enterprise_install": "true" if team.org_wide else "false",
        }
        if team.enterprise:
            body |= {"enterprise_id": team.enterprise.id, "enterprise_name": team.enterprise.name}
        return self._interactions.start("slash_commands", user, team, body, channel=channel, taken=answered(self._interactions))

    def press(
        self, where: Message | View, wanted: str, choice: str | None = None, *, state: Mapping[str, object] | None = None
    ) -> Interaction:
        """A button or menu, by action_id, label or value; `choice` is an option's value or label, `state` what other fields hold."""
        block, element = kit.find(where.blocks, wanted)
        team, user = self._where(where)
        assert team.app.interactivity, "interactivity is off in the app's settings"
        body: Json = {
            "type": "block_actions",
            "user": {"id": user.id, "username": user.name.lower(), "name": user.name.lower(), "team_id": user.team.id},
            "api_app_id": team.app.id,
            "token": team.app.verification_token,
            "container": container_json(where),
            **place_json(team),
            "actions": [action_json(block, element, choice, self._world.ts())],
            "state": {"values": state_json(where.blocks, state or {})},
        }
        if isinstance(where, View):
            body["view"] = payloads.view_json(where, self._world)
            return self._start(user, team, body, view=where)
        body["channel"] = {"id": where.channel.id, "name": where.channel.name or "directmessage"}
        if where.only_for is None:
            body["message"] = payloads.message_json(where, self._world, self._actions.base, metadata=True)
        return self._start(user, team, body, channel=where.channel, message=where)

    def submit(self, view: View, values: Mapping[str, object] | None = None) -> Interaction:
        """Fills in a modal's fields, by block_id, action_id or label, and sends it."""
        assert view.type == "modal"
        assert view.open, "the modal is not open"
        view_body = payloads.view_json(view, self._world) | {"state": {"values": state_json(view.blocks, values or {})}}
        body = self._view_body("view_submission", view, view_body) | {"response_urls": []}
        return self._interactions.start(
            "interactive", view.user, view.team, body, view=view, taken=submitted(self._interactions), response_url=False
        )

    def close(self, view: View) -> None:
        """Closes a modal; the app hears of it if it asked for that."""
        view.open = False
        if view.body.get("notify_on_close"):
            body = self._view_body("view_closed", view, payloads.view_json(view, self._world)) | {"is_cleared": False}
            self._interactions.start(
                "interactive", view.user, view.team, body, view=view, taken=lambda *_: None, response_url=False
            )

    # Their account.

    def join_team(self) -> None:
        """team_join: they are new in the workspace."""
        self._places.team_join(self.user)

    def change(self, **changes: object) -> None:
        """user_change: tz, locale, name, deleted, is_admin, is_owner, is_restricted."""
        for user in self.users:
            for name, value in changes.items():
                assert hasattr(user, name), name
                setattr(user, name, value)
            self._places.user_changed(user)

    def set_dnd(self, start: float, end: float, *, enabled: bool = True, snooze_until: float | None = None) -> None:
        """Quiet hours, in epoch seconds; dnd_updated_user goes out."""
        for user in self.users:
            user.dnd = (enabled, int(start), int(end))
            user.snooze_until = None if snooze_until is None else int(snooze_until)
            status = {"dnd_enabled": enabled, "next_dnd_start_ts": int(start), "next_dnd_end_ts": int(end)}
            body = {"type": "dnd_updated_user", "user": user.id, "dnd_status": status, "event_ts": self._world.ts()}
            self._actions.emit("dnd_updated_user", body, user.team)

    def leave(self, channel: Channel) -> None:
        self._places.leave(channel, self._in(channel.team))

    def join(self, channel: Channel) -> None:
        self._places.join(channel, self._in(channel.team))

    # Within.

    def _in(self, team: Team) -> User:
        """Their user in a workspace; a stranger has only that of their own."""
        return next((user for user in self.users if user.team is team), self.user)

    def _speaks(self, channel: Channel | None) -> tuple[Channel, User]:
        channel = channel or self.dm
        user = self._in(channel.team)
        assert user.id in channel.members, f"{user.name} is not in {channel}"
        assert not channel.archived, f"{channel} is archived"
        assert not user.deleted, f"{user.name} is deactivated"
        return channel, user

    def _where(self, where: Message | View) -> tuple[Team, User]:
        if isinstance(where, View):
            return where.team, where.user if where.user in self.users else self.user
        team = where.channel.team
        assert where.only_for is None or where.only_for in self.users, "only its reader sees it"
        return team, self._in(team)

    def _start(
        self,
        user: User,
        team: Team,
        body: Json,
        *,
        channel: Channel | None = None,
        view: View | None = None,
        message: Message | None = None,
    ) -> Interaction:
        return self._interactions.start(
            "interactive",
            user,
            team,
            body,
            channel=channel,
            view=view,
            message=message,
            taken=answered(self._interactions),
            response_url=view is None,
        )

    def _view_body(self, kind: str, view: View, view_body: Json) -> Json:
        user = view.user
        return {
            "type": kind,
            **place_json(view.team),
            "user": {"id": user.id, "username": user.name.lower(), "name": user.name.lower(), "team_id": user.team.id},
            "api_app_id": view.team.app.id,
            "token": view.team.app.verification_token,
            "view": view_body,
        }

    def _context(self, channel: Channel | None) -> Json:
        if channel is None:
            return {}
        return {"entities": [{"type": "slack#/types/channel_id", "value": channel.id, "team_id": channel.team.id}]}

    def _assistant(self, thread_ts: str, channel: Channel | None) -> Json:
        context: Json = {"channel_id": channel.id, "team_id": channel.team.id, "enterprise_id": None} if channel else {}
        return {"user_id": self.id, "context": context, "channel_id": self.dm.id, "thread_ts": thread_ts}

    def _shared(self, file: File, channel: Channel) -> None:
        body = {"type": "file_shared", "file_id": file.id, "file": {"id": file.id}, "user_id": self.id, "channel_id": channel.id}
        self._actions.in_channel("file_shared", {**body, "event_ts": self._world.ts()}, channel)
