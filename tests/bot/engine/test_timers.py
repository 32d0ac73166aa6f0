"""Timers: when they are due, and that each firing is one event."""

from __future__ import annotations

import asyncio
from datetime import UTC, datetime, timedelta
from typing import Any
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bot.engine.timers import Look, Ticker, faulty, fire_due, rezone
from bot.operations import doctor
from bot.speaking.initiative import Initiative
from memory.recurrence import following as next_due
from tests.bot.engine.world import NOW, World
from tests.bot.engine.world import place as world_place
from tests.waiting import until

DAY = datetime.fromisoformat


def utc(text: str) -> datetime:
    return datetime.fromisoformat(text).replace(tzinfo=UTC)


BERLIN, HOWE, NONE = "Europe/Berlin", "Australia/Lord_Howe", "Asia/Kolkata"


@pytest.mark.parametrize(
    ("wall", "zone", "every", "now", "due"),
    [
        # no clock change
        ("2026-11-30 09:00", NONE, "day", "2026-11-30 03:29", "2026-11-30 03:30"),
        ("2026-11-30 09:00", NONE, "day", "2026-11-30 03:30", "2026-12-01 03:30"),
        ("2026-01-05 09:00", NONE, "week", "2026-03-04 12:00", "2026-03-09 03:30"),
        # Berlin goes forward on 2026-03-29 at 02:00: 02:30 does not exist and is moved to 03:30
        ("2026-03-27 02:30", BERLIN, "day", "2026-03-28 02:00", "2026-03-29 01:30"),
        ("2026-03-27 02:30", BERLIN, "day", "2026-03-29 01:30", "2026-03-30 00:30"),
        ("2026-03-27 09:00", BERLIN, "day", "2026-03-28 09:00", "2026-03-29 07:00"),
        ("2026-03-29 02:30", BERLIN, None, "2026-03-01 00:00", "2026-03-29 01:30"),
        # and back on 2026-10-25 at 03:00: 02:30 comes twice and counts the first time
        ("2026-10-24 02:30", BERLIN, "day", "2026-10-24 12:00", "2026-10-25 00:30"),
        ("2026-10-24 02:30", BERLIN, "day", "2026-10-25 00:30", "2026-10-26 01:30"),
        ("2026-10-24 02:30", BERLIN, "day", "2026-10-25 01:00", "2026-10-26 01:30"),
        ("2026-10-24 09:00", BERLIN, "day", "2026-10-24 12:00", "2026-10-25 08:00"),
        # Lord Howe moves by half an hour: forward on 2026-10-04 at 02:00 (+10:30 to +11), back on 2026-04-05 at 02:00
        ("2026-10-03 02:15", HOWE, "day", "2026-10-03 00:00", "2026-10-03 15:45"),
        ("2026-10-03 02:15", HOWE, "day", "2026-10-03 15:45", "2026-10-04 15:15"),
        ("2026-04-04 01:45", HOWE, "day", "2026-04-04 00:00", "2026-04-04 14:45"),
        ("2026-04-04 01:45", HOWE, "day", "2026-04-04 15:00", "2026-04-05 15:15"),
        # months
        ("2026-01-31 08:00", "UTC", "month", "2026-01-31 08:00", "2026-02-28 08:00"),
        ("2026-01-31 08:00", "UTC", "month", "2026-02-28 08:00", "2026-03-31 08:00"),
        ("2026-01-31 08:00", "UTC", "month", "2028-02-01 00:00", "2028-02-29 08:00"),
        ("2026-12-15 08:00", "UTC", "month", "2026-12-15 09:00", "2027-01-15 08:00"),
        # what was missed is not made up for
        ("2020-01-01 08:00", "UTC", "day", "2026-11-30 12:00", "2026-12-01 08:00"),
        # single
        ("2026-11-30 12:00", "UTC", None, "2026-11-30 11:59", "2026-11-30 12:00"),
        ("2026-11-30 12:00", "UTC", None, "2026-11-30 12:00", None),
    ],
)
def test_next_due(wall: str, zone: str, every: str | None, now: str, due: str | None) -> None:
    found = next_due(datetime.fromisoformat(wall), zone, every, utc(now))
    assert found == (None if due is None else utc(due))


@given(
    st.datetimes(DAY("2020-01-01"), DAY("2030-01-01")),
    st.sampled_from([BERLIN, HOWE, NONE, "America/New_York", "Pacific/Apia", "UTC"]),
    st.sampled_from(["day", "week", "month"]),
    st.datetimes(DAY("2020-01-01"), DAY("2034-01-01")),
)
def test_next_due_is_the_first_after_now(wall: datetime, zone: str, every: str, naive: datetime) -> None:
    now = naive.replace(tzinfo=UTC)
    due = next_due(wall, zone, every, now)
    assert due is not None
    assert due > now
    longest = {"day": 1, "week": 7, "month": 31}[every]
    # Two occurrences are never further apart than the period and a clock change (Apia once dropped a whole day, before 2020).
    first = next_due(wall, zone, None, datetime(1900, 1, 1, tzinfo=UTC))
    assert first is not None
    assert due == first or due - now <= timedelta(days=longest, hours=1, minutes=1)


def test_an_unknown_zone_is_said() -> None:
    with pytest.raises((KeyError, ValueError)):
        next_due(DAY("2026-01-01"), "Mars/Olympus", "day", NOW)


async def add(engine: World, agent: int, place: int, *, every: str | None = None, due: datetime = NOW, zone: str = "UTC") -> None:
    wall = due.replace(tzinfo=None)
    async with engine.db.agent(agent, place) as connection:
        await connection.execute(
            "INSERT INTO timers (agent_id, place_id, visibility, kind, purpose, zone, wall_time, every, due_at, created_at)"
            " VALUES (%s, %s, 'direct', 'reminder', 'water the plants', %s, %s, %s, %s, %s)",
            (agent, place, zone, wall, every, due, NOW),
        )


async def people(engine: World, count: int) -> list[tuple[int, int]]:
    """Agents at rest, with their places."""
    made = []
    for number in range(count):
        accepted = await engine.say("hello", user=f"user{number}")
        await engine.finish(await engine.claim(accepted.agent))
        made.append((accepted.agent, accepted.place_id))
    await engine.owner.execute("DELETE FROM procrastinate_jobs")
    return made


async def timed(engine: World) -> list[dict[str, Any]]:
    return await engine.look("SELECT agent_id, idem, origin, payload FROM events WHERE source = 'timer' ORDER BY id")


async def test_a_due_timer_is_one_event_and_one_wake_up(engine: World) -> None:
    ((agent, place),) = await people(engine, 1)
    await add(engine, agent, place)
    await add(engine, agent, place, due=NOW + timedelta(seconds=1))
    assert await fire_due(engine.db, NOW) == 1
    assert await fire_due(engine.db, NOW) == 0
    (event,) = await timed(engine)
    assert event["origin"] == "timed"
    assert event["idem"] == f"timer:1:{int(NOW.timestamp())}"
    assert event["payload"]["purpose"] == "water the plants"
    assert await engine.column("SELECT due_at FROM timers ORDER BY id") == [None, NOW + timedelta(seconds=1)]
    assert len(await engine.jobs()) == 1
    claim = await engine.claim(agent)
    assert claim.origin == "timed"
    assert not claim.addressed


async def test_a_recurring_timer_moves_on_and_makes_nothing_up(engine: World) -> None:
    ((agent, place),) = await people(engine, 1)
    await add(engine, agent, place, every="day", due=NOW - timedelta(days=5))
    assert await fire_due(engine.db, NOW) == 1
    assert await engine.column("SELECT due_at FROM timers") == [NOW + timedelta(days=1)]


async def test_a_herd_with_three_claimers_fires_each_once(engine: World) -> None:
    made = await people(engine, 10)
    for number in range(250):
        agent, place = made[number % 10]
        await add(engine, agent, place, due=NOW - timedelta(seconds=number % 7))
    fired = await asyncio.gather(*(fire_due(engine.db, NOW) for _ in range(3)))
    await fire_due(engine.db, NOW)
    assert sum(fired) == 250
    assert len(await timed(engine)) == 250
    assert len(await engine.jobs()) == 10
    for agent, _ in made:
        assert await engine.column("SELECT seq FROM events WHERE agent_id = %s ORDER BY seq", agent) == list(range(1, 27))


async def test_one_bad_timer_does_not_hold_up_the_others(engine: World) -> None:
    ((agent, place),) = await people(engine, 1)
    await add(engine, agent, place, every="day", zone="Mars/Olympus")
    await add(engine, agent, place, every="day")
    assert await fire_due(engine.db, NOW) == 2
    assert await engine.column("SELECT due_at FROM timers ORDER BY id") == [None, NOW + timedelta(days=1)]


UNREAL = "0001-01-01"
"""A wall time that is no moment in Tokyo: the year before the first began there."""


async def unreal(engine: World, agent: int, place: int, *, due: datetime = NOW) -> None:
    await add(engine, agent, place, due=due, zone="Asia/Tokyo")
    await engine.owner.execute("UPDATE timers SET wall_time = %s WHERE zone = 'Asia/Tokyo'", (UNREAL,))


async def test_one_that_cannot_be_reckoned_is_put_off_alone_and_shows(engine: World) -> None:
    (first, second) = await people(engine, 2)
    await unreal(engine, *first)
    for agent, place in (first, second, second):
        await add(engine, agent, place)
    looks: list[Look] = []
    counted: list[str] = []
    initiative = Initiative(engine.db)

    async def tick() -> None:
        ticker = Ticker(engine.db, now=lambda: engine.at, decide=initiative.on_due, count=counted.append, looked=looks.append)
        await ticker.tick()

    await tick()
    assert len(await timed(engine)) == 3, "everybody else's came"
    assert counted == ["timer_fault"]
    assert (looks[-1].error, looks[-1].put_off) == (None, 1)
    assert await faulty(engine.db) == [1]
    shown = await doctor.timers(engine.db)
    assert (shown.well, shown.fatal) == (False, False)
    assert "1 could not be fired and are put off (t1)" in shown.what
    rests = []
    for _ in range(9):
        due = await engine.one("SELECT due_at FROM timers WHERE id = 1")
        rests.append(due - engine.at)
        engine.at = due
        await tick()
    assert rests[0] == timedelta(minutes=1)
    assert rests == sorted(rests)
    assert rests[-1] == timedelta(hours=1), "it is looked at every hour at the least"
    await engine.owner.execute("UPDATE timers SET wall_time = '2026-11-30 12:00' WHERE id = 1")
    engine.at += timedelta(hours=1)
    await tick()
    assert len(await timed(engine)) == 4, "once it can be reckoned it comes"
    assert looks[-1].put_off == 0
    assert (await doctor.timers(engine.db)).well


async def test_a_fault_of_something_else_keeps_no_reminder(engine: World) -> None:
    ((agent, place),) = await people(engine, 1)
    await add(engine, agent, place)
    looks: list[Look] = []

    async def fails(_: datetime) -> None:
        raise RuntimeError("a fault of ours")

    await Ticker(engine.db, now=lambda: engine.at, also=(fails,), looked=looks.append).tick()
    assert len(await timed(engine)) == 1
    assert isinstance(looks[-1].error, RuntimeError)


async def test_a_zone_that_changes_leaves_what_cannot_be_reckoned_and_moves_the_rest(engine: World) -> None:
    ((agent, place),) = await people(engine, 1)
    await unreal(engine, agent, place, due=NOW + timedelta(hours=1))
    await add(engine, agent, place, due=NOW + timedelta(hours=1))
    await engine.owner.execute("UPDATE agents SET timezone = 'Asia/Tokyo'")
    assert await rezone(engine.db, NOW) == 1
    assert await engine.column("SELECT due_at FROM timers ORDER BY id") == [NOW + timedelta(hours=1), NOW]


async def test_the_ticker(engine: World) -> None:
    ((agent, place),) = await people(engine, 1)
    ticker = asyncio.create_task(Ticker(engine.db, now=lambda: engine.at, every=0.05).run())
    try:
        await add(engine, agent, place, due=NOW + timedelta(hours=1))
        await add(engine, agent, place)
        await until(lambda: timed(engine))
        engine.at += timedelta(hours=1)
        await until(lambda: _both(engine))
    finally:
        ticker.cancel()
        await asyncio.gather(ticker, return_exceptions=True)


async def _both(engine: World) -> bool:
    return len(await timed(engine)) == 2


# Late, moved, set back ---------------------------------------------------------------------------------


async def test_a_process_that_was_away_for_three_hours_fires_once_and_says_how_late(engine: World) -> None:
    ((agent, place),) = await people(engine, 1)
    await add(engine, agent, place, due=NOW - timedelta(hours=3))
    await add(engine, agent, place, due=NOW - timedelta(minutes=1))
    assert await fire_due(engine.db, NOW) == 2
    assert await fire_due(engine.db, NOW) == 0
    assert [event["payload"].get("late") for event in await timed(engine)] == [10_800, None]


async def test_a_clock_that_is_set_back_or_ahead_fires_nothing_twice(engine: World) -> None:
    ((agent, place),) = await people(engine, 1)
    await add(engine, agent, place, every="day", due=NOW)
    for at in (NOW, NOW - timedelta(hours=5), NOW + timedelta(hours=1), NOW, NOW + timedelta(days=3), NOW + timedelta(days=1)):
        await fire_due(engine.db, at)
    keys = [event["idem"] for event in await timed(engine)]
    assert len(keys) == len(set(keys)) == 2, "today's, and one for the three days that were leapt over"
    assert await engine.column("SELECT due_at FROM timers") == [NOW + timedelta(days=4)]


ZONES = [BERLIN, "America/New_York", HOWE, NONE]


@pytest.mark.parametrize("zone", ZONES)
async def test_a_daily_timer_over_a_year_of_clock_changes_fires_once_a_day(engine: World, zone: str) -> None:
    ((agent, place),) = await people(engine, 1)
    first = next_due(DAY("2027-02-27 02:30"), zone, None, utc("2026-12-01"))
    assert first is not None
    async with engine.db.agent(agent, place) as connection:
        await connection.execute(
            "INSERT INTO timers (agent_id, place_id, visibility, kind, purpose, zone, wall_time, every, due_at, created_at)"
            " VALUES (%s, %s, 'direct', 'reminder', 'x', %s, '2027-02-27 02:30', 'day', %s, %s)",
            (agent, place, zone, first, NOW),
        )
    fired: list[datetime] = []
    for _ in range(400):
        due = await engine.one("SELECT due_at FROM timers")
        fired.append(due)
        await fire_due(engine.db, due)
    days = [at.astimezone(ZoneInfo(zone)).date() for at in fired]
    assert days == [DAY("2027-02-27").date() + timedelta(days=n) for n in range(400)], (
        "28 February 2027 to April 2028, a leap day in it"
    )
    clocks = {at.astimezone(ZoneInfo(zone)).strftime("%H:%M") for at in fired}
    moved = {BERLIN: {"03:30"}, "America/New_York": {"03:30"}, HOWE: set(), NONE: set()}[zone]
    assert clocks - {"02:30"} == moved, "only a skipped time is moved"


async def test_timers_of_a_changed_zone_wait_for_their_new_time(engine: World) -> None:
    ((agent, place),) = await people(engine, 1)
    await add(engine, agent, place, due=NOW)
    await engine.owner.execute("UPDATE agents SET timezone = 'America/New_York'")
    assert await fire_due(engine.db, NOW) == 0, "noon in New York is five hours ahead"
    assert await rezone(engine.db, NOW) == 1
    assert await rezone(engine.db, NOW) == 0
    assert await engine.column("SELECT due_at FROM timers") == [NOW + timedelta(hours=5)]
    assert await fire_due(engine.db, NOW) == 0
    assert await fire_due(engine.db, NOW + timedelta(hours=5)) == 1


async def test_an_unknown_zone_leaves_timers_where_they_are(engine: World) -> None:
    ((agent, place),) = await people(engine, 1)
    await add(engine, agent, place, due=NOW + timedelta(hours=1))
    await engine.owner.execute("UPDATE agents SET timezone = 'Mars/Olympus'")
    assert await rezone(engine.db, NOW) == 1
    assert await engine.column("SELECT due_at FROM timers") == [NOW + timedelta(hours=1)]
    assert await engine.column("SELECT agent_id FROM rezoned") == []


async def test_what_looks_across_agents_shows_ids_times_and_states_alone(engine: World) -> None:
    ((agent, place),) = await people(engine, 1)
    await add(engine, agent, place, due=NOW)
    await engine.owner.execute("INSERT INTO speaking (agent_id, openers) VALUES (%s, 'yes')", (agent,))
    rows = [
        str(await engine.look(statement, *parameters))
        for statement, parameters in (
            ("SELECT * FROM due_timers(%s, 10)", (NOW,)),
            ("SELECT * FROM unplanned('p', 10)", ()),
            ("SELECT * FROM rezoned_agents(10)", ()),
            ("SELECT * FROM standing(%s, %s, NULL)", (agent, place)),
            ("SELECT * FROM opener_costs(%s)", (NOW,)),
            ("SELECT direct_of(%s, NULL)", (agent,)),
        )
    ]
    shown = "".join(rows)
    assert "water the plants" not in shown
    assert "hello" not in shown
    assert "user0" not in shown


async def test_how_things_stand_with_a_person_is_read_from_everywhere(engine: World) -> None:
    ((agent, place),) = await people(engine, 1)

    async def standing(turn: int | None = None) -> dict[str, Any]:
        (row,) = await engine.look("SELECT * FROM standing(%s, %s, %s)", agent, place, turn)
        return row

    well = await standing()
    assert (well["openers"], well["zone"], well["reachable"], well["direct"], well["busy"], well["last_active"]) == (
        "unasked",
        "",
        True,
        True,
        False,
        NOW,
    )
    await engine.owner.execute("UPDATE identities SET unreachable_since = now()")
    assert (await standing())["reachable"] is False
    await engine.owner.execute("SELECT block('test', '', 'user0', '', true, now())")
    assert (await standing())["blocked"] is True
    await engine.owner.execute("SELECT block('test', '', 'user0', '', false, now())")
    engine.at += timedelta(minutes=5)
    elsewhere = await engine.say("hello all", user="user0", where=world_place("general", "public"))
    assert elsewhere.agent == agent
    there = await standing()
    assert (there["busy"], there["last_active"]) == (True, engine.at), "activity counts wherever it was"
    assert there["reachable"] is True, "whoever writes can be written to"
    claim = await engine.claim(agent)
    assert (await standing())["busy"] is True
    await engine.owner.execute("UPDATE events SET status = 1")
    assert (await standing(claim.turn))["busy"] is False, "the asking turn is no reason to be silent"
    (public,) = await engine.look("SELECT direct FROM standing(%s, %s, NULL)", agent, elsewhere.place_id)
    assert public["direct"] is False
    assert await engine.look("SELECT * FROM standing(%s, %s, NULL)", 0, place) == []


async def test_people_with_leave_are_planned_once_and_cost_nothing_after(engine: World) -> None:
    made = await people(engine, 3)
    await engine.owner.execute(
        "INSERT INTO speaking (agent_id, openers) VALUES (%s, 'yes'), (%s, 'yes'), (%s, 'no')", [a for a, _ in made]
    )
    assert [(row["agent_id"], row["place_id"]) for row in await engine.look("SELECT * FROM unplanned('b', 10)")] == made[:2]
    await engine.owner.execute("UPDATE speaking SET planned = 'b'")
    assert await engine.look("SELECT * FROM unplanned('b', 10)") == []
    assert len(await engine.look("SELECT * FROM unplanned('a', 10)")) == 2, "another plan, before it in the index"
    assert len(await engine.look("SELECT * FROM unplanned('c', 10)")) == 2, "another plan, after it"
    await engine.owner.execute("UPDATE speaking SET openers = 'no'")
    await engine.owner.execute("UPDATE speaking SET openers = 'yes' WHERE agent_id = %s", (made[0][0],))
    assert [row["agent_id"] for row in await engine.look("SELECT * FROM unplanned('b', 10)")] == [made[0][0]], "leave given again"
