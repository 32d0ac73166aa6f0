"""What people do in Discord's client."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from tests.servers.discord import forms
from tests.servers.discord.actions import Actions, Draft
from tests.servers.discord.interactions import AUTOCOMPLETE, COMMAND, COMPONENT, MODAL_SUBMIT, Interaction, Interactions
from tests.servers.discord.mentions import Allowed
from tests.servers.discord.permissions import VIEW_CHANNEL, may, may_speak
from tests.servers.discord.places import Places
from tests.servers.discord.world import FORUM, Attachment, Channel, Guild, Message, Role, User, World


class Person:
    """Somebody, or some other bot. What their client would not let them do is an AssertionError.

    A channel that is left out is the person's direct messages with the bot.
    """

    def __init__(self, user: User, world: World, actions: Actions, places: Places, interactions: Interactions) -> None:
        self.user = user
        self._world = world
        self._actions = actions
        self._places = places
        self._interactions = interactions

    @property
    def id(self) -> int:
        return self.user.id

    @property
    def mention(self) -> str:
        return self.user.mention

    @property
    def dm(self) -> Channel:
        """The direct messages with the bot."""
        return self._world.direct(self.user)

    def say(
        self,
        channel: Channel | None = None,
        text: str = "",
        *,
        reply_to: Message | None = None,
        ping: bool = True,
        mentions: Iterable[User | Role] = (),
        attachments: Sequence[Attachment] = (),
        forward: Message | None = None,
    ) -> Message:
        """A message. `mentions` are written before the text; `ping` is the switch beside a reply."""
        channel = self._speaks(channel)
        text = " ".join([*(one.mention for one in mentions), text]).strip()
        assert text or attachments or forward, "an empty message"
        draft = Draft(text, attachments=attachments, reply_to=reply_to, forward=forward, allowed=Allowed(replied_user=ping))
        return self._actions.create(channel, self.user, draft)

    def ask(self, channel: Channel, text: str, **more: object) -> Message:
        """`say` that mentions the bot."""
        return self.say(channel, text, mentions=[self._world.bot], **more)  # type: ignore[arg-type]

    def file(
        self, filename: str, content: bytes | str, content_type: str | None = None, *, served_type: str | None = None
    ) -> Attachment:
        """A file to attach. Without `content_type` the message does not name one; `served_type` is what the CDN says, if not that."""
        data = content.encode() if isinstance(content, str) else content
        return self._actions.attach(filename, data, content_type, served_type)

    def edit(self, message: Message, text: str) -> None:
        assert message.author is self.user
        self._actions.edit(message, text)

    def take_off(self, message: Message, attachment: Attachment) -> None:
        """An edit that leaves the text and takes an attachment off."""
        assert message.author is self.user
        message.attachments.remove(attachment)
        self._actions.edit(message, message.content)

    def delete(self, *messages: Message) -> None:
        """One message, or several at once as a moderator does."""
        if len(messages) == 1:
            self._actions.delete(messages[0])
        else:
            self._actions.delete_bulk(messages)

    def type(self, channel: Channel | None = None) -> None:
        self._actions.typing(self._speaks(channel), self.user)

    def thread(self, where: Channel | Message, name: str, *, private: bool = False) -> Channel:
        """A thread on a message or in a channel; a private one has to be followed by the bot to be seen (`add`)."""
        parent, source = (where.channel, where) if isinstance(where, Message) else (where, None)
        return self._places.thread(parent, self.user, name, source=source, private=private)

    def post(self, forum: Channel, title: str, text: str, *, mentions: Iterable[User] = ()) -> Channel:
        """A forum post: a thread whose first message has its id."""
        assert forum.kind == FORUM
        text = " ".join([*(one.mention for one in mentions), text])
        return self._places.thread(forum, self.user, title, first=Draft(text))

    def add(self, thread: Channel, user: User) -> None:
        """Adds somebody, or the bot, to a thread."""
        self._places.follow(thread, user)

    def archive(self, thread: Channel, *, locked: bool | None = None) -> None:
        self._actions.set_thread(thread, archived=True, locked=locked)

    def lock(self, thread: Channel) -> None:
        self._actions.set_thread(thread, locked=True)

    def join(self, *guilds: Guild) -> None:
        for guild in guilds:
            self._places.join(guild, self.user)

    def leave(self, *guilds: Guild) -> None:
        for guild in guilds:
            self._places.leave(guild, self.user)

    def online(self, status: str = "online") -> None:
        """Comes online (idle, dnd), in every guild they share with the bot."""
        self._places.presence(self.user, status)

    def offline(self) -> None:
        self._places.presence(self.user, "offline")

    def command(self, line: str, channel: Channel | None = None, /, **options: object) -> Interaction:
        """A slash command like "memory search"; the bot must have registered it. People, roles and files go as objects."""
        return self._command(COMMAND, line, channel, options)

    def autocomplete(
        self, line: str, option: str, typed: str, channel: Channel | None = None, /, **options: object
    ) -> Interaction:
        """What the client asks while somebody types; see the interaction's `choices`."""
        return self._command(AUTOCOMPLETE, line, channel, {**options, option: typed}, option)

    def press(self, message: Message, wanted: str, values: list[str] | None = None) -> Interaction:
        """A button, or a choice in a menu, by custom_id or label."""
        found = forms.component(message.components, wanted)
        return self._interactions.start(COMPONENT, self.user, message.channel, forms.component_data(found, values), message)

    def submit(self, interaction: Interaction, values: Mapping[str, str]) -> Interaction:
        """Fills in the modal that answered an interaction, by custom_id or label, and sends it."""
        assert interaction.modal is not None, "the interaction was not answered with a modal"
        data = forms.modal_data(interaction.modal, values)
        return self._interactions.start(MODAL_SUBMIT, self.user, interaction.channel, data, interaction.message)

    def _command(
        self, kind: int, line: str, channel: Channel | None, options: dict[str, object], focused: str | None = None
    ) -> Interaction:
        channel = channel or self.dm
        assert may(self.user, channel, self._world.bot, VIEW_CHANNEL), "they do not see the channel"
        values = {name: value.user if isinstance(value, Person) else value for name, value in options.items()}
        data = forms.command_data(self._world, channel.guild, line, values, focused)
        return self._interactions.start(kind, self.user, channel, data)

    def _speaks(self, channel: Channel | None) -> Channel:
        channel = channel or self.dm
        assert may_speak(self.user, channel, self._world.bot), f"{self.user.name} may not write in {channel.name or 'this'}"
        return channel
