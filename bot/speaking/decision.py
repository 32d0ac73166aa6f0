"""May the bot speak first now? One pure decision (rule 8 of the design), asked before any model call, with a code for every refusal.

It is asked three times of the same opener: when its timer is due, before the event is put in the inbox; when its turn begins; and in the
step that would send it. Facts come in as a `Standing`, what the operator chose as `Rules`, the time as an argument.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import date, datetime, time, timedelta
from random import Random
from typing import Any, Literal
from zoneinfo import ZoneInfo

from memory.zones import instant, zone_named

Leave = Literal["unasked", "asked", "yes", "no"]
Kind = Literal["reminder", "follow_up", "opener", "schedule", "login"]
"""What wants to speak. A reminder was asked for by the person, which is leave for this one message at the time they named."""
Reason = Literal[
    "",
    "off",
    "blocked",
    "unreachable",
    "paused",
    "crisis",
    "no_leave",
    "elsewhere",
    "no_zone",
    "quiet_hours",
    "do_not_disturb",
    "busy",
    "active",
    "cap",
    "gap",
    "unanswered",
]
"""Why not; empty: it may. Counted as `opener_<reason>` in health."""
NATURAL = timedelta(minutes=40)
"""How far around an hour at which the person usually writes an opener may fall."""
MARGIN = timedelta(minutes=15)
"""How far from the quiet hours an opener is planned."""


@dataclass(frozen=True, slots=True)
class SpeakingRules:
    """What the operator chose. Durations; `cap` counts the person's local days; after `stop_after` unanswered openers none follows."""

    enabled: bool = True
    quiet_from: time = time(21)
    quiet_to: time = time(9)
    cap: int = 1
    gap: timedelta = timedelta(hours=20)
    active: timedelta = timedelta(minutes=90)
    stop_after: int = 4
    crisis: timedelta = timedelta(hours=72)
    every: timedelta = timedelta(days=2)

    @property
    def promise(self) -> str:
        """What people are promised when they are asked for leave: quiet hours and cap."""
        return f"{self.quiet_from:%H:%M} {self.quiet_to:%H:%M} {self.cap}"


@dataclass(frozen=True, slots=True)
class Standing:
    """How things stand with a person at a place; all times aware. `spoken` are the openers of late, `wrote` the person's messages, newest
    first; `quiet` their own quiet hours (local; equal ends: none), `quiet_until` the end of their platform's do-not-disturb.
    """

    leave: Leave = "unasked"
    promised: str = ""
    """The rules under which they gave leave; empty: those that hold."""
    zone: str = ""
    quiet: tuple[time, time] | None = None
    cap: int | None = None
    paused: bool = False
    blocked: bool = False
    reachable: bool = True
    direct: bool = True
    busy: bool = False
    last_active: datetime | None = None
    crisis_at: datetime | None = None
    quiet_until: datetime | None = None
    spoken: Sequence[datetime] = ()
    wrote: Sequence[datetime] = field(default=(), compare=False)

    @staticmethod
    def of(row: dict[str, Any]) -> Standing:
        """From a row of the SQL function `standing`."""
        quiet = None if row["quiet_from"] is None or row["quiet_to"] is None else (row["quiet_from"], row["quiet_to"])
        return Standing(
            row["openers"],
            row["promised"],
            row["zone"],
            quiet,
            row["daily_cap"],
            row["paused"],
            row["blocked"],
            row["reachable"],
            row["direct"],
            row["busy"],
            row["last_active"],
            row["crisis_at"],
            row["quiet_until"],
            tuple(row["spoken"]),
            tuple(row["wrote"]),
        )

    @property
    def unanswered(self) -> int:
        """How many openers the person has not answered: those since they last wrote."""
        return sum(self.last_active is None or at > self.last_active for at in self.spoken)


@dataclass(frozen=True, slots=True)
class MaySpeak:
    """Whether it may speak; if not, why, and the earliest time (aware) at which this reason alone may be gone, where that is known."""

    reason: Reason = ""
    again: datetime | None = None

    @property
    def may(self) -> bool:
        """Nothing stands against it."""
        return not self.reason


def may_speak(kind: Kind, now: datetime, standing: Standing, rules: SpeakingRules) -> MaySpeak:
    """Whether something of this kind may be said first now. The hardest reasons come first, so that the counts say what to change."""
    if standing.blocked:
        return MaySpeak("blocked")
    if not standing.reachable:
        return MaySpeak("unreachable")
    if standing.paused:
        return MaySpeak("paused")
    if kind == "reminder":
        return MaySpeak()
    if not rules.enabled:
        return MaySpeak("off")
    if standing.leave != "yes" or looser(standing, rules):
        return MaySpeak("no_leave")
    if kind != "follow_up" and not standing.direct:
        return MaySpeak("elsewhere")
    if (verdict := _crisis(now, standing, rules)) is not None:
        return verdict
    zone = zone_named(standing.zone)
    if zone is None:
        return MaySpeak("no_zone")
    return _timing(now, standing, rules, zone)


def _crisis(now: datetime, standing: Standing, rules: SpeakingRules) -> MaySpeak | None:
    if standing.crisis_at is None:
        return None
    over = standing.crisis_at + rules.crisis
    wrote = standing.last_active is not None and standing.last_active > standing.crisis_at
    return None if wrote and now >= over else MaySpeak("crisis", max(over, now) if wrote else None)


def _timing(now: datetime, standing: Standing, rules: SpeakingRules, zone: ZoneInfo) -> MaySpeak:
    quiet_from, quiet_to = standing.quiet or (rules.quiet_from, rules.quiet_to)
    if is_quiet(now.astimezone(zone).time(), quiet_from, quiet_to):
        return MaySpeak("quiet_hours", _next_wall(now, zone, quiet_to))
    if standing.quiet_until is not None and now < standing.quiet_until:
        return MaySpeak("do_not_disturb", standing.quiet_until)
    if standing.busy:
        return MaySpeak("busy", now + rules.active)
    # A time ahead of the clock is one that was set back: as good as now.
    if standing.last_active is not None and (rest := standing.last_active + rules.active) > now:
        return MaySpeak("active", min(rest, now + rules.active))
    cap = rules.cap if standing.cap is None else standing.cap
    today = now.astimezone(zone).date()
    if sum(at.astimezone(zone).date() >= today for at in standing.spoken) >= cap:
        return MaySpeak("cap", instant(datetime.combine(today + timedelta(days=1), time()), zone))
    unanswered = standing.unanswered
    if unanswered >= rules.stop_after:
        return MaySpeak("unanswered")
    if standing.spoken:
        rest = min(max(standing.spoken), now) + gap_after(unanswered, rules)
        if rest > now:
            return MaySpeak("gap", rest)
    return MaySpeak()


def looser(standing: Standing, rules: SpeakingRules) -> bool:
    """Whether the rules allow now what the person was promised not to happen; what they chose for themselves holds either way."""
    if not standing.promised:
        return False
    begins, ends, cap = standing.promised.split()
    more = standing.cap is None and rules.cap > int(cap)
    if standing.quiet is not None or more:
        return more
    day = [time(minute // 60, minute % 60) for minute in range(24 * 60)]
    was = time.fromisoformat(begins), time.fromisoformat(ends)
    return any(is_quiet(clock, *was) and not is_quiet(clock, rules.quiet_from, rules.quiet_to) for clock in day)


def gap_after(unanswered: int, rules: SpeakingRules) -> timedelta:
    """The least time between two openers: twice as long for each that stays unanswered."""
    return rules.gap * (1 << min(unanswered, 10))


def is_quiet(clock: time, begins: time, ends: time) -> bool:
    """Whether a local time lies in quiet hours that may run over midnight; equal ends are none."""
    if begins <= ends:
        return begins <= clock < ends
    return clock >= begins or clock < ends


def next_opener(
    now: datetime, standing: Standing, rules: SpeakingRules, *, not_before: datetime | None = None, seed: str
) -> datetime | None:
    """A natural time (aware) for the next look whether to start a conversation: about when the person themselves usually writes, else
    any time of their waking hours, some days ahead. The same for the same seed. None where it cannot be told: no zone, no waking hours.
    """
    zone = zone_named(standing.zone)
    if zone is None:
        return None
    chance = Random(f"{seed} {now.isoformat()}")
    begins, length = waking(*(standing.quiet or (rules.quiet_from, rules.quiet_to)))
    if length <= 2 * MARGIN:
        return None
    earliest = max(now + rules.every * chance.uniform(0.75, 1.25), not_before or now)
    minute = timedelta(minutes=1)
    if standing.wrote:
        usual = chance.choice(list(standing.wrote)).astimezone(zone)
        offset = _since_midnight(usual.time()) - _since_midnight(begins) + NATURAL * chance.uniform(-1, 1)
        offset = timedelta(seconds=offset.total_seconds() % 86_400)
        if offset - length > timedelta(days=1) - offset:
            offset = timedelta()  # in the quiet hours, and nearer to their end than to their beginning
        offset = min(max(offset, MARGIN), length - MARGIN)
    else:
        offset = MARGIN + (length - 2 * MARGIN) * chance.random()
    offset = offset // minute * minute
    day: date = earliest.astimezone(zone).date() - timedelta(days=1)
    while (due := instant(datetime.combine(day, begins) + offset, zone)) < earliest:
        day += timedelta(days=1)
    return due


def waking(quiet_from: time, quiet_to: time) -> tuple[time, timedelta]:
    """When the waking hours begin and how long they are on a day without a clock change."""
    length = _since_midnight(quiet_from) - _since_midnight(quiet_to)
    return (quiet_to, length if length > timedelta() else length + timedelta(days=1))


def _since_midnight(clock: time) -> timedelta:
    return timedelta(hours=clock.hour, minutes=clock.minute, seconds=clock.second)


def _next_wall(now: datetime, zone: ZoneInfo, clock: time) -> datetime:
    today = now.astimezone(zone).date()
    due = instant(datetime.combine(today, clock), zone)
    return due if due > now else instant(datetime.combine(today + timedelta(days=1), clock), zone)
