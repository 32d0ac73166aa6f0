"""The section of the configuration about Discord."""

import re
from typing import Annotated, Literal

from pydantic import AfterValidator, BeforeValidator, Field, field_validator
from pydantic_settings import NoDecode

from bot.config.sections import ConfigSection, is_address, listed


class PlaceSection(ConfigSection):
    """What the bot listens to in one server, channel or thread. A key left out keeps the general choice."""

    mentions: bool | None = None
    """Overrides `discord.mentions` here."""
    replies: bool | None = None
    """Overrides `discord.replies` here."""
    threads: bool | None = None
    """Overrides `discord.threads` here."""


def _digits(text: str) -> str:
    if not re.fullmatch(r"[0-9]{1,20}", text):
        raise ValueError("must be Discord's ids, which are digits (Developer Mode, Copy ID), and no names")
    return text


Ids = Annotated[tuple[Annotated[str, BeforeValidator(str), AfterValidator(_digits)], ...], NoDecode, BeforeValidator(listed)]


class DiscordSection(ConfigSection):
    """Discord. It is switched on by setting the variable that `discord.token_env` names. Ids are found with Developer Mode, Copy ID."""

    token_env: str = "DISCORD_TOKEN"
    """The NAME of the environment variable that holds the bot's token. If that variable is set, `bot run` connects to Discord."""
    message_content: bool = False
    """Use the privileged intent Message Content. Switch it on in the developer portal too (Bot, Privileged Gateway Intents). Without
    it the bot sees only direct messages, mentions and replies to its own messages: it cannot follow threads or read what was said
    before a mention."""
    members: bool = False
    """Use the privileged intent Server Members, which join events need."""
    presences: bool = False
    """Use the privileged intent Presence, which login events need."""
    mentions: bool = True
    """In servers, answer when mentioned. `@everyone`, `@here` and role mentions do not count. Direct messages are always answered.
    """
    replies: bool = True
    """In servers, answer when somebody replies to one of the bot's messages."""
    threads: bool = True
    """In servers, follow the threads the bot takes part in. It may decide to stay silent there."""
    places: dict[str, PlaceSection] = Field(default_factory=dict)
    """Different choices for single servers, channels or threads, by id; the narrowest one applies. Example: `places: {"1234":
    {mentions: false}, "5678": {threads: false}}`."""
    allow: Ids = ()
    """Ids of the servers and channels the bot takes part in. Empty: all of them."""
    deny: Ids = ()
    """Ids of servers and channels the bot keeps out of. This list takes precedence over `discord.allow`."""
    bots: Ids = ()
    """Ids of other bots and webhooks that the bot answers. A guard ends endless exchanges. Empty: none."""
    daily_limit: Annotated[int, Field(ge=0, le=1_000_000)] = 0
    """How many messages of one person are accepted per day (UTC). 0: no limit. The person is told once."""
    context_messages: Annotated[int, Field(ge=0, le=100)] = 15
    """How many messages before a mention are passed to the agent as quotes under their authors' names. 0: none."""
    attachment_bytes: Annotated[int, Field(ge=0, le=1_000_000)] = 65_536
    """How much of an attached text file is read, in bytes. The agent is told when something is cut off. 0: files are only named."""
    streaming: bool = False
    """Whether a reply appears while the model is still writing it, by editing its message. The model is then told to reply through a
    function call, because plain text may turn out to be a private thought."""
    on_delete: Literal["erase", "mark"] = "erase"
    """What happens when a message is deleted on Discord. `erase` removes the message and everything derived from it from all memory,
    including quotes in other people's memory; `mark` keeps it, marked as deleted."""
    catch_up_hours: Annotated[float, Field(gt=0, le=720, allow_inf_nan=False)] = 24
    """How far back channels are searched for missed messages after a crash or a lost session, in hours. What is older is logged by
    channel id."""
    catch_up_messages: Annotated[int, Field(ge=0, le=10_000)] = 1000
    """How many messages of one channel are searched for that; what lies beyond is logged by channel id. 0: no catching up."""
    join_channels: Ids = ()
    """Ids of channels in which the bot notices people who join the server. Empty: joining causes no event. Needs `discord.members`.
    """
    login_events: bool = False
    """Whether coming online is an event for people who exchange direct messages with the bot and have agreed to be written to first.
    Needs `discord.presences`."""
    sharded: bool = False
    """Open several connections, which Discord requires from 2,500 servers on."""
    shards: Annotated[str, Field(pattern=r"^(\d{1,5}(-\d{1,5})?/[1-9]\d{0,4})?$")] = ""
    """Which connections of how many this process opens, `0/2` or `0-3/8`, where several processes share a bot. Empty: all of them."""
    silence: Annotated[float, Field(ge=1, le=600, allow_inf_nan=False)] = 60
    """How long the connection may be silent before it is replaced, in seconds."""
    restart_cap: Annotated[float, Field(gt=0, le=3600, allow_inf_nan=False)] = 60
    """The longest pause between two attempts to connect, in seconds."""
    api_base: str = ""
    """Another address for the API, up to and including the version, for proxies and tests. Empty: Discord's own."""
    gateway: str = ""
    """Another address for the gateway. Empty: Discord's own."""

    @field_validator("shards")
    @classmethod
    def _some_of_all(cls, shards: str) -> str:
        if shards:
            numbers = [int(number) for number in re.findall(r"\d+", shards)]
            if not numbers[0] <= numbers[-2] < numbers[-1]:
                raise ValueError("must be numbers from 0 on that are smaller than what stands behind the stroke, as in 0-3/8")
        return shards

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
