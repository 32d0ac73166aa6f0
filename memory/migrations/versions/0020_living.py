"""A reply that is being sent names its process, so that it is doubtful as soon as that one is dead."""

from memory.migrations.plain_sql import run

revision = "0020"
down_revision = "0013"


def upgrade() -> None:
    run("0020_living.sql", "grants.sql")
