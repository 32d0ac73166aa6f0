"""Who may do what where, computed as Discord documents it."""

from __future__ import annotations

from tests.servers.discord.world import DM, PRIVATE_THREAD, Channel, Guild, User

ADMINISTRATOR = 1 << 3
MANAGE_CHANNELS = 1 << 4
MANAGE_GUILD = 1 << 5
VIEW_CHANNEL = 1 << 10
SEND_MESSAGES = 1 << 11
MANAGE_MESSAGES = 1 << 13
EMBED_LINKS = 1 << 14
ATTACH_FILES = 1 << 15
READ_MESSAGE_HISTORY = 1 << 16
MENTION_EVERYONE = 1 << 17
USE_APPLICATION_COMMANDS = 1 << 31
MANAGE_THREADS = 1 << 34
CREATE_PUBLIC_THREADS = 1 << 35
CREATE_PRIVATE_THREADS = 1 << 36
SEND_MESSAGES_IN_THREADS = 1 << 38

ALL = (1 << 53) - 1
# What @everyone has in a new guild; the right to ping everyone is among it.
USUAL = (
    VIEW_CHANNEL
    | SEND_MESSAGES
    | EMBED_LINKS
    | ATTACH_FILES
    | READ_MESSAGE_HISTORY
    | MENTION_EVERYONE
    | USE_APPLICATION_COMMANDS
    | CREATE_PUBLIC_THREADS
    | CREATE_PRIVATE_THREADS
    | SEND_MESSAGES_IN_THREADS
)


def in_guild(user: User, guild: Guild) -> int:
    """A member's permissions before any channel's overwrites."""
    if user.id == guild.owner.id:
        return ALL
    member = guild.members.get(user.id)
    if member is None:
        return 0
    held = guild.everyone.permissions
    for role in member.roles:
        held |= guild.roles[role].permissions
    return ALL if held & ADMINISTRATOR else held


def in_channel(user: User, channel: Channel, bot: User) -> int:
    """A person's permissions in a channel or thread; 0 where they cannot even see it."""
    if channel.kind == DM:
        return USUAL if user is bot or user in channel.recipients else 0
    guild = channel.guild
    assert guild is not None
    held = in_guild(user, guild)
    if held == ALL or not held:
        return held
    held = _overwritten(held, user, channel.parent if channel.is_thread and channel.parent else channel, guild)
    if not held & VIEW_CHANNEL:
        return 0
    if channel.kind == PRIVATE_THREAD and user.id not in channel.followers and not held & MANAGE_THREADS:
        return 0
    speaks = SEND_MESSAGES_IN_THREADS if channel.is_thread else SEND_MESSAGES
    if not held & speaks:
        held &= ~(MENTION_EVERYONE | ATTACH_FILES | EMBED_LINKS)
    return held


def may(user: User, channel: Channel, bot: User, permission: int) -> bool:
    return in_channel(user, channel, bot) & permission == permission


def may_speak(user: User, channel: Channel, bot: User) -> bool:
    return may(user, channel, bot, SEND_MESSAGES_IN_THREADS if channel.is_thread else SEND_MESSAGES)


def _overwritten(held: int, user: User, channel: Channel, guild: Guild) -> int:
    member = guild.members[user.id]
    everyone = channel.overwrites.get(guild.id)
    if everyone:
        held = held & ~everyone.deny | everyone.allow
    roles = [overwrite for target, overwrite in channel.overwrites.items() if target in member.roles]
    for overwrite in roles:
        held &= ~overwrite.deny
    for overwrite in roles:
        held |= overwrite.allow
    own = channel.overwrites.get(user.id)
    return held & ~own.deny | own.allow if own else held
