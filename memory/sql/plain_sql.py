"""Runs a file of plain SQL through psycopg itself: no bind parameters, so `%` and `:` mean what they mean in SQL."""

from __future__ import annotations

from pathlib import Path

from alembic import op

_TABLES = Path(__file__).parent / "tables"


def run(*names: str) -> None:
    """Execute files of `tables/` in order inside the migration's transaction."""
    for name in names:
        execute((_TABLES / name).read_text(encoding="utf-8"))


def execute(script: str) -> None:
    """Execute a script of several statements inside the migration's transaction."""
    raw = op.get_bind().connection.driver_connection
    assert raw is not None
    raw.execute(script)
