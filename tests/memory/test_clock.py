"""The time is the database's, however wrong the clock of this machine is, and never goes back because an answer took long."""

from __future__ import annotations

import time
from datetime import UTC, datetime, timedelta

from memory.clock import Clock
from memory.db import Database

NEAR = timedelta(seconds=5)
"""More than a round trip takes on a busy machine, and far less than a clock is wrong by here."""
TWO_HOURS = 7200.0


def off_by(clock: Clock) -> timedelta:
    """How far it is from this machine's clock, which is the database's, too, in a test."""
    return clock() - datetime.now(UTC)


async def test_a_clock_that_is_wrong_is_put_right_by_the_database(db: Database) -> None:
    at = time.monotonic()
    db.now.told(time.time() + TWO_HOURS, at, at)
    assert off_by(db.now) > timedelta(hours=1)
    await db.read_clock()
    assert abs(off_by(db.now)) < NEAR


async def test_a_pool_knows_the_time_from_its_opening_on(db: Database) -> None:
    async with Database(db.url, size=2) as other:
        assert abs(other.now() - db.now()) < NEAR


def test_an_answer_that_took_long_does_not_turn_the_time_back() -> None:
    clock = Clock()
    at = time.monotonic()
    clock.told(1000.0, at, at)
    before = clock()
    clock.told(1000.5, at, at + 4)  # asked and answered within 4 s: their clock showed this at some moment in between
    assert clock() >= before
    assert before.timestamp() < 1010


def test_a_jump_is_followed() -> None:
    clock = Clock()
    at = time.monotonic()
    clock.told(1000.0, at, at)
    clock.told(5000.0, at, at + 0.1)
    assert 4999 < clock().timestamp() < 5010
