"""What of a day's budgets is taken can be shown."""

from memory.migrations.plain_sql import run

revision = "0007"
down_revision = "0006"


def upgrade() -> None:
    run("0007_budgets.sql", "grants.sql")
