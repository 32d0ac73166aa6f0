"""Timers know the words that asked for them, repeat by RFC 5545, and fail alone; the outbox carries buttons and a mention."""

from memory.migrations.plain_sql import run

revision = "0019"
down_revision = "0013"


def upgrade() -> None:
    run("0019_appointments.sql", "grants.sql")
