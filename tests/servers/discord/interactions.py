"""Interactions: what people start, and what has become of it."""

from __future__ import annotations

import secrets
import time
from dataclasses import dataclass, field

from tests.servers.discord import payloads
from tests.servers.discord.gateway import Gateway
from tests.servers.discord.permissions import in_channel
from tests.servers.discord.session import Session
from tests.servers.discord.world import DM, Channel, Guild, Json, Message, User, World

COMMAND, COMPONENT, AUTOCOMPLETE, MODAL_SUBMIT = 2, 3, 4, 5

# Callback types.
PONG, SAY, DEFER, DEFER_UPDATE, UPDATE, CHOICES, MODAL = 1, 4, 5, 6, 7, 8, 9


@dataclass(eq=False, repr=False)
class Interaction:
    """One interaction and the bot's answers to it."""

    id: int
    token: str
    kind: int
    user: User
    channel: Channel
    data: Json
    # Of a pressed button: the message it is on.
    message: Message | None = None
    created_at: float = field(default_factory=time.monotonic)
    # The callback's type and time, None until the bot acknowledged.
    response: int | None = None
    acknowledged_at: float | None = None
    ephemeral: bool = False
    # The first response, at first perhaps only "thinking", and the texts of its edits.
    original: Message | None = None
    edits: list[str] = field(default_factory=list)
    followups: list[Message] = field(default_factory=list)
    modal: Json | None = None
    choices: list[Json] | None = None
    # Codes with which callbacks were refused: 10062 too late, 40060 twice.
    refused: list[int] = field(default_factory=list)

    def __repr__(self) -> str:
        return f"Interaction({self.user.name}: {self.data}, response {self.response}, {self.answers}, refused {self.refused})"

    @property
    def deferred(self) -> bool:
        return self.response in (DEFER, DEFER_UPDATE)

    @property
    def delay(self) -> float | None:
        """Seconds until the acknowledgement."""
        return None if self.acknowledged_at is None else self.acknowledged_at - self.created_at

    @property
    def answers(self) -> list[Message]:
        """What the person sees by now, in order: the first response once it is no longer "thinking", then the follow-ups."""
        all_of_them = [*([self.original] if self.original else []), *self.followups]
        return [message for message in all_of_them if not message.loading and not message.deleted]

    @property
    def text(self) -> str:
        return "\n".join(message.content for message in self.answers)


class Interactions:
    """All interactions by id. `deadline` is the time for the first response, in seconds."""

    def __init__(self, world: World, gateway: Gateway) -> None:
        self.all: dict[int, Interaction] = {}
        self._tokens: dict[str, Interaction] = {}
        self.deadline = 3.0
        self._world = world
        self._gateway = gateway

    def start(self, kind: int, user: User, channel: Channel, data: Json, message: Message | None = None) -> Interaction:
        """Sends INTERACTION_CREATE; the clock for the response runs from here."""
        made = Interaction(self._world.ids.next(), secrets.token_urlsafe(48), kind, user, channel, data, message)
        self.all[made.id] = self._tokens[made.token] = made
        self._gateway.dispatch("INTERACTION_CREATE", lambda session: self._json(made, session), guild=channel.guild)
        return made

    def of_token(self, token: str) -> Interaction | None:
        return self._tokens.get(token)

    def owners(self, interaction: Interaction) -> dict[str, str]:
        """By which installations the command is there: the server's ("0"), the person's own ("1")."""
        guild, user = interaction.channel.guild, interaction.user
        owners = {"1": str(user.id)} if user.installed else {}
        if guild is not None:
            owners["0"] = str(guild.id)
        elif any(self._world.guilds_of(user)):
            owners["0"] = "0"
        return owners

    def _json(self, one: Interaction, session: Session) -> Json:
        channel, bot = one.channel, self._world.bot
        body: Json = {
            "id": str(one.id),
            "application_id": str(self._world.application.id),
            "type": one.kind,
            "token": one.token,
            "version": 1,
            "data": one.data,
            "channel_id": str(channel.id),
            "channel": {**payloads.channel_json(channel, bot), "permissions": str(in_channel(one.user, channel, bot))},
            "app_permissions": str(in_channel(bot, channel, bot)),
            "locale": one.user.locale,
            "entitlements": [],
            "entitlement_sku_ids": [],
            "authorizing_integration_owners": self.owners(one),
            "context": 1 if channel.kind == DM else 0,
            "attachment_size_limit": 10 * 2**20,
        }
        if one.message is not None:
            body["message"] = payloads.message_json(one.message, self._world, session.intents, gateway=False)
        return body | (self._in_guild(one, channel.guild) if channel.guild else {"user": payloads.user_json(one.user)})

    def _in_guild(self, one: Interaction, guild: Guild) -> Json:
        rights = str(in_channel(one.user, one.channel, self._world.bot))
        return {
            "guild_id": str(guild.id),
            "guild": {"id": str(guild.id), "locale": guild.locale, "features": guild.features},
            "guild_locale": guild.locale,
            "member": {**payloads.member_json(guild.members[one.user.id]), "permissions": rights},
        }
