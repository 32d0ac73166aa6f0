"""Places and people of Discord as values."""

from __future__ import annotations

import discord

from adapters.base import Person, PlaceKind, PlaceOf
from adapters.discord.texts import Names

PLATFORM = "discord"
NAME_LENGTH = 80
HIDDEN = "___hidden___"


def person_of(user: discord.User | discord.Member, locale: str | None = None, roles: tuple[str, ...] = ()) -> Person:
    """Who acted."""
    return Person(PLATFORM, "", str(user.id), user.display_name[:NAME_LENGTH], locale=locale, roles=roles)


def role_ids(user: discord.User | discord.Member) -> tuple[str, ...]:
    """The roles that somebody has in the guild they act in, without the one that everybody has."""
    return tuple(str(role.id) for role in user.roles if not role.is_default()) if isinstance(user, discord.Member) else ()


def author_id(user_id: int) -> str:
    """The key under which quoted words of a user are found again."""
    return f"{PLATFORM}::{user_id}"


def place_of(channel: object, channel_id: int, guild: discord.Guild | None, guild_id: int | None) -> PlaceOf:
    """Where something happened. Without a guild it is a direct message; of a channel that the bot is not shown nothing is said."""
    workspace = str(guild.id if guild else guild_id or "")
    if not workspace:
        return PlaceOf(PLATFORM, "", "", str(channel_id), "direct")
    thread = channel if isinstance(channel, discord.Thread) else None
    name = "" if hidden(channel) else getattr(channel, "name", None) or ""
    parent, closed = (str(thread.parent_id), thread.is_private()) if thread else (None, False)
    kind = "private" if closed else _kind(thread.parent if thread else channel, guild)
    return PlaceOf(PLATFORM, "", workspace, str(channel_id), kind, name[:NAME_LENGTH], parent, closed)


def _kind(channel: object, guild: discord.Guild | None) -> PlaceKind | None:
    """Public is what everybody in the guild can see. None: it is not known."""
    if guild is None or not isinstance(channel, discord.abc.GuildChannel) or hidden(channel):
        return None
    return "public" if channel.permissions_for(guild.default_role).view_channel else "private"


def hidden(channel: object) -> bool:
    """Whether Discord redacted a channel, which the bot may not see: its name and permissions say nothing about people then.

    The flag that says so (1 << 17) is not kept by the library.
    """
    if not isinstance(channel, discord.abc.GuildChannel) or channel.name != HIDDEN:
        return False
    return not channel.permissions_for(channel.guild.me).view_channel


def names_in(message: discord.Message) -> Names:
    """Whom the ids in a message stand for."""
    guild = message.guild
    mentioned = {user.id: user.display_name for user in message.mentions}

    def user(user_id: int) -> str | None:
        member = guild.get_member(user_id) if guild else None
        return mentioned.get(user_id) or (member.display_name if member else None)

    def role(role_id: int) -> str | None:
        found = guild.get_role(role_id) if guild else None
        return found.name if found else None

    def channel(channel_id: int) -> str | None:
        found = guild.get_channel_or_thread(channel_id) if guild else None
        return found.name if found else None

    return Names(user, role, channel)
