"""Run by alembic: the connection is made by `migrate` of `memory.migrations`, in one transaction for all revisions."""

from alembic import context

context.configure(connection=context.config.attributes["connection"], version_table_schema="keepsake", transactional_ddl=True)
with context.begin_transaction():
    context.run_migrations()
