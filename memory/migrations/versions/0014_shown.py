"""Up to which entry the beginning of a conversation's prompt shows the working context, so that it stays the same until a flush."""

from memory.migrations.plain_sql import run

revision = "0014"
down_revision = "0013"


def upgrade() -> None:
    run("0014_shown.sql", "grants.sql")
