"""What was said leaves an event with its end, and whoever erases looks for words instead of a status."""

from memory.migrations.plain_sql import run

revision = "0008"
down_revision = "0007"


def upgrade() -> None:
    run("0008_words.sql", "grants.sql")
