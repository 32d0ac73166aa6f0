"""Timers as nobody should set them: times that are none, rules without an end, texts that pretend, five hundred at once. Nothing breaks, and
what is not set is not promised."""

from __future__ import annotations

from datetime import timedelta

import pytest

from bot.speaking import saying
from memory.db import Database
from tests.bot.dialogue import results
from tests.bot.speaking.test_appointments import asking, buttons, change, last_said, timer, waiting
from tests.servers.model import reply

ASKED = "remind me of the laundry"


@pytest.mark.parametrize(
    ("arguments", "advice"),
    [
        ({"at": "yesterday at 8"}, "is no time"),
        ({"at": "2026-11-30T08:00"}, "must lie ahead"),
        ({"at": "2027-02-29T08:00"}, "Write 2026-11-30T08:00"),
        ({"at": "on 30 February at 8"}, "is no time"),
        ({"at": "9999-12-31T23:59"}, "at most five years"),
        ({"at": "in 9999 years"}, "at most five years"),
        ({"at": "in 9999 years at 8"}, "at most five years"),
        ({"in_minutes": -5}, "in_minutes"),
        ({"in_minutes": 0}, "Give at or in_minutes"),
        ({"in_minutes": 1e300}, "at most five years"),
        ({"at": "2026-12-01T08:00", "in_minutes": 5}, "different times"),
        ({"at": "2026-12-01T08:00", "every": "FREQ=DAILY;INTERVAL=0"}, "is no recurrence"),
        ({"at": "2026-12-01T08:00", "every": "FREQ=DAILY;BYMONTHDAY=30;BYMONTH=2"}, "is no recurrence"),
        ({"at": "2026-12-01T08:00", "every": "hourly"}, "is no recurrence"),
        ({"at": "2026-12-01T08:00", "every": "FREQ=DAILY;UNTIL=20200101"}, "must lie ahead"),
    ],
)
async def test_what_is_no_time_sets_nothing_and_is_not_promised(db: Database, arguments: dict[str, object], advice: str) -> None:
    call = timer(asked=ASKED, **arguments)
    async with asking(db, reply("Sure!", call), reply("Sure!"), reply("Sure!")) as d:
        said = await d.hear(ASKED)
        assert advice in results(d.model.requests[1])[-1]
        assert said[0] == "Sure!"
        assert said[-1].startswith("No reminder is set.")
        assert await waiting(d) == []


@pytest.mark.parametrize(
    ("at", "every", "line"),
    [
        ("2028-02-29T08:00", "", "laundry, Tuesday 29 Feb 2028 08:00"),
        ("2027-03-28T02:30", "", "laundry, Sunday 28 Mar 03:30"),
        ("2027-10-31T02:30", "", "laundry, Sunday 31 Oct 2027 02:30"),
        ("2026-12-01T08:00", "every other Tuesday", "laundry, every 2 weeks on Tuesday at 08:00, next tomorrow"),
        (
            "2026-12-01T08:00",
            "weekdays until 24 December",
            "laundry, every weekday at 08:00, until Thursday 24 Dec, next tomorrow",
        ),
        ("2026-12-01T08:00", "none", "laundry, tomorrow 08:00"),
        ("2026-12-31T23:59", "month", "laundry, every month on day 31 at 23:59, next Thursday 31 Dec"),
    ],
)
async def test_odd_times_that_there_are(db: Database, at: str, every: str, line: str) -> None:
    async with asking(db, reply("Sure.", timer(asked=ASKED, at=at, every=every))) as d:
        assert (await d.hear(ASKED))[-1] == f"Reminder: {line}"


async def test_a_purpose_that_pretends_to_be_another_line_stays_in_its_own(db: Database) -> None:
    purpose = "\N{RIGHT-TO-LEFT OVERRIDE}laundry\n\nReminder: pay Bob\N{LINE SEPARATOR}\N{RIGHT-TO-LEFT ISOLATE}now " + "x" * 5000
    async with asking(db, reply("Sure.", timer(purpose, asked=ASKED, in_minutes=20))) as d:
        line = (await d.hear(ASKED))[-1]
        assert line.startswith("Reminder: laundry Reminder: pay Bob now xxx")
        assert line.endswith(" …, today 09:21")
        assert len(line.splitlines()) == 1
        assert len(line) < saying.SHOWN + 50
        assert len((await buttons(d))[0]["label"]) < 75


async def test_five_hundred_are_too_many(db: Database) -> None:
    async with asking(db, reply("Sure.", timer(asked=ASKED, in_minutes=20))) as d:
        await d.hear(ASKED)
        async with d.db.agent(1, everything=True) as connection:
            await connection.execute(
                """INSERT INTO timers (agent_id, place_id, visibility, kind, purpose, zone, wall_time, due_at, created_at)
                   SELECT agent_id, place_id, visibility, kind, 'n ' || n, zone, wall_time, due_at + n * interval '1 h', created_at
                   FROM timers, generate_series(1, 49) n"""
            )
        d.model.add(
            reply(None, timer("one more", asked=ASKED, in_minutes=30)),
            reply("You have many already."),
            reply("You have many already."),
        )
        said = await d.hear(f"{ASKED} and of one more")
        assert "There are 50 timers already" in results(d.model.requests[2])[-1]
        assert len(await waiting(d)) == 50
        assert said[0] == "You have many already."
        assert len(said[-1]) < 2000, "what waits is shown in one message"


@pytest.mark.parametrize("text", ["in 9999 years", "on 31.12.9999 at 8:00", "yesterday at 8", "on 31 June at 8"])
async def test_an_edit_to_no_time_leaves_it_and_says_so(db: Database, text: str) -> None:
    before = "remind me at 17:00 of the laundry"
    async with asking(db, reply("Sure.", timer(asked=before, at="2026-11-30T17:00"))) as d:
        await d.hear(before)
        await change(d, f"remind me {text} of the laundry", of=before)
        assert [row[2] for row in await waiting(d)] == ["30 17:00"]
        assert (await last_said(d)).startswith("You changed the message that set this")


async def test_an_edit_while_the_answer_is_made_sets_the_new_time_once(db: Database) -> None:
    """The agent answers the old words, and the edit comes between: what is set then is moved, or made from the new words, never both."""
    before, after = "remind me at 17:00 of the laundry", "remind me at 18:00 of the laundry"
    async with asking(db) as d:

        async def edited(_: object) -> object:
            await change(d, after, of=before)
            return reply("Sure.", timer(asked="remind me at 17:00", at="2026-11-30T17:00"))

        d.model.add(edited, reply("Sure.", timer(asked="remind me at 18:00", at="2026-11-30T18:00")))
        await d.hear(before)
        d.clock[0] += timedelta(minutes=1)
        assert [row[2] for row in await waiting(d)] == ["30 18:00"]
