"""Where installations of the Slack app are kept: nobody reads them but by the functions, and states are single-use."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import psycopg
import pytest

from bot.app.slack_vault import SlackVault
from memory.db import Database

NOW = datetime(2026, 11, 30, 12, tzinfo=UTC)


async def test_installations_are_kept_replaced_and_forgotten(db: Database) -> None:
    vault = SlackVault(db)
    assert await vault.find("", "T1") is None
    await vault.save("", "T1", "one")
    await vault.save("", "T1", "two")
    await vault.save("E1", "", "org")
    assert await vault.find("", "T1") == "two"
    assert await vault.find("E1", "") == "org"
    assert await vault.find("E1", "T1") is None
    await vault.forget("", "T1")
    assert await vault.find("", "T1") is None
    assert await vault.find("E1", "") == "org"


async def test_the_bots_role_may_not_read_the_tables(db: Database) -> None:
    await SlackVault(db).save("", "T1", "secret")
    for statement in ("SELECT * FROM slack_installations", "SELECT * FROM slack_states", "DELETE FROM slack_installations"):
        with pytest.raises(psycopg.errors.InsufficientPrivilege):
            async with db.bare() as connection:
                await connection.execute(statement.encode())


async def test_a_state_is_good_once_and_in_time_and_only_its_hash_is_kept(db: Database) -> None:
    vault = SlackVault(db)
    await vault.issue("first", NOW + timedelta(minutes=10))
    await vault.issue("late", NOW + timedelta(minutes=10))
    assert not await vault.consume("forged", NOW)
    assert await vault.consume("first", NOW)
    assert not await vault.consume("first", NOW)
    assert not await vault.consume("late", NOW + timedelta(minutes=10))
    assert not await vault.consume("late", NOW)
