"""The files that `/memory export` and `bot memory export` write on the bot's machine: named by whom they are of, and gone when that person is.

Copies that somebody took elsewhere are out of reach.
"""

from __future__ import annotations

import json
import re
from collections.abc import Collection
from datetime import datetime
from pathlib import Path

FOLDER = "exports"


def stem(user: str, at: datetime) -> str:
    """A file's name without its ending: whose it is and when it was written."""
    return f"{_named(user)}-{at:%Y%m%d-%H%M%S}"


def _named(user: str) -> str:
    return re.sub(r"[^A-Za-z0-9_.-]", "_", user)[:40]


def remove(data: Path, people: Collection[str]) -> list[Path]:
    """Remove the exports of people (`platform:realm:user`), and return which those were. Raises OSError."""
    folder = data / FOLDER
    if not folder.is_dir():
        return []
    names = {_named(person.split(":", 2)[2]) for person in people}
    gone = []
    for file in sorted(folder.iterdir()):
        found = re.fullmatch(r"(.*)-\d{8}-\d{6}(?:-\d+)?\.(?:json|md)", file.name)
        if found and found[1] in names and _is_of(file.with_suffix(".json"), people):
            gone.append(file)
    for file in gone:
        file.unlink(missing_ok=True)
    return gone


def _is_of(file: Path, people: Collection[str]) -> bool:
    """Whether an export names one of the people; one that cannot be read is taken for theirs, as its name says so."""
    try:
        accounts = json.loads(file.read_text("utf-8"))["identities"]
        return any(f"{one['platform']}:{one['realm']}:{one['user_id']}" in people for one in accounts)
    except (OSError, ValueError, KeyError, TypeError):
        return True
