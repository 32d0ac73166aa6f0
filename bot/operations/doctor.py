"""`bot doctor`: looks at everything the bot stands on and says what to do about each fault. Changes nothing but what a start changes."""

import json
import os
import tempfile
from collections.abc import AsyncIterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal
from urllib.parse import urlsplit

from redis.asyncio import Redis
from redis.exceptions import RedisError

from bot.config.findings import Finding, right, wrong
from bot.config.loading import Loaded
from bot.model.calls import FunctionSchema
from bot.model.client import ModelClient
from bot.model.errors import ModelError
from bot.model.messages import ChatMessage
from bot.model.replies import Reply
from bot.operations.database import inspect
from bot.operations.endpoint import what_to_do
from memory.db import Database, value
from memory.embedding import Embedder, EmbeddingError

REHEARSAL_AWAY = "The rehearsal model inside does not answer; start again, and report it if that does not help."
LOOKUP = FunctionSchema(
    "look_up",
    "Look up what is stored under a key. If the value names another key, look that one up next.",
    {
        "type": "object",
        "properties": {"key": {"type": "string", "description": "The key."}},
        "required": ["key"],
        "additionalProperties": False,
    },
)
VALUES = {"amber": "another key: birch", "birch": "the number 4711"}
QUESTION = "Which number is stored under the key amber? Use look_up until you know it, then answer with the number."
TOKENS = 800
Mode = Literal["native", "schema", "auto"]
WORDS: dict[Mode, str] = {"native": "function calls", "schema": "calls by JSON schema"}


@dataclass(frozen=True, slots=True)
class Chain:
    """How far a model came through the chain of two calls: right calls made, whether the answer was right, and wrong calls made."""

    calls: int
    answered: bool
    wrong: int = 0

    @property
    def works(self) -> bool:
        """The functions of a memory that pages need this."""
        return self.calls >= len(VALUES) and self.answered

    def __str__(self) -> str:
        if not self.calls:
            return "calls were made with wrong arguments" if self.wrong else "none was made"
        return f"{self.calls} of {len(VALUES)} made" + (
            f", {self.wrong} with wrong arguments" if self.wrong else ", the answer was wrong"
        )


def configuration(loaded: Loaded) -> Finding:
    """That the configuration was read, and whether it holds a secret that belongs into the environment."""
    given = loaded.file_values
    for section in ("database", "redis"):
        url = str((given.get(section) or {}).get("url") or "")
        if url and urlsplit(url).password:
            variable = f"KEEPSAKE__{section.upper()}__URL"
            return wrong(
                f"{section}.url: the file holds a password", f"Move the address to the variable {variable}.", fatal=False
            )
    return right("configuration: every key is known and well formed")


def data_folder(loaded: Loaded) -> Finding:
    """Whether the data folder can be written."""
    folder = loaded.data
    try:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        with tempfile.TemporaryFile(dir=folder):
            pass
    except OSError as error:
        return wrong(
            f"data.folder: {folder} cannot be written ({error.strerror})",
            "Make it writable, or choose another with KEEPSAKE_DATA.",
        )
    open_to = os.stat(folder).st_mode & 0o007
    if open_to:
        return wrong(f"data.folder: {folder} is open to other users", f"Run `chmod o-rwx {folder}`.", fatal=False)
    return right(f"data folder {folder}")


async def redis(url: str, *, inside: bool) -> Finding:
    """Whether Redis answers. The bot runs without it, slower."""
    where = "the Redis inside" if inside else "redis.url"
    client = Redis.from_url(url, socket_timeout=5, socket_connect_timeout=5)
    try:
        info = await client.info("server")
    except (RedisError, OSError, ValueError) as error:
        remedy = "Look at its log in the data folder." if inside else "Start it, or correct redis.url (KEEPSAKE__REDIS__URL)."
        return wrong(f"{where}: cannot be reached ({type(error).__name__})", remedy)
    finally:
        await client.aclose()
    return right(f"{where}: version {info.get('redis_version', 'unknown')}")


async def timers(db: Database) -> Finding:
    """Whether every timer could be fired when it last was due."""
    async with db.bare() as connection:
        found = [f"t{row['timer_id']}" for row in await (await connection.execute("SELECT * FROM faulty_timers()")).fetchall()]
    if not found:
        return right("timers: none is put off by a fault")
    return wrong(
        f"timers: {len(found)} could not be fired and are put off ({', '.join(found[:10])})",
        "The log says why, by their numbers. Their people can move or cancel them (/reminders).",
        fatal=False,
    )


async def model(client: ModelClient, loaded: Loaded) -> AsyncIterator[Finding]:
    """A plain reply, then function calls and chaining in both ways of asking, then which one to use."""
    name = loaded.config.model.chat or "rehearsal"
    try:
        reply = await client.complete(
            name,
            [{"role": "user", "content": "Say hello in one word."}],
            max_tokens=TOKENS,
            temperature=loaded.config.model.temperature,
        )
    except ModelError as error:
        yield wrong(f"model: {error}", REHEARSAL_AWAY if loaded.rehearsal else what_to_do(error, loaded))
        return
    if not (reply.text or "").strip():
        yield wrong(f"model: {name} answered without text ({reply.finish})", "Choose another model.chat.")
        return
    if loaded.rehearsal:
        yield right(
            "model: the rehearsal model inside; it is no language model (set model.base_url or model.api_key_env for a real one)"
        )
        return
    yield right(f"model: {name} answers ({reply.seconds:.1f} s)")
    configured = loaded.config.model.calls
    before = client.calls
    try:
        found = {mode: await tried(client, name, mode, loaded.config.model.temperature) for mode in WORDS}
        if configured == "auto" and isinstance(found["native"], str):
            # Refused: whether the bot itself would go over to the other way is tried and not guessed.
            found["auto"] = await tried(client, name, "auto", loaded.config.model.temperature)
    finally:
        client.calls = before
    for finding in verdict(found, configured, name):
        yield finding


async def tried(client: ModelClient, name: str, mode: Mode, temperature: float | None) -> Chain | str:
    """The chain in exactly one way of asking: how far the model came, or what the endpoint said against it."""
    try:
        return await chain(client, name, mode, temperature)
    except ModelError as error:
        return str(error)


async def chain(client: ModelClient, name: str, mode: Mode, temperature: float | None) -> Chain:
    """Have a model follow a key to a key to a number. Raises ModelError."""
    client.calls = mode
    messages: list[ChatMessage] = [{"role": "user", "content": QUESTION}]
    calls = wrongs = 0
    for _ in range(len(VALUES) + 3):
        reply = await client.complete(name, messages, [LOOKUP], max_tokens=TOKENS, temperature=temperature)
        if not reply.calls:
            return Chain(calls, "4711" in (reply.text or ""), wrongs)
        messages += _answers(reply)
        right_ones = sum(_key(call.arguments) in VALUES for call in reply.calls)
        calls, wrongs = calls + right_ones, wrongs + len(reply.calls) - right_ones
    return Chain(calls, False, wrongs)


def _answers(reply: Reply) -> list[ChatMessage]:
    called = [
        {"id": call.id, "type": "function", "function": {"name": call.name, "arguments": call.arguments}} for call in reply.calls
    ]
    asked: ChatMessage = {"role": "assistant", "content": reply.text, "tool_calls": called}
    results: list[ChatMessage] = [
        {"role": "tool", "tool_call_id": call.id, "content": VALUES.get(_key(call.arguments), "There is no such key.")}
        for call in reply.calls
    ]
    return [asked, *results]


def _key(arguments: str) -> str:
    try:
        found = json.loads(arguments)
    except ValueError:
        return ""
    return str(found.get("key", "")) if isinstance(found, dict) else ""


def verdict(found: Mapping[Mode, Chain | str], configured: Mode, name: str) -> Sequence[Finding]:
    """What the trials say: a line for each way that works, and one about the way that is configured."""
    works = {mode: isinstance(one, Chain) and one.works for mode, one in found.items()}
    lines = [right(f"model: {words} work, two in a chain") for mode, words in WORDS.items() if works[mode]]
    faults = "; ".join(f"{words} do not work ({found[mode]})" for mode, words in WORDS.items() if not works[mode])
    best: Mode | None = "native" if works["native"] else "schema" if works["schema"] else None
    if best is None:
        return [
            wrong(f"model: {name} can neither call functions nor follow a JSON schema: {faults}", "Choose another model.chat.")
        ]
    if not works.get(configured, works["native"]):
        return [*lines, wrong(f"model.calls: is {configured}, and {faults}", f"Set model.calls to {best}.")]
    if configured == "schema" and best == "native":
        return [*lines, right("model.calls: schema works; native is the better choice")]
    through = (
        " (the endpoint refuses function calls, so they are asked for by JSON schema)" if configured != best == "schema" else ""
    )
    return [*lines, right(f"model.calls: {configured} is right{through}")]


async def embedding(embedder: Embedder, db: Database) -> Finding:
    """Whether texts become vectors of the length that the database has for this model."""
    try:
        [vector] = await embedder.embed(["A dog sleeps in the sun."])
    except EmbeddingError as error:
        return wrong(
            f"embedding: {embedder.name} does not work ({error}); searches would use words only",
            "Correct model.embedding, or empty it for the local one.",
        )
    async with db.bare() as connection:
        stored = await value(connection, "SELECT dims FROM embedding_models WHERE name = %s", (embedder.name,))
    if len(vector) != (stored or embedder.dims):
        return wrong(
            f"embedding: {embedder.name} gives {len(vector)} dimensions, the database has {stored or embedder.dims}",
            "Name another model in model.embedding: one name must always mean vectors of one length.",
        )
    return right(f"embedding: {embedder.name}, {embedder.dims} dimensions")


async def database(url: str, *, inside: bool) -> list[Finding]:
    """Everything about the database; see `bot.operations.database`."""
    return await inspect(url, inside=inside)
