"""The platforms that the configuration asks for: from its sections and the environment to adapters.

An adapter's library is imported only when its platform is asked for.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable
from typing import TYPE_CHECKING

from adapters.discord.settings import Settings
from adapters.slack.settings import API, OAuth, Tokens
from adapters.slack.settings import Settings as SlackSettings
from adapters.triggers import ListenRules, Override
from bot.commands import COMMANDS
from bot.config.findings import StartError
from bot.config.loading import Loaded
from bot.health import Health
from memory.db import Database

if TYPE_CHECKING:
    from adapters.discord.adapter import DiscordAdapter
    from adapters.slack.adapter import SlackAdapter

SYNCED = "discord.commands"
"""The file in the data folder that keeps which slash commands Discord was told."""


def adapters(
    loaded: Loaded, health: Health, *, say: Callable[[str], None], db: Database | None = None
) -> list[DiscordAdapter | SlackAdapter]:
    """An adapter for each platform whose token is there. `db`: where workspaces' own installations of the Slack app are kept."""
    return [*_discord(loaded, health, say), *_slack(loaded, health, say, db)]


def _discord(loaded: Loaded, health: Health, say: Callable[[str], None]) -> list[DiscordAdapter]:
    settings = discord_settings(loaded)
    if settings is None:
        return []
    from adapters.discord.adapter import DiscordAdapter
    from adapters.discord.commands import Slash

    slashes = [
        Slash(
            command.name.removeprefix("/"),
            command.does,
            command.example if command.example != command.name else "",
            restricted=command.name.split()[0] == "/admin",
        )
        for command in COMMANDS
    ]
    return [DiscordAdapter(settings, slashes, count=health.count, say=say, record=loaded.data / SYNCED)]


def _slack(loaded: Loaded, health: Health, say: Callable[[str], None], db: Database | None) -> list[SlackAdapter]:
    settings = slack_settings(loaded)
    if settings is None:
        return []
    from adapters.slack.adapter import SlackAdapter
    from adapters.slack.lines import Slash
    from bot.app.slack_vault import SlackVault

    slashes = [
        Slash(command.name.removeprefix("/"), command.does, command.example if command.example != command.name else "")
        for command in COMMANDS
    ]
    vault = SlackVault(db) if db is not None and settings.oauth is not None else None
    return [SlackAdapter(settings, slashes, count=health.count, say=say, vault=vault)]


def discord_settings(loaded: Loaded) -> Settings | None:
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


async def discord_invite(loaded: Loaded) -> str:
    """The link that lets the bot into a guild. Raises StartError."""
    settings = discord_settings(loaded)
    if settings is None:
        variable = loaded.config.discord.token_env or "(discord.token_env is empty)"
        raise StartError(f"discord.token_env: the environment variable {variable} is not set. Set it to the bot's token.")
    from adapters.discord.adapter import invite
    from adapters.discord.connection import PlatformRefused

    try:
        return await invite(settings)
    except PlatformRefused as refused:
        raise StartError(str(refused)) from refused


def slack_settings(loaded: Loaded) -> SlackSettings | None:
    """The section `slack` as the adapter takes it; None when no token is there. Raises StartError when half of what it takes is."""
    chosen = loaded.config.slack
    named = [(chosen.bot_token_env, chosen.app_token_env, chosen.signing_secret_env)]
    named += [(one.bot_token_env, one.app_token_env, one.signing_secret_env) for one in chosen.workspaces]
    tokens = [
        Tokens(_variable(bot), _variable(app), _variable(secret), bot, app, secret)
        for bot, app, secret in named
        if _variable(bot)
    ]
    client = _variable(chosen.client_id_env), _variable(chosen.client_secret_env)
    oauth = None
    if all(client) and chosen.bind and chosen.public_url:
        oauth = OAuth(*client, chosen.public_url, _variable(chosen.signing_secret_env))
    if not tokens and oauth is None:
        return None
    for one in tokens:
        if chosen.bind and not one.signing_secret:
            raise StartError(
                _unset(
                    "signing_secret_env", one.signing_secret_env, "the app's signing secret, or empty slack.bind for Socket Mode"
                )
            )
        if not chosen.bind and not one.app:
            raise StartError(_unset("app_token_env", one.app_env, "the app-level token (xapp-), or set slack.bind for HTTP mode"))
    if oauth is not None and not oauth.signing_secret:
        raise StartError(_unset("signing_secret_env", chosen.signing_secret_env, "the app's signing secret"))
    places = {name: Override(mentions=one.mentions, threads=one.threads) for name, one in chosen.places.items()}
    return SlackSettings(
        tokens=tuple(tokens),
        oauth=oauth,
        bind=chosen.bind,
        api_base=chosen.api_base or API,
        command=chosen.command,
        rules=ListenRules(
            mentions=chosen.mentions,
            threads=chosen.threads,
            allow=frozenset(chosen.allow),
            deny=frozenset(chosen.deny),
            bots=frozenset(chosen.bots),
            places=places,
        ),
        answer_in_thread=chosen.answer_in_thread,
        strangers=chosen.strangers,
        streaming=chosen.streaming,
        daily_limit=chosen.daily_limit,
        daily_limits={name: one.daily_limit for name, one in chosen.places.items() if one.daily_limit is not None},
        context_messages=chosen.context_messages,
        attachment_bytes=chosen.attachment_bytes,
        image_bytes=loaded.config.model.image_bytes if loaded.config.model.sees_images else 0,
        mark_deleted=chosen.on_delete == "mark",
        join_channels=frozenset(chosen.join_channels),
        login_events=chosen.login_events,
        prompts=chosen.prompts,
        silence=chosen.silence,
        refresh=chosen.refresh,
        restart_cap=chosen.restart_cap,
    )


def _variable(name: str) -> str:
    return os.environ.get(name, "").strip() if name else ""


def _unset(key: str, variable: str, what: str) -> str:
    return f"slack.{key}: the environment variable {variable or '(none is named)'} is not set. Set it to {what}."


def slack_manifest(loaded: Loaded, public_url: str) -> str:
    """The manifest of the Slack app, to paste."""
    from adapters.slack.manifest import manifest, printed

    if public_url and not re.match(r"https://[^/\s]", public_url):
        raise StartError("--url: must be an address that begins with https://, such as https://keepsake.example.com.")
    chosen = loaded.config.slack
    oauth = bool(_variable(chosen.client_id_env) and _variable(chosen.client_secret_env))
    url = public_url or (chosen.public_url if chosen.bind else "")
    return printed(manifest(loaded.persona.name, command=chosen.command, public_url=url, oauth=oauth))
