"""Backup of the bot's database into one file, and its restore, with PostgreSQL's own pg_dump and pg_restore.

A dump holds everything people said: it is written 0600, and belongs where the data folder belongs. Roles are
not in it; `bot.embedded.provision` makes them on the server where it is restored. Restore only your own
dumps: whoever writes one writes what the administrator's role will execute.
"""

import os
import secrets
import subprocess
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path

import psycopg
from psycopg import Connection, sql
from psycopg.conninfo import conninfo_to_dict, make_conninfo
from psycopg.rows import TupleRow

from bot.embedded import EmbeddedError, Servers
from bot.embedded.errors import explained
from bot.embedded.folder import sync_folder
from bot.embedded.programs import postgres_folder
from bot.embedded.provision import BOT, DATABASE, OWNER, create_database, reason
from memory import migrations

KEPT = ("PATH", "HOME", "LD_LIBRARY_PATH")
MAINTENANCE = "postgres"
# Sessions of bots that connect again at once can get in between; PostgreSQL itself waits 5 s in each try.
RENAME_TRIES = 6


def default_name(now: datetime) -> str:
    """The name of a backup made at `now`."""
    return f"keepsake-{now.astimezone(UTC):%Y%m%dT%H%M%SZ}.dump"


def backup(source: Servers | str, file: Path | None = None, *, now: datetime, database: str = DATABASE) -> Path:
    """Write the database into a file (0600, complete or not at all) while the bot may go on working.

    Args:
        source: the servers inside, or a superuser's address on an external server.
        file: the file, or a folder to put it in; by default `default_name(now)` in the working folder.
        now: the time that names the file.
        database: the database to save.

    Returns:
        The file.

    Raises:
        EmbeddedError: the server does not answer, the role may not read everything, or the disk is full.
    """
    target = (file or Path()).expanduser()
    target = (target / default_name(now) if target.is_dir() else target).resolve()
    part = target.with_name(f".{target.name}.{secrets.token_hex(4)}.part")
    address = _address(source, database)
    if not target.parent.is_dir():
        raise EmbeddedError(f"There is no folder {target.parent}. Make it, or name another file or folder for the backup.")
    with explained(target, "name another file or folder for the backup"):
        os.close(os.open(part, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600))
        try:
            done = _run("pg_dump", ["--format=custom", f"--file={part}"], address)
            if done.returncode != 0:
                raise EmbeddedError(f"The backup failed, no file was written. {_last(done.stderr)}")
            with open(part, "rb") as written:
                os.fsync(written.fileno())
            os.replace(part, target)
        finally:
            part.unlink(missing_ok=True)
        sync_folder(target.parent)
    return target


def check_file(file: Path) -> Path:
    """The file as an absolute path, if it can be read. Raises EmbeddedError."""
    file = file.expanduser().resolve()
    if not file.is_file():
        raise EmbeddedError(f"There is no file {file}. Name a file that `bot backup` wrote.")
    with explained(file, "name another file that `bot backup` wrote"), open(file, "rb"):
        return file


def restore(target: Servers | str, file: Path, *, replace: bool = False, database: str = DATABASE) -> None:
    """Bring a backup back. It is restored beside the present database and takes its name in one step, so a
    restore that fails changes nothing. Whoever is connected to the old one is disconnected.

    Args:
        target: the servers inside, or a superuser's address on an external server (roles provisioned).
        file: what `backup` wrote.
        replace: whether a database that holds tables may be given up.
        database: the database to restore.

    Raises:
        EmbeddedError: not a complete backup, or one that cannot be migrated; the database is not empty; roles are missing; no answer.
    """
    file = check_file(file)
    if _run("pg_restore", ["--list", str(file)], None).returncode != 0:
        raise EmbeddedError(f"{file} is not a backup made by `bot backup`, or it is damaged. Nothing was changed.")
    try:
        with _administrator(_address(target, MAINTENANCE), database) as admin:
            _check_roles(admin)
            present = _address(target, database)
            if not replace and _exists(admin, database) and _holds_tables(present):
                raise EmbeddedError(
                    f"The database {database} is not empty. Back it up (`bot backup`), then give --replace "
                    f"to put the backup in its place."
                )
            _restore(admin, target, file, database)
    except psycopg.Error as error:
        raise EmbeddedError(f"The restore failed: {reason(error)}. The database was not changed.") from error


def _restore(admin: Connection[TupleRow], target: Servers | str, file: Path, database: str) -> None:
    fresh, old = f"{database}_restoring", f"{database}_replaced"
    _drop(admin, fresh)
    _drop(admin, old)
    try:
        create_database(admin, fresh)
        done = _run("pg_restore", ["--exit-on-error", str(file)], _address(target, fresh))
        if done.returncode != 0:
            # What pg_restore says can repeat a row, so it is not shown.
            raise EmbeddedError(
                f"{file} could not be restored: it is damaged or cut off, or the disk is full. The database was not changed."
            )
        with psycopg.connect(_address(target, fresh), autocommit=True) as connection:
            try:
                migrations.refuse(migrations.revision_of(connection))
            except migrations.MigrationRefused as error:
                raise EmbeddedError(f"The backup {error} Nothing was changed.") from error
            connection.execute("analyze")
        _swap(admin, fresh, database, old)
    except BaseException:
        _drop(admin, fresh)
        raise
    _drop(admin, old)


def _swap(admin: Connection[TupleRow], fresh: str, database: str, old: str) -> None:
    for attempt in range(1, RENAME_TRIES + 1):
        try:
            with admin.transaction():
                if _exists(admin, database):
                    admin.execute("select pg_terminate_backend(pid) from pg_stat_activity where datname = %s", (database,))
                    _rename(admin, database, old)
                _rename(admin, fresh, database)
            return
        except psycopg.errors.ObjectInUse:
            if attempt == RENAME_TRIES:
                raise


def _rename(admin: Connection[TupleRow], name: str, to: str) -> None:
    admin.execute(sql.SQL("alter database {} rename to {}").format(sql.Identifier(name), sql.Identifier(to)))


def _drop(admin: Connection[TupleRow], name: str) -> None:
    admin.execute(sql.SQL("drop database if exists {} with (force)").format(sql.Identifier(name)))


def _exists(admin: Connection[TupleRow], name: str) -> bool:
    return admin.execute("select 1 from pg_database where datname = %s", (name,)).fetchone() is not None


def _holds_tables(address: str) -> bool:
    """Whether there is any table that is not the system's or an extension's."""
    with psycopg.connect(address, autocommit=True, connect_timeout=10) as connection:
        found = connection.execute(
            "select 1 from pg_class c join pg_namespace n on n.oid = c.relnamespace "
            "where c.relkind in ('r', 'p', 'm') and n.nspname !~ '^(pg_|information_schema$)' "
            "and not exists (select 1 from pg_depend d where d.objid = c.oid and d.deptype = 'e') limit 1"
        ).fetchone()
    return found is not None


def _check_roles(admin: Connection[TupleRow]) -> None:
    found = admin.execute("select count(*) from pg_roles where rolname = any(%s)", ([OWNER, BOT],)).fetchone()
    if found != (2,):
        raise EmbeddedError(
            f"The roles {OWNER} and {BOT} are missing on this server. Make them first: bot migrate --admin-url-env NAME"
        )


@contextmanager
def _administrator(address: str, database: str) -> Iterator[Connection[TupleRow]]:
    with psycopg.connect(address, autocommit=True, connect_timeout=10) as admin:
        key = f"keepsake restore {database}"
        if admin.execute("select pg_try_advisory_lock(hashtext(%s))", (key,)).fetchone() != (True,):
            raise EmbeddedError("Another restore is running on this server. Wait until it ends.")
        yield admin


def address(source: Servers | str, database: str = DATABASE) -> str:
    """An administrator's address of the database."""
    return _address(source, database)


def _address(source: Servers | str, database: str) -> str:
    return make_conninfo(source.admin_url if isinstance(source, Servers) else source, dbname=database)


def _run(program: str, arguments: Sequence[str], address: str | None) -> subprocess.CompletedProcess[str]:
    """Run one of PostgreSQL's clients; the password goes by the environment, hidden from other users."""
    environment = {name: os.environ[name] for name in KEPT if name in os.environ}
    command = [str(postgres_folder() / program), *arguments]
    if address is not None:
        environment["PGPASSWORD"] = str(conninfo_to_dict(address).get("password") or "")
        shown = {name: str(value) for name, value in conninfo_to_dict(address).items() if name != "password"}
        command += ["--no-password", f"--dbname={make_conninfo('', **shown)}"]
    return subprocess.run(
        command, env=environment | {"LC_ALL": "C"}, capture_output=True, encoding="utf-8", errors="replace", umask=0o077
    )


def _last(output: str) -> str:
    """The last thing pg_dump complained about: about connections, versions and rights, never about rows."""
    lines = [line for line in output.splitlines() if line.startswith("pg_dump: ")]
    return " ".join(lines[-2:]).removeprefix("pg_dump: error: ")
