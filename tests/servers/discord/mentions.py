"""Whom a text pings, under the sender's rights and the message's `allowed_mentions`."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any, cast

from tests.servers.discord.errors import invalid_form
from tests.servers.discord.permissions import MENTION_EVERYONE, may
from tests.servers.discord.world import Channel, Json, Message, User, World

_USER = re.compile(r"<@!?(\d+)>")
_ROLE = re.compile(r"<@&(\d+)>")
_EVERYONE = re.compile(r"@(?:everyone|here)\b")


@dataclass(frozen=True, slots=True)
class Allowed:
    """`allowed_mentions`; None for `users` or `roles` means all of them."""

    everyone: bool = True
    users: frozenset[int] | None = None
    roles: frozenset[int] | None = None
    replied_user: bool = True


def allowed_mentions(body: Json) -> Allowed:
    """What a request allows: everything where it says nothing."""
    given = cast("Json | None", body.get("allowed_mentions"))
    if given is None:
        return Allowed()
    parse: list[str] = given.get("parse") or []
    for kind in ("users", "roles"):
        if kind in parse and given.get(kind):
            raise invalid_form(
                "allowed_mentions",
                "MESSAGE_ALLOWED_MENTIONS_PARSE_EXCLUSIVE",
                f'parse:["{kind}"] and {kind}: [ids...] are mutually exclusive.',
            )
    return Allowed(
        "everyone" in parse, _ids("users", parse, given), _ids("roles", parse, given), bool(given.get("replied_user", False))
    )


def ping(world: World, message: Message, allowed: Allowed, replied: User | None) -> None:
    """Fills in whom the message mentions."""
    users = [world.users[user] for user in map(int, _USER.findall(message.content)) if user in world.users]
    if allowed.users is not None:
        users = [user for user in users if user.id in allowed.users]
    if replied is not None and allowed.replied_user:
        users.append(replied)
    message.mentions = list(dict.fromkeys(users))
    guild = message.channel.guild
    roles = [role for role in map(int, _ROLE.findall(message.content)) if guild is not None and role in guild.roles]
    message.mention_roles = [role for role in dict.fromkeys(roles) if allowed.roles is None or role in allowed.roles]
    message.mention_everyone = allowed.everyone and _pings_everyone(message.content, message.author, message.channel, world.bot)


def _pings_everyone(text: str, author: User, channel: Channel, bot: User) -> bool:
    return bool(_EVERYONE.search(text)) and channel.guild is not None and may(author, channel, bot, MENTION_EVERYONE)


def _ids(kind: str, parse: list[str], given: dict[str, Any]) -> frozenset[int] | None:
    return None if kind in parse else frozenset(int(one) for one in given.get(kind) or [])
