"""Linked accounts, and installations of the app."""

from memory.migrations.plain_sql import run

revision = "0004"
down_revision = "0003"


def upgrade() -> None:
    run("0004_accounts.sql", "grants.sql")
