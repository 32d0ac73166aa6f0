"""The migrations: one head, run once, two first starts at once, never by the bot's role."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import psycopg
import pytest
from alembic import command
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


OLD = """
  INSERT INTO agents (timezone) VALUES ('Europe/Berlin');
  INSERT INTO identities (platform, realm, user_id, agent_id) VALUES ('console', '', 'ada', 1);
  SELECT conversation_of(1, place_of('console', '', '', 'ada', 'direct', '', NULL, 1));
  INSERT INTO turns (agent_id, conversation_id, place_id, epoch, origin, state, started_at) VALUES (1, 1, 1, 1, 'person', 'running', now());
  INSERT INTO messages (agent_id, conversation_id, place_id, visibility, position, role, kind, content, searchable, created_at, turn_id)
    VALUES (1, 1, 1, 'direct', 1, 'user', 'message', 'hi', true, now(), 1);
  INSERT INTO working_context (agent_id, place_id, visibility, section, content, created_at, updated_at)
    VALUES (1, 1, 'direct', 'profile', 'Has a dog.', now(), now());
  INSERT INTO passages (agent_id, place_id, visibility, content, created_at) VALUES (1, 1, 'direct', 'A dog.', now());
  INSERT INTO timers (agent_id, place_id, visibility, kind, purpose, zone, wall_time, due_at, created_at) VALUES
    (1, 1, 'direct', 'reminder', 'roses', 'Europe/Berlin', now(), now(), now()),
    (1, 1, 'direct', 'opener', 'one', 'UTC', now(), now(), now()), (1, 1, 'direct', 'opener', 'two', 'UTC', now(), now(), now());
  INSERT INTO memory_log (agent_id, place_id, at, actor, action, target, target_id)
    VALUES (1, 1, now(), 'agent', 'working_context_append', 'working_context', 1);
  INSERT INTO memory_log_content (log_id, agent_id, after) VALUES (1, 1, 'Has a dog.');
  INSERT INTO events (agent_id, seq, place_id, visibility, kind, origin, source, idem, payload, status, created_at)
    SELECT 1, 1 + status, 1, 'direct', 'message', 'person', 'console', status, '{"text": "hi", "quotes": [{"text": "ho"}], "message_id": "7"}',
      status, now() FROM generate_series(0, 3) status;
"""
"""Somebody who is in the middle of a turn, in a database of the first revision."""


def test_a_database_of_the_first_revision_comes_along_with_its_rows(cluster: Servers, monkeypatch: pytest.MonkeyPatch) -> None:
    newest = command.upgrade
    with psycopg.connect(cluster.admin_url, autocommit=True) as admin:
        admin.execute("CREATE DATABASE old OWNER keepsake_owner")
        try:
            with psycopg.connect(cluster.admin_url.replace("/postgres?", "/old?"), autocommit=True) as inside:
                for extension in ("vector", "pg_trgm", "btree_gin"):
                    inside.execute(f"CREATE EXTENSION {extension} SCHEMA public".encode())
            owner = cluster.owner_url.replace("/keepsake?", "/old?")
            monkeypatch.setattr(command, "upgrade", lambda config, _: newest(config, "0001"))
            migrations.migrate(owner)
            monkeypatch.setattr(command, "upgrade", newest)
            with psycopg.connect(owner, options="-c search_path=keepsake,public") as old:
                assert migrations.revision_of(old) == "0001"
                old.execute(OLD.encode())
            assert migrations.migrate(owner) is True
            with psycopg.connect(owner, options="-c search_path=keepsake,public") as new:
                assert new.execute("SELECT kind FROM timers WHERE due_at IS NOT NULL").fetchall() == [("reminder",)]
                emptied = {"message_id": "7"}
                whole = {"text": "hi", "quotes": [{"text": "ho"}], **emptied}
                events = new.execute("SELECT status, payload FROM events ORDER BY status").fetchall()
                assert events == [(0, whole), (1, emptied), (2, whole), (3, emptied)]
                # What later revisions do on a change, they do to old rows as well.
                new.execute(
                    "UPDATE agents SET paused = true; UPDATE messages SET passing = true; UPDATE agents SET paused = false, timezone = 'UTC'"
                )
                assert new.execute("SELECT count(*) FROM rezoned").fetchall() == [(1,)]
                new.execute("UPDATE turns SET state = 'done'")
                assert new.execute("SELECT count(*) FROM messages").fetchall() == [(0,)]
                counts = new.execute("SELECT erase_agent(1, 'person', 'key', now())").fetchall()[0][0]
                assert counts["timers"] == 3
                left = new.execute("SELECT residue(1)").fetchall()[0][0]
                assert not any(left.values())
        finally:
            admin.execute("DROP DATABASE old WITH (FORCE)")
