"""Every change of memory says who, when, what before and after, why, from which message, in which turn; and the log cannot be rewritten."""

from __future__ import annotations

import psycopg
import pytest

from memory.db import Database
from tests.bot.dialogue import dialogue
from tests.conftest import Urls
from tests.servers.model import call, reply


async def test_every_kind_of_change_by_the_agent_is_in_the_log_with_its_source(db: Database) -> None:
    add = call("working_context_append", section="goals", content="Sail.", reason="they said so")
    store = call("archival_storage_insert", content="She wants to sail round Norway.")
    timer = call("set_timer", purpose="ask about the boat", asked="I want to sail", in_minutes=90)
    change = call("working_context_replace", old="Sail.", new="Sail to Norway.", reason="more exactly")
    remove = call("working_context_remove", content="Norway", reason="given up")
    async with dialogue(db, reply("ok", add, store, timer), reply("ok", change), reply("ok", remove)) as d:
        for text in ("I want to sail", "To Norway", "I gave that up"):
            await d.hear(text)
        rows = await d.rows(
            """SELECT l.actor, l.action, l.target, l.at, l.turn_id, m.content AS source, c.reason, c.before, c.after
               FROM memory_log l JOIN memory_log_content c ON c.log_id = l.id LEFT JOIN messages m ON m.id = l.message_id ORDER BY l.id"""
        )
        assert [(row["action"], row["source"], row["before"], row["after"]) for row in rows] == [
            ("working_context_append", "I want to sail", None, "Sail."),
            ("archival_storage_insert", "I want to sail", None, "She wants to sail round Norway."),
            ("set_timer", "I want to sail", None, "ask about the boat"),
            ("working_context_replace", "To Norway", "Sail.", "Sail to Norway."),
            ("working_context_remove", "I gave that up", "Sail to Norway.", None),
        ]
        assert {row["actor"] for row in rows} == {"agent"}
        assert [row["reason"] for row in rows] == ["they said so", "", "", "more exactly", "given up"]
        assert all(row["turn_id"] and row["at"] for row in rows)


async def test_a_secret_in_the_models_reason_is_left_out(db: Database) -> None:
    add = call("working_context_append", section="goals", content="Pay the rent.", reason="with card 4111 1111 1111 1111")
    async with dialogue(db, reply("ok", add)) as d:
        await d.hear("The rent is due")
        assert await d.rows("SELECT reason FROM memory_log_content") == [{"reason": "with card [card number left out]"}]


@pytest.mark.parametrize(
    "statement",
    [
        "UPDATE memory_log SET actor = 'person'",
        "UPDATE memory_log SET at = now()",
        "DELETE FROM memory_log",
        "TRUNCATE memory_log",
        "DELETE FROM erasures",
        "SELECT * FROM erased_people",
        "UPDATE memory_log_content SET after = 'x'",
        "SELECT * FROM workspaces_left",
    ],
)
async def test_the_bots_role_cannot_rewrite_it(db: Database, statement: str) -> None:
    async with dialogue(db, reply("ok", call("archival_storage_insert", content="She sails."))) as d:
        await d.hear("I sail")
        [agent] = await d.rows("SELECT id FROM agents")
        with pytest.raises(psycopg.errors.InsufficientPrivilege):
            async with db.agent(int(str(agent["id"])), everything=True) as connection:
                await connection.execute(statement.encode())


def test_the_log_itself_has_no_column_for_words(urls: Urls) -> None:
    """What changed stands apart in memory_log_content, where erasure reaches it; in the log are codes, numbers and times."""
    with psycopg.connect(urls.owner) as owner:
        rows = owner.execute(
            "SELECT column_name, data_type FROM information_schema.columns WHERE table_schema = 'keepsake' AND table_name = 'memory_log'"
        ).fetchall()
    assert {name for name, kind in rows if kind not in ("bigint", "timestamp with time zone")} == {"actor", "action", "target"}
