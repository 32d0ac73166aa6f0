"""${message}"""

from memory.migrations.plain_sql import run

revision = ${repr(up_revision)}
down_revision = ${repr(down_revision)}


def upgrade() -> None:
    run("${up_revision}.sql")
