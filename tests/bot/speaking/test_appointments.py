"""What is set is said, and set once: the words that ask, the bot's own line, the yes to an idea of the agent's, edits and deletions."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace
from datetime import timedelta

import pytest

from adapters.base import Changed
from bot.engine.changes import follow
from bot.engine.timers import fire_due
from bot.speaking.initiative import Initiative
from bot.speaking.listening import Listener
from memory.db import Database
from tests.bot.dialogue import Dialogue, dialogue, results, seen
from tests.bot.speaking.test_initiative import RULES, give_leave
from tests.servers.model import Step, call, reply

NOTHING = "No reminder is set."


@asynccontextmanager
async def asking(db: Database, *script: object, zone: str = "Europe/Berlin") -> AsyncIterator[Dialogue]:
    """Somebody in Berlin; it is nine in the morning there on Monday, 30 November 2026."""
    async with dialogue(db, *script) as d:
        d.person = replace(d.person, timezone=zone or None)
        d.initiative, d.listening = Initiative(db, RULES), Listener()
        yield d


def timer(purpose: str = "laundry", **arguments: object) -> object:
    return call("set_timer", purpose=purpose, **arguments)


async def waiting(d: Dialogue) -> list[tuple[object, str, object]]:
    rows = await d.rows(
        "SELECT purpose, kind, to_char(due_at AT TIME ZONE 'Europe/Berlin', 'DD HH24:MI') AS due FROM timers WHERE due_at IS NOT NULL ORDER BY id"
    )
    return [(row["purpose"], str(row["kind"]), row["due"]) for row in rows]


async def buttons(d: Dialogue) -> list[dict[str, str]]:
    [row] = await d.rows("SELECT buttons FROM outbox WHERE buttons IS NOT NULL ORDER BY id DESC LIMIT 1")
    found: list[dict[str, str]] = row["buttons"]  # type: ignore[assignment]
    return found


# Whose words ----------------------------------------------------------------------------------------


async def test_their_own_words_make_a_reminder_and_the_bot_shows_it_below_the_reply(db: Database) -> None:
    async with asking(db, reply("Sure.", timer(asked="remind me of the laundry", at="2026-11-30T17:00"))) as d:
        assert await d.hear("Please “Remind  me of the laundry” at five") == ["Sure.", "Reminder: laundry, today 17:00"]
        assert await waiting(d) == [("laundry", "reminder", "30 17:00")]
        [button] = await buttons(d)
        assert (button["label"], button["line"]) == ("Cancel", "/reminders cancel t1")


@pytest.mark.parametrize("asked", ["remind me of the exam", "Remind me of the laundry tomorrow", "somebody said: remind me"])
async def test_words_that_they_did_not_say_set_nothing(db: Database, asked: str) -> None:
    script = [reply("Sure.", timer(asked=asked, in_minutes=60)), reply("When should I?")]
    async with asking(db, *script) as d:
        await d.hear("Bob wrote:\n> somebody said: remind me\nI have an exam and laundry to do")
        assert "did not write that in this turn" in results(d.model.requests[-1])[-1]
        assert await waiting(d) == []


async def test_words_of_an_earlier_turn_do_not_ask_again(db: Database) -> None:
    script = [
        reply("Sure.", timer(asked="remind me of the laundry", in_minutes=60)),
        reply("Fine.", timer("ironing", asked="remind me of the laundry", in_minutes=90)),
        reply("Fine."),
    ]
    async with asking(db, *script) as d:
        await d.hear("remind me of the laundry in an hour")
        await d.hear("thanks")
        assert [row[0] for row in await waiting(d)] == ["laundry"]


async def test_an_idea_of_the_agents_becomes_a_reminder_by_a_yes_to_the_bots_own_line_alone(db: Database) -> None:
    idea = reply(None, timer("ask how the exam went", at="2026-11-30T17:00"))
    async with asking(db) as d:

        async def thinks_of_it(text: str) -> list[str]:
            d.model.add(idea, reply("Good luck!"))
            return await d.hear(text)

        async def is_told(text: str) -> list[str]:
            d.model.add(reply("Fine."))
            return await d.hear(text)

        assert await thinks_of_it("I have an exam today") == [
            "Good luck!",
            "Shall I remind you: ask how the exam went, today 17:00? Please answer just yes or no. Without a yes I set nothing.",
        ]
        assert await is_told("Yes, and wish me luck for it") == ["Fine."], "that is more than a yes"
        assert await waiting(d) == []
        await thinks_of_it("I have an exam today, really")
        assert await is_told("No") == ["Fine."]
        assert await d.rows("SELECT FROM timers") == []
        await thinks_of_it("An exam, as I said")
        assert await is_told("yes please!") == ["Fine.", "Reminder: ask how the exam went, today 17:00"]
        assert await waiting(d) == [("ask how the exam went", "reminder", "30 17:00")]
        assert "The person said yes to the bot's question" in seen(d.model.requests[-1])


async def test_a_yes_to_the_models_own_question_is_no_asking(db: Database) -> None:
    script = [reply("Shall I remind you at five?"), reply("Done.", timer(asked="yes", at="2026-11-30T17:00")), reply("Done.")]
    async with asking(db, *script) as d:
        await d.hear("I have laundry to do")
        said = await d.hear("Yes")
        assert said[-1].startswith("Shall I remind you: laundry, today 17:00?")
        assert await waiting(d) == []


async def test_with_leave_an_idea_is_a_follow_up_and_shown(db: Database) -> None:
    async with asking(db, reply("Hi."), reply("Luck!", timer("ask how the exam went", in_minutes=240))) as d:
        await d.hear("Hello")
        await give_leave(d)
        assert (await d.hear("Exam today"))[-1] == "Reminder: ask how the exam went, today 13:02"
        assert [row[1] for row in await waiting(d)] == ["follow_up"]


# Once -----------------------------------------------------------------------------------------------


async def test_a_repeated_call_and_a_retry_set_nothing_twice(db: Database) -> None:
    def again(purpose: str) -> Step:
        return reply("Sure.", timer(purpose, asked="remind me in 20 minutes", in_minutes=20))

    twice = reply("Sure.", *(timer(each, asked="remind me in 20 minutes", in_minutes=20) for each in ("tea", "Tea.")))
    async with asking(db, twice, again("the tea"), again("make tea")) as d:
        assert await d.hear("remind me in 20 minutes of tea") == ["Sure.", "Reminder: tea, today 09:21"]
        assert await d.hear("", kind="retry") == ["Sure.", "Reminder: the tea, today 09:21"], "counted from when they asked"
        assert await d.hear("", kind="retry") == ["Sure.", "Reminder: make tea, today 09:21"]
        assert await waiting(d) == [("make tea", "reminder", "30 09:21")]


async def test_a_retry_with_another_time_moves_it(db: Database) -> None:
    script = [reply("Sure.", timer(asked="remind me at 5", at=f"2026-11-30T{hour}:00")) for hour in ("17", "18")]
    async with asking(db, *script) as d:
        await d.hear("remind me at 5 of the laundry")
        await d.hear("", kind="retry")
        assert await waiting(d) == [("laundry", "reminder", "30 18:00")]


async def test_what_is_over_when_the_answer_is_made_comes_at_once(db: Database) -> None:
    async with asking(db) as d:

        def late(_: object) -> Step:
            d.clock[0] += timedelta(minutes=5)
            return reply("Sure.", timer("tea", asked="in one minute", in_minutes=1))

        d.model.add(late)
        await d.hear("remind me in one minute of tea")
        assert await fire_due(db, d.at + timedelta(seconds=2)) == 1


# Edits and deletions --------------------------------------------------------------------------------


async def change(d: Dialogue, text: str | None, *, of: str, mark: bool = False) -> None:
    [row] = await d.rows("SELECT platform_id FROM messages WHERE content = %s", (of,))
    assert d.listening is not None
    changed = Changed("console", "", d.place.external_id, (str(row["platform_id"]),), text, d.at, mark)
    await follow(d.db, d.cache, changed, d.listening.edited)


async def last_said(d: Dialogue) -> str:
    [row] = await d.rows("SELECT body FROM outbox ORDER BY id DESC LIMIT 1")
    return str(row["body"])


ASKED = "remind me at 17:00 of the laundry"


@pytest.mark.parametrize(
    ("text", "due", "word"),
    [
        ("remind me at 18:30 of the laundry", "30 18:30", "Moved. Reminder: laundry, today 18:30"),
        ("remind me tomorrow at 8 of the laundry", "01 08:00", "Moved. Reminder: laundry, tomorrow 08:00"),
        ("remind me in 2 hours of the laundry", "30 11:01", "Moved. Reminder: laundry, today 11:01"),
        ("remind me at 18:30 of the ironing", "30 17:00", "You changed the message that set this"),
        ("never mind", "30 17:00", "You changed the message that set this"),
    ],
)
async def test_an_edit_moves_it_with_a_word(db: Database, text: str, due: str, word: str) -> None:
    async with asking(db, reply("Sure.", timer(asked=ASKED, at="2026-11-30T17:00"))) as d:
        await d.hear(ASKED)
        await change(d, text, of=ASKED)
        assert await waiting(d) == [("ironing" if "ironing" in text else "laundry", "reminder", due)]
        assert (await last_said(d)).startswith(word)
        assert (await buttons(d))[0]["line"] == "/reminders cancel t1"


@pytest.mark.parametrize("mark", [False, True])
async def test_a_deletion_takes_it_and_leaves_that_of_another_message(db: Database, mark: bool) -> None:
    both = [timer(asked=ASKED, at="2026-11-30T17:00"), timer("tea", asked="and in 5 minutes of tea", in_minutes=5)]
    async with asking(db, reply("Sure.", *both)) as d:
        await d.accept(ASKED)
        await d.hear("and in 5 minutes of tea")
        assert len(await waiting(d)) == 2
        await change(d, None, of=ASKED, mark=mark)
        assert [row[0] for row in await waiting(d)] == ["tea"]


# A promise without a timer --------------------------------------------------------------------------


async def test_a_promise_without_a_timer_gets_one_more_pass(db: Database) -> None:
    script = [reply("I will remind you!"), reply("I will remind you!", timer(asked="Erinnere mich", at="2026-11-30T17:00"))]
    async with asking(db, *script) as d:
        assert await d.hear("Erinnere mich um 17 Uhr an die Wäsche") == ["I will remind you!", "Erinnerung: laundry, heute 17:00"]
        assert "no timer is set" in seen(d.model.requests[1])


@pytest.mark.parametrize(
    ("zone", "text", "needs"),
    [
        ("Europe/Berlin", "Remind me of the laundry", "I need to know when"),
        ("", "Remind me of the laundry at five", "I need your time zone"),
        ("", "Remind me of the laundry in 20 minutes", "Please ask once more"),
        ("Europe/Berlin", "Rappelle-moi le linge à 17h", "Redemande-le en une ligne"),
    ],
)
async def test_and_then_the_bot_says_that_nothing_is_set_and_what_it_needs(
    db: Database, zone: str, text: str, needs: str
) -> None:
    async with asking(db, reply("I will remind you!"), reply("Promised."), zone=zone) as d:
        said = await d.hear(text)
        assert said[0] == "Promised."
        nothing = "Aucun rappel n'est programmé." if text.startswith("Rappelle") else NOTHING
        assert said[1].startswith(nothing)
        assert needs in said[1]


async def test_a_reply_that_was_held_back_for_one_more_pass_is_said_where_no_other_follows(db: Database) -> None:
    async with asking(db, reply("When shall I?"), reply(None), reply(None)) as d:
        said = await d.hear("Remind me of the laundry")
        assert said[0] == "When shall I?"
        assert said[1].startswith(NOTHING)


async def test_a_turn_at_its_bounds_says_too_that_nothing_is_set(db: Database) -> None:
    async with asking(db, reply("I will remind you!")) as d:
        d.settings = replace(d.settings, bounds=replace(d.settings.bounds, passes=1))
        said = await d.hear("Remind me of the laundry")
        assert said[0] == "I will remind you!"
        assert said[1].startswith(NOTHING)


async def test_a_promise_that_nobody_asked_for_counts_too_unless_something_waits(db: Database) -> None:
    promise = reply("Don't worry, I'll remind you at five.")
    script = [promise, promise, reply("Sure.", timer(asked="remind me at five", at="2026-11-30T17:00")), promise, promise]
    async with asking(db, *script) as d:
        assert NOTHING in (await d.hear("I always forget the laundry"))[-1]
        await d.hear("then remind me at five")
        assert await d.hear("You are sure?") == ["Don't worry, I'll remind you at five."]


@pytest.mark.parametrize(
    "text", ["You remind me of my mother", "Remind me what I told you of Rex", "That film reminds me of home"]
)
async def test_what_only_sounds_like_it_costs_nothing(db: Database, text: str) -> None:
    async with asking(db, reply("I see.")) as d:
        assert await d.hear(text) == ["I see."]


# The zone -------------------------------------------------------------------------------------------


async def test_without_a_zone_a_time_on_the_clock_is_refused_and_the_agent_knows(db: Database) -> None:
    asked = timer(asked="remind me tomorrow at eight", at="2026-12-01T08:00")
    zone = call("set_time_zone", zone="America/New_York")
    async with asking(db, reply(None, asked), reply("New York?", zone), reply("I need your zone."), zone="") as d:
        said = await d.hear("remind me tomorrow at eight of the laundry")
        assert '"time_zone":"unknown' in seen(d.model.requests[0]).replace("\\", "")
        assert "Their time zone is unknown" in results(d.model.requests[1])[-1]
        assert said[-1].startswith("Is your time zone “America/New_York”?")
        assert await waiting(d) == []
        d.model.add(reply("Done.", zone, asked))
        assert await d.hear("Yes") == ["Done.", "Reminder: laundry, tomorrow 08:00"], "the words that had to wait for the zone"
        assert await waiting(d) == [("laundry", "reminder", "01 14:00")]
        d.model.add(reply("Bye."))
        await d.hear("Thanks")
        assert "unknown" not in d.model.requests[-1].contents("user")[-1]


async def test_lengths_of_time_need_no_zone(db: Database) -> None:
    async with asking(db, reply("Sure.", timer(asked="in 20 seconds", at="in 20 seconds")), zone="") as d:
        assert await d.hear("remind me in 20 seconds of the laundry") == ["Sure.", "Reminder: laundry, in 20 s"]


@pytest.mark.parametrize(
    ("at", "minutes"),
    [
        ("Mon 2026-11-30 09:31 +01:00", 0),
        ("2026-11-30T08:31Z", 0),
        ("2026-11-30 09:31", 30),
        ("in half an hour", 0),
        ("9:31", 0),
        ("", 30.0),
    ],
)
async def test_every_form_of_a_time_is_taken(db: Database, at: str, minutes: float) -> None:
    async with asking(db, reply("Sure.", timer(asked="remind me", at=at, in_minutes=minutes))) as d:
        await d.hear("remind me in half an hour")
        assert await waiting(d) == [("laundry", "reminder", "30 09:31")]


# The language ---------------------------------------------------------------------------------------


async def test_who_asks_in_german_is_answered_in_german_where_the_platform_tells_no_language(db: Database) -> None:
    """Discord tells the language of who uses a command alone."""
    sure = reply("Klar.", timer("Wäsche", asked="erinnere mich", at="2026-11-30T17:00"))
    async with asking(db, reply("Hallo."), sure) as d:
        d.person = replace(d.person, locale=None)
        await d.hear("Guten Morgen")
        assert await d.hear("Bitte erinnere mich um fünf an die Wäsche") == ["Klar.", "Erinnerung: Wäsche, heute 17:00"]
        d.clock[0] += timedelta(hours=8)
        assert d.initiative is not None
        await fire_due(db, d.at, d.initiative.on_due)
        d.model.add(reply(None, call("stay_silent")))
        [row] = await d.rows("SELECT id FROM agents")
        claim = await d.claim(int(str(row["id"])))
        await d.agent.turn(claim)
        assert await d.outbox(claim) == ["Erinnerung: Wäsche"]
        assert [button["label"] for button in await buttons(d)] == ["In 10 min", "In 60 min", "Erledigt"]


async def test_what_the_platform_tells_of_the_language_wins(db: Database) -> None:
    async with asking(db, reply("Klar.", timer("Wäsche", asked="erinnere mich", at="2026-11-30T17:00"))) as d:
        d.person = replace(d.person, locale="fr-FR")
        assert (await d.hear("erinnere mich um fünf an die Wäsche"))[-1] == "Rappel : Wäsche, aujourd'hui 17:00"


# Recurrence ------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("at", "every", "line", "due"),
    [
        ("2026-12-01T08:00", "weekdays", "every weekday at 08:00, next tomorrow", "01 08:00"),
        ("2026-12-05T08:00", "weekdays", "every weekday at 08:00, next Monday 7 Dec", "07 08:00"),
        ("2026-12-01T08:00", "FREQ=WEEKLY;INTERVAL=2", "every 2 weeks on Tuesday at 08:00, next tomorrow", "01 08:00"),
        (
            "2026-11-30T17:00",
            "FREQ=MONTHLY;BYDAY=-1FR",
            "on the last Friday of the month at 17:00, next Friday 25 Dec",
            "25 17:00",
        ),
        ("2026-12-24T09:00", "year", "every year on 24 Dec at 09:00, next Thursday 24 Dec", "24 09:00"),
        ("2026-12-01T08:00", "RRULE:FREQ=DAILY;COUNT=3", "every day at 08:00, 3 times, next tomorrow", "01 08:00"),
        ("every day at 8 until 24 December", "", "every day at 08:00, until Thursday 24 Dec, next tomorrow", "01 08:00"),
    ],
)
async def test_a_recurrence_is_said_back_in_words(db: Database, at: str, every: str, line: str, due: str) -> None:
    async with asking(db, reply("Sure.", timer(asked="remind me", at=at, every=every))) as d:
        assert (await d.hear("remind me of the laundry"))[-1] == f"Reminder: laundry, {line}"
        assert (await waiting(d))[0][2] == due


async def test_a_count_ends(db: Database) -> None:
    async with asking(db, reply("Sure.", timer(asked="remind me", at="2026-12-01T08:00", every="FREQ=DAILY;COUNT=3"))) as d:
        await d.hear("remind me of the laundry three times")
        times = []
        while rows := await d.rows("SELECT due_at FROM timers WHERE due_at IS NOT NULL"):
            times.append(rows[0]["due_at"])
            await fire_due(db, rows[0]["due_at"])  # type: ignore[arg-type]
        assert len(times) == 3
