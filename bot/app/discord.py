"""Discord as the configuration asks for it: from its section and the environment to an adapter.

The library is imported only where a token is there.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import TYPE_CHECKING

from adapters.discord.settings import Settings
from adapters.triggers import ListenRules, Override
from bot.commands import COMMANDS
from bot.config.findings import StartError
from bot.config.loading import Loaded
from bot.health import Health
from memory.db import Database

if TYPE_CHECKING:
    from adapters.discord.adapter import DiscordAdapter

SYNCED = "discord.commands"
"""The file in the data folder that keeps which slash commands Discord was told."""


def adapters(loaded: Loaded, health: Health, say: Callable[[str], None], _: Database) -> list[DiscordAdapter]:
    """The adapter, where a token is there."""
    settings = settings_of(loaded)
    if settings is None:
        return []
    from adapters.discord.adapter import DiscordAdapter
    from adapters.discord.commands import Slash

    slashes = [
        Slash(
            command.name.removeprefix("/"),
            command.does(None),
            command.example if command.example != command.name else "",
            restricted=command.name.split()[0] == "/admin",
            line=command.line,
        )
        for command in COMMANDS
    ]
    return [DiscordAdapter(settings, slashes, count=health.count, say=say, record=loaded.data / SYNCED)]


def settings_of(loaded: Loaded) -> Settings | None:
    """The section `discord` as the adapter takes it; None when no token is there."""
    chosen = loaded.config.discord
    token = os.environ.get(chosen.token_env, "").strip() if chosen.token_env else ""
    if not token:
        return None
    places = {name: Override(one.mentions, one.replies, one.threads) for name, one in chosen.places.items()}
    return Settings(
        token=token,
        token_env=chosen.token_env,
        api_base=chosen.api_base,
        gateway=chosen.gateway,
        sharded=chosen.sharded,
        shards=chosen.shards,
        message_content=chosen.message_content,
        members=chosen.members,
        presences=chosen.presences,
        rules=ListenRules(
            chosen.mentions,
            chosen.replies,
            chosen.threads,
            frozenset(chosen.allow),
            frozenset(chosen.deny),
            frozenset(chosen.bots),
            places,
        ),
        daily_limit=chosen.daily_limit,
        context_messages=chosen.context_messages,
        attachment_bytes=chosen.attachment_bytes,
        image_bytes=loaded.config.model.image_bytes if loaded.config.model.sees_images else 0,
        streaming=chosen.streaming,
        mark_deleted=chosen.on_delete == "mark",
        catch_up_hours=chosen.catch_up_hours,
        catch_up_messages=chosen.catch_up_messages,
        join_channels=frozenset(chosen.join_channels),
        login_events=chosen.login_events,
        silence=chosen.silence,
        restart_cap=chosen.restart_cap,
    )


async def invite_link(loaded: Loaded) -> str:
    """The link that lets the bot into a guild. Raises StartError."""
    settings = settings_of(loaded)
    if settings is None:
        variable = loaded.config.discord.token_env or "(discord.token_env is empty)"
        raise StartError(f"discord.token_env: the environment variable {variable} is not set. Set it to the bot's token.")
    from adapters.discord.adapter import invite
    from adapters.discord.connection import PlatformRefused

    try:
        return await invite(settings)
    except PlatformRefused as refused:
        raise StartError(str(refused)) from refused
