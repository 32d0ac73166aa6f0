"""Numbered migrations: alembic decides which are missing, the content is plain SQL.

The owner role runs them, one process at a time. The bot role never does: it only reads which revision the database is at.
"""

from __future__ import annotations

from pathlib import Path

import psycopg

_HERE = Path(__file__).parent
LOCK = 7_202_611  # advisory lock: two first starts at once migrate one after the other


def head() -> str:
    """The newest revision that this program knows, by the numbers of its files."""
    return max(file.name[:4] for file in (_HERE / "versions").glob("[0-9][0-9][0-9][0-9]_*.py"))


def migrate(owner_url: str) -> bool:
    """Bring the database to the newest revision, as the owner role. Returns whether anything changed.

    Raises psycopg.Error when the database cannot be reached or a statement fails; then nothing of that revision stays.
    """
    # Only here: nearly every start finds the database up to date, and these take longer to import than the start takes.
    from alembic import command
    from alembic.config import Config
    from sqlalchemy import create_engine
    from sqlalchemy.pool import NullPool

    with psycopg.connect(owner_url, autocommit=True) as lock:
        lock.execute("SELECT pg_advisory_lock(%s)", (LOCK,))
        if revision_of(lock) == head():
            return False
        engine = create_engine("postgresql+psycopg://", creator=lambda: psycopg.connect(owner_url), poolclass=NullPool)
        with engine.begin() as connection:
            raw = connection.connection.driver_connection
            assert raw is not None
            raw.execute("CREATE SCHEMA IF NOT EXISTS keepsake")
            raw.execute("SET LOCAL search_path = keepsake, public")
            config = Config()
            config.set_main_option("script_location", str(_HERE))
            config.attributes["connection"] = connection
            command.upgrade(config, "head")
        engine.dispose()
    return True


def revision_of(connection: psycopg.Connection[tuple[str, ...]]) -> str | None:
    """The revision that a database is at; None for one that was never migrated."""
    row = connection.execute("SELECT to_regclass('keepsake.alembic_version')::text").fetchone()
    if row is None or row[0] is None:
        return None
    row = connection.execute("SELECT version_num FROM keepsake.alembic_version").fetchone()
    return None if row is None else row[0]
