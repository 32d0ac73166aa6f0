"""The data folder: who owns it, what it remembers, where its sockets are.

    keepsake.json   the marker: in which mode the servers run here, where the sockets are, what is provisioned
    passwords.json  the three roles' passwords (0600)
    lock, leases.json
    postgres/ redis/ logs/ run/   belong to the account that runs the servers

The folder is 0700. When root runs the servers under another account it is 0710 with that account's group,
because the account has to walk through it; everything in it stays 0600 or 0700.
"""

import hashlib
import json
import os
import re
import secrets
import shutil
import stat
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from bot.embedded.accounts import Account
from bot.embedded.errors import EmbeddedError

MARKER = "keepsake.json"
# A socket's path may have 107 bytes; PostgreSQL adds "/.s.PGSQL.5432" and, for its lock, ".lock".
LONGEST_SOCKETS = 85
DAMAGED = "{path} is damaged. Put it back from a copy, or choose another data folder with KEEPSAKE_DATA."


@dataclass(frozen=True, slots=True)
class Folder:
    """An opened data folder (its path is absolute and free of symbolic links)."""

    path: Path

    @property
    def postgres(self) -> Path:
        """The PostgreSQL cluster (PGDATA)."""
        return self.path / "postgres"

    @property
    def redis(self) -> Path:
        """The working folder of the Redis server; nothing is saved in it."""
        return self.path / "redis"

    @property
    def logs(self) -> Path:
        """Where both servers log; neither writes message text."""
        return self.path / "logs"

    @property
    def lock(self) -> Path:
        """The file lock under which the servers are started and stopped."""
        return self.path / "lock"

    @property
    def leases(self) -> Path:
        """Which processes use the servers."""
        return self.path / "leases.json"

    def state(self) -> dict[str, object]:
        """What the marker remembers; empty in a new folder."""
        return read_json(self.path / MARKER) or {}

    def remember(self, **changes: object) -> None:
        """Change the marker durably."""
        write_json(self.path / MARKER, self.state() | changes, durable=True)

    def passwords(self) -> dict[str, str]:
        """The passwords of the roles admin, owner and bot, made at the first start.

        Raises:
            EmbeddedError: there is a cluster here but its passwords are gone.
        """
        path = self.path / "passwords.json"
        found = read_json(path)
        if found is None:
            if self.postgres.exists():
                raise EmbeddedError(f"{path} is missing, so the database cannot be opened. Put it back from a copy.")
            found = {role: secrets.token_urlsafe(24) for role in ("admin", "owner", "bot")}
            write_json(path, found, durable=True)
        return {role: str(password) for role, password in found.items()}

    def prepare(self, account: Account) -> None:
        """Make the servers' folders and give them to the account that runs the servers."""
        shared = account.mode == "account"
        if shared:
            os.chown(self.path, os.geteuid(), account.gid)
        self.path.chmod(0o710 if shared else 0o700)
        for path in (self.redis, self.logs):
            path.mkdir(mode=0o700, exist_ok=True)
        for path in (self.postgres, self.redis, self.logs):
            account.take(path)

    def sockets(self, account: Account) -> Path:
        """The private folder of both sockets: `run`, or one under the system's temporary folder where `run`
        is too long or too odd for an address. One that vanished, or that somebody else made, is replaced."""
        own = self.path / "run"
        if len(os.fsencode(own)) <= LONGEST_SOCKETS and re.fullmatch(r"[A-Za-z0-9_./+@~-]+", str(own)):
            own.mkdir(mode=0o700, exist_ok=True)
            account.take(own)
            return own
        # The digest of the path keeps a copied data folder from meeting the original's servers.
        prefix = f"keepsake-{hashlib.sha256(os.fsencode(self.path)).hexdigest()[:12]}-"
        recorded = self.state().get("sockets")
        if isinstance(recorded, str) and Path(recorded).name.startswith(prefix) and _private(recorded, account.uid):
            return Path(recorded)
        made = Path(tempfile.mkdtemp(prefix=prefix, dir=_short_temporary_folder()))
        account.take(made)
        self.remember(sockets=str(made))
        return made

    def discard_sockets(self) -> None:
        """Remove the folder of the sockets if it is outside the data folder (after both servers stopped)."""
        recorded = self.state().get("sockets")
        if isinstance(recorded, str) and Path(recorded).name.startswith("keepsake-"):
            shutil.rmtree(recorded, ignore_errors=True)


def open_folder(path: Path) -> Folder:
    """Make the data folder (0700) or recognise it.

    Raises:
        EmbeddedError: it belongs to another user, is a file, or holds things that are not ours.
        OSError: it cannot be made or read.
    """
    path = path.expanduser().resolve()
    if path.exists() and not path.is_dir():
        raise EmbeddedError(f"{path} is a file. Choose a folder with KEEPSAKE_DATA.")
    path.mkdir(mode=0o700, parents=True, exist_ok=True)
    owner, user = path.stat().st_uid, os.geteuid()
    if owner != user and not (user == 0 and not any(path.iterdir())):
        raise EmbeddedError(
            f"The data folder {path} belongs to another user (uid {owner}, this is uid {user}). Run the bot "
            f"as that user, or choose another folder with KEEPSAKE_DATA."
        )
    strange = [name for name in os.listdir(path) if name != "lock" and not name.endswith(".part")]
    if strange and not (path / MARKER).exists():
        raise EmbeddedError(
            f"{path} is not empty and is not a data folder of Keepsake ({MARKER} is missing). Choose an "
            f"empty or a new folder with KEEPSAKE_DATA."
        )
    if owner != user:
        os.chown(path, user, os.getegid())
    if not strange:
        path.chmod(0o700)
    return Folder(path)


def read_json(path: Path) -> dict[str, object] | None:
    """The object in a JSON file, or None when there is no file.

    Raises:
        EmbeddedError: the file is damaged.
    """
    try:
        found = json.loads(path.read_bytes())
    except FileNotFoundError:
        return None
    except ValueError as error:
        raise EmbeddedError(DAMAGED.format(path=path)) from error
    if not isinstance(found, dict):
        raise EmbeddedError(DAMAGED.format(path=path))
    return found


def write_json(path: Path, value: Mapping[str, object], *, durable: bool) -> None:
    """Replace a JSON file (0600) in one step; `durable` also survives a loss of power."""
    part = path.with_name(f".{path.name}.{secrets.token_hex(4)}.part")
    try:
        with open(os.open(part, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w", encoding="utf-8") as file:
            json.dump(value, file, indent=1)
            if durable:
                file.flush()
                os.fsync(file.fileno())
        os.replace(part, path)
    except OSError:
        part.unlink(missing_ok=True)
        raise
    if durable:
        sync_folder(path.parent)


def sync_folder(path: Path) -> None:
    """Make renames in a folder survive a loss of power."""
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def _private(path: str, uid: int) -> bool:
    try:
        found = os.lstat(path)
    except FileNotFoundError:
        return False
    return stat.S_ISDIR(found.st_mode) and found.st_uid == uid and stat.S_IMODE(found.st_mode) == 0o700


def _short_temporary_folder() -> str:
    given = tempfile.gettempdir()
    return given if len(os.fsencode(given)) <= LONGEST_SOCKETS - 40 else "/tmp"
