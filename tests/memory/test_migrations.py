"""The migrations: one head, run once, two first starts at once, never by the bot's role."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import psycopg
import pytest
from alembic.config import Config
from alembic.script import ScriptDirectory

from bot.embedded import Servers
from memory import migrations
from tests.conftest import Urls


def test_the_head_by_file_names_is_alembics_head() -> None:
    config = Config()
    config.set_main_option("script_location", str(Path(migrations.__file__).parent))
    assert migrations.head() == ScriptDirectory.from_config(config).get_current_head()


def test_a_migrated_database_is_left_alone(urls: Urls) -> None:
    assert migrations.migrate(urls.owner) is False


def test_two_first_starts_at_once_migrate_one_after_the_other(cluster: Servers) -> None:
    with psycopg.connect(cluster.admin_url, autocommit=True) as admin:
        admin.execute("CREATE DATABASE empty OWNER keepsake_owner")
        try:
            with psycopg.connect(cluster.admin_url.replace("/postgres?", "/empty?"), autocommit=True) as inside:
                for extension in ("vector", "pg_trgm", "btree_gin"):
                    inside.execute(f"CREATE EXTENSION {extension} SCHEMA public".encode())
            owner = cluster.owner_url.replace("/keepsake?", "/empty?")
            with ThreadPoolExecutor(2) as pool:
                assert sorted(pool.map(migrations.migrate, [owner, owner])) == [False, True]
            with psycopg.connect(owner) as connection:
                assert migrations.revision_of(connection) == migrations.head()
        finally:
            admin.execute("DROP DATABASE empty WITH (FORCE)")


def test_the_bots_role_cannot_migrate(urls: Urls, cluster: Servers) -> None:
    with psycopg.connect(cluster.admin_url, autocommit=True) as admin:
        admin.execute("CREATE DATABASE empty2 OWNER keepsake_owner")
        try:
            with pytest.raises(psycopg.errors.InsufficientPrivilege):
                migrations.migrate(cluster.bot_url.replace("/keepsake?", "/empty2?"))
        finally:
            admin.execute("DROP DATABASE empty2 WITH (FORCE)")
