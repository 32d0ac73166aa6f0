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
IMPERSONAL = {
    # table: what is in it instead of people
    "alembic_version": "the revision",
    "blocks": "hashes",
    "embedding_models": "models by name",
    "erased_events": "keyed hashes",
    "erased_people": "keyed hashes",
    "erasures": "counts",
    "functions": "a fingerprint of the program's text",
    "heard": "the newest message's id on each platform",
    "places": "protected, and made anonymous by an erasure",
    "slack_installations": "workspaces",
    "slack_states": "workspaces",
    "spending_total": "sums of all people",
    "welcomes": "keyed hashes",
    "workspaces_left": "workspaces",
}


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
            if table in IMPERSONAL and table != "places":
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
                if table in IMPERSONAL and table != "places":
                    continue
                cursor = await connection.execute(f"SELECT count(*) AS n FROM {table}".encode())
                row = await cursor.fetchone()
                assert row is not None
                assert row["n"] == 0, f"{table} shows rows without an agent"


async def test_another_agent_sees_and_changes_nothing(db: Database, urls: Urls) -> None:
    from adapters.base import Person

    async with dialogue(
        db,
        reply(
            "ok",
            call("archival_storage_insert", content="Ada sails."),
            call("set_timer", purpose="sail", asked="I sail", in_minutes=5),
        ),
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


async def test_tables_that_are_said_to_name_nobody_do_so(db: Database, urls: Urls) -> None:
    """Whatever a person is called, says and has erased, none of it is in them."""
    from adapters.base import Person
    from memory import erasure

    canary = "Canarietta"
    store = call("archival_storage_insert", content=f"{canary} sails.", tags=[canary])
    async with dialogue(db, reply("ok", store), reply("ok")) as d:
        person = Person("console", "", canary, canary)
        for where in (d.elsewhere(canary, "direct", workspace="", person=person), d.elsewhere("lobby", "public", person=person)):
            await where.hear(f"I am {canary}")
        with psycopg.connect(urls.owner) as owner:
            row = owner.execute("SELECT id FROM keepsake.agents").fetchone()
        assert row is not None
        for erased in (False, True):
            if erased:
                await erasure.erase(db, d.cache, row[0], actor="person", key=b"k" * 32, now=d.at)
            with psycopg.connect(urls.owner) as owner:
                for table in IMPERSONAL:
                    found = owner.execute(
                        f"SELECT count(*) FROM keepsake.{table} t WHERE t::text ILIKE '%{canary}%'".encode()
                    ).fetchone()
                    assert found == (0,) or (table == "places" and not erased), table


def test_a_later_table_without_protection_is_found(urls: Urls) -> None:
    """The walk is over the real schema: a personal table that somebody adds and forgets to protect fails it."""
    with psycopg.connect(urls.owner, autocommit=True) as owner:
        owner.execute("CREATE TABLE keepsake.diary (agent_id bigint, words text)")
    with pytest.raises(AssertionError, match="diary has no forced row-level security"):
        test_schema_walk_every_personal_table_has_policy_erasure_and_export(urls)
    with psycopg.connect(urls.owner, autocommit=True) as owner:
        owner.execute("SET search_path = keepsake")
        owner.execute("CALL protect('diary', 'agent')")
    with pytest.raises(AssertionError, match="diary is not erased with its agent"):
        test_schema_walk_every_personal_table_has_policy_erasure_and_export(urls)
    with psycopg.connect(urls.owner, autocommit=True) as owner:
        owner.execute("ALTER TABLE keepsake.diary ADD FOREIGN KEY (agent_id) REFERENCES keepsake.agents ON DELETE CASCADE")
    with pytest.raises(AssertionError, match="diary is not exported"):
        test_schema_walk_every_personal_table_has_policy_erasure_and_export(urls)
