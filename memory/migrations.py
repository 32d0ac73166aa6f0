"""Brings a database to what this program needs: its tables by numbered migrations, its functions as they are now written.

Alembic decides which migrations are missing (`memory/sql/tables`); the functions (`memory/sql/functions`) are dropped and made again whenever
the digest of their folder changed. Both in one transaction and by the owner role, one process at a time. The bot role never does it: it only
reads which revision and digest the database is at.
"""

from __future__ import annotations

import re
from hashlib import sha256
from pathlib import Path
from typing import TYPE_CHECKING, Any

import psycopg
from psycopg import sql

if TYPE_CHECKING:
    from sqlalchemy import Connection as AlchemyConnection

_SQL = Path(__file__).parent / "sql"
_FUNCTION = re.compile(r"^CREATE (?:OR REPLACE )?FUNCTION (\w+)", re.MULTILINE)
LOCK = 7_202_611  # advisory lock: two first starts at once migrate one after the other
FIRST = "0100"
"""The oldest revision there is; it made every table at once. Nothing older was ever released."""

Connection = psycopg.Connection[tuple[Any, ...]]


class MigrationRefused(Exception):
    """A database that cannot be brought to what this program needs. The text is the predicate of `the database`, and says what to do."""


def head() -> str:
    """The newest revision that this program knows, by the numbers of its files."""
    return max(file.name[:4] for file in (_SQL / "tables").glob("[0-9][0-9][0-9][0-9]_*.py"))


def digest() -> str:
    """A fingerprint of everything that the functions are made of."""
    files = [*sorted((_SQL / "functions").glob("*.sql")), _SQL / "grants.sql"]
    return sha256(b"\0".join(file.read_bytes() for file in files)).hexdigest()


def migrate(owner_url: str) -> bool:
    """Bring the database to the newest revision and the current functions, as the owner role. Returns whether anything changed.

    Raises MigrationRefused for a database that is too old, too new or not as its revision says, and psycopg.Error when it cannot be
    reached or a statement fails; then nothing of it stays.
    """
    with psycopg.connect(owner_url, autocommit=True) as lock:
        lock.execute("SELECT pg_advisory_lock(%s)", (LOCK,))
        found = revision_of(lock)
        refuse(found)
        if found == head() and digest_of(lock) == digest():
            return False
        _bring(owner_url)
    return True


def revision_of(connection: Connection) -> str | None:
    """The revision that a database is at; None for one that was never migrated."""
    return _only(connection, "alembic_version", "version_num")


def digest_of(connection: Connection) -> str | None:
    """The fingerprint of what a database's functions were made of; None where they are older than fingerprints."""
    return _only(connection, "functions", "digest")


def _only(connection: Connection, table: str, column: str) -> str | None:
    """The one value of a table of one row and column; None without the table."""
    row = connection.execute("SELECT to_regclass(%s)::text", (f"keepsake.{table}",)).fetchone()
    if row is None or row[0] is None:
        return None
    query = sql.SQL("SELECT {} FROM keepsake.{}").format(sql.Identifier(column), sql.Identifier(table))
    row = connection.execute(query).fetchone()
    return None if row is None else str(row[0])


def refuse(found: str | None) -> None:
    """Raise MigrationRefused for a revision that this program cannot start from."""
    if found is None or FIRST <= found <= head():
        return
    if found > head():
        raise MigrationRefused(
            f"is newer than this program (at {found}, which knows {head()}). Update Keepsake, or restore an older backup."
        )
    raise MigrationRefused(
        f"is from before the first release (at {found}; this program starts from {FIRST}). Export what you need with the program that "
        "made it, and begin with an empty database or another data folder."
    )


def _bring(owner_url: str) -> None:
    # Only here: nearly every start finds the database up to date, and these take longer to import than the start takes.
    from sqlalchemy import create_engine
    from sqlalchemy.pool import NullPool

    engine = create_engine("postgresql+psycopg://", creator=lambda: psycopg.connect(owner_url), poolclass=NullPool)
    with engine.begin() as connection:
        raw: Connection = connection.connection.driver_connection  # type: ignore[assignment]
        raw.execute("CREATE SCHEMA IF NOT EXISTS keepsake; SET LOCAL search_path = keepsake, public")
        _upgrade(connection, "head")
        _make_functions(raw)
    engine.dispose()


def _upgrade(connection: AlchemyConnection, revision: str) -> None:
    from alembic import command
    from alembic.config import Config

    config = Config()
    config.set_main_option("script_location", str(_SQL))
    config.set_main_option("version_locations", str(_SQL / "tables"))
    config.set_main_option("path_separator", "newline")
    config.attributes["connection"] = connection
    command.upgrade(config, revision)


def listing(connection: Connection, functions: set[str] | None = None) -> set[tuple[str, str]]:
    """The schema as pairs (what, how), equal for equal schemas; of the functions those named, by default those that tables need."""
    query = (_SQL / "listing.sql").read_text(encoding="utf-8")
    rows = connection.execute(query.encode(), (sorted(_of_tables() if functions is None else functions),))
    return {(what, how) for what, how in rows}


def _make_functions(raw: Connection) -> None:
    """Drop every function that no table needs, and make the current ones: each stands in one file, and may name any other."""
    olds = raw.execute(
        "SELECT oid::regprocedure::text FROM pg_proc WHERE pronamespace = 'keepsake'::regnamespace AND prokind = 'f' AND proname <> ALL (%s)",
        (sorted(_of_tables()),),
    ).fetchall()
    for (signature,) in olds:
        raw.execute(f"DROP FUNCTION {signature}".encode())
    raw.execute("SET LOCAL check_function_bodies = off")
    for file in sorted((_SQL / "functions").glob("*.sql")):
        _run(raw, f"functions/{file.name}")
    raw.execute("CREATE TABLE IF NOT EXISTS functions (digest text NOT NULL); DELETE FROM functions")
    raw.execute("INSERT INTO functions VALUES (%s)", (digest(),))
    _run(raw, "grants.sql")


def _of_tables() -> set[str]:
    """The functions that the migrations make: what columns, policies and triggers need."""
    return {name for file in (_SQL / "tables").rglob("*.sql") for name in _FUNCTION.findall(file.read_text(encoding="utf-8"))}


def _run(raw: Connection, name: str) -> None:
    raw.execute((_SQL / name).read_bytes())
