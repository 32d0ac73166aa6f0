"""What an endpoint's content filter refuses is kept from models, not from its person."""

from memory.migrations.plain_sql import run

revision = "0015"
down_revision = "0013"


def upgrade() -> None:
    run("0015_withheld.sql", "grants.sql")
