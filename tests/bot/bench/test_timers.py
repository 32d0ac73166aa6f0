"""The tick's cost and the simulated year, small: the year is the product's promise that no opener goes out against the rules."""

from __future__ import annotations

from datetime import timedelta

from bot.bench import timers
from bot.bench.stage import owning
from bot.bench.year import Life, Year, offences
from bot.embedded import Servers
from bot.speaking.decision import SpeakingRules
from memory.db import Database


async def test_a_look_uses_the_index(running: Servers) -> None:
    async with timers.ticking(running, 2_000) as tick:
        await timers.side_by_side([tick], looks=3, rounds=2)
        size, *times, plan = await tick.row()
    assert (size, len(tick.empty), len(tick.full)) == ("2,000", 3, 2)
    assert all(float(str(each)) > 0 for each in times)
    assert "timers_due" in str(plan)


async def test_no_opener_of_a_simulated_season_is_outside_the_rules(running: Servers) -> None:
    async with owning(running) as owner, Database(running.bot_url, size=4) as db:
        await owner.execute("TRUNCATE agents, places CASCADE")
        year = Year(db, owner, SpeakingRules(), people=40, days=45, seed=3)
        await year.run()
        assert [line for life in year.lives.values() for line in offences(life, year.rules)] == []
        assert year.said > 40, year.counts
        assert {"opener_quiet_hours", "opener_gap", "opener_active"} <= set(year.counts), year.counts
        assert await year._one("SELECT count(*) AS x FROM events WHERE status = 0") == 0


def test_the_judge_sees_each_offence() -> None:
    rules, at = SpeakingRules(), timers.NOW
    life = Life(1, 1, "ada", wrote=[at - timedelta(minutes=5)], spoken=[at - timedelta(hours=1), at])
    for name, value in (("openers", "no"), ("timezone", "Asia/Tokyo"), ("paused", True), ("unreachable", True), ("crisis", True)):
        life.put(name, at - timedelta(days=1), value)
    assert {line.rpartition(": ")[2] for line in offences(life, rules)} == {
        "no leave",
        "paused",
        "unreachable",
        "quiet hours",
        "active",
        "daily cap",
        "gap",
        "crisis",
    }
