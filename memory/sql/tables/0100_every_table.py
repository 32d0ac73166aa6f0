"""Every table with its indexes, policies and triggers, by subject, and Procrastinate in its own schema."""

import procrastinate.schema

from memory.sql.plain_sql import execute, run

revision = "0100"
down_revision = None


def upgrade() -> None:
    run("0100/security.sql", "0100/words.sql", "0100/people.sql", "0100/places.sql", "0100/engine.sql", "0100/memory.sql")
    run("0100/speaking.sql", "0100/spending.sql", "0100/erasures.sql", "0100/slack.sql")
    execute("CREATE SCHEMA procrastinate; SET LOCAL search_path = procrastinate, public;")
    execute(procrastinate.schema.SchemaManager.get_schema())
    execute("SET LOCAL search_path = keepsake, public;")
    run("0100/queue.sql")
