"""What a timer call means: the words of the person that ask for it, and the moment it names. Reads; sets nothing."""

from __future__ import annotations

import re
import unicodedata
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from zoneinfo import ZoneInfo

from bot.functions.context import CallContext, Refused
from bot.keeping import consent
from bot.words.answers import unquoted, yes_or_no
from memory import recurrence
from memory.dates import when_in
from memory.recurrence import FARTHEST
from memory.zones import instant, local, zone_named

AGREE = timedelta(minutes=2)
"""How far `at` and `in_minutes` may be apart and still mean the same."""
WAITED = timedelta(days=1)
"""How old words may be that waited for the person's time zone."""
NO_ZONE = (
    "Their time zone is unknown, so a time on the clock cannot be set. Ask in which city they live and call set_time_zone (in a direct message; "
    "elsewhere they can use /settings timezone Europe/Berlin); set the timer when it is known. in_minutes works without it."
)
_PROMPT_FORM = re.compile(r"\s*(?:[A-Za-z]{3},? )?(\d{4}-\d{2}-\d{2})[ T](\d{1,2}:\d{2}(?::\d{2})?)\s*(Z|[+-]\d{2}:?\d{2})?\s*")
"""`Mon 2026-11-30 12:12 +01:00`, as prompts write a time, and ISO 8601."""


@dataclass(frozen=True, slots=True)
class Asked:
    """The message whose words ask for a timer, and when it was written. `again`: in a turn that answers it once more."""

    message: int
    at: datetime
    again: bool


@dataclass(frozen=True, slots=True)
class Moment:
    """When a timer is due first, its wall time in the person's zone, and its recurrence. `floating`: it stays on the clock when they move."""

    due: datetime
    wall: datetime
    every: str
    floating: bool


async def asked_by(context: CallContext, words: str) -> Asked | None:
    """The message of the person's own that holds these words: of this turn, or the one that is answered once more, or where this turn is
    their yes to their time zone, one that had to wait for it. None: there are no words, so it is the agent's own idea.

    Raises Refused where there are words that the person did not say.
    """
    wanted = _levelled(words)
    if not wanted or context.claim.origin != "person":
        return None
    if yes_or_no(words) is not None:
        return None  # a yes to what the model asked in its own words is no asking
    own = [m for m in context.state.queue if m.role == "user" and m.kind == "message"]
    this = {
        row["id"]
        for row in await context.rows("SELECT id FROM messages WHERE turn_id = %s AND role = 'user'", context.claim.turn)
    }
    again = not any(event.kind == "message" for event in context.claim.events)
    may = own[-1:] if again else [m for m in own if m.id in this]
    answered = None if again else await consent.answer(context.connection, context.claim, "zone")
    if answered is not None and answered.yes:
        may = [m for m in own if m.id in this or context.now - m.created_at <= WAITED]
    for message in reversed(may):
        if wanted in _levelled(unquoted(message.content)):
            return Asked(message.id, message.created_at, again)
    raise Refused(
        "The person did not write that in this turn. Give in asked, word for word, what they wrote to ask for it; leave asked out where it is "
        "your own idea."
    )


def _levelled(text: str) -> str:
    """A text for a literal comparison: what differs in blanks, capitals and the form of quotation marks alone is the same."""
    plain = unicodedata.normalize("NFKC", text).casefold().translate(str.maketrans("’‘“”„«»", '\'\'"""""'))
    return " ".join(plain.split()).strip("\"' .!…")


def moment(context: CallContext, at: str, in_minutes: float, every: str, asked: Asked | None) -> Moment:
    """The moment that a call names. Lengths of time count from when the person asked. Raises Refused, with what to do instead."""
    zone = zone_named(context.state.zone)
    since = asked.at if asked else context.now
    try:
        again = _recurrence(every, since, zone, context.state.locale)
        named = _at(context, at, zone, since) if at.strip() else None
    except (ValueError, OverflowError) as error:
        far = "That is no time that can be reckoned. Write 2026-11-30T08:00."
        raise Refused(far if isinstance(error, OverflowError) else str(error)) from None
    if named is not None and named.every and not again:
        again = named.every
    span = _span(in_minutes)
    if named is None and span is None:
        raise Refused("Give at or in_minutes.")
    if span is None and named is not None and named.due is None:
        span = named.span
    if span is not None:
        if named is not None and named.due is not None and abs(named.due - since - span) > AGREE:
            raise Refused("at and in_minutes say different times. Give one of them.")
        due = since + min(span, FARTHEST * 2)
        if asked and not asked.again and due <= context.now < due + timedelta(hours=1):
            due = context.now + timedelta(seconds=1)  # over while the answer was made: it is owed at once
        return _ahead(context, Moment(due, due.astimezone(zone or UTC).replace(tzinfo=None), again, bool(again)), zone)
    assert named is not None
    assert named.due is not None
    if zone is None:
        raise Refused(NO_ZONE)
    return _ahead(
        context, Moment(named.due, named.due.astimezone(zone).replace(tzinfo=None), again, named.floating or bool(again)), zone
    )


def _recurrence(every: str, since: datetime, zone: ZoneInfo | None, locale: str) -> str:
    """A recurrence as a rule, or in words (`every other Tuesday`). Raises ValueError, with what to write instead."""
    try:
        return recurrence.parsed(every)
    except ValueError:
        spoken = every if every.casefold().startswith("every") else f"every {every}"
        for text in (every, spoken):
            when = when_in(text, since.astimezone(zone or UTC).replace(tzinfo=None), locale)
            if when is not None and when.every and not when.rest:
                return recurrence.parsed(when.every)
        raise


def _span(in_minutes: float) -> timedelta | None:
    try:
        return min(timedelta(minutes=in_minutes), FARTHEST * 2) if in_minutes else None
    except (OverflowError, ValueError):
        return FARTHEST * 2


@dataclass(frozen=True, slots=True)
class _Named:
    """What `at` names: a moment (aware), or a length of time."""

    due: datetime | None
    span: timedelta | None = None
    every: str = ""
    floating: bool = True


def _at(context: CallContext, text: str, zone: ZoneInfo | None, since: datetime) -> _Named:
    """A time as prompts write it, as ISO 8601, or in words. Raises ValueError, and Refused where the clock needs a zone."""
    found = _PROMPT_FORM.fullmatch(text)
    if found is None:
        when = when_in(text, since.astimezone(zone or UTC).replace(tzinfo=None), context.state.locale)
        if when is None:
            raise ValueError(f"{text[:40]!r} is no time. Write 2026-11-30T08:00.")
        if when.span is not None:
            return _Named(None, when.span)
        if zone is None or when.wall is None:
            raise Refused(NO_ZONE)
        return _Named(instant(when.wall, zone), every=when.every)
    try:
        wall = datetime.fromisoformat(f"{found[1]}T{found[2].zfill(5)}")
    except ValueError:
        raise ValueError(f"{text[:40]!r} is no time. Write 2026-11-30T08:00.") from None
    if found[3]:
        moment = datetime.fromisoformat(f"{wall.isoformat()}{found[3].replace('Z', '+00:00')}")
        # As the person reads it, it stays that time when their zone changes; else it is an instant.
        local_offset = moment.replace(tzinfo=zone or UTC).utcoffset()
        return _Named(moment, floating=moment.utcoffset() == local_offset)
    return _Named(instant(wall, zone or ZoneInfo("UTC")))


def _ahead(context: CallContext, found: Moment, zone: ZoneInfo | None) -> Moment:
    """The moment, or where it recurs its first occurrence ahead. Raises Refused where it does not lie ahead."""
    due: datetime | None = found.due
    if found.every:
        due = recurrence.ahead(found.wall, context.state.zone if zone else "", found.every, context.now)
    if due is None or not context.now < due <= context.now + FARTHEST:
        raise Refused(f"The time must lie ahead, at most five years. It is now {local(context.now, context.state.tz)}.")
    return Moment(due, found.wall, found.every, found.floating)
