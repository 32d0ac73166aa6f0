"""What the operator chose for Discord, as values."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

LIMIT = 2000
"""The most code points of one message."""


@dataclass(frozen=True, slots=True)
class Listening:
    """What is listened to in a guild; None in an override: as in general."""

    mentions: bool | None = None
    replies: bool | None = None
    threads: bool | None = None


@dataclass(frozen=True, slots=True)
class Rules:
    """Where the bot takes part. Ids of guilds and of channels are told apart by nothing, and need not be: they are unique."""

    mentions: bool = True
    replies: bool = True
    threads: bool = True
    allow: frozenset[str] = frozenset()
    deny: frozenset[str] = frozenset()
    bots: frozenset[str] = frozenset()
    places: Mapping[str, Listening] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Settings:
    """Everything of the section `discord`, with the token itself; durations are seconds."""

    token: str = field(repr=False)
    token_env: str = "DISCORD_TOKEN"
    api_base: str = ""
    gateway: str = ""
    sharded: bool = False
    message_content: bool = False
    members: bool = False
    presences: bool = False
    rules: Rules = Rules()
    daily_limit: int = 0
    context_messages: int = 15
    attachment_bytes: int = 65_536
    catch_up_hours: float = 24
    catch_up_messages: int = 100
    join_channels: frozenset[str] = frozenset()
    login_events: bool = False
    silence: float = 60
    restart_cap: float = 60
