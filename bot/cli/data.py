"""`bot migrate`, `bot backup`, `bot restore`: the database as a whole."""

import asyncio
import secrets
from contextlib import AbstractContextManager, nullcontext
from datetime import UTC, datetime
from pathlib import Path
from typing import Annotated
from urllib.parse import unquote, urlsplit

import psycopg
import typer
from redis.exceptions import RedisError

from bot import embedded
from bot.app.data_folder import erasure_key, make_folder
from bot.cli.shared import existing, note, secret_of, settings
from bot.config.findings import StartError
from bot.config.loading import Loaded
from bot.embedded import Servers
from bot.embedded.provision import BOT, reason
from bot.keeping import erasures
from bot.operations import backup as backups
from bot.operations.database import owner_address, without_password
from memory import migrations
from memory.cache import Cache

Admin = Annotated[
    str | None,
    typer.Option("--admin-url-env", help="With an external database: the variable that holds an administrator's address."),
]


def migrate(context: typer.Context, admin_url_env: Admin = None) -> None:
    """Make roles, extensions and tables, or bring them up to date.

    The PostgreSQL inside is migrated at every start. An external one needs an administrator's address this once; the bot itself
    never has it.
    """
    loaded = settings(context)
    url = loaded.config.database.url
    if not url:
        _needs_none(admin_url_env)
        with embedded.servers(loaded.data, progress=note) as servers:
            changed = _migrated("data.folder", servers.owner_url)
        typer.echo("Migrated." if changed else "Nothing to do.")
        return
    admin = secret_of(admin_url_env, "--admin-url-env")
    parts = urlsplit(url)
    if parts.username != BOT or not parts.password:
        raise StartError(f"database.url: must name the role {BOT} and its password, so that the role can be made. Correct it.")
    database, own = parts.path.lstrip("/") or "keepsake", secrets.token_urlsafe(24)
    embedded.provision(admin, own, unquote(parts.password), database)
    try:
        changed = _migrated("database.url", owner_address(admin, database, own))
    except psycopg.Error as error:
        raise StartError(
            f"database.url: the migration failed, nothing was changed ({without_password(reason(error), admin)})."
        ) from error
    typer.echo("Migrated." if changed else "Nothing to do.")


def backup(
    context: typer.Context,
    file: Annotated[Path | None, typer.Argument(help="The file, or a folder to put it in.")] = None,
    admin_url_env: Admin = None,
) -> None:
    """Write the whole database into one file that only you can read, while the bot may go on working."""
    loaded = existing(settings(context))
    with source(loaded, admin_url_env) as here:
        done = backups.backup(here, file, now=datetime.now(UTC), **named(loaded))
    typer.echo(f"Written: {done}")


def restore(
    context: typer.Context,
    file: Annotated[Path, typer.Argument(help="A file that `bot backup` wrote.")],
    replace: Annotated[bool, typer.Option("--replace", help="Take the place of what is there now.")] = False,
    admin_url_env: Admin = None,
) -> None:
    """Bring a backup back. It is restored beside the present database, so a restore that fails changes nothing."""
    loaded = settings(context)
    backups.check_file(file)  # before a server is started for it
    now = datetime.now(UTC)
    with source(loaded, admin_url_env) as target:
        address = backups.address(target, **named(loaded))
        # Before the present database is given up, with what it knows: a backup must not bring back what was decided since.
        make_folder(loaded.data)
        key = erasure_key(loaded.data)
        record = erasures.of_database(address, key)
        erasures.write(loaded.data, {each: at for each, at in record.items() if each[0] != "event"})
        record = erasures.newest(record, erasures.read(loaded.data))
        backups.restore(target, file, replace=replace, **named(loaded))
        asyncio.run(_emptied(loaded.config.redis.url or (target.redis_url if isinstance(target, Servers) else "")))
        again = ""
        if isinstance(target, Servers):
            _migrated("data.folder", target.owner_url)
            again = str(erasures.reapply(address, record, key, now))
        else:
            again = "Now run `bot migrate --admin-url-env NAME`; what people decided since is applied again at the next start."
    typer.echo(f"Restored. {again}".rstrip())


def _migrated(key: str, owner_url: str) -> bool:
    try:
        return migrations.migrate(owner_url)
    except migrations.MigrationRefused as error:
        raise StartError(f"{key}: the database {error}") from error


async def _emptied(redis: str) -> None:
    cache = Cache(redis or None)
    try:
        await cache.empty()
    except (RedisError, OSError) as error:
        note(f"Redis was not emptied ({type(error).__name__}): empty it before the bot runs again.")
    finally:
        await cache.close()


def source(loaded: Loaded, variable: str | None) -> AbstractContextManager[Servers | str]:
    """The servers inside, or the administrator's address of the external ones. Raises StartError."""
    if loaded.config.database.url:
        return nullcontext(secret_of(variable, "--admin-url-env"))
    _needs_none(variable)
    return embedded.servers(loaded.data, progress=note)


def _needs_none(variable: str | None) -> None:
    """Who names an administrator means an external database; without its address the one inside would be acted on. Raises StartError."""
    if variable:
        raise StartError(
            "database.url: is empty, so the PostgreSQL inside is used, which needs no --admin-url-env. Set KEEPSAKE__DATABASE__URL to the "
            "external database's address, or leave the option out."
        )


def named(loaded: Loaded) -> dict[str, str]:
    """The database's own name where the configuration gives one."""
    name = urlsplit(loaded.config.database.url).path.lstrip("/")
    return {"database": name} if name else {}
