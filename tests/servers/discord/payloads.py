"""The world as the API and the gateway write it."""

from __future__ import annotations

from tests.servers.discord import intents
from tests.servers.discord.permissions import VIEW_CHANNEL, may
from tests.servers.discord.snowflakes import moment, stamp
from tests.servers.discord.world import (
    DM,
    FORUM,
    REPLY,
    THREAD_STARTER,
    Attachment,
    Channel,
    Guild,
    Json,
    Member,
    Message,
    Role,
    User,
    World,
)


def user_json(user: User) -> Json:
    return {
        "id": str(user.id),
        "username": user.name if user.bot else user.name.lower().replace(" ", "_"),
        "global_name": None if user.bot else user.name,
        "discriminator": "0000" if user.bot else "0",
        "avatar": None,
        "bot": user.bot,
        "public_flags": 0,
    }


def member_json(member: Member, *, partial: bool = False) -> Json:
    """A member; the partial one beside a message has no user in it."""
    body: Json = {
        "roles": [str(role) for role in sorted(member.roles)],
        "nick": member.nick,
        "avatar": None,
        "joined_at": stamp(member.joined_at),
        "premium_since": None,
        "deaf": False,
        "mute": False,
        "flags": 0,
        "pending": False,
        "communication_disabled_until": None,
    }
    return body if partial else {**body, "user": user_json(member.user)}


def role_json(role: Role) -> Json:
    return {
        "id": str(role.id),
        "name": role.name,
        "permissions": str(role.permissions),
        "position": role.position,
        "color": 0,
        "colors": {"primary_color": 0, "secondary_color": None, "tertiary_color": None},
        "hoist": False,
        "managed": False,
        "mentionable": True,
        "flags": 0,
    }


def channel_json(channel: Channel, bot: User) -> Json:
    last = channel.last()
    body: Json = {"id": str(channel.id), "type": channel.kind, "flags": 0, "last_message_id": str(last.id) if last else None}
    if channel.kind == DM:
        return {**body, "recipients": [user_json(user) for user in channel.recipients]}
    assert channel.guild is not None
    body |= {"guild_id": str(channel.guild.id), "name": channel.name, "rate_limit_per_user": 0, "nsfw": False}
    if channel.is_thread:
        return body | _thread_fields(channel, bot)
    body |= {"topic": channel.topic, "position": 0, "parent_id": str(channel.parent.id) if channel.parent else None}
    if not may(bot, channel, bot, VIEW_CHANNEL):
        return body | _obfuscated(channel.guild)
    body["permission_overwrites"] = [
        {"id": str(target), "type": int(one.member), "allow": str(one.allow), "deny": str(one.deny)}
        for target, one in channel.overwrites.items()
    ]
    if channel.kind == FORUM:
        body |= {"available_tags": [], "default_reaction_emoji": None, "default_sort_order": None, "default_forum_layout": 0}
    return body


def _obfuscated(guild: Guild) -> Json:
    """What Discord shows of a channel that the bot may not see, since November 2026."""
    everyone = {"id": str(guild.id), "type": 0, "allow": "0", "deny": str(VIEW_CHANNEL)}
    return {"name": "___hidden___", "flags": 1 << 17, "topic": None, "last_message_id": None, "permission_overwrites": [everyone]}


def thread_member_json(thread: Channel, user: User) -> Json:
    return {"id": str(thread.id), "user_id": str(user.id), "join_timestamp": stamp(thread.followers[user.id]), "flags": 0}


def guild_json(guild: Guild) -> Json:
    return {
        "id": str(guild.id),
        "name": guild.name,
        "owner_id": str(guild.owner.id),
        "icon": None,
        "splash": None,
        "banner": None,
        "description": None,
        "features": guild.features,
        "roles": [role_json(role) for role in guild.roles.values()],
        "emojis": [],
        "stickers": [],
        "verification_level": 0,
        "default_message_notifications": 0,
        "explicit_content_filter": 0,
        "mfa_level": 0,
        "nsfw_level": 0,
        "afk_channel_id": None,
        "afk_timeout": 300,
        "system_channel_id": str(guild.system_channel.id) if guild.system_channel else None,
        "system_channel_flags": 0,
        "rules_channel_id": None,
        "public_updates_channel_id": None,
        "safety_alerts_channel_id": None,
        "preferred_locale": guild.locale,
        "premium_tier": 0,
        "premium_progress_bar_enabled": False,
        "vanity_url_code": None,
        "application_id": None,
    }


def guild_create_json(guild: Guild, world: World, held: int, large_threshold: int, *, joined: bool) -> Json:
    """GUILD_CREATE: without the presences intent it names no member but the bot, above the threshold only who is online.

    A guild that the bot has just `joined` comes without "unavailable"; that is how discord.py tells it apart.
    """
    members = list(guild.members.values())
    large = len(members) > large_threshold
    presences: list[Json] = []
    if not held & intents.GUILD_PRESENCES:
        members = [guild.members[world.bot.id]]
    else:
        online = [member for member in members if member.user.status != "offline"]
        presences = [presence_json(member.user, None) for member in online]
        members = [*online, guild.members[world.bot.id]] if large else members
    visible = [channel for channel in guild.channels.values() if may(world.bot, channel, world.bot, VIEW_CHANNEL)]
    return {
        **guild_json(guild),
        **({} if joined else {"unavailable": False}),
        "joined_at": stamp(guild.members[world.bot.id].joined_at),
        "large": large,
        "member_count": len(guild.members),
        "members": [member_json(member) for member in dict.fromkeys(members)],
        "presences": presences,
        # Discord tells of channels that the bot cannot see, too, though of none of their threads.
        "channels": [channel_json(channel, world.bot) for channel in guild.channels.values() if not channel.is_thread],
        "threads": [channel_json(thread, world.bot) for thread in visible if thread.is_thread and not thread.archived],
        "voice_states": [],
        "stage_instances": [],
        "guild_scheduled_events": [],
        "soundboard_sounds": [],
    }


def presence_json(user: User, guild: Guild | None) -> Json:
    clients = {} if user.status == "offline" else {"desktop": user.status}
    body: Json = {"user": {"id": str(user.id)}, "status": user.status, "activities": [], "client_status": clients}
    return {**body, "guild_id": str(guild.id)} if guild else body


def attachment_json(attachment: Attachment) -> Json:
    body: Json = {
        "id": str(attachment.id),
        "filename": attachment.filename,
        "size": len(attachment.content),
        "url": attachment.url,
        "proxy_url": attachment.url,
    }
    return {**body, "content_type": attachment.content_type} if attachment.content_type else body


def snapshot_of(message: Message) -> Json:
    """What a forward keeps of the message: no author."""
    return {
        "message": {
            "type": message.kind,
            "content": message.content,
            "embeds": message.embeds,
            "attachments": [attachment_json(one) for one in message.attachments],
            "timestamp": stamp(message.created_at),
            "edited_timestamp": stamp(message.edited_at) if message.edited_at else None,
            "flags": 0,
            "components": message.components,
            "mentions": [user_json(user) for user in message.mentions],
            "mention_roles": [str(role) for role in message.mention_roles],
        }
    }


def message_json(message: Message, world: World, held: int, *, gateway: bool, fresh: bool = False, nested: bool = False) -> Json:
    """A message as an app with the intents `held` gets it, over the gateway with the author's membership.

    Only a `fresh` one, in MESSAGE_CREATE and in the answer to its POST, carries the nonce.
    """
    readable = intents.readable(message, held, world.bot)
    body: Json = {
        "id": str(message.id),
        "channel_id": str(message.channel.id),
        "type": message.kind,
        "author": _author(message),
        "content": message.content if readable else "",
        "attachments": [attachment_json(one) for one in message.attachments] if readable else [],
        "embeds": message.embeds if readable else [],
        "components": message.components if readable else [],
        "timestamp": stamp(message.created_at),
        "edited_timestamp": stamp(message.edited_at) if message.edited_at else None,
        "mentions": [user_json(user) for user in message.mentions],
        "mention_roles": [str(role) for role in message.mention_roles],
        "mention_everyone": message.mention_everyone,
        "tts": False,
        "pinned": message.pinned,
        "flags": message.flags,
        "channel_type": message.channel.kind,
    }
    optional: Json = {
        "nonce": message.nonce if fresh else None,
        "webhook_id": str(message.webhook_id) if message.webhook_id else None,
        "application_id": str(message.application_id) if message.application_id else None,
        "interaction_metadata": message.interaction,
        "thread": channel_json(message.thread, world.bot) if message.thread else None,
        "message_snapshots": (message.snapshots if readable else [_emptied(one) for one in message.snapshots]) or None,
    }
    body |= {name: value for name, value in optional.items() if value is not None}
    if message.reference:
        body |= _reference(message, world, held, gateway=gateway, nested=nested)
    return body | _membership(message) if gateway else body


def _reference(message: Message, world: World, held: int, *, gateway: bool, nested: bool) -> Json:
    """The pointer, and for replies and starters the message itself, one deep, or null once it is deleted."""
    reference = message.reference
    assert reference is not None
    pointer: Json = {"type": reference.kind, "channel_id": str(reference.channel_id)}
    if reference.message_id:
        pointer["message_id"] = str(reference.message_id)
    if reference.guild_id:
        pointer["guild_id"] = str(reference.guild_id)
    if message.kind not in (REPLY, THREAD_STARTER) or nested:
        return {"message_reference": pointer}
    target = world.messages.get(reference.message_id or 0)
    whole = message_json(target, world, held, gateway=False, nested=True) if target and not target.deleted else None
    return {"message_reference": pointer, "referenced_message": whole}


def _membership(message: Message) -> Json:
    guild = message.channel.guild
    if guild is None or message.ephemeral:
        return {}
    body: Json = {"guild_id": str(guild.id)}
    author = guild.members.get(message.author.id)
    if author and not message.webhook_id:
        body["member"] = member_json(author, partial=True)
    body["mentions"] = [
        {**user_json(user), "member": member_json(guild.members[user.id], partial=True)}
        if user.id in guild.members
        else user_json(user)
        for user in message.mentions
    ]
    return body


def _author(message: Message) -> Json:
    body = user_json(message.author)
    return {**body, "id": str(message.webhook_id)} if message.webhook_id and not message.application_id else body


def _emptied(snapshot: Json) -> Json:
    return {"message": {**snapshot["message"], "content": "", "embeds": [], "attachments": [], "components": []}}


def _thread_fields(thread: Channel, bot: User) -> Json:
    assert thread.parent is not None
    creator = thread.creator or bot
    body: Json = {
        "parent_id": str(thread.parent.id),
        "owner_id": str(creator.id),
        "message_count": len(thread.messages),
        "total_message_sent": len(thread.messages),
        "member_count": len(thread.followers),
        "thread_metadata": {
            "archived": thread.archived,
            "locked": thread.locked,
            "auto_archive_duration": 1440,
            "archive_timestamp": stamp(moment(thread.id)),
            "create_timestamp": stamp(moment(thread.id)),
        },
    }
    return {**body, "member": thread_member_json(thread, bot)} if bot.id in thread.followers else body
