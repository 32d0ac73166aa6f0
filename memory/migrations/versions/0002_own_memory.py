"""What people do with their memory: pausing, consent, retention, undoing, erasures."""

from memory.migrations.plain_sql import run

revision = "0002"
down_revision = "0001"


def upgrade() -> None:
    run("0002_own_memory.sql", "grants.sql")
