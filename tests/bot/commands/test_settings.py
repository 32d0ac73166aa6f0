"""/settings, and /memory pause and resume."""

from datetime import time

import pytest

from bot.commands.context import CommandRefused
from bot.commands.settings import hours, zone_called
from tests.bot.commands.conftest import Opener
from tests.servers.model import reply

DONE = reply("Noted.")


def test_hours_are_read_as_people_write_them() -> None:
    assert hours("22:00-08:00") == hours("22-8") == hours("22.00 - 08.00") == hours("22 to 8") == (time(22), time(8))
    assert hours("off") == (time(), time())
    assert hours("default") == (None, None)
    for wrong in ("", "at night", "25:00-08:00", "08:00-08:00", "22:00"):
        with pytest.raises(CommandRefused):
            hours(wrong)


def test_zones_are_found_however_they_are_written() -> None:
    assert zone_called("europe/berlin") == "Europe/Berlin"
    assert zone_called("America/New York") == "America/New_York"
    with pytest.raises(CommandRefused, match="Did you mean Europe/Lisbon"):
        zone_called("Lisbon")
    with pytest.raises(CommandRefused, match="Did you mean Europe/Berlin"):
        zone_called("Europe/Berlim")
    with pytest.raises(CommandRefused, match="I don't know"):
        zone_called("Utopia/Nowhere at all")
    with pytest.raises(CommandRefused, match="^Which time zone"):
        zone_called(" ")


async def test_settings_are_shown_changed_and_logged(desk: Opener) -> None:
    async with desk(DONE, quiet="21:00-07:00") as one:
        assert "know nothing about you" in await one.type("/settings")
        await one.talk.hear("Hello.")
        shown = await one.press("/settings")
        assert "timezone: not known, so UTC; it is 08:01 there" in shown.text
        assert "quiet: the usual hours, 21:00-07:00" in shown.text
        assert "openers: off, I do not write first" in shown.text
        changed = await one.follow(shown, "Time zone", "Asia/Tokyo")
        assert "timezone: Asia/Tokyo; it is 17:01 there" in changed.text
        assert "17:01" in await one.type("/memory view")
        changed = await one.follow(changed, "Quiet hours", "22:00-08:00")
        assert "quiet: 22:00-08:00" in changed.text
        changed = await one.follow(changed, "You may write first")
        assert "openers: on, I may write first" in changed.text
        [row] = await one.talk.rows("SELECT openers, decided_at FROM speaking")
        assert (row["openers"], row["decided_at"]) == ("yes", one.talk.at)
        changed = await one.follow(changed, "Do not write first")
        assert "openers: off" in changed.text
        logged = await one.talk.rows("SELECT actor, action FROM memory_log")
        assert logged == [{"actor": "person", "action": "/settings"}] * 4
        assert "To change something" in await one.type("/settings volume 11")
        assert "no other account linked" in await one.type("/settings cross on")


async def test_a_yes_that_the_operator_does_not_use_is_shown_as_that(desk: Opener) -> None:
    async with desk(DONE, quiet="21:00-07:00", openers=False) as one:
        await one.talk.hear("Hello.")
        assert "operator" not in await one.type("/settings")
        assert "openers: on, I may write first (but my operator has it switched off)" in await one.type("/settings openers on")


async def test_a_pause_begins_and_ends(desk: Opener) -> None:
    async with desk(DONE) as one:
        await one.talk.hear("Hello.")
        assert "not paused" in await one.type("/memory resume")
        said = await one.press("/memory pause")
        assert "I keep nothing new" in said.text
        assert "paused already" in await one.type("/memory pause")
        assert (await one.type("/memory view")).startswith("Paused:")
        assert "paused: yes" in await one.type("/status")
        assert "memory: paused" in await one.type("/settings")
        assert "I remember again" in (await one.follow(said, "Resume")).text
        logged = [row["action"] for row in await one.talk.rows("SELECT action FROM memory_log ORDER BY id")]
        assert logged == ["/memory pause", "/memory resume"]


async def test_a_stranger_may_pause_before_the_first_word(desk: Opener) -> None:
    async with desk() as one:
        assert "I keep nothing new" in await one.type("/memory pause")
        assert await one.talk.rows("SELECT paused FROM agents") == [{"paused": True}]
