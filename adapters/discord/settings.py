"""What the operator chose for Discord, as values."""

from __future__ import annotations

from dataclasses import dataclass, field

from adapters.triggers import ListenRules

LIMIT = 2000
"""The most code points of one message."""


def shards_of(text: str) -> tuple[int, int, int]:
    """The first and the last connection, and how many there are in all, of `0-3/8` or `0/2`."""
    some, _, count = text.partition("/")
    first, _, last = some.partition("-")
    return int(first), int(last or first), int(count)


@dataclass(frozen=True, slots=True)
class Settings:
    """Everything of the section `discord`, with the token itself; durations are seconds."""

    token: str = field(repr=False)
    token_env: str = "DISCORD_TOKEN"
    api_base: str = ""
    gateway: str = ""
    sharded: bool = False
    shards: str = ""
    message_content: bool = False
    members: bool = False
    presences: bool = False
    rules: ListenRules = ListenRules()
    daily_limit: int = 0
    context_messages: int = 15
    attachment_bytes: int = 65_536
    image_bytes: int = 0
    streaming: bool = False
    mark_deleted: bool = False
    catch_up_hours: float = 24
    catch_up_messages: int = 1000
    join_channels: frozenset[str] = frozenset()
    login_events: bool = False
    silence: float = 60
    restart_cap: float = 60
