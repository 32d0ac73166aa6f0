"""Speaking first, as dialogues: leave, planning, the opener itself, and what stands against it at each of the three looks."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace
from datetime import UTC, datetime, time, timedelta
from typing import Any

import pytest

from adapters.catalogue import say
from bot.app.speaking_wiring import question_of
from bot.cli.people import opener_line
from bot.config.keeping import KINDS
from bot.config.persona import Emergency
from bot.config.speaking import OpenersSection
from bot.engine import turns
from bot.engine.events import Claim
from bot.engine.timers import fire_due, rezone
from bot.keeping.consent import question
from bot.keeping.decision import KeepingRules
from bot.speaking.decision import SpeakingRules
from bot.speaking.initiative import Initiative
from bot.speaking.listening import Listener
from bot.speaking.schedules import Schedule
from memory.db import Database
from tests.bot.dialogue import Dialogue, dialogue, seen
from tests.servers.model import call, reply

QUESTION = "May I write first?"
ZONE = question("zone", ["Europe/Berlin"], "")
RULES = SpeakingRules(active=timedelta(minutes=90), every=timedelta(days=2))


SUNDAY = datetime(2026, 12, 6, 16, 0, tzinfo=UTC)  # 17:00 in Berlin


class Counts(dict[str, int]):
    def __call__(self, reason: str) -> None:
        self[reason] = self.get(reason, 0) + 1


CALL = Emergency(when="somebody may harm themselves", kind="harm", say="Call 112.")


@asynccontextmanager
async def talking(
    db: Database, *script: object, rules: SpeakingRules = RULES, **options: Any
) -> AsyncIterator[tuple[Dialogue, Counts]]:
    counts = Counts()
    async with dialogue(db, *script) as d:
        d.initiative = Initiative(db, rules, count=counts, **options)
        d.listening = Listener(question=lambda _: QUESTION, ask_after=2, count=counts, lines=(CALL,))
        yield d, counts


async def give_leave(d: Dialogue, leave: str = "yes", zone: str | None = "Europe/Berlin") -> int:
    """As /settings does it; returns the agent."""
    (row,) = await d.rows("SELECT id FROM agents")
    agent = int(str(row["id"]))
    async with d.db.agent(agent) as connection:
        await connection.execute(
            "INSERT INTO speaking (agent_id, openers) VALUES (%s, %s) ON CONFLICT (agent_id) DO UPDATE SET openers = excluded.openers",
            (agent, leave),
        )
        await connection.execute("UPDATE agents SET timezone = %s, version = version + 1", (zone,))
    await rezone(d.db, d.at)
    return agent


async def due(d: Dialogue, kind: str = "opener") -> datetime:
    rows = await d.rows("SELECT due_at FROM timers WHERE kind = %s AND due_at IS NOT NULL", (kind,))
    assert len(rows) == 1, rows
    assert isinstance(rows[0]["due_at"], datetime)
    return rows[0]["due_at"]


async def tick(d: Dialogue) -> list[str] | None:
    """One tick and the turn that comes of it: what is said, or None when no event was made."""
    assert d.initiative is not None
    await d.initiative.plan(d.at)
    await fire_due(d.db, d.at, d.initiative.on_due)
    (row,) = await d.rows("SELECT id FROM agents")
    claim = await turns.claim(d.db, int(str(row["id"])), d.at, d.engine)
    if not isinstance(claim, Claim):
        return None
    await d.agent.turn(claim)
    return await d.outbox(claim)


async def until_opener(d: Dialogue) -> None:
    """Plan, and let the time of the opener come."""
    assert d.initiative is not None
    await d.initiative.plan(d.at)
    d.clock[0] = await due(d)


# Leave -----------------------------------------------------------------------------------------------


async def test_leave_is_asked_for_once_and_a_plain_yes_is_enough(db: Database) -> None:
    script = [reply("Hello!"), reply("Fine."), reply("Thank you!"), reply("Sure.")]
    async with talking(db, *script) as (d, counts):
        assert await d.hear("Hi") == ["Hello!"]
        assert await d.hear("I have a dog") == ["Fine.", QUESTION]
        assert await d.rows("SELECT openers FROM speaking") == [{"openers": "asked"}]
        assert await d.hear("Ja, gerne!") == ["Thank you!"]
        assert await d.rows("SELECT openers, decided_at FROM speaking") == [{"openers": "yes", "decided_at": d.at}]
        shown = seen(d.model.requests[2])
        assert QUESTION in shown
        assert "said yes" in shown
        assert "time zone is unknown" in shown
        assert await d.hear("And now?") == ["Sure."]
        assert counts["leave_asked"] == 1
        assert [row["action"] for row in await d.rows("SELECT action FROM memory_log")] == ["leave to write first"]


async def test_rules_that_are_loosened_later_need_another_yes(db: Database) -> None:
    script = [reply("Hello!"), reply("Fine."), reply("Thanks!"), reply("Hm."), reply("Thanks!")]
    async with talking(db, *script) as (d, counts):
        await d.hear("Hi")
        await d.hear("I have a dog")
        await d.hear("yes")
        await give_leave(d)
        await until_opener(d)
        assert await d.rows("SELECT promised FROM speaking") == [{"promised": "21:00 09:00 1"}]
        for stricter in (replace(RULES, cap=0), replace(RULES, quiet_from=time(20))):
            d.initiative = replace(d.initiative, rules=stricter)  # type: ignore[type-var]
            assert await d.initiative.plan(d.at) == 1  # type: ignore[union-attr]
            assert await d.rows("SELECT openers FROM speaking") == [{"openers": "yes"}], "that is within what they agreed to"
        d.initiative = replace(d.initiative, rules=replace(RULES, quiet_to=time(7)))  # type: ignore[type-var]
        d.clock[0] += timedelta(days=3)
        assert await tick(d) is None
        assert await d.rows("SELECT openers FROM speaking") == [{"openers": "unasked"}]
        assert counts["leave_outgrown"] == 1
        said = await d.hear("Hello again")
        assert (
            said[-1]
            == f"My operator changed when I may write to you first, so your yes no longer counts, and I ask again. {QUESTION}"
        )
        await d.hear("yes")
        assert d.initiative is not None
        await d.initiative.plan(d.at)
        assert await d.rows("SELECT openers, promised FROM speaking") == [{"openers": "yes", "promised": "21:00 07:00 1"}]


def test_the_question_names_the_rules_that_hold() -> None:
    chosen = OpenersSection(quiet_from=time(22, 30), quiet_to=time(8), daily_cap=3)
    assert "Never between 22:30 and 08:00 on your clock, and at most 3 times a day." in question_of(chosen, "")
    own = OpenersSection(ask="May I, from {quiet_to} on?")
    assert question_of(own, "de") == "May I, from 09:00 on?"


async def test_what_nobody_asked_for_is_one_message(db: Database) -> None:
    many = reply(None, *(call("send_message", text=f"Message {number}") for number in range(12)))
    async with talking(db, reply("Hello"), many) as (d, _):
        await d.hear("Hi")
        await give_leave(d)
        await until_opener(d)
        assert await tick(d) == ["Message 0"]


async def test_a_no_is_final_and_nobody_is_asked_in_a_channel(db: Database) -> None:
    async with talking(db, *[reply("ok")] * 8) as (d, _):
        channel = d.elsewhere("general", "public")
        for _ in range(3):
            assert await channel.hear("Hi all") == ["ok"]
        await d.hear("Hi")
        assert (await d.hear("Hi"))[-1] == QUESTION
        assert await d.hear("no thanks") == [say("leave.declined", ""), "ok"]
        assert await d.hear("Hi") == ["ok"]
        assert await d.rows("SELECT openers FROM speaking") == [{"openers": "no"}]
        await give_leave(d, "no")
        assert await tick(d) is None
        assert await d.rows("SELECT id FROM timers") == []
        await channel.hear("yes")
        assert await d.rows("SELECT openers FROM speaking") == [{"openers": "no"}]


async def test_the_agent_notes_leave_and_zone_only_from_the_persons_own_words(db: Database) -> None:
    berlin = call("set_time_zone", zone="Europe/Berlin", request_heartbeat=True)
    script = [
        reply(None, call("set_speaking_leave", allowed=True, quiet_from="22:00", quiet_to="7:30")),
        reply("Gladly."),
        reply(None, berlin),
        reply("Thank you."),
        reply(None, berlin),
        reply("I see."),
        reply(None, berlin),
        reply("Good."),
        reply(None, call("set_speaking_leave", allowed=False)),
        reply("Not here."),
        reply(None, call("set_speaking_leave", allowed=False)),
        reply("Oh."),
    ]
    async with talking(db, *script) as (d, _):
        assert await d.hear("You may write first sometimes, but not from ten to half past seven.") == ["Gladly.", QUESTION]
        assert await d.rows("SELECT openers, quiet_from, quiet_to FROM speaking") == [
            {"openers": "asked", "quiet_from": time(22), "quiet_to": time(7, 30)}
        ]
        assert await d.hear("yes") == ["Thank you.", ZONE]
        assert await d.rows("SELECT openers FROM speaking") == [{"openers": "yes"}]
        assert await d.rows("SELECT timezone FROM agents") == [{"timezone": None}], "inferred, not yet confirmed"
        assert await d.hear("I was in Berlin once, yes") == ["I see.", ZONE]
        assert await d.rows("SELECT timezone FROM agents") == [{"timezone": None}], "two calls are no yes"
        assert await d.hear("Yes!") == ["Good."]
        assert await d.rows("SELECT timezone FROM agents") == [{"timezone": "Europe/Berlin"}]
        assert await d.elsewhere("general", "public").hear("stop writing first") == ["Not here."]
        assert "in their direct message" in seen(d.model.requests[9])
        assert await d.hear("yes") == ["Oh."]
        assert "said the opposite" in seen(d.model.requests[11])
        assert await d.rows("SELECT openers FROM speaking") == [{"openers": "yes"}]


async def test_an_ok_to_something_else_is_no_leave_however_late(db: Database) -> None:
    script = [reply("Hello!"), reply("Fine."), reply("Pasta tonight, is that ok?"), reply("Good.")]
    async with talking(db, *script) as (d, _):
        await d.hear("Hi")
        assert (await d.hear("I have a dog"))[-1] == QUESTION
        await d.hear("What shall I cook?")
        d.clock[0] += timedelta(days=40)
        assert await d.hear("ok") == ["Good."]
        assert await d.rows("SELECT openers FROM speaking") == [{"openers": "asked"}]


@pytest.mark.parametrize("said", ["yes, but only on Sundays", "fine, I have to go now", "yes? to what?"])
async def test_half_a_yes_is_no_leave(db: Database, said: str) -> None:
    async with talking(db, reply("Hello!"), reply("Fine."), reply("I see.")) as (d, _):
        await d.hear("Hi")
        await d.hear("I have a dog")
        assert await d.hear(said) == ["I see."]
        assert await d.rows("SELECT openers FROM speaking") == [{"openers": "asked"}]


async def test_the_model_makes_no_yes_of_a_no(db: Database) -> None:
    leave = call("set_speaking_leave", allowed=True)
    script = [
        reply("Hello!"),
        reply("Fine."),
        reply("All right."),
        reply(None, leave),
        reply("A nice day."),
        reply(None, leave),
        reply("Hm."),
    ]
    async with talking(db, *script) as (d, _):
        await d.hear("Hi")
        await d.hear("I have a dog")
        await d.hear("no")
        assert await d.hear("The sun is out") == ["A nice day."]
        assert "/settings openers on" in seen(d.model.requests[4])
        assert await d.hear("yes") == ["Hm."]
        assert await d.rows("SELECT openers FROM speaking") == [{"openers": "no"}]


async def test_one_question_at_a_time_and_something_sensitive_first(db: Database) -> None:
    store = call("working_context_append", section="profile", content="Has type 1 diabetes.")
    script = [reply("Hello!"), reply(None, store, call("set_time_zone", zone="Europe/Berlin")), reply("I see."), reply("Good.")]
    async with talking(db, *script) as (d, _):
        d.settings = replace(d.settings, rules=KeepingRules(KINDS))
        await d.hear("Hi")
        assert await d.hear("I live in Berlin with type 1 diabetes") == [
            "I see.",
            question("memory", ["Has type 1 diabetes."], ""),
        ]
        assert await d.hear("Well, I have a dog") == ["Good.", QUESTION], "leave is asked for when there is room"


# The opener ------------------------------------------------------------------------------------------


async def test_an_opener_takes_up_what_is_worth_it(db: Database) -> None:
    script = [
        reply("Noted.", call("working_context_append", section="goals", content="Wants to run a marathon.")),
        reply("Noted.", call("working_context_append", section="key_facts", content="Her exam is on 3 December 2026.")),
        reply(None, call("send_message", text="How is the training going?")),
        reply("Great!"),
        reply(None, call("stay_silent")),
    ]
    async with talking(db, *script) as (d, counts):
        await d.hear("I want to run a marathon")
        await d.hear("My exam is on the 3rd of December")
        await give_leave(d)
        await until_opener(d)
        assert 9 <= d.at.astimezone(UTC).hour + 1 < 21
        assert await tick(d) == ["How is the training going?"]
        shown = d.model.requests[2].last
        assert "Timer is due (opener): Your own look" in shown
        assert "unfinished: Wants to run a marathon." in shown
        assert "near date Thu 2026-12-03" in shown
        assert "by the person: My exam is on the 3rd of December" in shown
        assert "- earlier opener" not in shown
        assert (await d.hear("Well, thank you"))[0] == "Great!"
        await until_opener(d)
        d.clock[0] += timedelta(hours=1)
        assert d.initiative is not None
        await fire_due(d.db, d.at, d.initiative.on_due)  # too late for this look: another natural time
        assert counts.get("opener_lapsed") == 1, counts
        await until_opener(d)
        assert await tick(d) == []
        assert "not to be repeated: How is the training going?" in seen(d.model.requests[4])
        said = await d.rows("SELECT kind, said FROM openers ORDER BY id")
        assert said == [{"kind": "opener", "said": True}, {"kind": "opener", "said": False}]
        async with db.bare() as connection:
            cost = await (await connection.execute("SELECT * FROM opener_costs(%s)", (d.at - timedelta(days=30),))).fetchone()
        assert cost is not None
        assert (cost["considered"], cost["said"], cost["delivered"], cost["calls"]) == (2, 1, 0, 2)


async def test_what_is_worth_taking_up_is_there_in_every_pass_of_its_turn_and_not_after(db: Database) -> None:
    search = call("recall_storage_search", query="marathon", request_heartbeat=True)
    script = [reply("Hello"), reply(None, search), reply(None, call("send_message", text="How is it going?")), reply("Great!")]
    async with talking(db, *script) as (d, _):
        await d.hear("I want to run a marathon")
        await give_leave(d)
        await until_opener(d)
        assert await tick(d) == ["How is it going?"]
        assert (await d.hear("Well, thank you"))[0] == "Great!"
        assert ["Worth taking up" in seen(request) for request in d.model.requests] == [False, True, True, False]
        assert "Your own look whether to start a conversation" in seen(d.model.requests[3])


async def test_a_private_fact_stays_in_the_direct_message(db: Database) -> None:
    secret = reply("ok", call("working_context_append", section="goals", content="Wants to leave her job."))
    opener = reply(None, call("send_message", text="How are you?"))
    async with talking(db, secret, reply("ok"), opener) as (d, _):
        await d.hear("I want to leave my job")
        channel = d.elsewhere("general", "public")
        await channel.hear("hello")
        await give_leave(d)
        await until_opener(d)
        assert await tick(d) == ["How are you?"]
        rows = await d.rows("SELECT p.kind FROM outbox o JOIN places p ON p.id = o.place_id ORDER BY o.id DESC LIMIT 1")
        assert rows == [{"kind": "direct"}]
        assert "leave her job" in seen(d.model.requests[2])
        assert "leave her job" not in seen(d.model.requests[1])


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        ("UPDATE agents SET paused = true", "paused"),
        ("UPDATE speaking SET openers = 'no'", "no_leave"),
        ("UPDATE speaking SET quiet_from = '00:00', quiet_to = '23:59'", "quiet_hours"),
        ("UPDATE agents SET timezone = NULL", "no_zone"),
    ],
)
async def test_no_event_and_no_model_call_for_a_timer_that_may_not_speak(db: Database, change: str, reason: str) -> None:
    async with talking(db, reply("Hello")) as (d, counts):
        await d.hear("Hi")
        agent = await give_leave(d)
        await until_opener(d)
        async with d.db.agent(agent) as connection:
            await connection.execute(change.encode())
        await rezone(d.db, d.at)
        d.clock[0] = await due(d)
        assert await tick(d) is None
        assert counts == {f"opener_{reason}": 1}
        assert await d.rows("SELECT 1 FROM events WHERE kind = 'timer'") == []
        waiting = await d.rows("SELECT due_at FROM timers WHERE due_at IS NOT NULL")
        assert len(waiting) == (0 if reason == "no_leave" else 1)


async def test_what_changed_since_the_inbox_is_seen_before_the_first_model_call(db: Database) -> None:
    async with talking(db, reply("Hello"), reply("Hi again")) as (d, counts):
        await d.hear("Hi")
        await give_leave(d)
        await until_opener(d)
        assert d.initiative is not None
        await fire_due(d.db, d.at, d.initiative.on_due)
        assert len(await d.rows("SELECT 1 FROM events WHERE kind = 'timer' AND status = 0")) == 1
        await give_leave(d, "no")
        assert await tick(d) == []
        assert counts == {"opener_no_leave": 1}
        assert await d.rows("SELECT status FROM events WHERE kind = 'timer'") == [{"status": 3}]
        assert await d.rows("SELECT 1 FROM openers") == []
        assert (await d.hear("still here"))[0] == "Hi again"


async def test_an_opener_whose_turn_begins_hours_late_is_dropped(db: Database) -> None:
    async with talking(db, reply("Hello")) as (d, counts):
        await d.hear("Hi")
        await give_leave(d)
        await until_opener(d)
        assert d.initiative is not None
        await fire_due(d.db, d.at, d.initiative.on_due)
        d.clock[0] += timedelta(minutes=31)  # the model was away, say
        assert await tick(d) == []
        assert counts == {"opener_lapsed": 1}


async def test_a_message_that_comes_while_the_model_thinks_wins(db: Database) -> None:
    holder: list[Dialogue] = []

    async def write_meanwhile(_: object) -> object:
        await holder[0].accept("I was just about to write!")
        return reply(None, call("send_message", text="Hello you"))

    async with talking(db, reply("Hello"), write_meanwhile, reply("Good to hear from you.")) as (d, counts):
        holder.append(d)
        await d.hear("Hi")
        agent = await give_leave(d)
        await until_opener(d)
        assert d.initiative is not None
        await fire_due(d.db, d.at, d.initiative.on_due)
        claim = await d.claim(agent)
        await d.agent.turn(claim)
        assert claim.fence.more, "their message waits"
        assert counts["opener_overtaken"] == 1
        assert await d.outbox(claim) == []
        claim = await d.claim(agent)
        await d.agent.turn(claim)
        assert await d.outbox(claim) == ["Good to hear from you."]


async def test_a_platforms_do_not_disturb_is_asked_before_the_model(db: Database) -> None:
    asked = []

    async def quiet(person: object) -> datetime | None:
        asked.append(person)
        return d.at + timedelta(hours=3)

    async def broken(_: object) -> datetime | None:
        raise RuntimeError("the platform is away")

    opener = reply(None, call("send_message", text="Hi there"))
    async with talking(db, reply("Hello"), opener, quiet={"console": quiet}) as (d, counts):
        await d.hear("Hi")
        await give_leave(d)
        await until_opener(d)
        assert await tick(d) == []
        assert counts == {"opener_do_not_disturb": 1}
        assert len(asked) == 1
        d.clock[0] += timedelta(hours=3)
        assert d.initiative is not None
        d.initiative = replace(d.initiative, quiet={"console": broken})
        await until_opener(d)
        assert await tick(d) == ["Hi there"], "no answer is no do-not-disturb"


# Reminders, follow-ups, schedules ---------------------------------------------------------------------


async def test_a_reminder_three_hours_late_comes_once_and_says_so(db: Database) -> None:
    script = [
        reply("I will.", call("set_timer", purpose="take the cake out", asked="Remind me in an hour", in_minutes=60)),
        reply(None, call("send_message", text="The cake!")),
    ]
    async with talking(db, *script) as (d, _):
        await d.hear("Remind me in an hour to take the cake out")
        d.clock[0] += timedelta(hours=4)
        assert await tick(d) == ["The cake!"]
        assert "(reminder, 3 h late because the bot was away, say so): take the cake out" in seen(d.model.requests[1])
        assert await tick(d) is None
        assert await d.rows("SELECT 1 FROM openers") == [], "a reminder is no opener"


async def test_a_daily_reminder_that_was_missed_for_days_comes_once(db: Database) -> None:
    daily = call("set_timer", purpose="stretch", asked="Remind me every day at eight", at="2026-12-01T08:00", every="day")
    script = [reply("ok", daily), reply(None, call("send_message", text="Stretch!"))]
    async with talking(db, *script) as (d, _):
        d.person = replace(d.person, timezone="UTC")
        await d.hear("Remind me every day at eight to stretch")
        d.clock[0] = datetime(2026, 12, 5, 11, 0, tzinfo=UTC)
        assert await tick(d) == ["Stretch!"]
        assert await tick(d) is None
        assert await due(d, "reminder") == datetime(2026, 12, 6, 8, 0, tzinfo=UTC)


async def pause(d: Dialogue, paused: bool) -> None:
    (row,) = await d.rows("SELECT id FROM agents")
    async with d.db.agent(int(str(row["id"]))) as connection:
        await connection.execute("UPDATE agents SET paused = %s", (paused,))


CALL_MUM = (
    reply("ok", call("set_timer", purpose="call Mum", asked="Remind me in five minutes", in_minutes=5)),
    reply(None, call("send_message", text="Call Mum!")),
)


async def test_a_reminder_waits_for_somebody_who_is_paused_and_is_not_lost(db: Database) -> None:
    async with talking(db, *CALL_MUM) as (d, counts):
        await d.hear("Remind me in five minutes to call Mum")
        await pause(d, True)
        d.clock[0] += timedelta(minutes=6)
        assert await tick(d) is None
        assert counts == {"reminder_paused": 1}
        await pause(d, False)
        d.clock[0] += timedelta(hours=1)
        assert await tick(d) == ["Call Mum!"]
        assert "61 min late" in seen(d.model.requests[1])


async def fire(d: Dialogue) -> None:
    """Let what is due become events, whose turns do not begin yet."""
    assert d.initiative is not None
    await fire_due(d.db, d.at, d.initiative.on_due)
    assert len(await d.rows("SELECT 1 FROM events WHERE kind = 'timer' AND status = 0")) == 1


async def test_a_reminder_that_is_refused_as_its_turn_begins_is_not_lost(db: Database) -> None:
    async with talking(db, *CALL_MUM) as (d, counts):
        await d.hear("Remind me in five minutes to call Mum")
        d.clock[0] += timedelta(minutes=6)
        await fire(d)
        await pause(d, True)
        assert await tick(d) == []
        assert counts == {"reminder_paused": 1}
        await pause(d, False)
        d.clock[0] += timedelta(hours=3)
        assert await tick(d) == ["Call Mum!"]
        assert "3 h late" in seen(d.model.requests[1])
        assert await tick(d) is None


async def test_do_not_disturb_puts_a_follow_up_and_a_check_in_off_within_their_grace(db: Database) -> None:
    quiet_until: list[datetime | None] = [None]

    async def quiet(_: object) -> datetime | None:
        return quiet_until[0]

    own = call("set_timer", purpose="ask how the exam went", in_minutes=240)
    weekly = {"sunday": Schedule("0 17 * * sun", "Ask how the week was.", timedelta(hours=6))}
    script = [
        reply("Hi"),
        reply("Good luck!", own),
        reply(None, call("send_message", text="How was it?")),
        reply(None, call("send_message", text="And the week?")),
    ]
    async with talking(db, *script, quiet={"console": quiet}, schedules=weekly) as (d, counts):
        await d.hear("Hello")
        await give_leave(d)
        await d.hear("Exam today")
        for kind, at, said in (("follow_up", d.at + timedelta(hours=4), "How was it?"), ("schedule", SUNDAY, "And the week?")):
            d.clock[0] = at
            assert d.initiative is not None
            await d.initiative.plan(d.at)
            async with d.db.agent(1, everything=True) as connection:
                await connection.execute("DELETE FROM timers WHERE kind = 'opener'")
            await fire(d)
            quiet_until[0] = d.at + timedelta(hours=1)
            assert await tick(d) == []
            assert counts.pop(f"{kind}_do_not_disturb") == 1
            assert await due(d, kind) == quiet_until[0]
            d.clock[0] += timedelta(hours=1, minutes=1)
            quiet_until[0] = None
            assert await tick(d) == [said]
        assert await due(d, "schedule") == SUNDAY + timedelta(days=7)
        d.clock[0] = SUNDAY + timedelta(days=7)
        await fire(d)
        quiet_until[0] = d.at + timedelta(hours=7)
        assert await tick(d) == []
        assert await due(d, "schedule") == SUNDAY + timedelta(days=14), "longer than the grace: the next time"


async def test_a_follow_up_that_is_overtaken_by_a_message_comes_later(db: Database) -> None:
    holder: list[Dialogue] = []

    async def write_meanwhile(_: object) -> object:
        await holder[0].accept("It went well!")
        return reply(None, call("send_message", text="How was it?"))

    own = call("set_timer", purpose="ask how the exam went", in_minutes=240)
    script = [reply("Hi"), reply("Good luck!", own), write_meanwhile, reply("Great!"), reply(None, call("stay_silent"))]
    async with talking(db, *script) as (d, counts):
        holder.append(d)
        await d.hear("Hello")
        agent = await give_leave(d)
        await d.hear("Exam today")
        d.clock[0] += timedelta(hours=4)
        await fire(d)
        claim = await d.claim(agent)
        await d.agent.turn(claim)
        assert counts["follow_up_overtaken"] == 1
        claim = await d.claim(agent)
        await d.agent.turn(claim)
        assert (await d.outbox(claim))[0] == "Great!"
        d.clock[0] = await due(d, "follow_up") + timedelta(minutes=1)
        assert await tick(d) == []
        assert "A follow-up that you set yourself" in seen(d.model.requests[4])
        assert await d.rows("SELECT 1 FROM timers WHERE kind = 'follow_up' AND due_at IS NOT NULL") == []


async def test_a_follow_up_of_the_agents_own_needs_leave(db: Database) -> None:
    own = call("set_timer", purpose="ask how the exam went", in_minutes=600)
    took_back = reply("Good luck!", own)
    script = [reply("Good luck!", own), reply("Good luck!"), took_back, reply(None, call("send_message", text="How was it?"))]
    async with talking(db, *script) as (d, counts):
        said = await d.hear("Exam today")
        assert said[-1].startswith("Shall I remind you: ask how the exam went, in 10 h?"), "no leave: only a yes to this sets it"
        d.clock[0] += timedelta(hours=11)
        assert await tick(d) is None
        await give_leave(d)
        await d.hear("Another exam today")
        await give_leave(d, "no")
        d.clock[0] += timedelta(hours=11)
        assert await tick(d) is None
        assert counts["follow_up_no_leave"] == 1, "leave that was taken back"
        await give_leave(d)
        async with d.db.agent(1, everything=True) as connection:
            await connection.execute(
                "UPDATE timers SET due_at = '2026-12-01 06:00+00', wall_time = '2026-12-01 07:00' WHERE kind = 'follow_up'"
            )
        d.clock[0] = datetime(2026, 12, 1, 6, 0, tzinfo=UTC)  # 7:00 in Berlin: quiet until 9:00
        counts.clear()
        assert await tick(d) is None
        assert counts == {"follow_up_quiet_hours": 1}
        d.clock[0] = datetime(2026, 12, 1, 12, 0, tzinfo=UTC)
        assert await tick(d) == ["How was it?"]
        assert "A follow-up that you set yourself: ask how the exam went." in seen(d.model.requests[3])
        assert await d.rows("SELECT kind, said FROM openers") == [{"kind": "follow_up", "said": True}]


async def test_an_operators_schedule_comes_in_local_time_to_those_who_gave_leave(db: Database) -> None:
    weekly = {"sunday": Schedule("0 17 * * sun", "Ask how the week was.", timedelta(hours=6))}
    check_in = reply(None, call("send_message", text="How was your week?"))
    async with talking(db, reply("Hello"), check_in, schedules=weekly) as (d, counts):
        await d.hear("Hi")
        await give_leave(d)
        assert d.initiative is not None
        await d.initiative.plan(d.at)
        sunday = datetime(2026, 12, 6, 16, 0, tzinfo=UTC)
        assert await due(d, "schedule") == sunday
        async with d.db.agent(1, everything=True) as connection:
            await connection.execute("DELETE FROM timers WHERE kind = 'opener'")
        d.clock[0] = sunday + timedelta(hours=2)
        assert await tick(d) == ["How was your week?"]
        assert "A check-in that the operator set up: Ask how the week was." in seen(d.model.requests[1])
        assert await due(d, "schedule") == sunday + timedelta(days=7)
        d.clock[0] = sunday + timedelta(days=7, hours=7)
        assert await tick(d) is None
        assert counts["schedule_quiet_hours"] == 1
        assert await due(d, "schedule") == sunday + timedelta(days=14)
        d.initiative = replace(d.initiative, schedules={})
        await d.initiative.plan(d.at)
        assert await d.rows("SELECT 1 FROM timers WHERE kind = 'schedule' AND due_at IS NOT NULL") == []


async def test_a_wall_time_is_kept_when_the_zone_changes_and_an_instant_too(db: Database) -> None:
    script = [
        reply(
            "ok",
            call("set_timer", purpose="wake", asked="Wake me at eight", at="2026-12-01T08:00"),
            call("set_timer", purpose="tea", asked="tea in half an hour", in_minutes=30),
            call("set_timer", purpose="water", asked="water the plants every day at nine", at="2026-12-01T09:00", every="day"),
        )
    ]
    async with talking(db, *script) as (d, _):
        d.person = replace(d.person, timezone="UTC")
        await d.hear("Wake me at eight, tea in half an hour, water the plants every day at nine")
        tea = d.at + timedelta(minutes=30)
        await give_leave(d, zone="America/New_York")
        rows = await d.rows("SELECT purpose, due_at, zone FROM timers ORDER BY id")
        assert [(row["purpose"], row["due_at"]) for row in rows] == [
            ("wake", datetime(2026, 12, 1, 13, 0, tzinfo=UTC)),
            ("tea", tea),
            ("water", datetime(2026, 12, 1, 14, 0, tzinfo=UTC)),
        ]
        d.clock[0] = datetime(2026, 12, 1, 10, 0, tzinfo=UTC)
        await give_leave(d, zone="Asia/Tokyo")  # 19:00 there: eight is over
        rows = await d.rows("SELECT purpose, due_at FROM timers WHERE purpose <> 'tea' ORDER BY id")
        assert [row["due_at"] for row in rows] == [d.at, datetime(2026, 12, 2, 0, 0, tzinfo=UTC)], "due at once, not lost"


# Care ------------------------------------------------------------------------------------------------


async def test_the_emergency_lines_are_given_at_once_and_openers_pause(db: Database) -> None:
    script = [reply("Hello"), reply("I am here with you."), reply("I am glad.")]
    async with talking(db, *script) as (d, counts):
        await d.hear("Hi")
        await give_leave(d)
        assert await d.hear("I don't want to live anymore. I want to kill myself") == ["Call 112.", "I am here with you."]
        shown = seen(d.model.requests[1])
        assert shown.index("Call 112.") < shown.index("were sent to the person at once")
        assert counts["care_given"] == 1
        crisis = d.at
        d.clock[0] += timedelta(days=5)
        await until_opener(d)
        assert await tick(d) is None
        assert counts["opener_crisis"] == 1
        assert await d.hear("Better now, thanks") == ["I am glad."]
        assert await d.rows("SELECT crisis_at FROM speaking") == [{"crisis_at": crisis}]


async def test_the_lines_are_not_given_with_every_message_and_need_no_model(db: Database) -> None:
    async with talking(db, reply("I hear you."), reply("Still here."), reply("Yes.")) as (d, counts):
        assert await d.hear("i want to die") == ["Call 112.", "I hear you."]
        assert await d.hear("i want to die") == ["Still here."]
        d.clock[0] += timedelta(hours=2)
        assert await d.hear("quiero morir") == ["Call 112.", "Yes."]
        assert counts == {"care_given": 2, "care_noted": 1}


@pytest.mark.parametrize(("voice", "given"), [("Yes.", True), ("no", False), ("I cannot tell", False)])
async def test_the_second_voice_may_add_care(db: Database, voice: str, given: bool) -> None:
    async with talking(db, reply(voice), reply("Tell me.")) as (d, _):
        assert d.listening is not None
        d.listening = replace(d.listening, voice=d.processor)
        assert await d.hear("I can't go on") == (["Call 112.", "Tell me."] if given else ["Tell me."])
        assert "suicide" in seen(d.model.requests[0])
        assert [row["purpose"] for row in await d.rows("SELECT purpose FROM usage ORDER BY id")] == ["filter", "chat"]


async def test_every_kind_of_emergency_has_its_own_line_said_by_code_once_in_a_while(db: Database) -> None:
    lines = (
        CALL,
        Emergency(when="medical", kind="medical", say="Call a doctor."),
        Emergency(when="abuse", kind="abuse", say="It is not your fault."),
        Emergency(when="gas", words=("smells of gas",), say="Leave the house."),
    )
    script = [reply(text) for text in ("A cat!", "I am here.", "Still here.", "With you.", "Tell me.", "Outside?")]
    async with talking(db, *script) as (d, counts):
        assert d.listening is not None
        d.listening = replace(d.listening, lines=lines)
        assert await d.hear("I also have a cat") == ["A cat!"]
        assert await d.hear("My dad is having a heart attack") == ["Call a doctor.", "I am here."]
        assert "seem to speak of a medical emergency" in seen(d.model.requests[-1])
        assert await d.hear("He is not breathing") == ["Still here."], "not again at once"
        assert await d.hear("I want to kill myself") == ["Call 112.", "With you."], "another line is not held back by it"
        assert await d.hear("my husband hits me") == ["It is not your fault.", "Tell me."]
        assert await d.hear("It smells of GAS here") == ["Leave the house.", "Outside?"]
        assert counts == {"care_given": 4, "care_noted": 1}
        first = seen(d.model.requests[0])
        assert not [line.say for line in lines if line.say in first], "they stand in no prompt before their moment"
        assert [row["crisis_at"] for row in await d.rows("SELECT crisis_at FROM speaking")] == [d.at], "openers pause after each"


async def test_the_second_voice_is_asked_what_the_words_leave_open(db: Database) -> None:
    async with talking(db, reply("yes"), reply("Tell me.")) as (d, _):
        assert d.listening is not None
        abuse = Emergency(when="abuse", kind="abuse", say="It is not your fault.")
        d.listening = replace(d.listening, lines=(abuse,), voice=d.processor)
        assert await d.hear("I am afraid of my husband") == ["It is not your fault.", "Tell me."]
        assert "mistreated" in seen(d.model.requests[0])
        d.model.add(reply("Good."))
        assert await d.hear("I almost passed out laughing") == ["Good."], "no line for it, so nobody is asked"


async def test_a_login_is_an_event_only_where_an_opener_may_follow(db: Database) -> None:
    async with talking(db, reply("Hello"), reply(None, call("send_message", text="Good to see you."))) as (d, counts):
        assert d.initiative is not None
        who = ("console", "", "ada", "ada")
        assert not await d.initiative.wanted(*who, d.at), "nobody knows them"
        await d.hear("Hi")
        d.clock[0] += timedelta(hours=3)
        assert not await d.initiative.wanted(*who, d.at)
        await give_leave(d)
        assert await d.initiative.wanted(*who, d.at)
        assert not await d.initiative.wanted("console", "", "ada", "elsewhere", d.at), "no such place"
        assert await d.hear("", kind="login") == ["Good to see you."]
        assert "The person came online. Say something first only if" in seen(d.model.requests[1])
        assert "Worth taking up" in seen(d.model.requests[1])
        assert counts == {"login_no_leave": 3, "opener_model_call": 1, "login_said": 1}
        assert not await d.initiative.wanted(*who, d.at), "once a day"
        assert counts["login_cap"] == 1
        d.model.add(reply("You are welcome."))
        await d.hear("Thanks")
        assert "The person came online. Say something first only if" in seen(d.model.requests[2])
        assert "Worth taking up" not in seen(d.model.requests[2]), "it has served"


def test_the_costs_are_shown() -> None:
    assert opener_line({"considered": 3, "said": 2, "delivered": 2, "calls": 5, "tokens": 9000}) == (
        "Openers: asked 3 times, said 2, delivered 2; 2.50 model calls and 4,500 tokens for each."
    )
    assert opener_line({"considered": 3, "said": 0, "delivered": 0, "calls": 5, "tokens": 9000}).endswith("none delivered.")
