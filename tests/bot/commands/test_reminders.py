"""/reminders and the buttons under a reminder: list, move, snooze, done, not again, cancel; for its own person alone."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace
from datetime import timedelta

import pytest

from bot.engine.timers import fire_due
from bot.speaking.initiative import Initiative
from tests.bot.commands.conftest import Desk, Opener
from tests.bot.speaking.test_initiative import RULES
from tests.servers.model import call, reply


@asynccontextmanager
async def reminded(desk: Opener, every: str = "", *, kind: str = "direct") -> AsyncIterator[Desk]:
    """Ada in Berlin with the laundry at 17:00 today (it is nine), said in her direct message or a channel."""
    asked = call("set_timer", purpose="laundry", asked="remind me", at="2026-11-30T17:00", every=every)
    async with desk(reply("Sure.", asked)) as one:
        one.talk.person = replace(one.talk.person, timezone="Europe/Berlin")
        one.talk.initiative = Initiative(one.talk.db, RULES)
        if kind != "direct":
            one.talk = one.talk.elsewhere("lounge", kind)
        await one.talk.hear("remind me at five")
        yield one


async def due(one: Desk) -> list[str]:
    rows = await one.talk.rows(
        "SELECT to_char(due_at AT TIME ZONE 'Europe/Berlin', 'DD HH24:MI') AS due FROM timers WHERE due_at IS NOT NULL ORDER BY id"
    )
    return [str(row["due"]) for row in rows]


async def comes(one: Desk) -> list[dict[str, str]]:
    """It comes due and is said; the buttons under it."""
    one.talk.clock[0] += timedelta(hours=8)
    assert one.talk.initiative is not None
    await fire_due(one.talk.db, one.talk.at, one.talk.initiative.on_due)
    [row] = await one.talk.rows("SELECT id FROM agents")
    one.talk.model.add(reply("Laundry!"))
    claim = await one.talk.claim(int(str(row["id"])))
    await one.talk.agent.turn(claim)
    assert await one.talk.outbox(claim) == ["Laundry!"]
    [row] = await one.talk.rows("SELECT buttons FROM outbox WHERE turn_id = %s", (claim.turn,))
    buttons: list[dict[str, str]] = row["buttons"]  # type: ignore[assignment]
    return buttons


async def test_what_waits_is_listed_with_buttons_and_cancelled_by_one(desk: Opener) -> None:
    async with reminded(desk) as one:
        listed = await one.press("/reminders")
        assert listed.text.startswith("t1  laundry, today 17:00\n")
        assert (await one.follow(listed, "Cancel")).text == "Cancelled: laundry."
        assert await one.type("/reminders") == "No reminder is set."
        assert await one.type("/reminders cancel t1") == "It is over or cancelled already."
        assert "laundry" in await one.type("/memory undo")
        assert await due(one) == ["30 17:00"], "a cancelling can be undone"


@pytest.mark.parametrize(
    ("words", "moved", "said"),
    [
        ("tomorrow at 9", "01 09:00", "Reminder: laundry, tomorrow 09:00"),
        ("in 20 minutes", "30 09:21", "Reminder: laundry, today 09:21"),
        ("morgen um 9 Uhr", "01 09:00", "Reminder: laundry, tomorrow 09:00"),
        ("every weekday at 8", "01 08:00", "Reminder: laundry, every weekday at 08:00, next tomorrow"),
        ("whenever", "30 17:00", "Say when: /reminders move t3 tomorrow at 9, or in 20 minutes."),
        ("2020-01-01 at 10:00", "30 17:00", "The time must lie ahead, at most five years."),
        ("31.12.9999 at 10:00", "30 17:00", "The time must lie ahead, at most five years."),
        ("in 9999 years", "30 17:00", "The time must lie ahead, at most five years."),
        ("in 9999 years at 8", "30 17:00", "The time must lie ahead, at most five years."),
        ("yesterday at 8", "30 17:00", "Say when:"),
        ("in -5 minutes", "30 17:00", "Say when:"),
        ("every day, 0 times", "30 17:00", "The time must lie ahead, at most five years."),
    ],
)
async def test_it_is_moved_by_words(desk: Opener, words: str, moved: str, said: str) -> None:
    async with reminded(desk) as one:
        assert (await one.type(f"/reminders move t1 {words}")).startswith(said)
        assert await due(one) == [moved]


async def test_a_single_one_is_put_off_and_finished_by_its_buttons(desk: Opener) -> None:
    async with reminded(desk) as one:
        buttons = await comes(one)
        assert [button["label"] for button in buttons] == ["In 10 min", "In 60 min", "Done"]
        assert (await one.press(buttons[0]["line"], made_for="console::ada")).text.startswith("Reminder: laundry, today 17:11")
        assert await due(one) == ["30 17:11"]
        assert (await one.press(buttons[2]["line"], made_for="console::ada")).text == "Done: laundry."
        assert await due(one) == []


async def test_a_recurring_one_keeps_its_rhythm_until_it_shall_not_come_again(desk: Opener) -> None:
    async with reminded(desk, "day") as one:
        buttons = await comes(one)
        assert [button["label"] for button in buttons] == ["In 10 min", "In 60 min", "Done", "Not again"]
        await one.press(buttons[0]["line"])
        assert await due(one) == ["01 17:00", "30 17:11"]
        assert (await one.press(buttons[2]["line"])).text == "Done. Reminder: laundry, every day at 17:00, next tomorrow"
        assert (await one.press(buttons[3]["line"])).text == "It does not come again: laundry."
        assert await due(one) == []


async def test_a_recurring_one_is_put_off_once_however_often_it_is_pressed(desk: Opener) -> None:
    async with reminded(desk, "day") as one:
        buttons = await comes(one)
        await one.press(buttons[0]["line"])
        await one.press(buttons[0]["line"])
        await one.press(buttons[1]["line"])
        assert await due(one) == ["01 17:00", "30 18:01"], "one copy, at the time that was named last"
        await one.press(buttons[2]["line"])
        assert await due(one) == ["01 17:00"], "done is done, whatever was put off before"


async def test_a_button_serves_nobody_else(desk: Opener) -> None:
    async with reminded(desk, kind="public") as one:
        bob = replace(one.talk, person=replace(one.talk.person, user_id="bob", name="Bob"))
        line = "/reminders cancel t1"
        assert (await one.press(line, bob, made_for="console::ada")).text == "This button was made for somebody else."
        await bob.accept("hello")
        assert "There is no reminder t1 here" in await one.type(line, bob)
        assert await due(one) == ["30 17:00"]
        assert (await one.press(line, made_for="console::ada")).text == "Cancelled: laundry."


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ("/reminders move", "Name it by its number"),
        ("/reminders snooze w3", "Name it by its number"),
        ("/reminders snooze t1 never", "Say for how many minutes"),
        ("/reminders snooze t1 999999", "Say for how many minutes"),
        ("/reminders snooze t1 0", "Say for how many minutes"),
        ("/reminders snooze t1 -5", "Say for how many minutes"),
        (f"/reminders snooze t1 {'9' * 5000}", "Say for how many minutes"),
        ("/reminders snooze t1 in 9999 years", "Say for how many minutes"),
        (f"/reminders cancel t{'9' * 18}", "There is no reminder"),
        (f"/reminders cancel t{'9' * 500}", "Name it by its number"),
        ("/reminders done t99", "There is no reminder t99"),
    ],
)
async def test_what_cannot_be_done_is_said(desk: Opener, line: str, said: str) -> None:
    async with reminded(desk) as one:
        assert said in await one.type(line)
        assert await due(one) == ["30 17:00"]


async def test_a_stranger_has_none(desk: Opener) -> None:
    async with desk() as one:
        assert await one.type("/reminders") == "No reminder is set."
        assert "I know nothing about you yet" in await one.type("/reminders cancel t1")


@pytest.mark.parametrize(
    ("every", "word", "left"),
    [
        ("", "Later!", ["30 17:12"]),
        ("", "snooze 30 minutes", ["30 17:32"]),
        ("", "später", ["30 17:12"]),
        ("", "Plus tard", ["30 17:12"]),
        ("", "noch fünf Minuten", ["30 17:07"]),
        ("", "Tra 10 min", ["30 17:12"]),
        ("", "adia uma hora", ["30 18:02"]),
        ("", "done", []),
        ("day", "Erledigt.", ["01 17:00"]),
        ("day", "not again", []),
        ("day", "nunca más", []),
        ("day", "please don't remind me any more", []),
        ("day", "não me lembres mais", []),
        ("day", "more tarde", ["01 17:00"]),
        ("day", "Later I went to see my aunt in Rome", ["01 17:00"]),
    ],
)
async def test_words_do_it_too_right_after_it_came(desk: Opener, every: str, word: str, left: list[str]) -> None:
    async with reminded(desk, every) as one:
        await comes(one)
        one.talk.model.add(reply("Fine."))
        said = await one.talk.hear(word)
        assert said[0] == "Fine."
        assert await due(one) == left
        assert len(said) == (2 if left and not every else 1), "what comes again is shown"
        one.talk.model.add(reply("Yes?"))
        await one.talk.hear("done")
        assert await due(one) == left, "the reminder is no longer the last thing said"
