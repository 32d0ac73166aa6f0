"""Which databases the bot refuses to run on."""

import psycopg
import pytest

from bot.app.services import refuse
from bot.config.findings import Finding, StartError
from bot.operations.database import inspect, owner_address, without_password
from memory import migrations
from tests.conftest import Urls


async def faults(url: str) -> list[Finding]:
    return [finding for finding in await inspect(url, inside=False) if not finding.well]


async def test_a_migrated_database_under_the_bots_role_is_fine(urls: Urls) -> None:
    found = await inspect(urls.bot, inside=False)
    assert [finding for finding in found if not finding.well] == []
    words = "\n".join(finding.what for finding in found)
    for part in (
        "PostgreSQL 1",
        "extension vector 0.",
        "extension pg_trgm",
        "owns nothing",
        "newest revision",
        "forced on every table",
    ):
        assert part in words


async def test_a_superuser_and_an_owner_are_refused(urls: Urls) -> None:
    assert "is a superuser" in (await faults(urls.admin))[0].what
    [owner] = [finding for finding in await faults(urls.owner) if "role" in finding.what]
    assert "owns the bot's tables" in owner.what
    assert "keepsake_bot" in owner.remedy


async def test_bypassrls_is_refused(urls: Urls) -> None:
    with psycopg.connect(urls.admin, autocommit=True) as admin:
        admin.execute("ALTER ROLE keepsake_bot BYPASSRLS")
        try:
            assert "has BYPASSRLS" in (await faults(urls.bot))[0].what
        finally:
            admin.execute("ALTER ROLE keepsake_bot NOBYPASSRLS")


async def test_revisions(urls: Urls) -> None:
    with psycopg.connect(urls.admin, autocommit=True) as admin:
        admin.execute("UPDATE keepsake.alembic_version SET version_num = '9999'")
        [newer] = await faults(urls.bot)
        assert "newer than this program" in newer.what
        assert "Update Keepsake" in newer.remedy
        admin.execute("UPDATE keepsake.alembic_version SET version_num = '0013'")
        [older] = await faults(urls.bot)
        assert "the database is at 0013, this program needs 0" in older.what
        assert "bot migrate" in older.remedy
        admin.execute("UPDATE keepsake.alembic_version SET version_num = %s", (migrations.head(),))
        assert await faults(urls.bot) == []
        admin.execute("UPDATE keepsake.functions SET digest = 'another'")
        [rewritten] = await faults(urls.bot)
        assert "the functions of another version" in rewritten.what
        assert "bot migrate" in rewritten.remedy
        admin.execute("DELETE FROM keepsake.alembic_version")
        [missing] = await faults(urls.bot)
        assert "are missing" in missing.what
        assert "bot migrate" in missing.remedy
        admin.execute("DROP SCHEMA keepsake CASCADE")
        [gone] = await faults(urls.bot)
        assert "bot migrate" in gone.remedy


async def test_open_tables_and_missing_extensions(urls: Urls) -> None:
    with psycopg.connect(urls.admin, autocommit=True) as admin:
        admin.execute("ALTER TABLE keepsake.messages NO FORCE ROW LEVEL SECURITY")
        [security] = await faults(urls.bot)
        assert "messages" in security.what
        admin.execute("ALTER TABLE keepsake.messages FORCE ROW LEVEL SECURITY")
        admin.execute("DROP EXTENSION unaccent CASCADE")
        assert "extension unaccent: is missing" in (await faults(urls.bot))[0].what


async def test_an_unreachable_database_is_one_line_without_its_password() -> None:
    [finding] = await inspect("postgresql://bot:hunter2@127.0.0.1:1/x", inside=False)
    assert finding.what.startswith("database.url: cannot be reached")
    assert "hunter2" not in finding.what
    with pytest.raises(StartError, match=r"database\.url: cannot be reached .* Start it, or correct database\.url"):
        refuse([finding])


def test_addresses() -> None:
    assert owner_address("postgresql://root:a@db:5432/postgres?sslmode=require", "keepsake", "p/w") == (
        "postgresql://keepsake_owner:p%2Fw@db:5432/keepsake?sslmode=require"
    )
    assert without_password("no hunter2 here", "postgresql://x:hunter2@y/z") == "no *** here"
