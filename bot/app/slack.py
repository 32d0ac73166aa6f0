"""Slack as the configuration asks for it: from its section and the environment to an adapter.

The library is imported only where a token is there.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable
from typing import TYPE_CHECKING

from adapters.slack.settings import API, OAuth, Settings, Tokens
from adapters.triggers import ListenRules, Override
from bot.commands import COMMANDS
from bot.config.findings import StartError
from bot.config.loading import Loaded
from bot.health import Health
from memory.db import Database

if TYPE_CHECKING:
    from adapters.slack.adapter import SlackAdapter


def adapters(loaded: Loaded, health: Health, say: Callable[[str], None], db: Database) -> list[SlackAdapter]:
    """The adapter, where a token is there. `db`: where workspaces' own installations of the app are kept."""
    settings = settings_of(loaded)
    if settings is None:
        return []
    from adapters.slack.adapter import SlackAdapter
    from adapters.slack.lines import Slash
    from bot.app.slack_vault import SlackVault

    slashes = [
        Slash(command.name.removeprefix("/"), command.example if command.example != command.name else "") for command in COMMANDS
    ]
    vault = SlackVault(db) if settings.oauth is not None else None
    return [SlackAdapter(settings, slashes, count=health.count, say=say, vault=vault)]


def settings_of(loaded: Loaded) -> Settings | None:
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
    return Settings(
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


def manifest_text(loaded: Loaded, public_url: str) -> str:
    """The manifest of the Slack app, to paste."""
    from adapters.slack.manifest import manifest, printed

    if public_url and not re.match(r"https://[^/\s]", public_url):
        raise StartError("--url: must be an address that begins with https://, such as https://keepsake.example.com.")
    chosen = loaded.config.slack
    oauth = bool(_variable(chosen.client_id_env) and _variable(chosen.client_secret_env))
    url = public_url or (chosen.public_url if chosen.bind else "")
    return printed(manifest(loaded.persona.name, command=chosen.command, public_url=url, oauth=oauth))
