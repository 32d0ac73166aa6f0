"""Tables, row-level security, the functions that look across agents, search, and Procrastinate in its own schema."""

import procrastinate.schema

from memory.migrations.plain_sql import execute, run

revision = "0001"
down_revision = None


def upgrade() -> None:
    run("0001_search_vector.sql", "0001_base.sql", "0001_search.sql")
    execute("CREATE SCHEMA procrastinate; SET LOCAL search_path = procrastinate, public;")
    execute(procrastinate.schema.SchemaManager.get_schema())
    execute("SET LOCAL search_path = keepsake, public;")
    run("0001_across.sql", "0001_queue.sql", "grants.sql")
