"""Which processes use the servers of a data folder; the last one to leave stops them.

A process is known by its number and the time it started, because numbers are used again. Entries of processes
that died without leaving are dropped by the next one. Read and written only under the folder's lock.
"""

import os
from dataclasses import asdict, dataclass
from pathlib import Path

import psutil

from bot.embedded.errors import EmbeddedError
from bot.embedded.folder import read_json, write_json

# The clock ticks of Linux are 0.01 s; the sum with the boot time loses less than that.
SAME_START = 0.02


@dataclass(frozen=True, slots=True)
class Entry:
    """One use of the servers: `started` is seconds from the machine's start to the process's start."""

    token: str
    pid: int
    started: float

    def alive(self) -> bool:
        """Whether this very process still runs (a zombie does not)."""
        try:
            process = psutil.Process(self.pid)
            return process.status() != psutil.STATUS_ZOMBIE and abs(_started(process) - self.started) < SAME_START
        except psutil.NoSuchProcess:
            return False


def mine(token: str) -> Entry:
    """The entry for this process."""
    return Entry(token, os.getpid(), _started(psutil.Process()))


def living(path: Path) -> list[Entry]:
    """The entries whose processes still run. A damaged file counts as empty: at worst the servers stop early,
    and the next start finds all committed data."""
    try:
        stored = (read_json(path) or {}).get("leases")
    except EmbeddedError:
        return []
    if not isinstance(stored, list):
        return []
    return [entry for one in stored if (entry := _entry(one)) is not None and entry.alive()]


def _entry(stored: object) -> Entry | None:
    try:
        entry = Entry(str(stored["token"]), int(stored["pid"]), float(stored["started"]))  # type: ignore[index]
    except (TypeError, KeyError, ValueError, OverflowError):
        return None
    return entry if entry.pid > 0 else None


def keep(path: Path, entries: list[Entry]) -> None:
    """Write the entries down."""
    write_json(path, {"leases": [asdict(entry) for entry in entries]}, durable=False)


def _started(process: psutil.Process) -> float:
    # Measured from the machine's start: a corrected clock moves both times, but not their distance.
    return round(process.create_time() - psutil.boot_time(), 3)
