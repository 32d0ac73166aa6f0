"""The record of erasures and decisions, in a file beside the key in the data folder: keyed hashes of what they concerned, and when.

It outlives the database, so that a backup brings nothing back: at every start, and after `bot restore`, whoever is in the database although
they were erased after they came is erased again, and what people decided since (forgettings, pauses, refusals, unshared things, blocks,
parted accounts) is applied again. Which of two sayings about the same thing stands is decided here, by their times.
"""

from __future__ import annotations

import logging
import os
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime
from pathlib import Path
from typing import Any, Literal

import psycopg

from bot.keeping import exports
from memory import bystanders, erasure
from memory.cache import Cache
from memory.db import Connection, Database
from memory.erasure import Erased

log = logging.getLogger(__name__)

FILE = "erasures"
Record = dict[tuple[str, bytes], datetime]
"""The time of each hash, by what it says of what: `person` (erased), `event` (then until when it is kept), or a decision's kind."""
_ALL = "SELECT kind, hash, at FROM erasure_record()"
_DECIDED = "SELECT kind, hash, at FROM decision_record(%s)"
_AGAIN = "SELECT reapply_erasures(%s, %s, %s, %s, %s) AS agent"
_DECIDED_AGAIN = "SELECT kind, agent, number FROM reapply_decisions(%s, %s, %s, %s, %s)"
OPPOSITES: Mapping[str, tuple[str, ...]] = {
    "forgotten": ("kept",),
    "unshared": ("shared",),
    "paused": ("held", "resumed"),
    "held": ("paused", "resumed"),
    "refused": ("agreed",),
    "uncrossed": ("crossed",),
    "unlinked": ("linked",),
    "blocked": ("unblocked",),
    "unquoted": (),
}
"""What is applied again, each with what takes it back when it was said later."""
WORDS: Mapping[str, str] = {
    "forgotten": "what was forgotten",
    "unshared": "what was unshared",
    "paused": "pauses",
    "held": "pauses by an operator",
    "refused": "refusals of messages that nobody asked for",
    "uncrossed": "what may no longer cross between accounts",
    "unlinked": "parted accounts",
    "blocked": "blocks",
    "unquoted": "quotes that were erased",
}


@dataclass(frozen=True, slots=True)
class Again:
    """What was applied again to a restored database: how many people were erased, and of how many people what else, by kind."""

    people: int = 0
    decided: Mapping[str, int] = field(default_factory=dict)

    def __str__(self) -> str:
        """For the operator; empty where there was nothing to do."""
        erased = f"Erased again: {_people(self.people)} who had been erased since the backup was made." if self.people else ""
        decided = ", ".join(f"{WORDS[kind]} ({_people(number)})" for kind, number in self.decided.items())
        return " ".join(
            [erased] * bool(erased) + [f"Applied again, as decided since the backup was made: {decided}."] * bool(decided)
        )


def _people(number: int) -> str:
    return "1 person" if number == 1 else f"{number} people"


async def erase(
    db: Database,
    cache: Cache,
    data: Path,
    agent: int,
    *,
    actor: Literal["person", "admin", "operator", "system"],
    key: bytes,
    now: datetime,
) -> Erased:
    """Erase a person as `memory.erasure.erase` does, note it in the file, and remove their exports."""
    people = await bystanders.authors_of(db, agent)
    erased = await erasure.erase(db, cache, agent, actor=actor, key=key, now=now, exports=data / exports.FOLDER)
    await keep(db, data, key)
    try:
        files = exports.remove(data, people)
    except OSError as error:
        log.error("the exports of somebody erased could not be removed from %s: %s", data / exports.FOLDER, type(error).__name__)
        files = []
    return replace(erased, removed={**erased.removed, "exports": len(files)}, exports=()) if files else erased


async def keep(db: Database, data: Path, key: bytes) -> None:
    """Write into the file what the database knows of it. A disk that refuses is logged: the database knows it too."""
    async with db.bare() as connection:
        record = await _known(connection, key)
    try:
        write(data, {each: at for each, at in record.items() if each[0] != "event"})
    except OSError as error:
        log.error("the record of erasures could not be written: %s", type(error).__name__)


async def reconcile(db: Database, cache: Cache, data: Path, key: bytes, now: datetime) -> Again:
    """Apply again what the file knows and the database does not: it was restored."""
    known = read(data)
    if not known:
        return Again()
    async with db.bare() as connection:
        there = await _known(connection, key)
        missing = lacking(known, there)
        if not missing:
            return Again()
        people = [row["agent"] for row in await (await connection.execute(_AGAIN, (*columns(missing), key, now))).fetchall()]
        decided = await (
            await connection.execute(_DECIDED_AGAIN, (*columns(decisions(missing, newest(known, there))), key, now))
        ).fetchall()
    again = _again(people, [(row["kind"], row["agent"]) for row in decided])
    for agent in {*people, *(row["agent"] for row in decided if row["agent"] is not None)}:
        await cache.forget_quietly(agent)
    if said := str(again):
        log.warning("a restored database: %s", said)
    return again


async def _known(connection: Connection, key: bytes) -> Record:
    found: Record = {}
    for statement, parameters in ((_ALL, ()), (_DECIDED, (key,))):
        rows = await (await connection.execute(statement, parameters)).fetchall()
        _newest(found, (((row["kind"], bytes(row["hash"])), row["at"]) for row in rows))
    return found


def of_database(address: str, key: bytes) -> Record:
    """What a database knows of it; nothing where there is none, or an older one. `address`: of a role that may read it all."""
    found: Record = {}
    for statement, parameters in ((_ALL, ()), (_DECIDED, (key,))):
        try:
            with psycopg.connect(address, connect_timeout=10, options="-c search_path=keepsake,public") as connection:
                rows = connection.execute(statement, parameters).fetchall()
        except (psycopg.OperationalError, psycopg.errors.UndefinedFunction, psycopg.errors.InsufficientPrivilege):
            continue
        _newest(found, (((kind, bytes(hash_)), at) for kind, hash_, at in rows))
    return found


def reapply(address: str, record: Record, key: bytes, now: datetime) -> Again:
    """Apply a record to a database that was restored and migrated."""
    there = of_database(address, key)
    missing = lacking(record, there)
    with psycopg.connect(address, options="-c search_path=keepsake,procrastinate,public") as connection:
        people = [row[0] for row in connection.execute(_AGAIN, (*columns(missing), key, now)).fetchall()]
        decided = connection.execute(_DECIDED_AGAIN, (*columns(decisions(missing, newest(record, there))), key, now)).fetchall()
    return _again(people, [(row[0], row[1]) for row in decided])


def _again(people: list[int], decided: list[tuple[str, int | None]]) -> Again:
    # A block names nobody, so each counts.
    of = [(kind, number if agent is None else -agent) for number, (kind, agent) in enumerate(decided)]
    return Again(
        len(people), {kind: len({who for each, who in of if each == kind}) for kind in WORDS if kind in {k for k, _ in of}}
    )


def lacking(known: Record, there: Record) -> Record:
    """What of a record another does not have, or has only from earlier."""
    return {each: at for each, at in known.items() if each not in there or there[each] < at}


def newest(*records: Record) -> Record:
    """What several records know together."""
    found: Record = {}
    for record in records:
        _newest(found, record.items())
    return found


def decisions(missing: Record, whole: Record) -> Record:
    """The decisions among what is missing, without those that were taken back later, by the whole of what is known."""

    def stands(kind: str, hash_: bytes, at: datetime) -> bool:
        return all(whole.get((other, hash_), at) <= at for other in OPPOSITES.get(kind, ()))

    return {
        (kind, hash_): at for (kind, hash_), at in missing.items() if kind not in ("person", "event") and stands(kind, hash_, at)
    }


def columns(record: Record) -> tuple[list[str], list[bytes], list[datetime]]:
    """A record as three arrays of equal length."""
    return [kind for kind, _ in record], [hash_ for _, hash_ in record], list(record.values())


def read(data: Path) -> Record:
    """The record in the file; lines that are cut off by a crash do not count."""
    found: Record = {}
    path = data / FILE
    for line in path.read_text("ascii", "replace").splitlines() if path.is_file() else ():
        try:
            kind, digits, at = line.split()
            _newest(found, [((kind, bytes.fromhex(digits)), datetime.fromisoformat(at))])
        except ValueError:
            continue
    return found


def write(data: Path, record: Record) -> None:
    """Add to the file what it lacks, durably (0600). Raises OSError."""
    new = lacking(record, read(data))
    if not new:
        return
    with open(os.open(data / FILE, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600), "a", encoding="ascii") as file:
        # On a line of its own, whatever a crash left before it.
        file.write("\n" + "".join(f"{kind} {hash_.hex()} {at.isoformat()}\n" for (kind, hash_), at in new.items()))
        file.flush()
        os.fsync(file.fileno())


def _newest(found: dict[Any, datetime], rows: Iterable[tuple[Any, datetime]]) -> None:
    for each, at in rows:
        found[each] = max(at, found.get(each, at))
