"""May the bot speak first? The decision as a table, its properties, and a natural time for the next look."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, time, timedelta
from typing import Any
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bot.speaking.decision import Kind, SpeakingRules, Standing, gap_after, is_quiet, may_speak, next_opener, waking
from memory.zones import zone_named

NOON = datetime(2026, 11, 30, 12, 0, tzinfo=UTC)  # 13:00 in Berlin
HOUR, DAY = timedelta(hours=1), timedelta(days=1)
RULES = SpeakingRules()
WELL = Standing(leave="yes", zone="Europe/Berlin", last_active=NOON - 5 * HOUR)


def utc(text: str) -> datetime:
    return datetime.fromisoformat(text).replace(tzinfo=UTC)


@pytest.mark.parametrize(
    ("changes", "reason", "again"),
    [
        ({}, "", None),
        # leave
        ({"leave": "unasked"}, "no_leave", None),
        ({"leave": "asked"}, "no_leave", None),
        ({"leave": "no"}, "no_leave", None),
        # the person and the place
        ({"blocked": True}, "blocked", None),
        ({"reachable": False}, "unreachable", None),
        ({"paused": True}, "paused", None),
        ({"direct": False}, "elsewhere", None),
        ({"zone": ""}, "no_zone", None),
        ({"zone": "Mars/Olympus"}, "no_zone", None),
        # quiet hours: 21 to 9 for all, the person's own, none
        ({"zone": "Asia/Tokyo"}, "quiet_hours", utc("2026-12-01 00:00")),  # 21:00 there
        ({"zone": "America/Los_Angeles"}, "quiet_hours", utc("2026-11-30 17:00")),  # 4:00 there
        ({"zone": "Asia/Tokyo", "quiet": (time(23), time(7))}, "", None),
        ({"quiet": (time(13), time(14))}, "quiet_hours", utc("2026-11-30 13:00")),
        ({"quiet": (time(12), time(13))}, "", None),
        ({"zone": "America/Los_Angeles", "quiet": (time(0), time(0))}, "", None),
        # the platform's do-not-disturb
        ({"quiet_until": NOON + HOUR}, "do_not_disturb", NOON + HOUR),
        ({"quiet_until": NOON}, "", None),
        # busy, active
        ({"busy": True}, "busy", NOON + timedelta(minutes=90)),
        ({"last_active": NOON - timedelta(minutes=89)}, "active", NOON + timedelta(minutes=1)),
        ({"last_active": NOON - timedelta(minutes=90)}, "", None),
        ({"last_active": None}, "", None),
        # the daily cap counts local days: 23:30 UTC yesterday is today in Berlin
        ({"spoken": [utc("2026-11-29 23:30")]}, "cap", utc("2026-11-30 23:00")),
        ({"spoken": [utc("2026-11-29 22:30")], "last_active": None}, "gap", utc("2026-12-01 14:30")),
        ({"cap": 0}, "cap", utc("2026-11-30 23:00")),
        ({"cap": 2, "spoken": [NOON - 4 * HOUR]}, "gap", NOON + 36 * HOUR),
        ({"cap": 2, "spoken": [NOON - 21 * HOUR]}, "", None),
        # growing silence: answered, once unanswered, twice, three times, for good
        ({"spoken": [NOON - 21 * HOUR], "last_active": NOON - 20 * HOUR}, "", None),
        ({"spoken": [NOON - 39 * HOUR], "last_active": NOON - 2 * DAY}, "gap", NOON + HOUR),
        ({"spoken": [NOON - 41 * HOUR], "last_active": NOON - 2 * DAY}, "", None),
        ({"spoken": [NOON - 79 * HOUR, NOON - 200 * HOUR], "last_active": NOON - 30 * DAY}, "gap", NOON + HOUR),
        ({"spoken": [NOON - n * 30 * DAY for n in (1, 2, 3)], "last_active": NOON - 99 * DAY}, "", None),
        ({"spoken": [NOON - n * 30 * DAY for n in (1, 2, 3, 4)], "last_active": NOON - 199 * DAY}, "unanswered", None),
        ({"spoken": [NOON - n * 30 * DAY for n in (1, 2, 3, 4)], "last_active": NOON - 2 * HOUR}, "", None),
        ({"spoken": [NOON - n * 30 * DAY for n in (1, 2, 3, 4)], "last_active": None}, "unanswered", None),
        # a crisis: both must be over, the hours and the silence
        ({"crisis_at": NOON - 100 * HOUR, "last_active": NOON - 100 * HOUR}, "crisis", None),
        ({"crisis_at": NOON - 71 * HOUR, "last_active": NOON - 50 * HOUR}, "crisis", NOON + HOUR),
        ({"crisis_at": NOON - 73 * HOUR, "last_active": NOON - 50 * HOUR}, "", None),
        # the clock was set back: what was said "later" counts as now
        ({"last_active": NOON + 9 * DAY}, "active", NOON + timedelta(minutes=90)),
        ({"spoken": [NOON + 9 * DAY]}, "cap", utc("2026-11-30 23:00")),
        ({"cap": 5, "spoken": [NOON + 9 * DAY], "last_active": NOON - DAY}, "gap", NOON + 40 * HOUR),
    ],
)
def test_the_table(changes: dict[str, Any], reason: str, again: datetime | None) -> None:
    verdict = may_speak("opener", NOON, replace(WELL, **changes), RULES)
    assert (verdict.reason, verdict.again) == (reason, again)


def test_the_operator_cannot_override_a_refusal() -> None:
    loosest = SpeakingRules(True, time(0), time(0), 20, timedelta(), timedelta(), 20, timedelta(), timedelta(minutes=1))
    for leave in ("unasked", "asked", "no"):
        for kind in ("opener", "follow_up", "schedule", "login"):
            assert may_speak(kind, NOON, replace(WELL, leave=leave), loosest).reason == "no_leave"  # type: ignore[arg-type]
    assert may_speak("opener", NOON, WELL, SpeakingRules(enabled=False)).reason == "off"


@pytest.mark.parametrize(
    ("changes", "reason"),
    [
        ({"leave": "no"}, ""),
        ({"zone": ""}, ""),
        ({"direct": False}, ""),
        ({"crisis_at": NOON}, ""),
        ({"paused": True}, "paused"),
        ({"reachable": False}, "unreachable"),
        ({"blocked": True}, "blocked"),
    ],
)
def test_a_reminder_that_the_person_asked_for_needs_no_more_leave(changes: dict[str, Any], reason: str) -> None:
    assert may_speak("reminder", NOON, replace(WELL, **changes), SpeakingRules(enabled=False)).reason == reason


moments = st.datetimes(datetime.fromisoformat("2024-01-01"), datetime.fromisoformat("2029-01-01")).map(
    lambda at: at.replace(tzinfo=UTC)
)
clocks = st.times().map(lambda clock: clock.replace(second=0, microsecond=0))
ZONES = [
    "Europe/Berlin",
    "America/New_York",
    "Australia/Lord_Howe",
    "Asia/Kolkata",
    "Pacific/Chatham",
    "Africa/Casablanca",
    "UTC",
    "",
]
standings = st.builds(
    Standing,
    leave=st.sampled_from(["yes", "yes", "yes", "no", "asked"]),
    zone=st.sampled_from(ZONES),
    quiet=st.none() | st.tuples(clocks, clocks),
    cap=st.none() | st.integers(0, 20),
    paused=st.booleans(),
    reachable=st.just(True),
    busy=st.booleans(),
    last_active=st.none() | moments,
    crisis_at=st.none() | moments,
    quiet_until=st.none() | moments,
    spoken=st.lists(moments, max_size=6),
    wrote=st.lists(moments, max_size=5),
)


@given(moments, standings, st.sampled_from(["opener", "follow_up", "schedule", "login"]))
def test_what_may_go_out_breaks_no_rule(now: datetime, standing: Standing, kind: Kind) -> None:
    if not may_speak(kind, now, standing, RULES).may:
        return
    assert standing.leave == "yes"
    assert not standing.paused
    assert not standing.busy
    clock = now.astimezone(ZoneInfo(standing.zone)).time()
    quiet_from, quiet_to = standing.quiet or (RULES.quiet_from, RULES.quiet_to)
    assert not is_quiet(clock, quiet_from, quiet_to)
    assert standing.last_active is None or now - standing.last_active >= RULES.active
    assert all(now - at >= RULES.gap for at in standing.spoken)
    assert standing.unanswered < RULES.stop_after
    assert standing.crisis_at is None or now - standing.crisis_at >= RULES.crisis


@given(moments, standings)
def test_more_reasons_never_open_the_mouth(now: datetime, standing: Standing) -> None:
    before = may_speak("opener", now, standing, RULES)
    for change in (
        {"paused": True},
        {"busy": True},
        {"leave": "no"},
        {"quiet_until": now + HOUR},
        {"spoken": [*standing.spoken, now]},
    ):
        assert before.may >= may_speak("opener", now, replace(standing, **change), RULES).may  # type: ignore[arg-type]


@given(moments, standings)
def test_the_time_to_try_again_lies_ahead_and_was_worth_waiting_for(now: datetime, standing: Standing) -> None:
    verdict = may_speak("opener", now, standing, RULES)
    if verdict.again is None:
        return
    assert verdict.again >= now
    if verdict.reason in ("quiet_hours", "do_not_disturb", "cap") and verdict.again > now:
        later = may_speak("opener", verdict.again, replace(standing, busy=False), RULES)
        assert later.reason != verdict.reason or standing.cap == 0 or verdict.reason == "cap"


@given(moments, standings, st.integers())
def test_an_opener_is_planned_in_waking_hours(now: datetime, standing: Standing, seed: int) -> None:
    due = next_opener(now, standing, RULES, seed=str(seed))
    assert due == next_opener(now, standing, RULES, seed=str(seed))
    zone = zone_named(standing.zone)
    quiet_from, quiet_to = standing.quiet or (RULES.quiet_from, RULES.quiet_to)
    if zone is None:
        assert due is None
        return
    if due is None:
        assert waking(quiet_from, quiet_to)[1] <= timedelta(minutes=30)
        return
    assert now + RULES.every * 0.75 <= due <= now + RULES.every * 1.25 + timedelta(hours=27)
    # A clock change in the night may move a planned time by its length at most.
    around = [(due + shift).astimezone(zone).time() for shift in (timedelta(), -HOUR, HOUR)]
    assert not all(is_quiet(clock, quiet_from, quiet_to) for clock in around)


def test_an_opener_comes_about_when_the_person_usually_writes() -> None:
    evenings = tuple(datetime(2026, 11, day, 18, 0, tzinfo=UTC) for day in range(1, 20))  # 19:00 in Berlin
    for seed in range(50):
        due = next_opener(NOON, replace(WELL, wrote=evenings), RULES, seed=str(seed))
        assert due is not None
        assert abs((due.hour - 18) * 60 + due.minute) <= 41
    mornings = tuple(datetime(2026, 11, day, 8, 2, tzinfo=UTC) for day in range(1, 20))  # 9:02 in Berlin, as the quiet hours end
    for seed in range(50):
        due = next_opener(NOON, replace(WELL, wrote=mornings), RULES, seed=str(seed))
        assert due is not None
        assert time(8, 15) <= due.time() <= time(8, 42)
    times = {next_opener(NOON, WELL, RULES, seed=str(seed)) for seed in range(50)}
    assert len(times) > 40, "no jitter"


def test_the_silence_grows() -> None:
    assert [gap_after(n, RULES) for n in range(4)] == [20 * HOUR, 40 * HOUR, 80 * HOUR, 160 * HOUR]


@pytest.mark.parametrize(
    ("clock", "begins", "ends", "quiet"),
    [
        (time(22), time(21), time(9), True),
        (time(8, 59), time(21), time(9), True),
        (time(9), time(21), time(9), False),
        (time(21), time(21), time(9), True),
        (time(13), time(12), time(14), True),
        (time(14), time(12), time(14), False),
        (time(3), time(0), time(0), False),
    ],
)
def test_quiet_hours(clock: time, begins: time, ends: time, quiet: bool) -> None:
    assert is_quiet(clock, begins, ends) is quiet
