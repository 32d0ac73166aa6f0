"""/reminders: what waits, with its numbers; move, snooze, finish and cancel. The buttons under a reminder run these lines too."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import UTC, timedelta
from typing import Any

from adapters.base import Answer
from bot.commands.changing import changed, lock
from bot.commands.context import Asking, CommandRefused
from bot.speaking import rescheduling
from bot.speaking.appointments import SET_COLUMNS, cancelling
from bot.speaking.saying import SNOOZES, is_set, line, set_of
from memory.dates import when_in
from memory.db import Connection, value
from memory.recurrence import ahead
from memory.things import thing
from memory.zones import zone_named

LONGEST = 7 * 24 * 60
"""Minutes for which a reminder can be put off."""


async def reminders(asking: Asking) -> Answer:
    """What waits, in order, each with its number and a button that cancels it."""
    verdict = asking.allowed("reminders")
    if asking.agent is None:
        return Answer(asking.say("reminders.none"))
    zone, locale = await _zone(asking), asking.locale
    async with asking.open(verdict) as connection:
        cursor = await connection.execute(
            f"""SELECT {SET_COLUMNS} FROM timers WHERE due_at IS NOT NULL AND kind = ANY (%s) ORDER BY due_at, id""",  # noqa: S608
            (list(rescheduling.KINDS),),
        )
        timers = [set_of(row) for row in await cursor.fetchall()]
    if not timers:
        return Answer(asking.say("reminders.none"))
    lines = [f"t{each.id}  {line(each, asking.parts.now(), zone, locale)}" for each in timers]
    return Answer("\n".join(lines), tuple(cancelling(timers, locale)))


async def cancel(asking: Asking) -> Answer:
    """Let one come no more."""
    async with _one(asking) as (connection, row, _):
        if row["due_at"] is None:
            raise CommandRefused("reminders.over")
        await rescheduling.end(connection, row, "cancel", asking.parts.now())
    return Answer(asking.say("reminders.cancelled", purpose=row["purpose"]))


async def stop(asking: Asking) -> Answer:
    """Not again: as /reminders cancel, and no fault where it is over."""
    async with _one(asking) as (connection, row, _):
        await rescheduling.finish(connection, row, "stop", asking.parts.now())
    return Answer(asking.say("reminders.not_again", purpose=row["purpose"]))


async def done(asking: Asking) -> Answer:
    """It is done: one that was put off does not come again; one that recurs comes at its next time."""
    async with _one(asking) as (connection, row, _):
        await rescheduling.finish(connection, row, "done", asking.parts.now())
    if row["every"] is None or row["due_at"] is None:
        return Answer(asking.say("reminders.done", purpose=row["purpose"]))
    zone, locale = await _zone(asking), asking.locale
    return Answer(asking.say("reminders.done_goes_on", next=is_set(set_of(row), asking.parts.now(), zone, locale)))


async def snooze(asking: Asking) -> Answer:
    """Let it come again in some minutes."""
    zone, locale = await _zone(asking), asking.locale
    async with _one(asking) as (connection, row, rest):
        minutes = SNOOZES[0] if not rest else int(rest) if rest.isdecimal() and len(rest) < 10 else 0
        span = when_in(f"in {rest}", asking.parts.now().replace(tzinfo=None)) if not minutes else None
        if span is not None and span.span is not None:
            minutes = max(1, round(span.span.total_seconds() / 60))
        if not 0 < minutes <= LONGEST:
            raise CommandRefused("reminders.minutes")
        timer = await rescheduling.snooze(connection, row, minutes, asking.parts.now())
    return Answer(is_set(timer, asking.parts.now(), zone, locale), tuple(cancelling([timer], locale)))


async def move(asking: Asking) -> Answer:
    """Give one another time, in words."""
    zone, locale = await _zone(asking), asking.locale
    now, tz = asking.parts.now(), zone_named(zone)
    async with _one(asking) as (connection, row, rest):
        when = when_in(rest, now.astimezone(tz or UTC).replace(tzinfo=None), locale)
        if when is None:
            raise CommandRefused("reminders.move")
        if when.span is None and tz is None:
            raise CommandRefused("reminders.no_zone")
        wall = when.wall or (now + (when.span or timedelta())).astimezone(tz or UTC).replace(tzinfo=None)
        due = ahead(wall, zone, when.every or row["every"], now)
        if due is None:
            raise CommandRefused("reminders.past")
        timer = await rescheduling.move(connection, row, wall, due, when.every, zone, now)
    return Answer(is_set(timer, now, zone, locale), tuple(cancelling([timer], locale)))


@asynccontextmanager
async def _one(asking: Asking) -> AsyncIterator[tuple[Connection, dict[str, Any], str]]:
    """The reminder that is named, with what follows its number, in a transaction that changes it. Raises CommandRefused."""
    verdict = asking.allowed("reminders")
    word, _, rest = asking.argument.strip().partition(" ")
    named = thing(word)
    if named is None or named.letter != "t":
        raise CommandRefused("reminders.which")
    async with asking.open(verdict) as connection:
        await lock(connection)
        row = await rescheduling.found(connection, named.number)
        if row is None:
            raise CommandRefused("reminders.not_there", thing=named)
        yield connection, row, rest.strip()
        await changed(connection)
    if asking.agent is not None:
        await asking.parts.cache.forget_quietly(asking.agent)


async def _zone(asking: Asking) -> str:
    """The name of the time zone of whose reminders these are; empty: unknown."""
    if asking.agent is None:
        return ""
    async with asking.parts.db.agent(asking.agent) as connection:
        return str(await value(connection, "SELECT coalesce(timezone, '') FROM agents"))
