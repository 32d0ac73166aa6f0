"""The proof of an erasure finds what an eraser would leave, wherever the schema can hold words; and words go in one place only."""

from __future__ import annotations

import ast
from pathlib import Path

import psycopg
import pytest
from psycopg import sql

from adapters.base import Person, Quote
from memory import erasure, proof
from memory.db import Database, value
from tests.bot.commands.conftest import KEY
from tests.bot.dialogue import Dialogue, dialogue
from tests.conftest import Urls
from tests.servers.model import call, reply

ROOT = Path(__file__).resolve().parents[2]
BEN = Person("console", "", "ben", "Ben")
SAID = "My otter Ottokar swims in Lake Constance every Thursday"
COPY = "repeated: my otter Ottokar swims in lake constance every thursday"

FIXED = "one of the schema's or the code's own words"
IDS = "ids of a platform or of ours"
PERSON = "with the person"
THE_WALK = "the walk (memory/sql/functions/walk.sql)"
AUTHOR = "whose words they are: the walk takes the row, and `residue` looks for the name"
WORDS = {
    # table: by which rule the words of its columns go
    "agents": {PERSON: "locale timezone", "the operator's host": "noticed_hosts"},
    "blocks": {IDS: "workspace"},
    "conversations": {"unsummarise: back to the last summary without them": "summary summary_tail", FIXED: "summary_visibility"},
    "decisions": {FIXED: "kind", "numbers of rows, and accounts: with the person": "about"},
    "documents": {"with their place, their period, or by their own time": "name media_type", FIXED: "visibility"},
    "embedding_models": {"the operator's": "name"},
    "erasures": {FIXED: "actor", "counts by table": "counts"},
    "events": {
        "emptied when they end; the walk empties those that wait": "payload",
        IDS: "idem source",
        "class names of errors": "last_error",
        FIXED: "kind origin visibility",
    },
    "functions": {"a digest of our SQL": "digest"},
    "heard": {IDS: "message_id platform"},
    "identities": {PERSON: "display_name platform realm user_id"},
    "link_tries": {FIXED: "kind"},
    "links": {"with the person, for ten minutes": "platform realm user_id taker_platform taker_realm taker_user"},
    "memory_log": {FIXED: "action actor target"},
    "memory_log_content": {"the walk: by target, turn and rare word": "reason before after row_before"},
    "memory_requests": {"the walk: by message, turn and rare word": "content tags", FIXED: "kind layer section visibility"},
    "messages": {
        THE_WALK: "content calls",
        AUTHOR: "author_id author_name said_to",
        IDS: "platform_id call_id",
        FIXED: "asks kind role visibility",
    },
    "openers": {FIXED: "kind"},
    "outbox": {
        "with the messages of its turn": "body",
        "with the timers they are about": "buttons",
        IDS: "channel platform platform_id reply_to",
        "class names of errors": "last_error",
        FIXED: "state",
    },
    "passages": {THE_WALK: "content tags", "with its document": "heading", AUTHOR: "author_id author_name", FIXED: "visibility"},
    "places": {
        "renamed when the person is erased, whose own it is": "name external_id",
        IDS: "platform realm workspace",
        FIXED: "kind",
    },
    "slack_installations": {"of a workspace, encrypted": "secret", IDS: "enterprise_id team_id"},
    "sources": {FIXED: "role"},
    "speaking": {FIXED: "openers planned promised", "with the turn that guessed it": "zone_guess"},
    "timers": {THE_WALK: "name purpose", FIXED: "every kind visibility zone"},
    "turns": {FIXED: "origin state"},
    "usage": {"the operator's": "model", FIXED: "purpose"},
    "working_context": {THE_WALK: "content", AUTHOR: "author_id", FIXED: "section visibility"},
    "workspaces_left": {IDS: "platform realm workspace"},
}


def word_tables(owner: str) -> dict[str, list[tuple[str, str]]]:
    """The columns that can hold words, with their types, by table."""
    with psycopg.connect(owner) as connection:
        rows = connection.execute(
            """SELECT r.relname, a.attname, format_type(a.atttypid, NULL) FROM pg_attribute a JOIN pg_class r ON r.oid = a.attrelid
               WHERE r.relnamespace = 'keepsake'::regnamespace AND r.relkind IN ('r', 'p') AND a.attnum > 0 AND NOT a.attisdropped
                 AND a.attgenerated = '' AND format_type(a.atttypid, NULL) IN ('text', 'text[]', 'json', 'jsonb', 'character varying')
               ORDER BY 1, 2"""
        ).fetchall()
    found: dict[str, list[tuple[str, str]]] = {}
    for table, column, kind in rows:
        found.setdefault(table, []).append((column, kind))
    found.pop("alembic_version")
    return found


def test_every_column_that_can_hold_words_has_its_rule(urls: Urls) -> None:
    """A new table or column of text: say here by which rule its words go, and let the walk know it."""
    there = {(table, column) for table, columns in word_tables(urls.owner).items() for column, _ in columns}
    ruled = [(table, column) for table, rules in WORDS.items() for columns in rules.values() for column in columns.split()]
    assert there == set(ruled)
    assert len(ruled) == len(set(ruled))


async def life(db: Database) -> Dialogue:
    """Rows in as many tables as a short life fills; of Ada, and of Ben who shares a room with her."""
    store = (
        call("working_context_append", section="profile", content="Ben sails."),
        call("archival_storage_insert", content="Ben sails a dinghy.", tags=["boats"]),
        call("set_timer", purpose="water the plants", in_minutes=60),
        call("recall_storage_search", query="dinghy"),
    )
    async with dialogue(db, reply("Hello Ada."), reply("Noted.", *store), reply("Fine.")) as ada:
        await ada.elsewhere("pier", "public").hear("Hello all")
        ben = ada.elsewhere("pier", "public", person=BEN)
        await ben.hear("I sail a dinghy", quotes=(Quote("console::carl", "Carl", "He really does", "context", "pier/9"),))
        async with db.bare() as connection:
            agent = await value(connection, "SELECT known_agent('console', '', 'ada')")
            await connection.execute("SELECT enter(%s, NULL, true)", (agent,))
        await ben.accept("One that waits", quotes=(Quote("console::carl", "Carl", "And he waits", "context", "pier/10"),))
    return ada


async def test_a_copy_planted_in_any_column_of_any_table_is_found(db: Database, urls: Urls) -> None:
    """Each time one row of one table repeats what was erased, as an eraser would leave it that does not know of it."""
    await life(db)
    tables = word_tables(urls.owner)
    planted: list[str] = []
    async with await psycopg.AsyncConnection.connect(urls.admin) as owner, db.bare() as connection:
        agents = [await value(connection, "SELECT known_agent('console', '', %s)", (user,)) for user in ("ada", "ben")]
        sought = proof.rarest([SAID])
        for table, columns in tables.items():
            for column, kind in columns:
                await owner.execute("SET LOCAL session_replication_role = replica")
                text = (
                    COPY
                    if kind in ("text", "character varying")
                    else f'{{"{COPY}"}}'
                    if kind == "text[]"
                    else f'{{"deep": ["{COPY}"]}}'
                )
                statement = sql.SQL("UPDATE keepsake.{} SET {} = %s WHERE ctid = (SELECT min(ctid) FROM keepsake.{})").format(
                    sql.Identifier(table), sql.Identifier(column), sql.Identifier(table)
                )
                try:
                    done = await owner.execute(statement, (text,))
                except psycopg.errors.CheckViolation:
                    await owner.rollback()  # a column of fixed values holds no words
                    continue
                if done.rowcount:
                    found = await (
                        await owner.execute("SELECT keepsake.find_words(%s, %s::bigint[])", (sought, agents))
                    ).fetchone()
                    assert found is not None
                    left = {name: number for name, number in found[0].items() if number}
                    assert left == {table: 1}, f"{table}.{column}"
                    planted.append(f"{table}.{column}")
                await owner.rollback()
    filled = "messages events outbox passages working_context timers memory_log_content conversations identities places"
    assert {each.partition(".")[0] for each in planted} >= set(filled.split())


async def test_an_erasure_that_left_a_copy_says_so(db: Database, urls: Urls) -> None:
    """A paraphrase without any link, as no eraser could know it: the words alone betray it."""
    async with dialogue(db, reply("Hm."), reply("Hello Ben.")) as ada:
        await ada.elsewhere("pier", "public").hear(SAID)
        await ada.elsewhere("pier", "public", person=BEN).hear("Hello")
        async with await psycopg.AsyncConnection.connect(urls.owner, options="-c search_path=keepsake,public") as owner:
            await owner.execute("UPDATE messages SET content = %s WHERE content = 'Hello Ben.'", (COPY,))
        async with db.bare() as connection:
            agent = await value(connection, "SELECT known_agent('console', '', 'ada')")
        found = await erasure.erase(db, ada.cache, agent, actor="person", key=KEY, now=ada.at)
        assert not found.complete
        assert {table: number for table, number in found.words.items() if number} == {"messages": 1}
        assert not any(found.left.values())


async def test_what_others_said_themselves_is_no_trace(db: Database) -> None:
    async with dialogue(db, reply("Hm."), reply("Hm.")) as ada:
        await ada.elsewhere("pier", "public").hear(SAID)
        await ada.elsewhere("pier", "public", person=BEN).hear(SAID)
        async with db.bare() as connection:
            agent = await value(connection, "SELECT known_agent('console', '', 'ada')")
        assert (await erasure.erase(db, ada.cache, agent, actor="person", key=KEY, now=ada.at)).complete


@pytest.mark.parametrize(
    "planted",
    [
        "UPDATE keepsake.messages SET author_id = 'console::ada' WHERE content = 'I sail on Sundays'",
        "UPDATE keepsake.messages SET said_to = 'console::ada' WHERE content = 'I sail on Sundays'",
        """UPDATE keepsake.memory_log_content SET row_before = '{"x": {"author_id": "console::ada"}}'""",
        """UPDATE keepsake.events SET status = 2, payload = '{"quotes": [{"said_to": "console::ada"}]}'
             WHERE id = (SELECT max(id) FROM keepsake.events)""",
    ],
)
async def test_verifying_finds_an_erased_account_that_is_still_named(db: Database, urls: Urls, planted: str) -> None:
    note = call("working_context_append", section="profile", content="Sails on Sundays.")
    async with dialogue(db, reply("Hm."), reply("Hello.", note)) as ada:
        await ada.hear(SAID)
        await ada.elsewhere("pier", "public", person=BEN).hear("I sail on Sundays")
        async with db.bare() as connection:
            agent = await value(connection, "SELECT known_agent('console', '', 'ada')")
        await erasure.erase(db, ada.cache, agent, actor="person", key=KEY, now=ada.at)

        async def named() -> int:
            async with db.bare() as connection:
                return sum((await value(connection, "SELECT erased_yet_named(%s)", (KEY,))).values())

        assert await named() == 0
        async with await psycopg.AsyncConnection.connect(urls.owner) as owner:
            await owner.execute(planted.encode())
        assert await named() == 1


# One owner -----------------------------------------------------------------------------------------------

HOLDING = ("messages", "working_context", "passages", "timers", "documents", "memory_log_content", "memory_requests", "sources")
OWNERS = {
    # SQL function: what it takes out, and why it is not the walk
    "forget_rows": "the walk",
    "forget_quoted": "the walk, in other agents",
    "retain": "by age; words through forget_rows",
    "retain_workspaces": "the bookkeeping of a workspace that was left, after the walk",
    "unsummarise": "the walk: summaries",
    "erase_agent": "a whole person by cascade",
    "merge_agents": "a turn of two accounts that begins again, of the same person",
    "unlink_account": "edges between two agents",
    "reapply_decisions": "log entries and questions that were forgotten before a restore; all else through forget_rows",
}


def test_words_are_taken_out_in_one_place_only(urls: Urls) -> None:
    """No Python outside memory/forgetting.py deletes rows with words, but for single rows that their owner changes as asked."""
    allowed = {
        ("memory/working_context.py", "working_context"): "the agent removes an entry; undo brings it back",
        ("memory/undo.py", "{}"): "undoing a change that made a row",
        ("bot/functions/requests.py", "memory_requests"): "a question that was answered",
        ("memory/queue_manager.py", "sources"): "of a summary that /fresh ended",
        ("bot/speaking/initiative.py", "timers"): "planned again; what it says is the operator's",
        ("bot/functions/timers.py", "timers"): "an idea of the agent's own that another takes the place of",
        ("bot/speaking/appointments.py", "timers"): "such an idea, after a no",
    }
    found = set()
    for path in (*ROOT.glob("memory/**/*.py"), *ROOT.glob("bot/**/*.py"), *ROOT.glob("adapters/**/*.py")):
        name = str(path.relative_to(ROOT))
        if name == "memory/forgetting.py" or name.startswith("bot/bench/"):
            continue
        for node in ast.walk(ast.parse(path.read_text("utf-8"))):
            if isinstance(node, ast.Constant) and isinstance(node.value, str) and "DELETE FROM " in node.value:
                table = node.value.split("DELETE FROM ")[1].split()[0]
                if table in HOLDING or table == "{}":
                    found.add((name, table))
    assert found == set(allowed)
    with psycopg.connect(urls.owner) as owner:
        rows = owner.execute(
            """SELECT p.proname FROM pg_proc p WHERE p.pronamespace = 'keepsake'::regnamespace AND p.prokind = 'f'
                 AND p.prosrc ~ ('DELETE FROM (' || %s || '|%%)')""",
            ("|".join(HOLDING),),
        ).fetchall()
    assert {name for (name,) in rows} <= set(OWNERS)
