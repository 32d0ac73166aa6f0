"""What happens to guilds, channels, threads and their members."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from tests.servers.discord import intents, payloads
from tests.servers.discord.actions import Actions, Draft
from tests.servers.discord.permissions import USUAL, VIEW_CHANNEL, may
from tests.servers.discord.session import Session
from tests.servers.discord.world import (
    FORUM,
    HAS_THREAD,
    PRIVATE_THREAD,
    PUBLIC_THREAD,
    TEXT,
    THREAD_CREATED,
    THREAD_STARTER,
    USER_JOIN,
    Channel,
    Guild,
    Json,
    Member,
    Message,
    Overwrite,
    Reference,
    Role,
    User,
    World,
    now,
)


class Places:
    """Builds guilds and channels, before or while the bot is connected."""

    def __init__(self, world: World, actions: Actions) -> None:
        self._world = world
        self._actions = actions
        self._gateway = actions.gateway

    def guild(
        self,
        name: str,
        *,
        owner: User | None = None,
        channels: Sequence[str] = ("general",),
        shard: tuple[int, int] | None = None,
    ) -> Guild:
        """A guild the bot is in, with text channels; `shard` (number, count) picks an id of that shard."""
        made = self._world.ids.of_shard(*shard) if shard else self._world.ids.next()
        owner = owner or self._world.application.owner
        guild = Guild(made, name, owner, roles={made: Role(made, "@everyone", USUAL, 0)})
        guild.members = {user.id: Member(user) for user in (owner, self._world.bot)}
        self._world.guilds[made] = guild
        for channel in channels:
            self._channel(guild, channel, TEXT)
        self._enter(guild)
        return guild

    def add_bot(self, guild: Guild) -> None:
        """The bot is invited (back) into a guild."""
        guild.members[self._world.bot.id] = Member(self._world.bot)
        self._enter(guild)

    def remove_bot(self, guild: Guild) -> None:
        """The bot is kicked."""
        self._gateway.dispatch("GUILD_DELETE", lambda _: {"id": str(guild.id)}, guild=guild, intent=intents.GUILDS)
        del guild.members[self._world.bot.id]

    def role(self, guild: Guild, name: str, permissions: int = 0, members: Iterable[User] = ()) -> Role:
        role = Role(self._world.ids.next(), name, permissions, len(guild.roles))
        guild.roles[role.id] = role
        body = {"guild_id": str(guild.id), "role": payloads.role_json(role)}
        self._gateway.dispatch("GUILD_ROLE_CREATE", lambda _: body, guild=guild, intent=intents.GUILDS)
        for user in members:
            member = guild.members[user.id]
            member.roles.add(role.id)
            changed = {"guild_id": str(guild.id), **payloads.member_json(member)}
            # The bot hears of its own roles without the members intent.
            intent = 0 if user is self._world.bot else intents.GUILD_MEMBERS
            self._gateway.dispatch("GUILD_MEMBER_UPDATE", lambda _, changed=changed: changed, guild=guild, intent=intent)  # type: ignore[misc]
        return role

    def permit(self, guild: Guild, role: Role, permissions: int) -> None:
        """Changes what a role may do in its guild."""
        role.permissions = permissions
        body = {"guild_id": str(guild.id), "role": payloads.role_json(role)}
        self._gateway.dispatch("GUILD_ROLE_UPDATE", lambda _: body, guild=guild, intent=intents.GUILDS)

    def channel(
        self,
        guild: Guild,
        name: str,
        *,
        private_to: Iterable[User | Role] | None = None,
        forum: bool = False,
        topic: str | None = None,
    ) -> Channel:
        """A text channel or a forum. `private_to`: @everyone does not see it, these do, and the bot."""
        channel = self._channel(guild, name, FORUM if forum else TEXT)
        channel.topic = topic
        if private_to is not None:
            channel.overwrites = {
                guild.id: Overwrite(deny=VIEW_CHANNEL),
                self._world.bot.id: Overwrite(VIEW_CHANNEL, member=True),
            }
            for target in private_to:
                channel.overwrites[target.id] = Overwrite(VIEW_CHANNEL, member=isinstance(target, User))
        self._tell("CHANNEL_CREATE", channel)
        return channel

    def overwrite(self, channel: Channel, target: User | Role, *, allow: int = 0, deny: int = 0) -> None:
        """Changes who may do what in a channel."""
        channel.overwrites[target.id] = Overwrite(allow, deny, isinstance(target, User))
        guild = channel.guild
        self._gateway.dispatch(
            "CHANNEL_UPDATE", lambda _: payloads.channel_json(channel, self._world.bot), guild=guild, intent=intents.GUILDS
        )

    def delete_channel(self, channel: Channel) -> None:
        """A channel with its threads, or a thread."""
        assert channel.guild is not None
        if channel.is_thread:
            assert channel.parent is not None
            ids = {"id": channel.id, "guild_id": channel.guild.id, "parent_id": channel.parent.id}
            body: Json = {**{name: str(value) for name, value in ids.items()}, "type": channel.kind}
            self._gateway.in_channel("THREAD_DELETE", lambda _: body, channel, intents.GUILDS)
        else:
            self._tell("CHANNEL_DELETE", channel)
        for one in [one for one in channel.guild.channels.values() if one is channel or one.parent is channel]:
            del channel.guild.channels[one.id], self._world.channels[one.id]

    def thread(
        self,
        parent: Channel,
        creator: User,
        name: str,
        *,
        source: Message | None = None,
        private: bool = False,
        first: Draft | None = None,
    ) -> Channel:
        """A thread on a message, a bare one, or (with `first`) a forum's post."""
        made = source.id if source else self._world.ids.next()
        thread = Channel(made, PRIVATE_THREAD if private else PUBLIC_THREAD, name, parent.guild, parent, creator=creator)
        assert parent.guild is not None
        thread.followers[creator.id] = now()
        self._world.channels[made] = parent.guild.channels[made] = thread
        self._gateway.in_channel(
            "THREAD_CREATE",
            lambda _: {**payloads.channel_json(thread, self._world.bot), "newly_created": True},
            thread,
            intents.GUILDS,
        )
        pointer = Reference(0, source.id if source else None, parent.id if source else thread.id, parent.guild.id)
        if source is not None:
            source.thread = thread
            source.flags |= HAS_THREAD
            self._actions.update(source)
            self._actions.create(thread, creator, Draft(kind=THREAD_STARTER, reference=pointer))
        elif first is not None:
            first.id = thread.id
            self._actions.create(thread, creator, first)
        elif not private:
            self._actions.create(parent, creator, Draft(name, THREAD_CREATED, reference=pointer))
        return thread

    def follow(self, thread: Channel, user: User) -> None:
        """Somebody is added to a thread or joins it."""
        fresh = user.id not in thread.followers
        thread.followers.setdefault(user.id, now())
        if user is self._world.bot and fresh:
            self._gateway.in_channel("THREAD_CREATE", lambda _: payloads.channel_json(thread, user), thread, intents.GUILDS)
        self._followers(thread, added_members=[payloads.thread_member_json(thread, user)], removed_member_ids=[])

    def unfollow(self, thread: Channel, user: User) -> None:
        if thread.followers.pop(user.id, None):
            self._followers(thread, added_members=[], removed_member_ids=[str(user.id)])

    def join(self, guild: Guild, user: User) -> None:
        member = guild.members[user.id] = Member(user)
        body = {"guild_id": str(guild.id), **payloads.member_json(member)}
        self._gateway.dispatch("GUILD_MEMBER_ADD", lambda _: body, guild=guild, intent=intents.GUILD_MEMBERS)
        if guild.system_channel is not None:
            self._actions.create(guild.system_channel, user, Draft(kind=USER_JOIN))

    def leave(self, guild: Guild, user: User) -> None:
        del guild.members[user.id]
        body = {"guild_id": str(guild.id), "user": payloads.user_json(user)}
        self._gateway.dispatch("GUILD_MEMBER_REMOVE", lambda _: body, guild=guild, intent=intents.GUILD_MEMBERS)

    def presence(self, user: User, status: str) -> None:
        """One PRESENCE_UPDATE for each guild shared with the bot."""
        user.status = status
        for guild in self._world.guilds_of(user):
            body = payloads.presence_json(user, guild)
            self._gateway.dispatch("PRESENCE_UPDATE", lambda _, body=body: body, guild=guild, intent=intents.GUILD_PRESENCES)  # type: ignore[misc]

    def _channel(self, guild: Guild, name: str, kind: int) -> Channel:
        channel = Channel(self._world.ids.next(), kind, name, guild)
        self._world.channels[channel.id] = guild.channels[channel.id] = channel
        return channel

    def _enter(self, guild: Guild) -> None:
        def build(session: Session) -> Json:
            return payloads.guild_create_json(guild, self._world, session.intents, session.large_threshold, joined=True)

        self._gateway.dispatch("GUILD_CREATE", build, guild=guild, intent=intents.GUILDS)

    def _tell(self, event: str, channel: Channel) -> None:
        if may(self._world.bot, channel, self._world.bot, VIEW_CHANNEL):
            self._gateway.dispatch(
                event, lambda _: payloads.channel_json(channel, self._world.bot), guild=channel.guild, intent=intents.GUILDS
            )

    def _followers(self, thread: Channel, **changes: object) -> None:
        assert thread.guild is not None
        body = {"id": str(thread.id), "guild_id": str(thread.guild.id), "member_count": len(thread.followers), **changes}
        self._gateway.in_channel("THREAD_MEMBERS_UPDATE", lambda _: body, thread, intents.GUILDS)
