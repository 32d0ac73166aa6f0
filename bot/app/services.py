"""What the bot stands on, opened in order and closed in reverse: the servers inside, the database, Redis, the embedder, the model.

Whatever cannot be reached is one `StartError` that names its key in the configuration.
"""

import asyncio
import logging
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import psycopg
from psycopg_pool import PoolTimeout
from redis.exceptions import RedisError

from bot import embedded, rehearsal
from bot.app.data_folder import erasure_key, make_folder
from bot.config.findings import Away, Finding, StartError
from bot.config.loading import Loaded
from bot.embedded.lease import living
from bot.embedded.provision import reason
from bot.health import Health
from bot.keeping import erasures
from bot.model.client import ModelClient
from bot.model.errors import ModelError, ModelRejected, ModelUnavailable
from bot.model.processor import Endpoint, Processor, Purpose
from bot.model.replies import Reply
from bot.operations.database import inspect
from memory import migrations, tokens
from memory.cache import Cache
from memory.db import Database, value
from memory.embedding import Embedder, EndpointEmbedder, LocalEmbedder, Meaning, Vector
from memory.embedding_filler import use_model
from memory.spending import Budgets, Limits, Price

log = logging.getLogger(__name__)

Progress = Callable[[str], None]
WATCH_EVERY = 2.0
"""Seconds between two looks at the servers inside."""


@dataclass(frozen=True, slots=True)
class Addresses:
    """Where database and Redis are, under the bot's role; the addresses hold passwords."""

    database: str
    redis: str
    inside: bool
    redis_inside: bool
    alone: bool = False
    """No other process uses the servers inside now."""


@dataclass(frozen=True, slots=True)
class Names:
    """The models by what they do."""

    chat: str
    summary: str
    filter: str


@dataclass(frozen=True, slots=True)
class Services:
    """Everything opened."""

    loaded: Loaded
    at: Addresses
    db: Database
    cache: Cache
    meaning: Meaning
    model: ModelClient
    processor: Processor
    names: Names
    health: Health
    erasure_key: bytes

    @property
    def encoding(self) -> str:
        """The tokenizer that counts for the chat model."""
        return tokens.encoding_of(self.names.chat)


class WatchedModel(ModelClient):
    """A model client that tells the health page how it goes."""

    def __init__(self, *arguments: Any, health: Health, **options: Any) -> None:
        super().__init__(*arguments, **options)
        self._health = health

    async def complete(self, model: str, messages: Any, functions: Any = (), **options: Any) -> Reply:
        """As `ModelClient.complete`."""
        try:
            reply = await super().complete(model, messages, functions, **options)
        except ModelError as error:
            if isinstance(error, ModelUnavailable | ModelRejected):
                self._health.failed("model", error, datetime.now(UTC))
            self._health.count(f"model_{type(error).__name__}")
            raise
        self._health.worked("model", datetime.now(UTC))
        return reply


@asynccontextmanager
async def addresses(loaded: Loaded, progress: Progress) -> AsyncIterator[Addresses]:
    """Start or join the servers inside where no address is set; the database inside is migrated. Raises EmbeddedError, StartError."""
    config = loaded.config
    if not loaded.embedded:
        yield Addresses(config.database.url, config.redis.url, False, False)
        return
    lease = await asyncio.to_thread(embedded.attach, loaded.data, progress=progress)
    held = [lease]
    watcher = asyncio.create_task(_watch(loaded.data, held))
    try:
        if not config.database.url:
            await asyncio.to_thread(_migrate_inside, lease.servers.owner_url, progress)
        yield Addresses(
            config.database.url or lease.servers.bot_url,
            config.redis.url or lease.servers.redis_url,
            not config.database.url,
            not config.redis.url,
            alone=not config.database.url and len(living(lease.folder.leases)) == 1,
        )
    finally:
        watcher.cancel()
        await asyncio.wait({watcher})
        # In a thread, and to the end even when the loop is being cancelled: the last one stops the servers.
        for each in held:
            await asyncio.shield(asyncio.to_thread(each.release))


async def _watch(data: Path, held: list[embedded.Lease]) -> None:
    """Start the servers inside again when one of them died under us: a kill, no memory left. Two looks in a row must fail."""
    missed = 0
    while True:
        await asyncio.sleep(WATCH_EVERY)
        missed = 0 if await asyncio.to_thread(embedded.answer, held[0]) else missed + 1
        if missed < 2:
            continue
        try:
            held.append(await asyncio.to_thread(embedded.attach, data))
        except embedded.EmbeddedError as error:
            log.error("the servers inside cannot be started again: %s", str(error)[:80])
        else:
            log.warning("the servers inside had died and were started again")
        missed = 0


def _migrate_inside(owner_url: str, progress: Progress) -> None:
    try:
        with psycopg.connect(owner_url, autocommit=True) as connection:
            found = migrations.revision_of(connection)
        if found is None:
            progress("Making the tables ...")
        if migrations.migrate(owner_url) and found is not None:
            progress("The database was brought up to date.")
    except psycopg.Error as error:
        raise StartError(
            f"data.folder: the database inside could not be migrated ({reason(error)}). Run `bot doctor`."
        ) from error
    except migrations.MigrationRefused as error:
        raise StartError(f"data.folder: the database inside {error}") from error


@asynccontextmanager
async def opened(
    loaded: Loaded, progress: Progress, *, after_attach: Callable[[], None] = lambda: None
) -> AsyncIterator[Services]:
    """Open everything. `after_attach` runs as soon as the data folder stands. Raises EmbeddedError, StartError."""
    config, health = loaded.config, Health()
    async with addresses(loaded, progress) as at:
        make_folder(loaded.data)
        after_attach()
        refuse(await inspect(at.database, inside=at.inside))
        try:
            async with Database(at.database, size=config.database.pool) as db:
                cache = Cache(at.redis)
                try:
                    await _reach_redis(cache, at)
                    await asyncio.to_thread(tokens.seed, loaded.data / "tokens")
                    async with model_client(loaded, health) as (model, names), fallback_for(loaded, model, health) as fallbacks:
                        processor = _processor(loaded, db, model, names, fallbacks)
                        embedder = await embedder_for(loaded, db, model)
                        meaning = await use_model(db, embedder)
                        key = erasure_key(loaded.data)
                        await cache.empty_quietly()
                        if again := str(await erasures.reconcile(db, cache, loaded.data, key, db.now())):
                            progress(again)
                        try:
                            yield Services(loaded, at, db, cache, meaning, model, processor, names, health, key)
                        finally:
                            if isinstance(embedder, LocalEmbedder):
                                embedder.close()
                finally:
                    await cache.close()
        except PoolTimeout as error:
            raise Away(
                "database.url: gives no connection within 10 s. Raise its connection limit, or lower database.pool."
            ) from error


def refuse(findings: Sequence[Finding]) -> None:
    """Raise StartError for the first finding that the bot cannot run with."""
    for finding in findings:
        if not finding.well and finding.fatal:
            raise (Away if finding.passing else StartError)(f"{finding.what}. {finding.remedy}")


async def _reach_redis(cache: Cache, at: Addresses) -> None:
    try:
        await cache.ping()
    except (RedisError, OSError) as error:
        where = "the Redis inside" if at.redis_inside else "redis.url"
        raise Away(f"{where}: cannot be reached ({type(error).__name__}). Start it, or correct redis.url.") from error


@asynccontextmanager
async def model_client(loaded: Loaded, health: Health) -> AsyncIterator[tuple[ModelClient, Names]]:
    """The client of the configured endpoint, or of the rehearsal model, which is started for it."""
    config = loaded.config.model
    if loaded.rehearsal:
        async with rehearsal.serve() as url, _client(url, "", loaded, health) as client:
            yield client, Names(rehearsal.MODEL, rehearsal.MODEL, rehearsal.MODEL)
        return
    async with _client(loaded.model_url, loaded.key or "", loaded, health) as client:
        yield client, Names(config.chat, config.summary or config.chat, config.filter or config.chat)


@asynccontextmanager
async def fallback_for(loaded: Loaded, model: ModelClient, health: Health) -> AsyncIterator[tuple[Endpoint, ...]]:
    """What stands in for the chat model, if anything is configured."""
    config = loaded.config.model
    if not config.fallback or loaded.rehearsal:
        yield ()
    elif not config.fallback_url:
        yield (Endpoint(model, config.fallback),)
    else:
        async with _client(config.fallback_url, loaded.fallback_key or "", loaded, health) as client:
            yield (Endpoint(client, config.fallback),)


def _processor(loaded: Loaded, db: Database, model: ModelClient, names: Names, fallbacks: tuple[Endpoint, ...]) -> Processor:
    budget = loaded.config.budget
    limits = Limits(budget.person_tokens, budget.person_money, budget.bot_tokens, budget.bot_money)
    prices = {name: Price(price.prompt, price.cached, price.completion) for name, price in budget.prices.items()}
    endpoints: dict[Purpose, Sequence[Endpoint]] = {
        "chat": (Endpoint(model, names.chat), *fallbacks),
        "summary": (Endpoint(model, names.summary), *fallbacks),
        "filter": (Endpoint(model, names.filter), *fallbacks),
    }
    return Processor(endpoints, Budgets(db, limits, prices), clock=db.now, temperature=loaded.config.model.temperature)


def _client(url: str, key: str, loaded: Loaded, health: Health) -> WatchedModel:
    config = loaded.config.model
    return WatchedModel(
        url, key, timeout=config.timeout, calls=config.calls, extra=config.extra, streams=config.stream, health=health
    )


async def embedder_for(loaded: Loaded, db: Database, model: ModelClient) -> Embedder:
    """The configured embedder; an endpoint is asked once for its number of dimensions. Raises StartError."""
    name = loaded.config.model.embedding
    if not name:
        return LocalEmbedder()

    async def call(texts: Sequence[str]) -> Sequence[Vector]:
        return await model.embed(name, texts)

    async with db.bare() as connection:
        dims = await value(connection, "SELECT dims FROM embedding_models WHERE name = %s", (name,))
    if dims is None:
        try:
            [vector] = await call(["How long is a vector?"])
        except ModelError as error:
            raise StartError(
                f"model.embedding: {name} cannot be used ({error}). Correct it, or empty it for the local one."
            ) from error
        dims = len(vector)
    return EndpointEmbedder(name, int(dims), call, failures=(ModelError,), refusals=())
