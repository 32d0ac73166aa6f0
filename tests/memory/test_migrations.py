"""Tables by migrations and functions as they are written: once, by one process at a time, by the owner alone, and from which databases."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import psycopg
import pytest
from alembic.config import Config
from alembic.script import ScriptDirectory

from bot.embedded import Servers
from memory import migrations
from tests.conftest import Urls

SQL = Path(migrations.__file__).parent / "sql"


@pytest.fixture
def empty(cluster: Servers) -> Iterator[str]:
    """The owner's address of a database that was prepared and never migrated."""
    with psycopg.connect(cluster.admin_url, autocommit=True) as admin:
        admin.execute("CREATE DATABASE empty OWNER keepsake_owner")
        try:
            with psycopg.connect(cluster.admin_url.replace("/postgres?", "/empty?"), autocommit=True) as inside:
                for extension in ("vector", "pg_trgm", "btree_gin"):
                    inside.execute(f"CREATE EXTENSION {extension} SCHEMA public".encode())
            yield cluster.owner_url.replace("/keepsake?", "/empty?")
        finally:
            admin.execute("DROP DATABASE empty WITH (FORCE)")


def opened(url: str) -> psycopg.Connection[tuple[object, ...]]:
    return psycopg.connect(url, autocommit=True, options="-c search_path=keepsake,public")


def test_the_head_by_file_names_is_alembics_head() -> None:
    config = Config()
    config.set_main_option("script_location", str(SQL))
    config.set_main_option("version_locations", str(SQL / "tables"))
    config.set_main_option("path_separator", "newline")
    assert migrations.head() == ScriptDirectory.from_config(config).get_current_head()


def test_a_migrated_database_is_left_alone(urls: Urls) -> None:
    assert migrations.migrate(urls.owner) is False


def test_two_first_starts_at_once_migrate_one_after_the_other(empty: str) -> None:
    with ThreadPoolExecutor(2) as pool:
        assert sorted(pool.map(migrations.migrate, [empty, empty])) == [False, True]
    with psycopg.connect(empty) as connection:
        assert migrations.revision_of(connection) == migrations.head()
        assert migrations.digest_of(connection) == migrations.digest()


def test_the_bots_role_cannot_migrate(empty: str, cluster: Servers) -> None:
    with pytest.raises(psycopg.errors.InsufficientPrivilege):
        migrations.migrate(cluster.bot_url.replace("/keepsake?", "/empty?"))


# Functions ------------------------------------------------------------------------------------------------------------


EARLIER = """
  INSERT INTO agents (timezone) VALUES ('Europe/Berlin');
  CREATE FUNCTION no_longer_written() RETURNS bigint LANGUAGE sql AS 'SELECT 1::bigint';
  DROP FUNCTION people();
  CREATE FUNCTION people() RETURNS bigint LANGUAGE sql AS 'SELECT 7::bigint';
  UPDATE functions SET digest = 'of an earlier version';
"""


def test_functions_of_an_earlier_version_are_made_again_once_and_rows_stay(urls: Urls) -> None:
    with opened(urls.owner) as connection:
        connection.execute(EARLIER.encode())
        with ThreadPoolExecutor(2) as pool:
            assert sorted(pool.map(migrations.migrate, [urls.owner, urls.owner])) == [False, True]
        assert connection.execute("SELECT * FROM people()").fetchall() == []
        assert connection.execute("SELECT to_regproc('no_longer_written')").fetchall() == [(None,)]
        assert connection.execute("SELECT timezone FROM agents").fetchall() == [("Europe/Berlin",)]
    with opened(urls.bot) as bot:
        assert bot.execute("SELECT * FROM people()").fetchall() == []
        assert migrations.digest_of(bot) == migrations.digest()


def test_the_bots_role_does_not_make_functions(urls: Urls) -> None:
    with opened(urls.owner) as connection:
        connection.execute(EARLIER.encode())
        with pytest.raises(psycopg.errors.InsufficientPrivilege):
            migrations.migrate(urls.bot)
        assert connection.execute("SELECT people()").fetchall() == [(7,)]


def test_a_change_of_any_word_changes_the_digest(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "functions").mkdir()
    (tmp_path / "grants.sql").write_text("SELECT 1;")
    (tmp_path / "functions" / "one.sql").write_text("SELECT 1;")
    monkeypatch.setattr(migrations, "_SQL", tmp_path)
    first = migrations.digest()
    (tmp_path / "functions" / "one.sql").write_text("SELECT 2;")
    second = migrations.digest()
    (tmp_path / "grants.sql").write_text("SELECT 2;")
    assert len({first, second, migrations.digest()}) == 3


def test_every_function_is_written_once() -> None:
    texts = [file.read_text() for file in SQL.rglob("*.sql")]
    names = Counter(
        name for text in texts for name in re.findall(r"^\s*CREATE (?:OR REPLACE )?FUNCTION (\S+?)\(", text, re.M | re.I)
    )
    assert len(names) > 100
    assert [name for name, times in names.items() if times > 1] == []
    written = [name for name in names if not name.isidentifier()]
    assert written == [], "without a schema, so that what is written is what is found"


def test_every_function_in_the_database_is_written_here(urls: Urls) -> None:
    written = {name for file in SQL.rglob("*.sql") for name in re.findall(r"^CREATE FUNCTION (\w+)\(", file.read_text(), re.M)}
    with opened(urls.owner) as connection:
        found = connection.execute(
            "SELECT proname FROM pg_proc WHERE pronamespace = 'keepsake'::regnamespace AND prokind = 'f'"
        ).fetchall()
    assert {name for (name,) in found} == written


UNWRITABLE = (
    psycopg.errors.SyntaxError,
    psycopg.errors.UndefinedTable,
    psycopg.errors.UndefinedColumn,
    psycopg.errors.UndefinedFunction,
    psycopg.errors.UndefinedObject,
    psycopg.errors.AmbiguousColumn,
    psycopg.errors.AmbiguousFunction,
    psycopg.errors.DatatypeMismatch,
    psycopg.errors.InvalidFunctionDefinition,
    psycopg.errors.WrongObjectType,
)


def test_every_functions_body_is_valid(urls: Urls) -> None:
    """They are made unchecked, in any order: each is checked as when it would have been made last, and called with nothing known."""
    wrong = []
    with opened(urls.owner) as connection:
        functions = connection.execute(
            """SELECT p.proname, l.lanvalidator::regproc || '(' || p.oid || ')', p.prorettype = 'trigger'::regtype,
                 (SELECT string_agg('NULL::' || t::regtype, ', ') FROM unnest(p.proargtypes::oid[]) t)
               FROM pg_proc p JOIN pg_language l ON l.oid = p.prolang WHERE p.pronamespace = 'keepsake'::regnamespace AND p.prokind = 'f'"""
        ).fetchall()
        assert len(functions) > 100
        for name, check, triggered, nothing in functions:
            for call in [check] if triggered else [check, f"{name}({nothing or ''})"]:
                try:
                    with connection.transaction(force_rollback=True):
                        connection.execute("SET LOCAL search_path = keepsake, procrastinate, public")
                        connection.execute(f"SELECT {call}".encode())
                except UNWRITABLE as error:
                    wrong.append(f"{name}: {error}")
                except psycopg.Error:
                    pass  # what it says to nothing known is its own affair
    assert wrong == []


# Databases of other versions ------------------------------------------------------------------------------------------


CHANGES = {
    # what somebody did by hand: what the listing calls it
    "ALTER TABLE agents ADD COLUMN mine text": "column agents.mine",
    "ALTER TABLE messages ALTER COLUMN content DROP NOT NULL": "column messages.content",
    "ALTER TABLE turns DROP CONSTRAINT turns_state_check": "constraint turns.turns_state_check",
    "DROP INDEX one_running_turn": "index one_running_turn",
    "DROP POLICY messages_made ON messages": "policy messages.messages_made",
    "ALTER TABLE messages NO FORCE ROW LEVEL SECURITY": "table messages",
    "DROP TRIGGER empty_ended ON events": "trigger events.empty_ended",
    "CREATE OR REPLACE FUNCTION current_agent() RETURNS bigint LANGUAGE sql AS 'SELECT 1::bigint'": "function current_agent()",
    "GRANT DELETE ON memory_log TO keepsake_bot": "grant on memory_log",
    "GRANT UPDATE (user_id) ON identities TO keepsake_bot": "grant on identities.user_id",
    "DROP TABLE heard": "table heard",
}


def test_every_kind_of_change_by_hand_is_seen(urls: Urls) -> None:
    with opened(urls.owner) as connection:
        as_made = migrations.listing(connection)
        for change, named in CHANGES.items():
            with connection.transaction(force_rollback=True):
                connection.execute(change.encode())
                assert named in {what for what, _ in migrations.listing(connection) ^ as_made}, change


@pytest.mark.parametrize(
    ("revision", "words"),
    [
        ("0001", "is from before the first release (at 0001; this program starts from 0100). Export"),
        ("0013", "is from before the first release (at 0013"),
        ("0050", "is from before the first release (at 0050"),
        ("9999", "is newer than this program (at 9999, which knows "),
    ],
)
def test_databases_too_old_or_too_new_are_refused_in_one_line(urls: Urls, revision: str, words: str) -> None:
    with opened(urls.owner) as connection:
        connection.execute("UPDATE alembic_version SET version_num = %s", (revision,))
        connection.execute("UPDATE functions SET digest = 'another'")
        with pytest.raises(migrations.MigrationRefused) as refused:
            migrations.migrate(urls.owner)
        assert str(refused.value).startswith(words)
        assert "\n" not in str(refused.value)
        assert migrations.revision_of(connection) == revision
        assert migrations.digest_of(connection) == "another"
