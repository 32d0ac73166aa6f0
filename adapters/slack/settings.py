"""What the operator chose for Slack, as values."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from adapters.triggers import ListenRules

LIMIT = 11_000
"""The most code points of one message: a markdown block takes 12,000, all blocks together about 13,200."""
COMMAND = "/keepsake"
API = "https://slack.com/api/"
PATH, INSTALL, REDIRECT = "/slack/events", "/slack/install", "/slack/oauth_redirect"
"""Where Slack and browsers find us in HTTP mode."""
SCOPES = frozenset(
    (
        "app_mentions:read",
        "assistant:write",
        "channels:history",
        "channels:read",
        "chat:write",
        "commands",
        "dnd:read",
        "files:read",
        "files:write",
        "groups:history",
        "groups:read",
        "im:history",
        "im:read",
        "im:write",
        "mpim:history",
        "mpim:read",
        "users:read",
    )
)
"""The scopes that the manifest asks for."""


@dataclass(frozen=True, slots=True)
class Tokens:
    """One workspace's tokens with the names of the variables they came from."""

    bot: str = field(repr=False)
    app: str = field(default="", repr=False)
    signing_secret: str = field(default="", repr=False)
    bot_env: str = "SLACK_BOT_TOKEN"
    app_env: str = "SLACK_APP_TOKEN"
    signing_secret_env: str = "SLACK_SIGNING_SECRET"


@dataclass(frozen=True, slots=True)
class OAuth:
    """The app's own credentials, under which workspaces install it themselves. `public_url`: where Slack and browsers reach us."""

    client_id: str
    client_secret: str = field(repr=False)
    public_url: str
    signing_secret: str = field(default="", repr=False)


@dataclass(frozen=True, slots=True)
class Settings:
    """Everything of the section `slack`, with the tokens themselves; durations are seconds. `bind` empty: Socket Mode."""

    tokens: tuple[Tokens, ...] = ()
    oauth: OAuth | None = None
    bind: str = ""
    api_base: str = API
    command: str = COMMAND
    rules: ListenRules = ListenRules()
    answer_in_thread: bool = True
    strangers: bool = False
    streaming: bool = False
    daily_limit: int = 0
    daily_limits: Mapping[str, int] = field(default_factory=dict)
    context_messages: int = 15
    attachment_bytes: int = 65_536
    image_bytes: int = 0
    mark_deleted: bool = False
    join_channels: frozenset[str] = frozenset()
    login_events: bool = False
    prompts: tuple[str, ...] = ()
    silence: float = 60
    refresh: float = 600
    restart_cap: float = 60
