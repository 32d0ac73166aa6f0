"""What is set is said: the bot's own lines below a reply, whatever the model wrote.

Every timer that a turn set is shown with a button that cancels it. Where a person asked for one, or the reply promises one, and none was set,
the agent gets one more pass; then the bot says that nothing is set and what it needs for it.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

from adapters.base import Button
from adapters.catalogue import say
from bot.engine.events import Claim
from bot.engine.turns import Step, say_after
from bot.keeping import consent
from bot.speaking import by_words, saying
from bot.speaking.saying import Set, set_of
from bot.words.answers import yes_or_no
from bot.words.reminding import asks_reminder, language_of, promises_reminder
from memory import log as memory_log
from memory.agent_state import AgentState
from memory.dates import when_in
from memory.db import Connection
from memory.messages import Draft
from memory.recurrence import FARTHEST, ahead
from memory.zones import zone_named

LINE = -30
"""The step of these lines in the outbox, which no turn reaches."""
SHOWN = 5
"""Timers that are shown with buttons."""
PROMPT = (
    "The person asked to be reminded, or you promised it, but no timer is set, so nothing would come. Call set_timer now with their words in "
    "`asked`. If something is missing (their time zone, the time), say what, and promise nothing."
)
AGREED = "The person said yes to the bot's question: that timer is set, and the bot shows it. Answer in a few words."
DECLINED = "The person said no to the bot's question: nothing is set. Accept it in a few words."
OVER = "The person said yes to the bot's question, but its time is over. Ask when it should be instead."
SET_COLUMNS = "id, purpose, due_at, wall_time, every"


def cancelling(timers: Sequence[Set], locale: str) -> list[Button]:
    """A button for each timer that cancels it; where there are several, with what it is."""
    several = len(timers) > 1
    return [
        Button(
            say("remind.cancel_one", locale, purpose=each.purpose[:40]) if several else say("remind.cancel", locale),
            f"/reminders cancel t{each.id}",
        )
        for each in timers[:SHOWN]
    ]


def in_question(claim: Claim, state: AgentState, said: Sequence[str]) -> str:
    """What of a turn is about a reminder that should be set: the person's asking or the reply's promise; empty: nothing is."""
    if not claim.addressed:
        return ""
    texts = claim.said
    if not texts:  # asked to answer the last message once more
        own = [message.content for message in state.queue if message.role == "user" and message.kind == "message"]
        texts = own[-1:]

    def has_time(text: str) -> bool:
        return when_in(text, datetime(2026, 1, 1)) is not None  # noqa: DTZ001 - whether, not when

    asked = next((text for text in texts if asks_reminder(text, has_time)), "")
    return asked or next((text for text in said if promises_reminder(text)), "")


async def in_their_language(step: Step, state: AgentState) -> AgentState:
    """The state with the person's language, where their platform did not tell it and they asked to be reminded in one of ours."""
    if state.locale or step.claim.origin != "person":
        return state
    locale = next((found for text in step.claim.said if (found := language_of(text))), "")
    if locale:
        await step.connection.execute("UPDATE agents SET locale = %s WHERE locale IS NULL", (locale,))
    return replace(state, locale=locale)


async def show(step: Step, state: AgentState, numbers: Collection[int]) -> bool:
    """Put the line about the timers that a turn set below its reply. `numbers`: those, as far as this run of the turn knows."""
    rows = await _rows(
        step.connection,
        f"""SELECT {SET_COLUMNS}, kind FROM timers WHERE (id = ANY(%s) OR turn_id = %s) AND due_at IS NOT NULL
            AND kind IN ('reminder', 'follow_up') ORDER BY due_at, id""",  # noqa: S608 - names of ours
        list(numbers),
        step.claim.turn,
    )
    if not rows:
        return False
    timers = [set_of(row) for row in rows]
    lines = [saying.is_set(each, step.now, state.zone, state.locale) for each in timers]
    await step.say(LINE, "\n".join(lines), cancelling(timers, state.locale))
    return True


async def say_nothing_is_set(step: Step, state: AgentState, about: str, *, asked: bool) -> None:
    """Tell the person that nothing is set, what it takes, and what waits. `asked`: they asked; else the reply promised."""
    rows = await _rows(
        step.connection,
        f"SELECT {SET_COLUMNS} FROM timers WHERE due_at IS NOT NULL AND kind = 'reminder' ORDER BY due_at LIMIT 5",  # noqa: S608
    )
    if rows and not asked:
        return  # the reply may speak of one of these
    lines = [f"{say('remind.nothing', state.locale)} {say(missing(about, step.now, state), state.locale)}"]
    waiting = [saying.line(set_of(row), step.now, state.zone, state.locale) for row in rows]
    lines += [say("remind.waiting", state.locale, reminders="; ".join(waiting))] if waiting else []
    await step.say(LINE, "\n".join(lines))


def missing(about: str, now: datetime, state: AgentState) -> str:
    """What a request lacks, as a line of the catalogue."""
    if state.unkept:
        return "remind.lacks_paused"
    zone = zone_named(state.zone)
    found = when_in(about, now.astimezone(zone or UTC).replace(tzinfo=None), state.locale)
    if found is None:
        return "remind.lacks_time"
    return "remind.lacks_zone" if found.span is None and zone is None else "remind.lacks_again"


async def proposal(connection: Connection, turn: int, state: AgentState, now: datetime) -> str:
    """The bot's question about what the agent would set and nobody asked for; empty: there is none of this turn."""
    row = await _proposed(connection, turn)
    if row is None:
        return ""
    shown = saying.line(
        set_of({**row, "due_at": ahead(row["wall_time"], row["zone"], row["every"], now) or now}), now, state.zone, state.locale
    )
    return say("remind.proposal", state.locale, reminder=shown)


async def _proposed(connection: Connection, turn: int) -> dict[str, Any] | None:
    statement = f"SELECT {SET_COLUMNS}, zone FROM timers WHERE kind = 'proposal' AND turn_id = %s"  # noqa: S608 - names of ours
    rows = await _rows(connection, statement, turn)
    return rows[0] if rows else None


async def answered(step: Step, claim: Claim) -> tuple[list[Draft], set[int]]:
    """Act on the person's plain yes or no to the bot's question about a timer, or their word about one that came.

    Returns what the agent reads of it, and what is set by it.
    """
    if claim.origin != "person" or claim.step or not claim.said:
        return [], set()
    if yes_or_no("\n".join(claim.said)) is None:
        return await by_words.act(step, claim)  # in nearly every turn without a look
    given = await consent.answer(step.connection, claim, "timer")
    row = None if given is None else await _proposed(step.connection, given.turn)
    if given is None or row is None:
        return [], set()
    due = ahead(row["wall_time"], row["zone"], row["every"], step.now) if given.yes else None
    if due is None:
        await step.connection.execute("DELETE FROM timers WHERE id = %s", (row["id"],))
        return [Draft("user", "alert", OVER if given.yes else DECLINED)], set()
    await step.connection.execute(
        "UPDATE timers SET kind = 'reminder', due_at = %s, turn_id = %s WHERE id = %s", (due, claim.turn, row["id"])
    )
    await memory_log.record(
        step.connection,
        agent=claim.agent,
        place=claim.place,
        at=step.now,
        actor="person",
        action="yes to a reminder",
        target="timer",
        target_id=row["id"],
        turn=claim.turn,
        after=row["purpose"],
    )
    return [Draft("user", "alert", AGREED)], {row["id"]}


async def follow_edit(connection: Connection, message: int, before: str, text: str, at: datetime) -> None:
    """The message that asked for timers says something else now: move them to the time that it names now, and say so either way."""
    rows = await _rows(
        connection,
        f"""SELECT {SET_COLUMNS}, agent_id, place_id, turn_id, zone, created_at FROM timers
            WHERE message_id = %s AND due_at IS NOT NULL AND kind = 'reminder' ORDER BY id""",  # noqa: S608 - names of ours
        message,
    )
    if not rows:
        return
    [person] = await _rows(connection, "SELECT coalesce(timezone, '') AS zone, coalesce(locale, '') AS locale FROM agents")
    zone, locale = person["zone"], person["locale"]
    [said] = await _rows(connection, "SELECT created_at FROM messages WHERE id = %s", message)
    moved = _moved(before, text, said["created_at"], at, zone, locale) if len(rows) == 1 else None
    timers = [set_of(row) for row in rows]
    if moved is None:
        shown = "; ".join(saying.line(each, at, zone, locale) for each in timers)
        lines = [say("remind.kept", locale, reminders=shown)]
    else:
        wall, due, every = moved
        await connection.execute(
            "UPDATE timers SET wall_time = %s, due_at = %s, every = %s, zone = %s, faults = 0 WHERE id = %s",
            (wall, due, every or None, zone or "UTC", timers[0].id),
        )
        timers = [Set(timers[0].id, timers[0].purpose, due, wall, every)]
        lines = [say("remind.moved", locale, reminder=saying.line(timers[0], at, zone, locale))]
    await say_after(connection, rows[0]["turn_id"], LINE - 1, "\n".join(lines), at, buttons=cancelling(timers, locale))


def _moved(before: str, text: str, said: datetime, at: datetime, zone: str, locale: str) -> tuple[datetime, datetime, str] | None:
    """The wall time, the moment and the recurrence that an edited request names; None where nothing else than the time may have changed."""
    tz = zone_named(zone)
    local = said.astimezone(tz or UTC).replace(tzinfo=None)
    was, found = when_in(before, local, locale), when_in(text, local, locale)
    if was is None or found is None or was.rest.casefold() != found.rest.casefold():
        return None
    if found.span is not None:
        due = max(said + found.span, at)
        return (due.astimezone(tz or UTC).replace(tzinfo=None), due, "") if due <= at + FARTHEST else None
    if tz is None or found.wall is None:
        return None
    first = ahead(found.wall, zone, found.every, at)
    return None if first is None else (found.wall, first, found.every)


async def _rows(connection: Connection, statement: str, *parameters: object) -> list[dict[str, Any]]:
    return await (await connection.execute(statement.encode(), parameters)).fetchall()
