"""What people decided is noted, so that a restored backup does not undo it; and rights do not hang on having an agent."""

from memory.migrations.plain_sql import run

revision = "0018"
down_revision = "0013"


def upgrade() -> None:
    run("0018_decided.sql", "grants.sql")
