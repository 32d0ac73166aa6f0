"""`bot doctor`: looks at everything the bot stands on and says what to do about each fault. Changes nothing but what a start changes."""

import os
import tempfile
from urllib.parse import urlsplit

from redis.asyncio import Redis
from redis.exceptions import RedisError

from bot.config.findings import Finding, right, wrong
from bot.config.loading import Loaded
from bot.operations.database import inspect
from memory.db import Database, value
from memory.embedding import Embedder, EmbeddingError


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
