"""The sections of the configuration: what each key may hold, its default, and below it what it means.

`bot/config/documentation.py` makes docs/configuration.md of them, so each key is explained here and its default is written down nowhere else.
"""

import re
from datetime import date
from pathlib import Path
from typing import Annotated, Any, Literal, Self

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


def listed(value: object) -> object:
    """A list that the environment gives as a text with commas."""
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


class ConfigSection(BaseModel):
    """A section: unknown keys are refused, values do not change after the start. The text below a field describes it."""

    model_config = ConfigDict(extra="forbid", frozen=True, use_attribute_docstrings=True)


class DataSection(ConfigSection):
    """Where the bot keeps its files."""

    folder: Annotated[str, Field(min_length=1), AfterValidator(_path)] = "data"
    """The folder for the database, the logs and exports. A relative path starts at the folder of config.yaml. The environment
    variable `KEEPSAKE_DATA` overrides it."""


class DatabaseSection(ConfigSection):
    """The PostgreSQL that holds everything the bot remembers."""

    url: str = ""
    """The address of an external PostgreSQL 16 or newer with pgvector. Empty: the built-in PostgreSQL in the data folder. The
    address names the role `keepsake_bot` and contains its password, so set it in the environment."""
    pool: Annotated[int, Field(ge=4, le=200)] = 20
    """The maximum number of connections one process opens."""

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


class RedisSection(ConfigSection):
    """The cache."""

    url: str = ""
    """The address of an external Redis (`redis://`, `rediss://` or `unix://`). Empty: the built-in one. Redis is only a cache;
    losing it loses no data."""

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


_OWN_PARAMETERS = frozenset(
    (
        "model",
        "messages",
        "tools",
        "tool_choice",
        "functions",
        "function_call",
        "response_format",
        "stream",
        "stream_options",
        "n",
    )
)


class ModelSection(ConfigSection):
    """The language model: any OpenAI-compatible endpoint. Keys stay in the environment; the configuration holds only the names of
    their variables."""

    base_url: str = ""
    """The address of an OpenAI-compatible endpoint, up to and including `/v1`. Empty with a key: OpenAI. Empty without a key: the
    built-in rehearsal model, which is a set of rules rather than a language model."""
    api_key_env: str = ""
    """The NAME of the environment variable that holds the key, for example `OPENAI_API_KEY`. Empty: the endpoint needs no key."""
    chat: str = ""
    """The model that talks to people. It must support function calls or JSON-schema output (see `model.calls`)."""
    summary: str = ""
    """The model that summarises messages evicted from the prompt. Empty: the chat model."""
    filter: str = ""
    """A cheap model for small yes-or-no questions. Empty: the chat model."""
    embedding: str = ""
    """An embedding model of the same endpoint. Empty: the local one (16 languages, no network). Changing it embeds everything again
    in the background."""
    fallback: str = ""
    """A chat model that takes over while the first one is unavailable or refuses. Empty: none; turns wait until the first one is
    back."""
    fallback_url: str = ""
    """The address of the fallback model's endpoint. Empty: the same endpoint."""
    fallback_key_env: str = ""
    """The NAME of the environment variable that holds the fallback endpoint's key, if it has an address of its own."""
    calls: Literal["auto", "native", "schema"] = "auto"
    """How function calls are requested: `native` (the endpoint's own format), `schema` (through a JSON schema, for endpoints that
    handle calls badly) or `auto` (native, switching to schema if the endpoint refuses). `bot doctor` tells you which one fits.
    """
    stream: bool = True
    """Whether answers come in pieces, so that a slow model can be told from a dead one and a reply can grow in the chat. Off: for an
    endpoint that loses function calls in a stream; `timeout` then counts for the whole answer."""
    size: Literal["auto", "small", "large"] = "auto"
    """Which prompts the chat model gets. `small`: compact instructions, fewer functions and arguments, for models of a few billion
    parameters; fixed part at most 1,100 tokens (1,900 with `large`). `auto`: the first start tries the model with a few tasks and
    keeps the result per endpoint and model in the data folder (`models.json`)."""
    sees_images: bool = False
    """Whether the chat model can see pictures. A picture is shown to it in the turn in which it arrives and is never kept."""
    image_tokens: Annotated[int, Field(ge=0, le=100_000)] = 1200
    """What one picture counts towards `context.budget`, in tokens."""
    image_bytes: Annotated[int, Field(ge=10_000, le=20_000_000)] = 4_000_000
    """The largest picture that is shown to the model, in bytes. At most four pictures per message are shown."""
    timeout: Annotated[float, Field(gt=0, le=3600, allow_inf_nan=False)] = 120
    """The longest silence of the model, in seconds: before the first piece of an answer and between two pieces. An answer that keeps
    coming may take ten times as long."""
    temperature: Annotated[Annotated[float, Field(ge=0, le=2, allow_inf_nan=False)] | None, BeforeValidator(_nothing)] = None
    """The sampling temperature. Empty: the endpoint's own default, which some models insist on."""
    extra: dict[str, Any] = Field(default_factory=dict)
    """Any other parameters of a chat request, for every model of the endpoint. One that the endpoint refuses is left out from then on;
    one that it refuses beside function calls, beside those alone. Example: `extra: {reasoning_effort: low, seed: 7}`."""

    @field_validator("base_url", "fallback_url")
    @classmethod
    def _address(cls, url: str) -> str:
        if url and not is_address(url, "http", "https"):
            raise ValueError("must be an address that begins with http:// or https://, or empty")
        return re.sub(r"/(?:chat/completions|completions|responses|embeddings|models)$", "", url.rstrip("/")).rstrip("/")

    @field_validator("extra")
    @classmethod
    def _parameters(cls, extra: dict[str, Any]) -> dict[str, Any]:
        if own := sorted(_OWN_PARAMETERS & extra.keys()):
            raise ValueError(f"must not set {own[0]}, which the bot sets itself")
        return extra

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


RESERVE = 1500
"""Tokens of the reply's reserve in a budget that has room for them."""


class ContextSection(ConfigSection):
    """How much the model sees, and when memory pressure is relieved."""

    budget: Annotated[int, Field(ge=2000, le=2_000_000)] = 16_000
    """The size of one request in tokens, whatever the model could take. A larger budget costs more with every message; memory
    functions reach everything that does not fit. Instructions, functions and the supplied persona take at most 1,900 tokens, with
    `model.size` small 1,100; 4,000 is enough to start with."""
    reply_reserve: Annotated[int, Field(ge=64, le=100_000)] = RESERVE
    """Tokens of the budget kept free for the answer, and the maximum length of one answer. Unless set, it is at most an eighth of
    `context.budget`."""
    warning: Share = 0.70
    """The share of the budget at which the agent is warned about memory pressure."""
    flush: Share = 1.0
    """The share of the budget at which the oldest messages are moved into a summary."""
    evict: Annotated[float, Field(gt=0, lt=1, allow_inf_nan=False)] = 0.5
    """The share of the space left by the fixed part (instructions, functions, persona) that a flush evicts."""
    fixed_limit: Annotated[float, Field(gt=0, lt=1, allow_inf_nan=False)] = 0.6
    """The bot refuses to start when instructions, functions and persona take more than this share of the budget."""

    @model_validator(mode="before")
    @classmethod
    def _reserved(cls, values: object) -> object:
        budget = str(values.get("budget", "")) if isinstance(values, dict) and "reply_reserve" not in values else ""
        if isinstance(values, dict) and budget.isdecimal() and int(budget) < 8 * RESERVE:
            return {**values, "reply_reserve": max(64, int(budget) // 8)}
        return values

    @model_validator(mode="after")
    def _ordered(self) -> Self:
        if self.warning >= self.flush:
            raise ValueError("context.warning: must be below context.flush. Lower context.warning.")
        if self.reply_reserve > self.budget // 2:
            raise ValueError("context.reply_reserve: must be at most half of context.budget. Lower it, or raise the budget.")
        return self


class PricesSection(ConfigSection):
    """What a million tokens of one model cost."""

    prompt: Annotated[float, Field(ge=0, allow_inf_nan=False)]
    """The price of a million prompt tokens."""
    cached: Annotated[float, Field(ge=0, allow_inf_nan=False)]
    """The price of a million prompt tokens that the endpoint had cached."""
    completion: Annotated[float, Field(ge=0, allow_inf_nan=False)]
    """The price of a million tokens that the model writes."""


class TurnSection(ConfigSection):
    """What one turn (everything done for one message) may use before the model must answer."""

    passes: Annotated[int, Field(ge=1, le=200)] = 24
    """The maximum number of model calls in one turn."""
    memory_calls: Annotated[int, Field(ge=0, le=1000)] = 16
    """The maximum number of memory function calls in one turn. Following a chain of facts takes one call more than the chain has
    links, and each link may be on a second page of results; 16 allows a chain of six with paging and some storing. A low bound
    saves little and breaks chains."""
    memory_writes: Annotated[int, Field(ge=0, le=1000)] = 8
    """How many of those calls may change memory."""
    seconds: Annotated[float, Field(gt=0, le=86_400, allow_inf_nan=False)] = 300
    """The time limit of one turn, in seconds from its first model call."""
    tokens: Annotated[int, Field(ge=1000, le=100_000_000)] = 250_000
    """The maximum number of tokens that the model reads and writes in one turn, over all passes."""


class BudgetSection(ConfigSection):
    """What model calls may cost per day (UTC), over all processes. A person is told once a day when a budget is spent; what they
    write then is kept. `bot usage show` shows the state, `bot usage reset` starts the day over."""

    person_tokens: Annotated[int, Field(ge=0, le=10**12)] = 0
    """Tokens per person and day. 0: no limit."""
    person_money: Annotated[float, Field(ge=0, le=10**9, allow_inf_nan=False)] = 0
    """Money per person and day, in the currency of `budget.prices`. 0: no limit."""
    bot_tokens: Annotated[int, Field(ge=0, le=10**12)] = 0
    """Tokens per day for the whole bot. 0: no limit."""
    bot_money: Annotated[float, Field(ge=0, le=10**9, allow_inf_nan=False)] = 0
    """Money per day for the whole bot, in the currency of `budget.prices`. 0: no limit."""
    prices: dict[str, PricesSection] = Field(default_factory=dict)
    """The price of a million tokens by model; `default` applies to all other models. Example: `prices: {default: {prompt: 2.5,
    cached: 1.25, completion: 10.0}}`."""

    @model_validator(mode="after")
    def _priced(self) -> Self:
        if (self.person_money or self.bot_money) and not self.prices:
            raise ValueError("budget.prices: is empty, so no money can be counted. Name the price of your models there.")
        return self


class EngineSection(ConfigSection):
    """The queue, the worker and the delivery of replies."""

    debounce: Seconds = 1.5
    """How long to wait for another message of the same burst, in seconds, so that several short messages get one answer. 0: do not
    wait."""
    debounce_cap: Seconds = 6
    """The longest that a burst may delay an answer, in seconds."""
    attempts: Annotated[int, Field(ge=1, le=100)] = 5
    """How often a turn may crash before its messages become dead letters."""
    give_up_hours: Annotated[float, Field(gt=0, le=720, allow_inf_nan=False)] = 24
    """How long an unavailable model is retried, in hours, before the messages become dead letters."""
    concurrency: Count = 200
    """How many turns run at the same time in one process."""
    shutdown_grace: Seconds = 20
    """How long running turns may take to finish when the bot is told to stop, in seconds. Unfinished turns are handed back."""

    @model_validator(mode="after")
    def _ordered(self) -> Self:
        if self.debounce_cap < self.debounce:
            raise ValueError("engine.debounce_cap: must not be below engine.debounce. Raise it.")
        return self


class PersonaSection(ConfigSection):
    """Who the bot is."""

    file: Annotated[str, AfterValidator(_path)] = ""
    """The file that describes who the bot is. Empty: the one that comes with Keepsake (`bot/prompts/persona.yaml`). A relative path
    starts at the folder of config.yaml."""


class ConsoleSection(ConfigSection):
    """The terminal."""

    user: Annotated[str, Field(max_length=64)] = ""
    """Your name in the terminal; your memory is kept under it. Empty: the name of your account on the system."""

    @field_validator("user")
    @classmethod
    def _id(cls, user: str) -> str:
        if re.search(r"[:\s]", user) or not user.isprintable():
            raise ValueError("must be a name without blanks and colons, or empty for the name of the system's user")
        return user


class AccessSection(ConfigSection):
    """Who may act on other people's memory."""

    operators: Annotated[tuple[str, ...], NoDecode, BeforeValidator(listed)] = ()
    """The people who may act on other people's memory, as `platform:realm:user`, for example `console::ada`. Every such act is
    logged, and the person concerned can see it."""
    admins: dict[str, tuple[Annotated[str, BeforeValidator(str)], ...]] = Field(default_factory=dict)
    """The admins of single workspaces: the id of a Discord server or Slack workspace with the ids of its admins (people, or roles on
    Discord). Example: `admins: {"112233445566778899": ["80351110224678912"]}`. They see, export and delete only what came from
    their workspace."""
    admins_see_direct: Annotated[date | None, BeforeValidator(_nothing)] = None
    """The day (for example 2026-12-01) from which the notice at the first contact tells people that their workspace's admins can
    also see direct messages in it (Slack). Admins see those of people who received that notice. Empty: nobody else sees direct
    messages."""

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


class LogSection(ConfigSection):
    """What the bot writes about itself."""

    level: Literal["debug", "info", "warning", "error"] = "info"
    """The least severe entries that are logged."""
    format: Literal["text", "json"] = "text"
    """`text` for people, or `json` with one object per line. Neither ever contains message text."""


def is_host_and_port(text: str) -> bool:
    """Whether a text names an address to listen at: `127.0.0.1:8080`, `[::1]:8080`."""
    found = re.fullmatch(r"(?:[^\s:\[\]]+|\[[0-9a-fA-F:]+\]):(\d{1,5})", text)
    return found is not None and 0 < int(found[1]) < 65_536


class HealthSection(ConfigSection):
    """An address for probes and metrics."""

    bind: str = ""
    """The `host:port` that serves `/live`, `/ready` and `/metrics` over HTTP, for example `127.0.0.1:8080`. Empty: none."""

    @field_validator("bind")
    @classmethod
    def _address(cls, bind: str) -> str:
        if bind and not is_host_and_port(bind):
            raise ValueError("must be host:port, for example 127.0.0.1:8080, or empty for none")
        return bind
