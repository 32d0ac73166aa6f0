"""A thread is what its channel is, and what is not known of a place changes nothing."""

from memory.migrations.plain_sql import run

revision = "0009"
down_revision = "0008"


def upgrade() -> None:
    run("0009_places.sql", "grants.sql")
