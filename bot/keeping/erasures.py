"""The record of erasures, in a file beside the key in the data folder: keyed hashes of whom they concerned, and when, and nothing else.

It outlives the database, so that a backup brings nobody back: at every start, and after `bot restore`, whoever is in the database although
they were erased after they came is erased again.
"""

from __future__ import annotations

import logging
import os
from collections.abc import Iterable
from datetime import datetime
from pathlib import Path
from typing import Any, Literal

import psycopg

from memory import erasure
from memory.cache import Cache
from memory.db import Database
from memory.erasure import Erased

log = logging.getLogger(__name__)

FILE = "erasures"
Record = dict[tuple[str, bytes], datetime]
"""The time of each hash, by what it is of: a person, or an event (then until when it is kept)."""
_ALL = "SELECT kind, hash, at FROM erasure_record()"
_AGAIN = "SELECT reapply_erasures(%s, %s, %s, %s, %s) AS agent"


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
    """Erase a person as `memory.erasure.erase` does, and note it in the file."""
    erased = await erasure.erase(db, cache, agent, actor=actor, key=key, now=now, exports=data / "exports")
    await keep(db, data)
    return erased


async def keep(db: Database, data: Path) -> None:
    """Write into the file what the database knows of erased people. A disk that refuses is logged: the database knows it too."""
    async with db.bare() as connection:
        rows = await (await connection.execute(_ALL + " WHERE kind = 'person'")).fetchall()
    try:
        write(data, {(row["kind"], bytes(row["hash"])): row["at"] for row in rows})
    except OSError as error:
        log.error("the record of erasures could not be written: %s", type(error).__name__)


async def reconcile(db: Database, cache: Cache, data: Path, key: bytes, now: datetime) -> int:
    """Apply again what the file knows and the database does not: it was restored. Returns how many people were erased again."""
    known = read(data)
    if not known:
        return 0
    async with db.bare() as connection:
        rows = await (await connection.execute(_ALL + " WHERE kind = 'person'")).fetchall()
    there = {(row["kind"], bytes(row["hash"])): row["at"] for row in rows}
    missing = {each: at for each, at in known.items() if each not in there or there[each] < at}
    if not missing:
        return 0
    async with db.bare() as connection:
        again = [row["agent"] for row in await (await connection.execute(_AGAIN, (*columns(missing), key, now))).fetchall()]
    for agent in again:
        await cache.forget_quietly(agent)
    if again:
        log.warning("erased %d people again whom a restored database had brought back", len(again))
    return len(again)


def of_database(address: str) -> Record:
    """What a database knows of erasures; nothing where there is none, or an older one. `address`: of a role that may read it all."""
    try:
        with psycopg.connect(address, connect_timeout=10, options="-c search_path=keepsake,public") as connection:
            return {(kind, bytes(hash_)): at for kind, hash_, at in connection.execute(_ALL).fetchall()}
    except (psycopg.OperationalError, psycopg.errors.UndefinedFunction, psycopg.errors.InsufficientPrivilege):
        return {}


def reapply(address: str, record: Record, key: bytes, now: datetime) -> int:
    """Apply a record to a database that was restored and migrated. Returns how many people were erased again."""
    with psycopg.connect(address, options="-c search_path=keepsake,procrastinate,public") as connection:
        return len(connection.execute(_AGAIN, (*columns(record), key, now)).fetchall())


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
    known = read(data)
    lacking = {each: at for each, at in record.items() if each not in known or known[each] < at}
    if not lacking:
        return
    with open(os.open(data / FILE, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600), "a", encoding="ascii") as file:
        # On a line of its own, whatever a crash left before it.
        file.write("\n" + "".join(f"{kind} {hash_.hex()} {at.isoformat()}\n" for (kind, hash_), at in lacking.items()))
        file.flush()
        os.fsync(file.fileno())


def _newest(found: dict[Any, datetime], rows: Iterable[tuple[Any, datetime]]) -> None:
    for each, at in rows:
        found[each] = max(at, found.get(each, at))
