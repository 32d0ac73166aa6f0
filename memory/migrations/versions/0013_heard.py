"""Up to where a platform was listened to is kept, so that a gap stays open until it was read."""

from memory.migrations.plain_sql import run

revision = "0013"
down_revision = "0012"


def upgrade() -> None:
    run("0013_heard.sql", "grants.sql")
