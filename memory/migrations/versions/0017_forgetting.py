"""Every text knows where it came from, and all forgetting is one walk along that."""

from memory.migrations.plain_sql import run

revision = "0017"
down_revision = "0013"


def upgrade() -> None:
    run("0017_forgetting.sql", "grants.sql")
