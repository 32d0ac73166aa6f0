"""What goes out is found by its heads alone; a public thread knows its channel."""

from memory.migrations.plain_sql import run

revision = "0006"
down_revision = "0005"


def upgrade() -> None:
    run("0006_heads.sql", "grants.sql")
