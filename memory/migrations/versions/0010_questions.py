"""A yes or no belongs to the question that it answers."""

from memory.migrations.plain_sql import run

revision = "0010"
down_revision = "0009"


def upgrade() -> None:
    run("0010_questions.sql", "grants.sql")
