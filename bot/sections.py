"""The sections of the configuration: what each key may hold and its default. `config.yaml` explains every one."""

import re
from datetime import date
from pathlib import Path
from typing import Annotated, Literal, Self

from psycopg import ProgrammingError
from psycopg.conninfo import conninfo_to_dict
from pydantic import AfterValidator, BaseModel, BeforeValidator, ConfigDict, Field, field_validator, model_validator
from pydantic_settings import NoDecode
from redis.asyncio import ConnectionPool

Share = Annotated[float, Field(gt=0, le=1, allow_inf_nan=False)]
Seconds = Annotated[float, Field(ge=0, le=86_400, allow_inf_nan=False)]
Count = Annotated[int, Field(ge=1, le=1_000_000)]


def _nothing(value: object) -> object:
    return None if value == "" else value


def _listed(value: object) -> object:
    return [part.strip() for part in value.split(",") if part.strip()] if isinstance(value, str) else value


_HOST = re.compile(r"[a-z]+://([^\s/?#]*@)?([\w.-]+|\[[0-9a-fA-F:.]+\])(:(?P<port>\d{1,5}))?([/?#]\S*)?")


def is_address(url: str, *schemes: str) -> bool:
    """Whether a text is an address with one of the schemes, a host, and a port that exists where it names one."""
    found = _HOST.fullmatch(url)
    return (
        url.startswith(tuple(f"{scheme}://" for scheme in schemes)) and found is not None and 0 < int(found["port"] or 1) < 65_536
    )


def _path(text: str) -> str:
    try:
        Path(text).expanduser()
    except RuntimeError:
        raise ValueError("must be a path; there is no such home folder") from None
    if not text.isprintable():
        raise ValueError("must be a path without control characters")
    return text


class Section(BaseModel):
    """A section: unknown keys are refused, values do not change after the start."""

    model_config = ConfigDict(extra="forbid", frozen=True)


class Data(Section):
    """Where the bot keeps what it owns."""

    folder: Annotated[str, Field(min_length=1), AfterValidator(_path)] = "data"


class Database(Section):
    """An external PostgreSQL; empty: the one inside."""

    url: str = ""
    pool: Annotated[int, Field(ge=4, le=200)] = 20

    @field_validator("url")
    @classmethod
    def _address(cls, url: str) -> str:
        if url and not re.match(r"postgres(ql)?://", url):
            raise ValueError("must be an address that begins with postgresql://, or empty for the PostgreSQL inside")
        try:
            conninfo_to_dict(url)
        except ProgrammingError:
            raise ValueError(
                "is no address that PostgreSQL can read: postgresql://keepsake_bot:PASSWORD@HOST:PORT/DATABASE"
            ) from None
        return url


class Redis(Section):
    """An external Redis; empty: the one inside."""

    url: str = ""

    @field_validator("url")
    @classmethod
    def _address(cls, url: str) -> str:
        if url and not re.match(r"(rediss?|unix)://", url):
            raise ValueError("must be an address that begins with redis://, rediss:// or unix://, or empty for the Redis inside")
        try:
            if url:
                ConnectionPool.from_url(url).make_connection()  # type: ignore[no-untyped-call]  # opens nothing
        except (ValueError, TypeError):
            raise ValueError("is no address that Redis' client can read: redis://:PASSWORD@HOST:PORT/NUMBER") from None
        return url


class Model(Section):
    """The language model: any OpenAI-compatible endpoint."""

    base_url: str = ""
    api_key_env: str = ""
    chat: str = ""
    summary: str = ""
    filter: str = ""
    embedding: str = ""
    fallback: str = ""
    fallback_url: str = ""
    fallback_key_env: str = ""
    calls: Literal["auto", "native", "schema"] = "auto"
    sees_images: bool = False
    image_tokens: Annotated[int, Field(ge=0, le=100_000)] = 1200
    image_bytes: Annotated[int, Field(ge=10_000, le=20_000_000)] = 4_000_000
    timeout: Annotated[float, Field(gt=0, le=3600, allow_inf_nan=False)] = 120
    temperature: Annotated[Annotated[float, Field(ge=0, le=2, allow_inf_nan=False)] | None, BeforeValidator(_nothing)] = None

    @field_validator("base_url", "fallback_url")
    @classmethod
    def _address(cls, url: str) -> str:
        if url and not is_address(url, "http", "https"):
            raise ValueError("must be an address that begins with http:// or https://, or empty")
        return url.rstrip("/")

    @field_validator("api_key_env", "fallback_key_env")
    @classmethod
    def _name(cls, name: str) -> str:
        if name and not re.fullmatch(r"[A-Za-z_][A-Za-z0-9_]{0,63}", name):
            raise ValueError("must be the name of an environment variable, never the key itself")
        return name

    @model_validator(mode="after")
    def _named(self) -> Self:
        if (self.base_url or self.api_key_env) and not self.chat:
            raise ValueError("model.chat: is empty. Name the chat model of your endpoint there.")
        return self


class Context(Section):
    """How much the model sees, and when the queue manager warns and flushes."""

    budget: Annotated[int, Field(ge=2000, le=2_000_000)] = 16_000
    reply_reserve: Annotated[int, Field(ge=64, le=100_000)] = 1500
    warning: Share = 0.70
    flush: Share = 1.0
    evict: Annotated[float, Field(gt=0, lt=1, allow_inf_nan=False)] = 0.5
    fixed_limit: Annotated[float, Field(gt=0, lt=1, allow_inf_nan=False)] = 0.6

    @model_validator(mode="after")
    def _ordered(self) -> Self:
        if self.warning >= self.flush:
            raise ValueError("context.warning: must be below context.flush. Lower context.warning.")
        if self.reply_reserve > self.budget // 2:
            raise ValueError("context.reply_reserve: must be at most half of context.budget. Lower it, or raise the budget.")
        return self


class Prices(Section):
    """What a million tokens of one model cost."""

    prompt: Annotated[float, Field(ge=0, allow_inf_nan=False)]
    cached: Annotated[float, Field(ge=0, allow_inf_nan=False)]
    completion: Annotated[float, Field(ge=0, allow_inf_nan=False)]


class Turn(Section):
    """How much one turn may do."""

    passes: Annotated[int, Field(ge=1, le=200)] = 24
    memory_calls: Annotated[int, Field(ge=0, le=1000)] = 16
    memory_writes: Annotated[int, Field(ge=0, le=1000)] = 8
    seconds: Annotated[float, Field(gt=0, le=86_400, allow_inf_nan=False)] = 300
    tokens: Annotated[int, Field(ge=1000, le=100_000_000)] = 250_000


class Budget(Section):
    """What model calls may cost a day; 0 is no limit. Money is in the currency of the prices."""

    person_tokens: Annotated[int, Field(ge=0, le=10**12)] = 0
    person_money: Annotated[float, Field(ge=0, le=10**9, allow_inf_nan=False)] = 0
    bot_tokens: Annotated[int, Field(ge=0, le=10**12)] = 0
    bot_money: Annotated[float, Field(ge=0, le=10**9, allow_inf_nan=False)] = 0
    prices: dict[str, Prices] = Field(default_factory=dict)

    @model_validator(mode="after")
    def _priced(self) -> Self:
        if (self.person_money or self.bot_money) and not self.prices:
            raise ValueError("budget.prices: is empty, so no money can be counted. Name the price of your models there.")
        return self


class Engine(Section):
    """Inbox, worker and outbox."""

    debounce: Seconds = 1.5
    debounce_cap: Seconds = 6
    attempts: Annotated[int, Field(ge=1, le=100)] = 5
    give_up_hours: Annotated[float, Field(gt=0, le=720, allow_inf_nan=False)] = 24
    concurrency: Count = 200
    shutdown_grace: Seconds = 20

    @model_validator(mode="after")
    def _ordered(self) -> Self:
        if self.debounce_cap < self.debounce:
            raise ValueError("engine.debounce_cap: must not be below engine.debounce. Raise it.")
        return self


class PersonaFile(Section):
    """Where the persona is written down."""

    file: Annotated[str, AfterValidator(_path)] = ""


class Console(Section):
    """The terminal."""

    user: Annotated[str, Field(max_length=64)] = ""

    @field_validator("user")
    @classmethod
    def _id(cls, user: str) -> str:
        if re.search(r"[:\s]", user) or not user.isprintable():
            raise ValueError("must be a name without blanks and colons, or empty for the name of the system's user")
        return user


class ListeningIn(Section):
    """What is listened to in one guild or channel; a key left out: as in general."""

    mentions: bool | None = None
    replies: bool | None = None
    threads: bool | None = None


def _digits(text: str) -> str:
    if not re.fullmatch(r"[0-9]{1,20}", text):
        raise ValueError("must be Discord's ids, which are digits (Developer Mode, Copy ID), and no names")
    return text


Ids = Annotated[tuple[Annotated[str, BeforeValidator(str), AfterValidator(_digits)], ...], NoDecode, BeforeValidator(_listed)]


class Discord(Section):
    """Discord; on when the variable that `token_env` names is set."""

    token_env: str = "DISCORD_TOKEN"
    message_content: bool = False
    members: bool = False
    presences: bool = False
    mentions: bool = True
    replies: bool = True
    threads: bool = True
    places: dict[str, ListeningIn] = Field(default_factory=dict)
    allow: Ids = ()
    deny: Ids = ()
    bots: Ids = ()
    daily_limit: Annotated[int, Field(ge=0, le=1_000_000)] = 0
    context_messages: Annotated[int, Field(ge=0, le=100)] = 15
    attachment_bytes: Annotated[int, Field(ge=0, le=1_000_000)] = 65_536
    streaming: bool = False
    on_delete: Literal["erase", "mark"] = "erase"
    catch_up_hours: Annotated[float, Field(gt=0, le=720, allow_inf_nan=False)] = 24
    catch_up_messages: Annotated[int, Field(ge=0, le=10_000)] = 1000
    join_channels: Ids = ()
    login_events: bool = False
    sharded: bool = False
    silence: Annotated[float, Field(ge=1, le=600, allow_inf_nan=False)] = 60
    restart_cap: Annotated[float, Field(gt=0, le=3600, allow_inf_nan=False)] = 60
    api_base: str = ""
    gateway: str = ""

    @field_validator("token_env")
    @classmethod
    def _name(cls, name: str) -> str:
        if name and not re.fullmatch(r"[A-Za-z_][A-Za-z0-9_]{0,63}", name):
            raise ValueError("must be the name of an environment variable, never the token itself")
        return name

    @field_validator("places", mode="before")
    @classmethod
    def _named(cls, places: object) -> object:
        return {str(name): value for name, value in places.items()} if isinstance(places, dict) else places

    @field_validator("api_base")
    @classmethod
    def _address(cls, url: str) -> str:
        if url and not is_address(url, "http", "https"):
            raise ValueError("must be an address that begins with http:// or https://, or empty for Discord's own")
        return url

    @field_validator("gateway")
    @classmethod
    def _socket(cls, url: str) -> str:
        if url and not is_address(url, "ws", "wss"):
            raise ValueError("must be an address that begins with ws:// or wss://, or empty for Discord's own")
        return url


class Access(Section):
    """Who may act across people."""

    operators: Annotated[tuple[str, ...], NoDecode, BeforeValidator(_listed)] = ()
    admins: dict[str, tuple[Annotated[str, BeforeValidator(str)], ...]] = Field(default_factory=dict)
    admins_see_direct: Annotated[date | None, BeforeValidator(_nothing)] = None

    @field_validator("admins", mode="before")
    @classmethod
    def _workspaces(cls, admins: object) -> object:
        return {str(workspace): ids for workspace, ids in admins.items()} if isinstance(admins, dict) else admins

    @field_validator("operators")
    @classmethod
    def _ids(cls, operators: tuple[str, ...]) -> tuple[str, ...]:
        if not all(re.fullmatch(r"[a-z]+:[^:\s]*:\S+", operator) for operator in operators):
            raise ValueError("must list people as platform:realm:user, for example console::ada or slack:T024BE7LD:U061F7AUR")
        return operators


class Log(Section):
    """What the bot writes about itself; never message text."""

    level: Literal["debug", "info", "warning", "error"] = "info"
    format: Literal["text", "json"] = "text"


def is_host_and_port(text: str) -> bool:
    """Whether a text names an address to listen at: `127.0.0.1:8080`, `[::1]:8080`."""
    found = re.fullmatch(r"(?:[^\s:\[\]]+|\[[0-9a-fA-F:]+\]):(\d{1,5})", text)
    return found is not None and 0 < int(found[1]) < 65_536


class Health(Section):
    """An address for probes and metrics."""

    bind: str = ""

    @field_validator("bind")
    @classmethod
    def _address(cls, bind: str) -> str:
        if bind and not is_host_and_port(bind):
            raise ValueError("must be host:port, for example 127.0.0.1:8080, or empty for none")
        return bind
