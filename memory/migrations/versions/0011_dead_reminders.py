"""Reminders whose turns came to nothing are found, to be said."""

from memory.migrations.plain_sql import run

revision = "0011"
down_revision = "0010"


def upgrade() -> None:
    run("0011_dead_reminders.sql", "grants.sql")
