"""Everything is on disk before it is acted on, and no event is done whose words do not stand in recall storage."""

from memory.migrations.plain_sql import run

revision = "0012"
down_revision = "0011"


def upgrade() -> None:
    run("0012_durable.sql", "grants.sql")
