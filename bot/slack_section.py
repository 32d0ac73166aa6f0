"""The section of the configuration about Slack. `config.yaml` explains every key."""

import re
from typing import Annotated, Literal

from pydantic import AfterValidator, BeforeValidator, Field, field_validator
from pydantic_settings import NoDecode

from bot.sections import Section, _listed, is_address, is_host_and_port


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
SlackIds = Annotated[tuple[SlackId, ...], NoDecode, BeforeValidator(_listed)]

Prompts = Annotated[
    tuple[Annotated[str, Field(min_length=1, max_length=75)], ...], Field(max_length=4), NoDecode, BeforeValidator(_listed)
]


class SlackTokens(Section):
    """The names of the variables with one more workspace's tokens."""

    bot_token_env: Annotated[Variable, Field(min_length=1)]
    app_token_env: Variable = ""
    signing_secret_env: Variable = ""


class SlackPlace(Section):
    """What holds in one workspace or channel; a key left out: as in general."""

    mentions: bool | None = None
    threads: bool | None = None
    daily_limit: Annotated[int, Field(ge=0, le=1_000_000)] | None = None


class Slack(Section):
    """Slack; on when the variable that `bot_token_env` names is set, or those of the app's own credentials."""

    bot_token_env: Variable = "SLACK_BOT_TOKEN"
    app_token_env: Variable = "SLACK_APP_TOKEN"
    signing_secret_env: Variable = "SLACK_SIGNING_SECRET"
    workspaces: tuple[SlackTokens, ...] = ()
    bind: str = ""
    public_url: str = ""
    client_id_env: Variable = "SLACK_CLIENT_ID"
    client_secret_env: Variable = "SLACK_CLIENT_SECRET"
    command: Annotated[
        str, _shaped(r"/[a-z0-9_-]{1,31}", "must be a slash and at most 31 small letters, digits, - and _, such as /keepsake")
    ] = "/keepsake"
    mentions: bool = True
    threads: bool = True
    answer_in_thread: bool = True
    places: dict[str, SlackPlace] = Field(default_factory=dict)
    allow: SlackIds = ()
    deny: SlackIds = ()
    bots: SlackIds = ()
    strangers: bool = False
    daily_limit: Annotated[int, Field(ge=0, le=1_000_000)] = 0
    context_messages: Annotated[int, Field(ge=0, le=100)] = 15
    attachment_bytes: Annotated[int, Field(ge=0, le=1_000_000)] = 65_536
    streaming: bool = False
    on_delete: Literal["erase", "mark"] = "erase"
    prompts: Prompts = ("What do you remember about me?", "What can you do?")
    join_channels: SlackIds = ()
    login_events: bool = False
    silence: Annotated[float, Field(ge=1, le=600, allow_inf_nan=False)] = 60
    refresh: Annotated[float, Field(ge=1, le=86_400, allow_inf_nan=False)] = 600
    restart_cap: Annotated[float, Field(gt=0, le=3600, allow_inf_nan=False)] = 60
    api_base: str = ""

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
