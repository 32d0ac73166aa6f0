"""The section of the configuration about Slack."""

import re
from typing import Annotated, Literal

from pydantic import AfterValidator, BeforeValidator, Field, field_validator
from pydantic_settings import NoDecode

from bot.config.sections import ConfigSection, is_address, is_host_and_port, listed


def _shaped(pattern: str, must: str) -> AfterValidator:
    """A text of a shape, with what is said of any other. The value is never quoted."""

    def check(text: str) -> str:
        if not re.fullmatch(pattern, text):
            raise ValueError(must)
        return text

    return AfterValidator(check)


Variable = Annotated[
    str, _shaped(r"([A-Za-z_][A-Za-z0-9_]{0,63})?", "must be the name of an environment variable, never the token itself")
]
SlackId = Annotated[
    str, BeforeValidator(str), _shaped(r"[A-Z][A-Z0-9]{1,30}", "must be Slack's ids, such as C024BE91L, and no names")
]
SlackIds = Annotated[tuple[SlackId, ...], NoDecode, BeforeValidator(listed)]

Prompts = Annotated[
    tuple[Annotated[str, Field(min_length=1, max_length=75)], ...], Field(max_length=4), NoDecode, BeforeValidator(listed)
]


class SlackTokensSection(ConfigSection):
    """The names of the variables with one more workspace's tokens."""

    bot_token_env: Annotated[Variable, Field(min_length=1)]
    """The NAME of the variable with this workspace's bot token."""
    app_token_env: Variable = ""
    """The NAME of the variable with this workspace's app-level token (Socket Mode)."""
    signing_secret_env: Variable = ""
    """The NAME of the variable with this app's signing secret (HTTP mode)."""


class SlackPlaceSection(ConfigSection):
    """What applies in one workspace or channel. A key left out keeps the general choice."""

    mentions: bool | None = None
    """Overrides `slack.mentions` here."""
    threads: bool | None = None
    """Overrides `slack.threads` here."""
    daily_limit: Annotated[int, Field(ge=0, le=1_000_000)] | None = None
    """Overrides `slack.daily_limit` here (workspaces only)."""


class SlackSection(ConfigSection):
    """Slack. It is switched on by setting the variable that `slack.bot_token_env` names, or those of the app's own credentials."""

    bot_token_env: Variable = "SLACK_BOT_TOKEN"
    """The NAME of the environment variable that holds the bot's token (`xoxb-`). If that variable is set, `bot run` connects to
    Slack."""
    app_token_env: Variable = "SLACK_APP_TOKEN"
    """The NAME of the variable with the app-level token (`xapp-`) for Socket Mode, in which you need no public address."""
    signing_secret_env: Variable = "SLACK_SIGNING_SECRET"
    """The NAME of the variable with the signing secret for HTTP mode."""
    workspaces: tuple[SlackTokensSection, ...] = ()
    """The tokens of further workspaces. Example: `workspaces: [{bot_token_env: ACME_BOT_TOKEN, app_token_env: ACME_APP_TOKEN}]`."""
    bind: str = ""
    """The `host:port` on which events arrive over HTTP (path `/slack/events`), for example `127.0.0.1:3000`. Empty: Socket Mode."""
    public_url: str = ""
    """The public address that leads to `slack.bind`, for the manifest and for workspaces that install the app themselves."""
    client_id_env: Variable = "SLACK_CLIENT_ID"
    """The NAME of the variable with the app's client id."""
    client_secret_env: Variable = "SLACK_CLIENT_SECRET"
    """The NAME of the variable with the app's client secret. With both, `slack.bind` and `slack.public_url`, workspaces can install
    the app themselves at `/slack/install`; their tokens are kept in the database."""
    command: Annotated[
        str, _shaped(r"/[a-z0-9_-]{1,31}", "must be a slash and at most 31 small letters, digits, - and _, such as /keepsake")
    ] = "/keepsake"
    """The slash command, as in the app's manifest."""
    mentions: bool = True
    """In channels, answer when mentioned. `@channel`, `@here` and group mentions do not count. Direct messages are always answered.
    """
    threads: bool = True
    """In channels, follow the threads the bot takes part in. It may decide to stay silent there."""
    answer_in_thread: bool = True
    """Answer a mention in a thread under it. `false`: in the channel itself."""
    places: dict[str, SlackPlaceSection] = Field(default_factory=dict)
    """Different choices for single workspaces and channels, by id; `daily_limit` for workspaces only. Example: `places:
    {"C024BE91L": {mentions: false}, "T024BE7LD": {daily_limit: 100}}`."""
    allow: SlackIds = ()
    """Ids of the workspaces and channels the bot takes part in. Empty: all of them."""
    deny: SlackIds = ()
    """Ids of workspaces and channels the bot keeps out of. This list takes precedence over `slack.allow`."""
    bots: SlackIds = ()
    """Ids of other bots (`B...` or `U...`) that the bot answers. A guard ends endless exchanges. Empty: none."""
    strangers: bool = False
    """Whether the bot talks with, and remembers, people from other organisations in shared channels. `false`: it tells them once
    that it does not."""
    daily_limit: Annotated[int, Field(ge=0, le=1_000_000)] = 0
    """How many messages of one person are accepted per day (UTC). 0: no limit. The person is told once."""
    context_messages: Annotated[int, Field(ge=0, le=100)] = 15
    """How many messages before a mention are passed to the agent as quotes under their authors' names. 0: none."""
    attachment_bytes: Annotated[int, Field(ge=0, le=1_000_000)] = 65_536
    """How much of an attached text file is read, in bytes. The agent is told when something is cut off. 0: files are only named."""
    streaming: bool = False
    """Whether a reply appears while the model is still writing it."""
    on_delete: Literal["erase", "mark"] = "erase"
    """What happens when a message is deleted on Slack. `erase` removes the message and everything derived from it from all memory,
    including quotes in other people's memory; `mark` keeps it, marked as deleted."""
    prompts: Prompts = ("What do you remember about me?", "What can you do?")
    """Up to four opening lines, of at most 75 characters each, suggested to people who open the conversation."""
    join_channels: SlackIds = ()
    """Ids of channels in which the bot notices people who join the workspace. Empty: joining causes no event."""
    login_events: bool = False
    """Whether opening the app is an event for people who agreed to be written to first."""
    silence: Annotated[float, Field(ge=1, le=600, allow_inf_nan=False)] = 60
    """How long the connection may be silent before it is replaced, in seconds."""
    refresh: Annotated[float, Field(ge=1, le=86_400, allow_inf_nan=False)] = 600
    """How long no event may arrive, in seconds, before the connection is replaced as a precaution."""
    restart_cap: Annotated[float, Field(gt=0, le=3600, allow_inf_nan=False)] = 60
    """The longest pause between two attempts to connect, in seconds."""
    api_base: str = ""
    """Another address for the Web API, for proxies and tests. Empty: Slack's own."""

    @field_validator("bind")
    @classmethod
    def _address(cls, bind: str) -> str:
        if bind and not is_host_and_port(bind):
            raise ValueError("must be host:port, for example 127.0.0.1:3000, or empty for Socket Mode")
        return bind

    @field_validator("api_base", "public_url")
    @classmethod
    def _url(cls, url: str) -> str:
        if url and not is_address(url, "http", "https"):
            raise ValueError("must be an address that begins with http:// or https://, or empty")
        return url
