"""What people want forgotten, found by the words it contains: listed by the bot itself, with a yes that names exactly that list.

The command and the model's function show the same list; only the person's own yes with its mark forgets.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from datetime import datetime, tzinfo

from adapters.base import LONGEST_LINE, Answer, Button
from adapters.catalogue import date_and_time, say
from memory import archival_storage
from memory.db import Connection
from memory.forgetting import Gone
from memory.search import MAX_PAGE_SIZE, Query, search_messages
from memory.things import Thing, brief
from memory.working_context import entries

LISTED = 12
"""Things that a search to forget shows, and forgets, at once."""
Match = tuple[Thing, datetime, str]
"""A thing, its time and its text."""


async def matches(connection: Connection, words: Sequence[str]) -> list[Match]:
    """What has all these words and may be seen here. By words alone: nothing goes because it only means something alike."""
    query = Query(" ".join(words), page_size=MAX_PAGE_SIZE)
    found = [(Thing("w", entry.id), entry.updated_at, entry.content) for entry in await entries(connection)]
    found += [(Thing("a", hit.id), hit.at, hit.content) for hit in (await archival_storage.search(connection, query)).hits]
    found += [(Thing("m", hit.id), hit.at, hit.content) for hit in (await search_messages(connection, query)).hits]
    wanted = [word.casefold() for word in words]
    return [each for each in found if all(word in each[2].casefold() for word in wanted)]


def mark_of(gone: Gone) -> str:
    """Six digits that stand for exactly these things."""
    return hashlib.sha256(" ".join(map(str, gone.things())).encode()).hexdigest()[:6]


def named_by(found: Sequence[Match]) -> Gone:
    """What a list of these shows, and its yes forgets."""
    return Gone.of(each[0] for each in found[:LISTED])


def as_shown(found: Sequence[Match], mark: str) -> list[Match] | None:
    """What there was of the matches when the list with this mark was shown; None: it was another list."""
    for last in sorted(((at, thing) for thing, at, _ in found), reverse=True):
        there = [each for each in found if (each[1], each[0]) <= last]
        if mark_of(named_by(there)) == mark:
            return there
    return None


def listing(
    found: Sequence[Match], words: Sequence[str], zone: tzinfo, locale: str, *, mark: str = "", openly: bool = False
) -> Answer:
    """The list with its button. `mark`: of an older one that it takes the place of; `openly`: others read it too, so it shows no words."""
    shown, more = found[:LISTED], len(found) - LISTED
    lines = [
        f"  {number}  {date_and_time(at, zone, locale)}" + ("" if openly else f"  {brief(text, 100)}")
        for number, at, text in shown
    ]
    lines += ["  … " + say("forget.more", locale, n=more)] if more > 0 else []
    again = f"/memory forget search {' '.join(words)}"
    return question(say("forget.list", locale), lines, again, named_by(found), mark, locale)


def question(head: str, lines: Sequence[str], line: str, gone: Gone, mark: str, locale: str) -> Answer:
    """Whether these things are to go: a button that says yes to exactly them, or the line to type where no button holds it."""
    yes = f"{line} yes {mark_of(gone)}"
    changed = f"{say('forget.list_changed', locale)} " if mark else ""
    text = "\n".join([changed + head, *lines, say("forget.no_undo", locale)])
    if len(yes) > LONGEST_LINE:
        return Answer(f"{text} {say('command.go_ahead', locale, line=yes)}")
    return Answer(text, (Button(say("button.forget", locale), yes, "danger"),))
