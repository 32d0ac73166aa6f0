"""Rule 4 in the database: every personal table has forced row-level security, is erased with its agent and is exported."""

from __future__ import annotations

import psycopg
import pytest

from memory.db import Database
from memory.export import EXPORTED, LEFT_OUT
from tests.bot.dialogue import dialogue
from tests.conftest import Urls
from tests.servers.model import call, reply

# Not personal: the tables of models and of what proves erasures, which name no person.
IMPERSONAL = {"embedding_models", "alembic_version", "blocks", "erased_events", "erasures", "places", "spending_total", "welcomes", "slack_installations", "slack_states", "erased_people", "workspaces_left"}


def tables(owner_url: str) -> dict[str, set[str]]:
    """Columns by table, of the whole schema."""
    with psycopg.connect(owner_url) as connection:
        rows = connection.execute(
            """SELECT c.table_name, c.column_name FROM information_schema.columns c JOIN information_schema.tables t USING (table_schema, table_name)
               WHERE c.table_schema = 'keepsake' AND t.table_type = 'BASE TABLE'"""
        ).fetchall()
    found: dict[str, set[str]] = {}
    for table, column in rows:
        found.setdefault(table, set()).add(column)
    return found


def test_schema_walk_every_personal_table_has_policy_erasure_and_export(urls: Urls) -> None:
    with psycopg.connect(urls.owner) as connection:
        for table in tables(urls.owner):
            if table in IMPERSONAL - {"places"}:
                continue
            row = connection.execute(
                "SELECT relrowsecurity, relforcerowsecurity FROM pg_class WHERE oid = ('keepsake.' || %s)::regclass", (table,)
            ).fetchone()
            assert row == (True, True), f"{table} has no forced row-level security"
            policies = connection.execute(
                "SELECT count(*) FROM pg_policies WHERE schemaname = 'keepsake' AND tablename = %s AND 'keepsake_bot' = ANY (roles)",
                (table,),
            ).fetchone()
            assert policies is not None
            assert policies[0] >= 2, f"{table} has no policy for the bot"
            if table in IMPERSONAL or table == "agents":
                continue
            cascades = connection.execute(
                """SELECT count(*) FROM pg_constraint WHERE conrelid = ('keepsake.' || %s)::regclass AND contype = 'f' AND confdeltype = 'c'
                   AND confrelid = 'keepsake.agents'::regclass""",
                (table,),
            ).fetchone()
            assert cascades is not None
            assert cascades[0] >= 1, f"{table} is not erased with its agent"
            assert table in EXPORTED or table in LEFT_OUT, f"{table} is not exported"


async def test_without_a_named_agent_nothing_is_seen(db: Database, urls: Urls) -> None:
    async with dialogue(db, reply("ok", call("working_context_append", section="goals", content="Sail."))) as d:
        await d.hear("I want to sail")
        async with db.bare() as connection:
            for table in tables(urls.owner):
                if table in IMPERSONAL - {"places"}:
                    continue
                cursor = await connection.execute(f"SELECT count(*) AS n FROM {table}".encode())
                row = await cursor.fetchone()
                assert row is not None
                assert row["n"] == 0, f"{table} shows rows without an agent"


async def test_another_agent_sees_and_changes_nothing(db: Database, urls: Urls) -> None:
    from adapters.base import Person

    async with dialogue(
        db,
        reply("ok", call("archival_storage_insert", content="Ada sails."), call("set_timer", purpose="sail", in_minutes=5)),
        reply("hi"),
    ) as ada:
        await ada.hear("I sail")
        bob = ada.elsewhere("bob", "direct", workspace="", person=Person("console", "", "bob", "Bob"))
        await bob.hear("hello")
        [own] = await bob.rows("SELECT id FROM agents")
        [other] = await ada.rows("SELECT id FROM agents")
        async with db.agent(int(str(own["id"])), everything=True) as connection:
            for table, columns in tables(urls.owner).items():
                if "agent_id" not in columns:
                    continue
                row = await (
                    await connection.execute(f"SELECT count(*) AS n FROM {table} WHERE agent_id = %s".encode(), (other["id"],))
                ).fetchone()
                assert row is not None
                assert row["n"] == 0, table
            changed = await connection.execute("UPDATE messages SET content = 'x' WHERE agent_id = %s", (other["id"],))
            assert changed.rowcount == 0
            deleted = await connection.execute("DELETE FROM passages WHERE agent_id = %s", (other["id"],))
            assert deleted.rowcount == 0


@pytest.mark.parametrize(
    "statement",
    [
        "DELETE FROM memory_log",
        "UPDATE memory_log SET action = 'x'",
        "SELECT * FROM erased_events",
        "DROP TABLE messages",
        "CREATE TABLE keepsake.mine (x int)",
        "ALTER TABLE messages DISABLE ROW LEVEL SECURITY",
        "SET ROLE keepsake_owner",
    ],
)
async def test_the_bots_role_may_not(db: Database, statement: str) -> None:
    with pytest.raises(psycopg.errors.InsufficientPrivilege):
        async with db.bare() as connection:
            await connection.execute(statement.encode())


def test_every_function_that_looks_across_agents_is_pinned_and_the_bots_alone(urls: Urls) -> None:
    with psycopg.connect(urls.owner) as connection:
        rows = connection.execute(
            """SELECT proname, proconfig, has_function_privilege('public', oid, 'execute') FROM pg_proc
               WHERE pronamespace = 'keepsake'::regnamespace AND prosecdef"""
        ).fetchall()
    assert len(rows) > 10
    for name, config, public in rows:
        assert any(setting.startswith("search_path=") for setting in config or ()), f"{name} has no search path of its own"
        assert not public, f"{name} may be run by anybody"
