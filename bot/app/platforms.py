"""The platforms that the bot can talk on, each by one line here: a package in `adapters/`, a section of the configuration, and how the
one is made of the other.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from adapters.base import Served
from adapters.discord.settings import LIMIT as DISCORD_LIMIT
from adapters.slack.settings import LIMIT as SLACK_LIMIT
from bot.app import discord, slack
from bot.config.loading import Loaded
from bot.health import Health
from memory.db import Database

Say = Callable[[str], None]


@dataclass(frozen=True, slots=True)
class Platform:
    """One platform. `limit`: the most characters of a message there; `adapters`: what serves it, nothing where it is not set up."""

    limit: int
    adapters: Callable[[Loaded, Health, Say, Database], Sequence[Served]]


PLATFORMS = {"discord": Platform(DISCORD_LIMIT, discord.adapters), "slack": Platform(SLACK_LIMIT, slack.adapters)}
"""By the name in `places.platform`, which is their section's name too."""


def adapters(loaded: Loaded, health: Health, *, say: Say, db: Database) -> list[Served]:
    """An adapter for each platform whose token is there."""
    return [one for platform in PLATFORMS.values() for one in platform.adapters(loaded, health, say, db)]


def limits() -> dict[str, int]:
    """The most characters of a message by platform, whether it is served here or not."""
    return {name: platform.limit for name, platform in PLATFORMS.items()}
