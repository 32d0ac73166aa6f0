"""The gateway's intents, and what a message looks like to who lacks the one for message content."""

from __future__ import annotations

from tests.servers.discord.world import DM, Channel, Message, User

GUILDS = 1 << 0
GUILD_MEMBERS = 1 << 1
GUILD_PRESENCES = 1 << 8
GUILD_MESSAGES = 1 << 9
GUILD_MESSAGE_TYPING = 1 << 11
DIRECT_MESSAGES = 1 << 12
DIRECT_MESSAGE_TYPING = 1 << 14
MESSAGE_CONTENT = 1 << 15

PRIVILEGED = GUILD_MEMBERS | GUILD_PRESENCES | MESSAGE_CONTENT
# Bits 0 to 16, 20, 21, 24 and 25 are known to the gateway.
KNOWN = (1 << 17) - 1 | 3 << 20 | 3 << 24

# What the portal's switches look like in an application's flags, for an app in fewer than 100 guilds.
_APPLICATION_FLAGS = {GUILD_PRESENCES: 1 << 13, GUILD_MEMBERS: 1 << 15, MESSAGE_CONTENT: 1 << 19}


def application_flags(privileged: int) -> int:
    return sum(flag for intent, flag in _APPLICATION_FLAGS.items() if privileged & intent)


def of_messages(channel: Channel) -> int:
    return DIRECT_MESSAGES if channel.kind == DM else GUILD_MESSAGES


def of_typing(channel: Channel) -> int:
    return DIRECT_MESSAGE_TYPING if channel.kind == DM else GUILD_MESSAGE_TYPING


def readable(message: Message, intents: int, bot: User) -> bool:
    """Whether the app gets the content: with the intent always, else its own messages, direct ones and its mentions."""
    return bool(intents & MESSAGE_CONTENT) or message.author is bot or message.channel.kind == DM or bot in message.mentions
