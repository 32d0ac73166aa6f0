"""Workspaces that install the app themselves: bolt's OAuth flow on stores of ours.

The tokens are secrets: a `Vault` keeps them, and only what is here asks for them.
"""

from __future__ import annotations

import json
import logging
import secrets
from datetime import UTC, datetime, timedelta
from typing import Any, Protocol

from slack_bolt.oauth.async_oauth_flow import AsyncOAuthFlow
from slack_bolt.oauth.async_oauth_settings import AsyncOAuthSettings
from slack_sdk.errors import SlackTokenRotationError
from slack_sdk.oauth.installation_store.async_installation_store import AsyncInstallationStore
from slack_sdk.oauth.installation_store.models.bot import Bot
from slack_sdk.oauth.installation_store.models.installation import Installation
from slack_sdk.oauth.state_store.async_state_store import AsyncOAuthStateStore
from slack_sdk.oauth.token_rotation.async_rotator import AsyncTokenRotator
from slack_sdk.web.async_client import AsyncWebClient

from adapters.slack.settings import INSTALL, REDIRECT, SCOPES, OAuth

log = logging.getLogger(__name__)

STATE_LIFE = timedelta(minutes=10)
ROTATE_BEFORE = 120
"""Minutes before its end in which a token that rotates is renewed."""


class Vault(Protocol):
    """Where installations are kept, by organisation and team ('' for none)."""

    async def save(self, enterprise: str, team: str, secret: str) -> None:
        """Keep an installation in place of an earlier one."""
        ...

    async def find(self, enterprise: str, team: str) -> str | None:
        """An installation's secret."""
        ...

    async def forget(self, enterprise: str, team: str) -> None:
        """Delete it."""
        ...

    async def issue(self, state: str, until: datetime) -> None:
        """Remember that an installation began."""
        ...

    async def consume(self, state: str, now: datetime) -> bool:
        """Whether one began with this, not too long ago; true once only."""
        ...


class States(AsyncOAuthStateStore):
    """What a browser has to bring back: single-use, good for ten minutes."""

    def __init__(self, vault: Vault) -> None:
        self._vault = vault

    @property
    def logger(self) -> logging.Logger:
        """The library's contract."""
        return log

    async def async_issue(self, *_: Any, **__: Any) -> str:
        """A new one."""
        state = secrets.token_urlsafe(32)
        await self._vault.issue(state, datetime.now(UTC) + STATE_LIFE)
        return state

    async def async_consume(self, state: str) -> bool:
        """Take it back."""
        return await self._vault.consume(state or "", datetime.now(UTC))


class Installations(AsyncInstallationStore):
    """Bolt's store on the vault; only the bot's token is kept, never a person's."""

    def __init__(self, vault: Vault) -> None:
        self._vault = vault

    @property
    def logger(self) -> logging.Logger:
        """The library's contract."""
        return log

    async def async_save(self, installation: Installation) -> None:
        """A workspace installed the app."""
        await self.async_save_bot(installation.to_bot())

    async def async_save_bot(self, bot: Bot) -> None:
        """Keep the bot's part."""
        team = "" if bot.is_enterprise_install else bot.team_id or ""
        kept = {
            "token": bot.bot_token,
            "bot_id": bot.bot_id,
            "user": bot.bot_user_id,
            "refresh": bot.bot_refresh_token,
            "expires": bot.bot_token_expires_at,
            "org": bot.is_enterprise_install,
            "team": bot.team_id,
            "enterprise": bot.enterprise_id,
            "app": bot.app_id,
        }
        await self._vault.save(bot.enterprise_id or "" if not team else "", team, json.dumps(kept))

    async def async_find_bot(
        self, *, enterprise_id: str | None, team_id: str | None, is_enterprise_install: bool | None = False
    ) -> Bot | None:
        """The bot of a workspace, else of its organisation."""
        found = await self._vault.find("", team_id) if team_id and not is_enterprise_install else None
        if found is None and enterprise_id:
            found = await self._vault.find(enterprise_id, "")
        if found is None:
            return None
        kept = json.loads(found)
        return Bot(
            app_id=kept["app"],
            enterprise_id=kept["enterprise"],
            team_id=kept["team"],
            bot_token=kept["token"],
            bot_id=kept["bot_id"],
            bot_user_id=kept["user"],
            bot_refresh_token=kept["refresh"],
            bot_token_expires_at=kept["expires"],
            is_enterprise_install=kept["org"],
            installed_at=0.0,
        )

    async def async_delete_bot(self, *, enterprise_id: str | None, team_id: str | None) -> None:
        """The app was taken out."""
        await self._vault.forget("" if team_id else enterprise_id or "", team_id or "")

    async def async_delete_installation(
        self, *, enterprise_id: str | None, team_id: str | None, user_id: str | None = None
    ) -> None:
        """The same."""
        if user_id is None:
            await self.async_delete_bot(enterprise_id=enterprise_id, team_id=team_id)


class Installed:
    """What the rest of the adapter asks (`workspaces.Known`), with tokens renewed that are about to end."""

    def __init__(self, oauth: OAuth, vault: Vault, client: AsyncWebClient) -> None:
        self._oauth, self._client = oauth, client
        self.store = Installations(vault)
        self._states = States(vault)
        self._rotator = AsyncTokenRotator(client_id=oauth.client_id, client_secret=oauth.client_secret, client=client)

    async def token(self, team: str, enterprise: str, *, org_wide: bool) -> str | None:
        """The bot's token of an installation, None when there is none."""
        bot = await self.store.async_find_bot(
            enterprise_id=enterprise or None, team_id=team or None, is_enterprise_install=org_wide
        )
        if bot is None:
            return None
        if bot.bot_refresh_token:
            try:
                renewed = await self._rotator.perform_bot_token_rotation(bot=bot, minutes_before_expiration=ROTATE_BEFORE)
            except SlackTokenRotationError as error:
                log.warning("a token could not be renewed: %s", type(error).__name__)
                return bot.bot_token
            if renewed is not None:
                await self.store.async_save_bot(renewed)
                return renewed.bot_token
        return bot.bot_token

    async def forget(self, team: str, enterprise: str, token: str) -> None:
        """The app was taken out, if nobody has put it in again meanwhile."""
        bot = await self.store.async_find_bot(
            enterprise_id=enterprise or None, team_id=team or None, is_enterprise_install=not team
        )
        if bot is not None and bot.bot_token == token:
            await self.store.async_delete_bot(
                enterprise_id=bot.enterprise_id, team_id=None if bot.is_enterprise_install else bot.team_id
            )

    def flow(self) -> AsyncOAuthFlow:
        """The pages under which a workspace installs the app."""
        settings = AsyncOAuthSettings(
            client_id=self._oauth.client_id,
            client_secret=self._oauth.client_secret,
            scopes=sorted(SCOPES),
            user_scopes=[],
            redirect_uri=self._oauth.public_url.rstrip("/") + REDIRECT,
            install_path=INSTALL,
            redirect_uri_path=REDIRECT,
            installation_store=self.store,
            installation_store_bot_only=True,
            state_store=self._states,
            state_expiration_seconds=int(STATE_LIFE.total_seconds()),
            logger=logging.getLogger("slack_bolt"),
        )
        return AsyncOAuthFlow(client=self._client, logger=logging.getLogger("slack_bolt"), settings=settings)
