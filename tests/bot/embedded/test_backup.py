"""Backup and restore of a real database: owners, grants and policies come back; bad files do no harm."""

from datetime import UTC, datetime
from pathlib import Path

import psycopg
import pytest
from psycopg import Connection
from psycopg.rows import TupleRow

import bot.operations.backup
from bot.embedded import EmbeddedError, Servers
from bot.operations.backup import backup, default_name, restore
from tests.bot.embedded.conftest import ask

NOW = datetime(2026, 11, 29, 22, 15, 1, tzinfo=UTC)
Running = tuple[Path, Servers]


@pytest.fixture
def filled(running: Running) -> Servers:
    """The database with one personal table: 3,000 rows of agent 1, one of agent 2."""
    _, found = running
    with psycopg.connect(found.owner_url, autocommit=True) as owner:
        owner.execute(
            """
            drop schema if exists keepsake cascade;
            create schema keepsake;
            create table keepsake.notes (agent bigint, said text, meaning vector(3));
            alter table keepsake.notes enable row level security;
            alter table keepsake.notes force row level security;
            create policy own on keepsake.notes to keepsake_bot
                using (agent = nullif(current_setting('keepsake.agent', true), '')::bigint);
            create policy owner on keepsake.notes to keepsake_owner using (true);
            grant usage on schema keepsake to keepsake_bot;
            grant select, insert on keepsake.notes to keepsake_bot;
            insert into keepsake.notes select 1, md5(i::text), '[1,2,3]' from generate_series(1, 3000) i;
            insert into keepsake.notes values (2, 'other', null);
            """
        )
    return found


def test_round_trip_with_owners_grants_and_policies(filled: Servers, tmp_path: Path) -> None:
    file = backup(filled, tmp_path, now=NOW)
    assert file == tmp_path / default_name(NOW) == tmp_path / "keepsake-20261129T221501Z.dump"
    assert file.stat().st_mode & 0o777 == 0o600
    assert list(tmp_path.iterdir()) == [file]

    with psycopg.connect(filled.bot_url, autocommit=True) as connected:
        connected.execute("set keepsake.agent = 1")
        connected.execute("insert into keepsake.notes values (1, 'later')")
        with pytest.raises(EmbeddedError, match="not empty"):
            restore(filled, file)
        restore(filled, file, replace=True)
        with pytest.raises(psycopg.OperationalError):
            connected.execute("select 1")

    assert ask(filled.owner_url, "select count(*) from keepsake.notes") == 3001
    assert ask(filled.bot_url, "select count(*) from keepsake.notes") == 0
    with psycopg.connect(filled.bot_url) as plain:
        plain.execute("set keepsake.agent = 1")
        assert plain.execute("select count(*) from keepsake.notes").fetchone() == (3000,)
        with pytest.raises(psycopg.errors.InsufficientPrivilege):
            plain.execute("delete from keepsake.notes")
    assert ask(filled.bot_url, "select relforcerowsecurity from pg_class where relname = 'notes'") is True
    assert ask(filled.bot_url, "select tableowner from pg_tables where tablename = 'notes'") == "keepsake_owner"
    with pytest.raises(psycopg.errors.InsufficientPrivilege):
        ask(filled.bot_url, "create temp table t (i int)")
    assert ask(filled.admin_url, "select count(*) from pg_database where datname like 'keepsake_%'") == 0


def test_restore_into_an_empty_database_needs_no_leave(filled: Servers, tmp_path: Path) -> None:
    file = backup(filled.admin_url, tmp_path / "b.dump", now=NOW)
    ask(filled.admin_url, "select pg_terminate_backend(pid) from pg_stat_activity where datname = 'keepsake'")
    with psycopg.connect(filled.admin_url, autocommit=True) as admin:
        admin.execute("drop database keepsake with (force)")
    restore(filled.admin_url, file)
    assert ask(filled.owner_url, "select count(*) from keepsake.notes") == 3001


@pytest.mark.parametrize("damage", ["garbage", "empty", "half", "last byte", "flipped", "missing"])
def test_a_damaged_file_changes_nothing(filled: Servers, tmp_path: Path, damage: str) -> None:
    file = backup(filled, tmp_path / "b.dump", now=NOW)
    whole = file.read_bytes()
    middle = whole.index(b"\x78", len(whole) // 2)
    file.write_bytes(
        {
            "garbage": b"not a dump" * 1000,
            "empty": b"",
            "half": whole[: len(whole) // 2],
            "last byte": whole[:-1],
            "flipped": whole[:middle] + bytes([whole[middle] ^ 0xFF]) + whole[middle + 1 :],
            "missing": b"",
        }[damage]
    )
    if damage == "missing":
        file.unlink()
    with pytest.raises(EmbeddedError, match=r"b\.dump"):
        restore(filled, file, replace=True)
    assert ask(filled.owner_url, "select count(*) from keepsake.notes") == 3001
    assert ask(filled.admin_url, "select count(*) from pg_database where datname like 'keepsake_%'") == 0


@pytest.mark.parametrize(
    ("revision", "words"), [("0007", "is from before the first release"), ("9999", "is newer than this program")]
)
def test_a_backup_of_a_version_that_cannot_be_migrated_changes_nothing(
    filled: Servers, tmp_path: Path, revision: str, words: str
) -> None:
    with psycopg.connect(filled.owner_url, autocommit=True) as owner:
        owner.execute("create table keepsake.alembic_version (version_num text)")
        owner.execute("insert into keepsake.alembic_version values (%s)", (revision,))
        file = backup(filled, tmp_path / "b.dump", now=NOW)
        owner.execute("update keepsake.alembic_version set version_num = 'present'")
    with pytest.raises(EmbeddedError, match=rf"^The backup {words} \(at {revision}.* Nothing was changed\.$"):
        restore(filled, file, replace=True)
    assert ask(filled.owner_url, "select version_num from keepsake.alembic_version") == "present"
    assert ask(filled.admin_url, "select count(*) from pg_database where datname like 'keepsake_%'") == 0


def test_a_restore_that_fails_at_the_last_step_changes_nothing(
    filled: Servers, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = backup(filled, tmp_path / "b.dump", now=NOW)
    renamed: list[str] = []

    def fail(admin: Connection[TupleRow], name: str, to: str) -> None:
        if renamed:
            raise psycopg.OperationalError("gone")
        renamed.append(name)
        rename(admin, name, to)

    rename = bot.operations.backup._rename
    monkeypatch.setattr(bot.operations.backup, "_rename", fail)
    with pytest.raises(EmbeddedError, match="not changed"):
        restore(filled, file, replace=True)
    assert renamed == ["keepsake"]
    assert ask(filled.owner_url, "select count(*) from keepsake.notes") == 3001
    assert ask(filled.admin_url, "select count(*) from pg_database where datname like 'keepsake_%'") == 0


def test_a_backup_that_fails_leaves_no_file(running: Running, tmp_path: Path) -> None:
    _, found = running
    with pytest.raises(EmbeddedError, match="no file was written"):
        backup(found, tmp_path / "b.dump", now=NOW, database="nowhere")
    assert not list(tmp_path.iterdir())
    with pytest.raises(EmbeddedError, match="nowhere"):
        backup(found, tmp_path / "nowhere" / "b.dump", now=NOW)
