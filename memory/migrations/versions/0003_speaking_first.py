"""Leave to speak first, and what was said first."""

from memory.migrations.plain_sql import run

revision = "0003"
down_revision = "0002"


def upgrade() -> None:
    run("0003_speaking_first.sql", "grants.sql")
