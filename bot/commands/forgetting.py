"""/memory forget: some things by number, a search, a period, a place, or everything, and the proof.

What was named by number goes at once. The others are shown first, with a mark of what was shown; only with that mark they go, so that
nothing goes that was not on the list. The version is raised, so a running turn builds its prompt anew before it may commit. The log keeps
that something was forgotten, not what.
"""

import re
from collections.abc import Sequence
from datetime import UTC, date, datetime, time, timedelta, tzinfo
from typing import Any

from adapters.base import LONGEST_LINE, Answer, Button
from bot.commands import erasing, quoted
from bot.commands.access import Verdict
from bot.commands.changing import lock, writable
from bot.commands.context import Asking, CommandRefused, uncached
from bot.commands.memory import not_there, row_of
from bot.keeping import to_forget
from bot.keeping.to_forget import mark_of
from memory import log
from memory.db import Connection, value
from memory.forgetting import Gone, begin, derived, erase_rows, of_period, of_places, stop_waiting, waiting, widen
from memory.things import Thing, brief, listed, things


async def forget(asking: Asking) -> Answer:
    """Forget by number at once; a search, a period, a place or everything after a second, explicit yes."""
    asking.allowed("forget")
    words = asking.argument.split()
    first = words[0].casefold() if words else ""
    if first == "quotes" or (first == "everything" and asking.agent is None):
        return await quoted.forget(asking, sure=[word.casefold() for word in words[1:]] == ["yes"])
    if first == "everything":
        return await erasing.everything(asking, sure=[word.casefold() for word in words[1:]] == ["yes"])
    if (named := things(words)) is not None:
        return await _numbers(asking, named)
    words, mark = _marked(words)
    if first == "search" and words[1:]:
        return await _search(asking, words[1:], mark)
    if first == "from" and len(words) == 4 and words[2].casefold() == "to":
        return await _period(asking, words[1], words[3], mark)
    if (first == "here" or first.startswith(("#", "<#"))) and len(words) == 1:
        return await _place(asking, words[0], mark)
    return Answer(asking.say("forget.usage"))


def _marked(words: list[str]) -> tuple[list[str], str]:
    """The words without `yes 1a2b` at their end, and that mark."""
    if len(words) > 2 and words[-2].casefold() == "yes" and re.fullmatch(r"[0-9a-f]{6}", words[-1].casefold()):
        return words[:-2], words[-1].casefold()
    return words, ""


async def _locked(connection: Connection) -> None:
    await begin(connection)
    await lock(connection)


# By number ---------------------------------------------------------------------------------------------


async def _numbers(asking: Asking, named: Sequence[Thing]) -> Answer:
    agent, _ = asking.known()
    verdict = asking.allowed("forget")
    async with asking.open(verdict) as connection:
        await _locked(connection)
        rows = {}
        for each in named:
            row = await row_of(connection, each)
            if row is None:
                raise not_there(each)
            rows[each] = row
        gone = Gone.of(named)
        await widen(connection, agent, asking.place)
        await derived(connection, gone)
        others, also = await _erase(asking, connection, agent, verdict, gone, named, rows[named[0]]["place_id"])
    told = _account(asking, named, gone) if any(each.letter != "t" for each in named) else asking.say("forget.timer")
    first = named[0]
    stays = len(named) == 1 and first.letter in "wa" and bool(gone.made_in)
    origin = asking.say("forget.origin", words=brief(str(rows[first]["content"]), 30)) if stays else ""
    return _told(asking, [told, _elsewhere(asking, others), await uncached(asking, [agent, *others]), origin], also)


async def _erase(
    asking: Asking, connection: Connection, agent: int, verdict: Verdict, gone: Gone, named: Sequence[Thing], place: int
) -> tuple[list[int], list[Thing]]:
    """Erase, log that it was done, and raise the version. Returns whose agents else held some of it, and what may have come from it too."""
    others = await erase_rows(connection, gone)
    for each in named:
        await log.record(
            connection,
            agent=agent,
            place=place,
            at=asking.parts.now(),
            actor=verdict.role,
            action="/memory forget",
            target=each.target,
            target_id=each.number,
        )
    await connection.execute("UPDATE agents SET version = version + 1")
    await uncached(asking, [agent, *others])
    return others, await _seen_here(asking, connection, agent, verdict, gone.maybe)


async def _seen_here(asking: Asking, connection: Connection, agent: int, verdict: Verdict, found: Sequence[Thing]) -> list[Thing]:
    """Those that may be seen where it is asked: a channel does not name what came from a direct message."""
    if verdict.workspace is not None:
        return []
    await connection.execute("SELECT enter(%s, %s, %s)", (agent, asking.place, verdict.everything))
    return [each for each in found if await row_of(connection, each) is not None]


def _told(asking: Asking, sentences: Sequence[str], also: Sequence[Thing]) -> Answer:
    said = " ".join(filter(None, sentences))
    if not also:
        return Answer(said)
    line = f"/memory forget {' '.join(map(str, also))}"
    buttons = (Button(asking.say("button.forget_too"), line, "danger"),) if len(line) <= LONGEST_LINE else ()
    return Answer(f"{said} {asking.say('forget.perhaps', things=listed(also))}", buttons)


def _elsewhere(asking: Asking, others: Sequence[int]) -> str:
    return asking.say("forget.elsewhere", n=len(others)) if others else ""


def _account(asking: Asking, named: Sequence[Thing], gone: Gone) -> str:
    left = {letter: {each.number for each in gone.things() if each.letter == letter} for letter in "mwat"}
    for each in named:
        left.get(each.letter, set()).discard(each.number)
    replies = len(left["m"]) if any(each.letter == "m" for each in named) else 0
    made = {"entry": len(left["w"]), "passage": len(left["a"]), "summary": len(gone.summaries)}
    also = asking.counts({**made, "timer": len(left["t"]), "reply": replies})
    if also:
        return asking.say("forget.gone_with", things=listed(named), also=", ".join(also))
    return asking.say("forget.gone", things=listed(named))


# A search, a period, a place: shown first ----------------------------------------------------------------


async def _search(asking: Asking, words: Sequence[str], mark: str) -> Answer:
    agent, _ = asking.known()
    verdict, zone = asking.allowed("forget"), await asking.zone()
    async with asking.open(verdict) as connection:
        await _locked(connection)
        found = await to_forget.matches(connection, words)
        if not found:
            return Answer(asking.say("forget.no_match"))
        shown = to_forget.as_shown(found, mark)
        if shown is None:
            return to_forget.listing(found, words, zone, asking.locale, mark=mark)
        gone = to_forget.named_by(shown)
        named, spot = gone.things(), await _spot(asking, connection)
        await widen(connection, agent, asking.place)
        await derived(connection, gone)
        # What came since goes only with what it was made of.
        if {each[0] for each in found} - {each[0] for each in shown} - set(gone.things()):
            return to_forget.listing(found, words, zone, asking.locale, mark=mark)
        others, also = await _erase(asking, connection, agent, verdict, gone, named, spot)
    told = _account(asking, named, gone), _elsewhere(asking, others), await uncached(asking, [agent, *others])
    return _told(asking, told, also)


async def _period(asking: Asking, first: str, last: str, mark: str) -> Answer:
    zone = await asking.zone()
    start, end = _dates(first, last, zone)
    shown = asking.say("forget.period", start=asking.when(start, zone), end=asking.when(end - timedelta(minutes=1), zone))
    verdict = asking.allowed("forget")
    async with asking.open(verdict) as connection:
        await _locked(connection)
        places = await writable(connection)
        gone = await of_period(connection, start, end, places)
        line = f"/memory forget from {start.astimezone(zone):%Y-%m-%d} to {(end - timedelta(days=1)).astimezone(zone):%Y-%m-%d}"
        return await _many(asking, connection, verdict, gone, shown, line, mark, (start, end, places))


def _dates(first: str, last: str, zone: tzinfo) -> tuple[datetime, datetime]:
    """Two local days, both included, as two moments. Raises CommandRefused."""
    try:
        days = date.fromisoformat(first), date.fromisoformat(last)
        start, end = (datetime.combine(day, time(), zone) for day in (days[0], days[1] + timedelta(days=1)))
        moments = start.astimezone(UTC), end.astimezone(UTC)
    except (ValueError, OverflowError):
        raise CommandRefused("forget.days") from None
    if moments[0] >= moments[1]:
        raise CommandRefused("forget.day_order")
    return moments


async def _place(asking: Asking, word: str, mark: str) -> Answer:
    verdict = asking.allowed("forget")
    async with asking.open(verdict) as connection:
        await _locked(connection)
        row = await _place_called(asking, connection, word)
        gone = await of_places(connection, [row["id"]])
        direct = row["kind"] == "direct"
        shown = (
            asking.say("forget.direct") if direct else asking.say("forget.place", place=asking.label(row["kind"], row["name"]))
        )
        return await _many(asking, connection, verdict, gone, shown, f"/memory forget {word}", mark, (None, None, [row["id"]]))


async def _place_called(asking: Asking, connection: Connection, word: str) -> dict[str, Any]:
    may_write = await writable(connection)
    if word.casefold() == "here":
        statement, wanted = "SELECT id, kind, name FROM places WHERE id = %s AND id = ANY(%s)", (asking.place, may_write)
    else:
        # A name, or the platform's mention of a channel: <#123>, <#C024|general>.
        name = word.strip("<#>").partition("|")[0]
        statement = "SELECT id, kind, name FROM places WHERE %s IN (lower(name), lower(external_id)) AND kind <> 'direct' AND id = ANY(%s)"
        wanted = (name.casefold(), may_write)  # type: ignore[assignment]
    rows = await (await connection.execute(statement, wanted)).fetchall()
    if len(rows) == 1:
        return rows[0]
    if rows:
        raise CommandRefused("forget.which_place", name=word)
    raise CommandRefused("forget.nothing_there", name=brief(word, 60))


async def _many(
    asking: Asking,
    connection: Connection,
    verdict: Verdict,
    gone: Gone,
    shown: str,
    line: str,
    mark: str,
    scope: tuple[datetime | None, datetime | None, list[int]],
) -> Answer:
    agent, _ = asking.known()
    named = gone.things()
    waits = await waiting(connection, *scope)
    if not named and not gone.conversations and not waits:
        return Answer(asking.say("forget.nothing_for", what=shown))
    counts = await _totals(asking, connection, gone)
    if mark != mark_of(gone):
        head = asking.say("forget.will", what=shown, counts=counts)
        head = f"{head} {asking.say('forget.will_take_back', n=waits)}" if waits else head
        return to_forget.question(head, [], line, gone, mark, asking.locale)
    place = await _spot(asking, connection)
    await widen(connection, agent, asking.place)
    waited = await stop_waiting(connection, *scope, asking.parts.now())
    await derived(connection, gone)
    counts = await _totals(asking, connection, gone)
    others = await erase_rows(connection, gone)
    await log.record(
        connection,
        agent=agent,
        place=place,
        at=asking.parts.now(),
        actor=verdict.role,
        action="/memory forget",
        target="everything",
        target_id=None,
    )
    await connection.execute("UPDATE agents SET version = version + 1")
    also = await _seen_here(asking, connection, agent, verdict, gone.maybe)
    told = [asking.say("forget.done", what=shown, counts=counts), asking.say("forget.taken_back", n=waited) if waited else ""]
    return _told(asking, [*told, _elsewhere(asking, others), await uncached(asking, [agent, *others])], also)


async def _totals(asking: Asking, connection: Connection, gone: Gone) -> str:
    said = await value(connection, "SELECT count(*) FROM messages WHERE id = ANY(%s) AND searchable", (list(gone.messages),))
    made = {"entry": len(gone.entries), "passage": len(gone.passages), "summary": len(gone.summaries)}
    parts = asking.counts({"message": int(said), **made, "timer": len(gone.timers), "document": len(gone.documents)})
    return ", ".join(parts) or asking.say("forget.nothing_said")


async def _spot(asking: Asking, connection: Connection) -> int:
    """The place under which the act is logged: here, or (an admin's act) one of the workspace."""
    places = await writable(connection)
    return asking.place if asking.place is not None and asking.place in places else places[0]


async def forget_workspace(asking: Asking, *, sure: bool) -> Answer:
    """An admin's deletion: what came from their workspace, and nothing else. Shown first."""
    verdict = asking.allowed("forget")
    async with asking.open(verdict) as connection:
        await _locked(connection)
        places = await writable(connection)
        if not places:
            raise CommandRefused("admin.nothing_here")
        gone = await of_places(connection, places)
        mark = mark_of(gone) if sure else ""
        line = f"/admin memory delete {asking.person.author_id}"
        answer = await _many(
            asking, connection, verdict, gone, asking.say("admin.workspace_rows"), line, mark, (None, None, places)
        )
    if sure:
        return answer
    to_go = answer.buttons or f"{line} yes" in answer.text
    return Answer(answer.text, (Button(asking.say("button.delete"), f"{line} yes", "danger"),) if to_go else ())
