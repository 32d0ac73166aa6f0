"""Operator schedules: cron fields on the person's own clock, over clock changes."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bot.config.cron import trigger_of
from bot.config.loading import ConfigError, load
from bot.speaking.schedules import next_run

BERLIN, YORK, HOWE, KOLKATA = "Europe/Berlin", "America/New_York", "Australia/Lord_Howe", "Asia/Kolkata"


def utc(text: str) -> datetime:
    return datetime.fromisoformat(text).replace(tzinfo=UTC)


@pytest.mark.parametrize(
    ("cron", "zone", "now", "due"),
    [
        ("0 17 * * sun", KOLKATA, "2026-11-30 12:00", "2026-12-06 11:30"),
        ("0 17 * * sun", KOLKATA, "2026-12-06 11:30", "2026-12-13 11:30"),
        ("0 9 * * *", BERLIN, "2026-03-28 08:00", "2026-03-29 07:00"),
        ("0 9 * * *", BERLIN, "2026-10-24 07:00", "2026-10-25 08:00"),
        # the gap: 2:30 is moved to 3:30, also for somebody who looks at 3:10
        ("30 2 * * *", BERLIN, "2026-03-28 12:00", "2026-03-29 01:30"),
        ("30 2 * * *", BERLIN, "2026-03-29 01:10", "2026-03-29 01:30"),
        ("30 2 * * *", YORK, "2026-03-08 00:00", "2026-03-08 07:30"),
        ("15 2 * * *", HOWE, "2026-10-03 12:00", "2026-10-03 15:45"),
        # the overlap: the first of two
        ("30 2 * * *", BERLIN, "2026-10-24 12:00", "2026-10-25 00:30"),
        ("30 2 * * *", BERLIN, "2026-10-25 00:30", "2026-10-26 01:30"),
        ("30 1 * * *", YORK, "2026-11-01 05:30", "2026-11-02 06:30"),
        ("45 1 * * *", HOWE, "2026-04-04 14:45", "2026-04-05 15:15"),
        # leap days
        ("0 8 29 feb *", "UTC", "2026-01-01 00:00", "2028-02-29 08:00"),
    ],
)
def test_next_run(cron: str, zone: str, now: str, due: str) -> None:
    assert next_run(cron, ZoneInfo(zone), utc(now)) == utc(due)


@given(
    st.sampled_from(["0 9 * * *", "30 2 * * *", "*/20 1-3 * * *", "0 17 * * sun", "15 2 1 * *"]),
    st.sampled_from([BERLIN, YORK, HOWE, KOLKATA, "Africa/Casablanca", "Pacific/Chatham"]),
    st.datetimes(datetime.fromisoformat("2024-01-01"), datetime.fromisoformat("2030-01-01")),
)
def test_the_next_run_lies_ahead_and_none_is_left_out(cron: str, zone: str, naive: datetime) -> None:
    now, where = naive.replace(tzinfo=UTC), ZoneInfo(zone)
    due = next_run(cron, where, now)
    assert due is not None
    assert due > now
    # Nothing lies between: whoever looks later, but before it, finds the same.
    assert next_run(cron, where, now + (due - now) / 2) == due
    assert next_run(cron, where, due - timedelta(seconds=1)) == due


@pytest.mark.parametrize("cron", ["", "0 9 * *", "0 9 * * 1", "61 9 * * mon", "0 25 * * *", "x y z a b", "0 9 * * noday"])
def test_wrong_fields_are_refused(cron: str) -> None:
    with pytest.raises(ValueError, match=r"."):
        trigger_of(cron)


def test_a_wrong_schedule_is_refused_at_the_start(tmp_path) -> None:  # type: ignore[no-untyped-def]
    file = tmp_path / "config.yaml"
    file.write_text("schedules:\n  entries: {weekly: {cron: '0 17 * * 7', purpose: Ask.}}\n")
    with pytest.raises(ConfigError, match="must name the days of the week"):
        load(file)
    file.write_text("openers: {enabled: true, quiet_from: 22:30, quiet_to: '07:00'}\n")
    loaded = load(file)
    assert loaded.config.openers.quiet_from.isoformat() == "22:30:00", "YAML reads 22:30 as a number of minutes"
