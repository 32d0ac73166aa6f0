"""What a platform said of people and replies: unreachable, streamed."""

from memory.migrations.plain_sql import run

revision = "0005"
down_revision = "0004"


def upgrade() -> None:
    run("0005_delivery.sql", "grants.sql")
