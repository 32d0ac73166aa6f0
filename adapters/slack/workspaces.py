"""The workspaces that the app is installed in, each with a client that speaks with its token."""

from __future__ import annotations

import asyncio
import logging
import math
import time
from collections.abc import AsyncIterator, Callable, Iterable, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field, replace
from typing import Any, Protocol

import aiohttp
from slack_sdk.errors import SlackApiError
from slack_sdk.web.async_client import AsyncWebClient

from adapters.slack.names import Scope
from adapters.slack.settings import SCOPES, Settings

log = logging.getLogger(__name__)

BELIEVED = 600.0
"""Seconds for which the token of an installation is not looked up again."""
TIMEOUT = 20
"""Seconds of one call."""
DEAD_TOKEN = frozenset(
    ("invalid_auth", "not_authed", "account_inactive", "token_revoked", "token_expired", "team_disabled", "org_login_required")
)
"""Errors that no repetition mends while the token stays the same."""


class PlatformRefused(Exception):
    """Slack refuses for good; the text is a line for the operator."""


@dataclass(frozen=True, slots=True)
class Workspace:
    """One installation: of a workspace, or of a whole organisation (`team` empty then). `bot_user` and `bot_id` are the bot's own.

    `good_until`: until when (monotonic seconds) its token need not be looked up again, as it may be renewed.
    """

    team: str
    enterprise: str
    bot_user: str
    bot_id: str
    client: AsyncWebClient = field(repr=False, compare=False)
    token: str = field(repr=False, compare=False)
    token_env: str = ""
    good_until: float = math.inf

    @property
    def key(self) -> str:
        """What it is known under."""
        return self.team or self.enterprise


class Known(Protocol):
    """Where installations come from that were not named in the configuration."""

    async def token(self, team: str, enterprise: str, *, org_wide: bool) -> str | None:
        """The bot's token of an installation; None when there is none."""
        ...

    async def forget(self, team: str, enterprise: str, token: str) -> None:
        """The app was taken out of a workspace; an installation with another token is a newer one and stays."""
        ...


def error_of(error: SlackApiError) -> str:
    """Slack's own code of a refusal."""
    response: Any = error.response
    data = response.data if hasattr(response, "data") else response
    return str(data.get("error", "")) if isinstance(data, Mapping) else ""


class Clients:
    """Makes clients that share one pool of connections. Calls are repeated nowhere: the library would post twice after a lost answer."""

    def __init__(self, base: str) -> None:
        self._base = base.rstrip("/") + "/"
        self.session: aiohttp.ClientSession | None = None

    @asynccontextmanager
    async def opened(self) -> AsyncIterator[None]:
        """Keep connections open for as long as the context is."""
        timeout = aiohttp.ClientTimeout(total=TIMEOUT)
        connector = aiohttp.TCPConnector(limit=100, keepalive_timeout=10)
        async with aiohttp.ClientSession(timeout=timeout, connector=connector, trust_env=True) as self.session:
            yield
        self.session = None

    def client(self, token: str | None = None) -> AsyncWebClient:
        """A client of one token."""
        quiet = logging.getLogger("slack_sdk.web")
        quiet.setLevel(logging.WARNING)
        return AsyncWebClient(
            token=token, base_url=self._base, timeout=TIMEOUT, session=self.session, retry_handlers=[], logger=quiet, ssl=None
        )


class Workspaces:
    """The workspaces by team, by organisation, and by the channels that were seen in them."""

    def __init__(self, settings: Settings, clients: Clients, say: Callable[[str], None], known: Known | None = None) -> None:
        self._settings, self._clients, self._say, self._known = settings, clients, say, known
        self._by_key: dict[str, Workspace] = {}
        self._channels: dict[str, str] = {}
        self._gone: set[str] = set()
        self.empty = asyncio.Event()
        """Set when the last workspace has thrown the app out."""

    async def sign_in(self) -> None:
        """Ask Slack who the configured tokens are. Raises Refused for a wrong one, another error when Slack cannot be reached."""
        for tokens in self._settings.tokens:
            try:
                self._add(await self._asked(tokens.bot, tokens.bot_env))
            except SlackApiError as error:
                if (code := error_of(error)) in DEAD_TOKEN:
                    raise PlatformRefused(
                        f"slack.bot_token_env: Slack does not accept the token in {tokens.bot_env} ({code}); it is wrong or was revoked. "
                        "Copy the Bot User OAuth Token (xoxb-) anew from your app's page (OAuth & Permissions)."
                    ) from error
                raise

    async def _asked(self, token: str, env: str = "") -> Workspace:
        client = self._clients.client(token)
        answer = await client.auth_test()
        missing = SCOPES - set(str(answer.headers.get("x-oauth-scopes", "")).replace(" ", "").split(","))
        if missing != SCOPES and missing:
            log.warning(
                "Slack: the app lacks scopes (%s); make the manifest anew (`bot slack manifest`) and reinstall",
                " ".join(sorted(missing)),
            )
        data: Any = answer.data
        org_wide = bool(data.get("is_enterprise_install"))
        return Workspace(
            "" if org_wide else str(data.get("team_id") or ""),
            str(data.get("enterprise_id") or ""),
            str(data.get("user_id") or ""),
            str(data.get("bot_id") or ""),
            client,
            token,
            env,
        )

    def _add(self, workspace: Workspace) -> Workspace:
        self._by_key[workspace.key] = workspace
        self._gone.discard(workspace.key)
        return workspace

    @property
    def all(self) -> tuple[Workspace, ...]:
        """Every workspace that is known now."""
        return tuple(self._by_key.values())

    async def of(self, scope: Scope) -> Workspace | None:
        """The installation that an event is for; None when there is none."""
        found = self._by_key.get(scope.team) or self._by_key.get(scope.enterprise)
        if self._known is None or (found is not None and time.monotonic() < found.good_until):
            return found
        token = await self._known.token(scope.team, scope.enterprise, org_wide=scope.org_wide)
        if not token:
            return found
        if found is not None and found.token == token:
            return self._add(replace(found, good_until=time.monotonic() + BELIEVED))
        try:
            return self._add(replace(await self._asked(token), good_until=time.monotonic() + BELIEVED))
        except SlackApiError as error:
            if error_of(error) not in DEAD_TOKEN:
                raise
            await self._known.forget(scope.team, scope.enterprise, token)
            return None

    async def named(self, name: str) -> Workspace | None:
        """Who serves a workspace or an organisation, by its id: its own installation, else one of its organisation, or of a part of it."""
        org = name.startswith("E")
        if found := await self.of(Scope("" if org else name, name if org else "", org)):
            return found
        if org:
            return next((one for one in self._by_key.values() if one.enterprise == name), None)
        whole = [one for one in self._by_key.values() if not one.team]
        return whole[0] if len(whole) == 1 and name not in self._gone else None

    async def for_channel(self, channel: str, workspace: str = "") -> Workspace | None:
        """Who may speak in a channel: where it was seen last, else of the workspace named, else the only one there is."""
        key = self._channels.get(channel) or workspace
        if key and (found := await self.named(key)):
            return found
        if key and key in self._gone:
            return None
        return next(iter(self._by_key.values())) if len(self._by_key) == 1 and not key else None

    def seen(self, channel: str, workspace: Workspace) -> None:
        """A channel belongs to an installation."""
        self._channels[channel] = workspace.key

    def load(self, channels: Iterable[tuple[str, str]]) -> None:
        """Channels of an earlier process, with the workspace that each was in."""
        for channel, workspace in channels:
            self._channels.setdefault(channel, workspace)

    async def gone(self, workspace: Workspace, why: str) -> None:
        """The app or its token is no longer accepted there: nothing more is sent, what waits is kept, the operator hears of it once."""
        if self._by_key.pop(workspace.key, None) is None:
            return
        self._gone.add(workspace.key)
        if not self._by_key:
            self.empty.set()
        if self._known is not None and not workspace.token_env:
            await self._known.forget(workspace.team, workspace.enterprise, workspace.token)
        where = f"the token in {workspace.token_env}" if workspace.token_env else "its installation"
        self._say(
            f"Slack: workspace {workspace.key} no longer accepts {where} ({why}). Nothing more is sent there, replies are kept. "
            "Install the app again, then start the bot anew."
        )
