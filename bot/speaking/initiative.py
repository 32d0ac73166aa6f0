"""Speaking first: the acting side of `bot/speaking/decision.py`, from planning timers to the last word before a message is sent.

    plan       makes the opener's and the schedules' timers of people who gave leave
    on_due     decides about a due timer, inside the transaction that would put its event in the inbox
    wanted     decides about a login, before the inbox
    refused    decides again when a timed turn begins, before any model call
    may_send   decides a last time in the step that would send
    put_off    lets what was refused after it had fired come again, where its kind waits
    note       keeps that the model was asked and whether it spoke, for caps, gaps and costs

Each refusal is counted under its reason: `opener_quiet_hours`, `reminder_paused`.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta, tzinfo
from typing import Any, get_args
from zoneinfo import ZoneInfo

from adapters.base import Person
from bot.engine.events import Claim, Event
from bot.engine.timers import Due, Move, following, payload_of, timer_of
from bot.engine.turns import Step
from bot.speaking import openers
from bot.speaking.decision import Kind, MaySpeak, SpeakingRules, Standing, looser, may_speak, next_opener
from bot.speaking.schedules import Schedule, fingerprint, next_run
from memory.db import Connection, Database
from memory.zones import instant, zone_named

log = logging.getLogger(__name__)

Count = Callable[[str], None]
Quiet = Callable[[Person], Awaitable[datetime | None]]
"""Until when a person wants quiet, as their platform says (None: they do not); asked of the adapter of their platform."""

HOUR = timedelta(hours=1)
PLANNED_AT_ONCE = 100
OPENER_GRACE = timedelta(minutes=30)
"""An opener that could not be looked at for longer gets another natural time instead."""
FOLLOW_UP_GRACE = timedelta(hours=48)
"""After this a follow-up of the agent's own is stale."""
REMINDER_GRACE = timedelta(days=30)
"""How long a reminder waits for a person who is paused or cannot be reached; one that merely comes late is always given."""
_STALE: Mapping[Kind, timedelta] = {
    "opener": OPENER_GRACE,
    "login": OPENER_GRACE,
    "schedule": timedelta(hours=6),
    "follow_up": FOLLOW_UP_GRACE,
}
"""How old an event may be when its turn begins."""
OPENER_PURPOSE = "my own look whether to write to you first; /settings openers off ends it"


@dataclass(slots=True)
class Initiative:
    """What the operator chose about speaking first, and the acts that follow from it."""

    db: Database
    rules: SpeakingRules = field(default_factory=lambda: SpeakingRules(enabled=False))
    schedules: Mapping[str, Schedule] = field(default_factory=dict)
    count: Count = lambda _: None
    quiet: Mapping[str, Quiet] = field(default_factory=dict)

    # Timers ------------------------------------------------------------------------------------------

    async def plan(self, now: datetime) -> int:
        """Make the timers of people who gave leave and have none by the present plan. Returns how many people."""
        if not self.rules.enabled:
            return 0
        made = fingerprint(self.rules, self.schedules)
        async with self.db.bare() as connection:
            rows = await _rows(connection, "SELECT * FROM unplanned(%s, %s)", made, PLANNED_AT_ONCE)
            for row in rows:
                await self._plan(connection, row["agent_id"], row["place_id"], made, now)
        return len(rows)

    async def _plan(self, connection: Connection, agent: int, place: int | None, made: str, now: datetime) -> None:
        await connection.execute("SELECT enter(%s, %s)", (agent, place))
        if place is not None:
            standing = await self.standing(connection, agent, place, None)
            if looser(standing, self.rules):
                # They said yes to something else; they are asked again (bot/speaking/listening.py).
                await connection.execute("UPDATE speaking SET openers = 'unasked', planned = '' WHERE agent_id = %s", (agent,))
                self.count("leave_outgrown")
                return
            zone = standing.zone or "UTC"
            await connection.execute(
                "DELETE FROM timers WHERE kind IN ('opener', 'schedule') AND due_at IS NOT NULL AND name <> ALL (%s)",
                (["", *self.schedules],),
            )
            first = next_opener(now, standing, self.rules, seed=f"{agent}") or now + self.rules.every
            wanted = {("opener", ""): (OPENER_PURPOSE, first)}
            for name, schedule in self.schedules.items():
                if (due := next_run(schedule.cron, zone_named(zone) or ZoneInfo("UTC"), now)) is not None:
                    wanted["schedule", name] = (schedule.purpose, due)
            for (kind, name), (purpose, due) in wanted.items():
                await connection.execute(
                    """INSERT INTO timers (agent_id, place_id, visibility, kind, name, purpose, zone, wall_time, due_at, created_at)
                       VALUES (%s, %s, 'direct', %s, %s, %s, %s, %s, %s, %s)
                       ON CONFLICT (agent_id, kind, name) WHERE due_at IS NOT NULL AND kind IN ('opener', 'schedule')
                       DO UPDATE SET due_at = excluded.due_at, wall_time = excluded.wall_time, zone = excluded.zone, purpose = excluded.purpose""",
                    (agent, place, kind, name, purpose, zone, wall_in(due, zone), due, now),
                )
        await connection.execute(
            "UPDATE speaking SET planned = %s, promised = coalesce(nullif(promised, ''), %s) WHERE agent_id = %s",
            (made, self.rules.promise, agent),
        )

    async def on_due(self, connection: Connection, due: Due, now: datetime) -> Move:
        """What becomes of a due timer; an event only when it may speak."""
        standing = await self.standing(connection, due.agent, due.place, None)
        verdict = may_speak(kind_of(due.kind), now, standing, self.rules)
        move = decide(due, now, standing, verdict, self.rules, self.schedules)
        if move.payload is None:
            self.count(f"{due.kind}_{verdict.reason or 'lapsed'}")
            if move.due_at is None and due.kind in ("opener", "schedule"):
                # Planned anew when the person says yes again, or the operator.
                await connection.execute("UPDATE speaking SET planned = '' WHERE agent_id = %s", (due.agent,))
        return move

    # Decisions ---------------------------------------------------------------------------------------

    async def standing(self, connection: Connection, agent: int, place: int, turn: int | None) -> Standing:
        """How things stand with a person at a place. A person who is gone gave no leave."""
        rows = await _rows(connection, "SELECT * FROM standing(%s, %s, %s)", agent, place, turn)
        return Standing.of(rows[0]) if rows else Standing(leave="no")

    async def wanted(self, platform: str, realm: str, user_id: str, external_id: str, now: datetime) -> bool:
        """Whether a login is worth an event: only where an opener may follow. Nothing is stored of anybody."""
        async with self.db.bare() as connection:
            rows = await _rows(
                connection,
                """SELECT s.* FROM (SELECT known_agent(%s, %s, %s) AS agent) k, place_known(%s, %s, %s) AS place, standing(k.agent, place, NULL) s""",
                platform,
                realm,
                user_id,
                platform,
                realm,
                external_id,
            )
        verdict = may_speak("login", now, Standing.of(rows[0]), self.rules) if rows else MaySpeak("no_leave")
        if not verdict.may:
            self.count(f"login_{verdict.reason}")
        return verdict.may

    async def refused(self, claim: Claim, now: datetime) -> list[int]:
        """The events of a timed turn that may not be acted on any more; asked before the first model call."""
        if any(wants(event) not in ("reminder", None) for event in claim.events):
            await self._ask_platform(claim)
        async with self.db.agent(claim.agent, claim.place) as connection:
            standing = await self.standing(connection, claim.agent, claim.place, claim.turn)
        gone = []
        for event in claim.events:
            if reason := against(event, now, standing, self.rules):
                gone.append(event.id)
                self.count(f"{wants(event) or 'event'}_{reason}")
        return gone

    async def may_send(self, connection: Connection, claim: Claim, now: datetime) -> bool:
        """Whether what the model wants to say in a timed turn may still go out, in the step that would send it."""
        standing = await self.standing(connection, claim.agent, claim.place, claim.turn)
        kinds = [kind for event in claim.events if (kind := wants(event))]
        reasons = [may_speak(kind, now, standing, self.rules).reason for kind in kinds]
        if "" in reasons:
            return True
        self.count(f"{kinds[0] if kinds else 'event'}_overtaken")
        return False

    async def put_off(self, connection: Connection, claim: Claim, events: Sequence[int], now: datetime) -> None:
        """Let the timers of dropped events come again as if they had been refused when they were due; in the step that drops them.

        An opener has its next look, and a recurring timer its next time, already.
        """
        standing = await self.standing(connection, claim.agent, claim.place, claim.turn)
        for event in claim.events:
            kind = wants(event)
            if event.id not in events or event.kind != "timer" or kind not in ("reminder", "follow_up", "schedule"):
                continue
            row = await timer_of(connection, event.payload.get("timer_id"))
            if row is None or row["every"] or (row["due_at"] is not None) is not (kind == "schedule"):
                continue
            due = fired(row, datetime.fromisoformat(event.payload["due_at"]))
            verdict = may_speak(kind, now, standing, self.rules)
            again = again_after(decide(due, now, standing, verdict, self.rules, self.schedules), now, kind)
            if again is not None and (kind != "schedule" or again < row["due_at"]):
                await connection.execute(
                    "UPDATE timers SET due_at = %s, wall_time = %s WHERE id = %s", (again, due.wall_time, due.id)
                )

    async def _ask_platform(self, claim: Claim) -> None:
        """Learn the platform's do-not-disturb, where it has one; a platform that gives no answer has none."""
        ask = self.quiet.get(claim.platform)
        if ask is None:
            return
        async with self.db.agent(claim.agent, claim.place) as connection:
            rows = await _rows(
                connection,
                "SELECT i.platform, i.realm, i.user_id FROM identities i, places p WHERE p.id = %s AND i.platform = p.platform AND i.realm = p.realm",
                claim.place,
            )
        people = [Person(row["platform"], row["realm"], row["user_id"], "") for row in rows]
        answers = await asyncio.gather(*(ask(person) for person in people), return_exceptions=True)
        for answer in answers:
            if isinstance(answer, Exception):
                log.warning("do-not-disturb of agent %d is unknown: %s", claim.agent, type(answer).__name__)
        until = [answer for answer in answers if isinstance(answer, datetime)]
        async with self.db.agent(claim.agent, claim.place) as connection:
            await connection.execute(
                "UPDATE speaking SET quiet_until = %s WHERE agent_id = %s", (max(until, default=None), claim.agent)
            )

    async def enriched(self, connection: Connection, claim: Claim, zone: tzinfo, now: datetime) -> tuple[Event, ...]:
        """The turn's events with what is asked of the agent and what is worth taking up, read at the turn's place."""
        asked = {event.id: kind for event in claim.events if (kind := wants(event))}
        if not asked:
            return claim.events
        worth = await openers.gather(connection, now, zone) if {*asked.values()} != {"reminder"} else openers.Worth()
        return tuple(
            replace(
                event,
                payload={
                    **event.payload,
                    "worth": openers.text_for(asked[event.id], event.payload.get("purpose", ""), worth, now, zone),
                },
            )
            if event.id in asked
            else event
            for event in claim.events
        )

    def note(self, step: Step, *, said: bool) -> None:
        """Keep, in the step of a model call, that the model was asked whether to speak first, and whether it did."""
        claim = step.claim
        kinds = [kind for event in claim.events if (kind := wants(event)) and kind != "reminder"]
        if not kinds:
            return
        step.later(
            """INSERT INTO openers (agent_id, place_id, turn_id, kind, said, at) VALUES (%s, %s, %s, %s, %s, %s)
               ON CONFLICT (turn_id) DO UPDATE SET said = openers.said OR excluded.said, at = excluded.at""",
            (claim.agent, claim.place, claim.turn, kinds[0], said, step.now),
        )
        self.count("opener_model_call")
        if said:
            self.count(f"{kinds[0]}_said")


# Pure ------------------------------------------------------------------------------------------------


def kind_of(kind: str) -> Kind:
    """A timer's kind as what wants to speak; an unknown one gets the strictest rules."""
    return kind if kind in get_args(Kind) else "opener"  # type: ignore[return-value]


def wants(event: Event) -> Kind | None:
    """What of the kinds an event is; None: it never speaks."""
    if event.kind == "timer":
        return kind_of(str(event.payload.get("timer", "reminder")))
    return "login" if event.kind == "login" else None


def against(event: Event, now: datetime, standing: Standing, rules: SpeakingRules) -> str:
    """What stands against acting on an event of a timed turn when the turn begins; empty: nothing."""
    kind = wants(event)
    if kind is None:
        return "off"
    stale = kind in _STALE and now - event.created_at > _STALE[kind]  # the model was away, say
    return may_speak(kind, now, standing, rules).reason or ("lapsed" if stale else "")


def wall_in(at: datetime, zone: str) -> datetime:
    """The naive wall time of a moment in a zone by name."""
    return at.astimezone(zone_named(zone) or UTC).replace(tzinfo=None)


def meant_for(due: Due) -> datetime:
    """When a timer was meant to fire, however often it was put off since. A recurring one is never put off but goes on."""
    zone = zone_named(due.zone)
    return due.due_at if due.every or zone is None else min(instant(due.wall_time, zone), due.due_at)


def fired(row: Mapping[str, Any], meant: datetime) -> Due:
    """A timer that has fired, as it was then; `meant`: when it should have come first. A schedule's row has its next time already."""
    wall = wall_in(meant, row["zone"]) if row["kind"] == "schedule" else row["wall_time"]
    return Due(**{**row, "due_at": meant, "wall_time": wall})


def again_after(move: Move, now: datetime, kind: Kind) -> datetime | None:
    """When a timer comes again whose event was dropped. What may speak by now comes in a minute; a stale check-in does not."""
    if move.payload is None:
        return move.due_at
    return None if kind == "schedule" else now + timedelta(minutes=1)


def decide(
    due: Due, now: datetime, standing: Standing, verdict: MaySpeak, rules: SpeakingRules, schedules: Mapping[str, Schedule]
) -> Move:
    """Grace, coalescing and expiry by kind. What was missed while the bot was away comes once, and what has become stale never."""
    meant = meant_for(due)
    late = now - meant
    if due.kind == "opener":
        if verdict.may and late <= OPENER_GRACE:
            return _again(due, _natural(due, now, standing, rules, None), payload_of(due, now))
        if verdict.reason in ("off", "no_leave"):
            return Move(None, None)
        return _again(due, _natural(due, now, standing, rules, verdict.again), None)
    if due.kind == "schedule":
        return _scheduled(due, now, meant, standing, verdict, schedules.get(due.name))
    fires = Move(payload_of(replace(due, due_at=meant), now), following(due, now))
    if due.kind == "reminder":
        return fires if verdict.may else _put_off(due, now, late, verdict, REMINDER_GRACE)
    return fires if verdict.may and late <= FOLLOW_UP_GRACE else _put_off(due, now, late, verdict, FOLLOW_UP_GRACE)


def _put_off(due: Due, now: datetime, late: timedelta, verdict: MaySpeak, grace: timedelta) -> Move:
    if due.every:
        return Move(None, following(due, now))
    again = max(verdict.again or now + HOUR, now + timedelta(minutes=1))
    hopeless = verdict.reason in ("off", "no_leave") or late + (again - now) > grace
    return Move(None, None if hopeless else again)


def _scheduled(
    due: Due, now: datetime, meant: datetime, standing: Standing, verdict: MaySpeak, schedule: Schedule | None
) -> Move:
    if schedule is None or verdict.reason in ("off", "no_leave"):
        return Move(None, None)
    zone = zone_named(standing.zone) or ZoneInfo("UTC")
    following = next_run(schedule.cron, zone, now)
    if verdict.may and now - meant <= schedule.grace:
        return _again(due, following, payload_of(replace(due, due_at=meant), now))
    if not verdict.may and verdict.again is not None and verdict.again - meant <= schedule.grace:
        return Move(None, max(verdict.again, now + timedelta(minutes=1)))
    return _again(due, following, None)


def _natural(due: Due, now: datetime, standing: Standing, rules: SpeakingRules, not_before: datetime | None) -> datetime:
    found = next_opener(now, standing, rules, not_before=not_before, seed=f"{due.agent} {due.id}")
    return found or now + max(rules.every, timedelta(hours=1))


def _again(due: Due, at: datetime | None, payload: Mapping[str, Any] | None) -> Move:
    return Move(payload, at, None if at is None else wall_in(at, due.zone))


async def _rows(connection: Connection, statement: str, *parameters: object) -> list[dict[str, Any]]:
    return await (await connection.execute(statement.encode(), parameters)).fetchall()
