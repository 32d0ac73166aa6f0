"""The PostgreSQL server inside: made at the first start, started, found again, stopped.

It listens on a Unix socket only, asks every role for its password, and runs in a process session of its own.
"""

import errno
import os
import secrets
import shlex
import shutil
import time
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from urllib.parse import quote

import psutil
import psycopg

from bot.embedded.accounts import Account
from bot.embedded.errors import EmbeddedError
from bot.embedded.folder import Folder, sync_folder
from bot.embedded.programs import Programs
from bot.embedded.provision import PROVISION, provision, reason

PATIENCE = 60.0  # seconds; recovery after a crash may take as long
LOG = "postgres.log"
SOCKET = ".s.PGSQL.5432"
LARGEST_LOG = 5_000_000
# ERROR is below LOG here, and error texts repeat values ("invalid input syntax ...: <value>"), so they stay
# out; terse keeps the running statement out of the report on a crashed backend.
SETTINGS = {
    "listen_addresses": "",
    "unix_socket_permissions": "0700",
    "shared_buffers": "64MB",
    "max_connections": "100",
    "jit": "off",
    "fsync": "on",
    "timezone": "UTC",
    "log_timezone": "UTC",
    "logging_collector": "off",
    "log_destination": "stderr",
    "log_min_messages": "log",
    "log_error_verbosity": "terse",
    "log_min_error_statement": "panic",
    "log_statement": "none",
    "log_min_duration_statement": "-1",
    "log_parameter_max_length": "0",
    "log_parameter_max_length_on_error": "0",
    "log_lock_waits": "off",
    "log_checkpoints": "off",
}


def url(role: str, password: str, sockets: Path, database: str) -> str:
    """The address of a database for a role, over the socket."""
    return f"postgresql://{role}:{quote(password, safe='')}@/{database}?host={quote(str(sockets), safe='')}"


@dataclass(frozen=True, slots=True)
class Postgres:
    """The server of one data folder; used only under the folder's lock."""

    folder: Folder
    sockets: Path
    passwords: dict[str, str] = field(repr=False)

    @property
    def admin_url(self) -> str:
        """The administrator's address, in the maintenance database."""
        return url("keepsake_admin", self.passwords["admin"], self.sockets, "postgres")

    def pid(self) -> int | None:
        """The running postmaster's number, or None. A number that another process now has does not count."""
        try:
            number = int((self.folder.postgres / "postmaster.pid").read_text().split("\n", 1)[0])
        except (FileNotFoundError, ValueError):
            return None
        return number if _lives_in(number, self.folder.postgres) else None

    def answers(self) -> bool:
        """Whether the server takes connections now.

        Raises:
            EmbeddedError: it takes them, but the password in the data folder is not the administrator's.
        """
        try:
            psycopg.connect(self.admin_url, connect_timeout=5).close()
        except psycopg.OperationalError as error:
            text = str(error)
            if "password authentication failed" in text:
                raise EmbeddedError(
                    f"{self.folder.path / 'passwords.json'} does not hold this database's passwords. Put it back from a copy."
                ) from error
            return "too many clients" in text or "remaining connection slots" in text
        return True

    def initialise(self, programs: Programs, account: Account, major: int) -> None:
        """Make the cluster. It appears under its name in one step; what a crash left behind is removed first.

        Raises:
            EmbeddedError: the cluster belongs to another major version, or initdb failed.
        """
        if self.folder.postgres.exists():
            _check_version(self.folder.postgres, major)
            return
        for left in self.folder.path.glob("making-*"):
            shutil.rmtree(left, ignore_errors=True)
        making = self.folder.path / f"making-{secrets.token_hex(4)}"
        making.mkdir(mode=0o700)
        try:
            with open(os.open(making / "password", os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w") as file:
                file.write(self.passwords["admin"])
            account.take(making)
            done = account.run(
                [
                    programs.postgres / "initdb",
                    "--username=keepsake_admin",
                    "--encoding=UTF8",
                    "--locale=C",
                    "--locale-provider=builtin",
                    "--builtin-locale=C.UTF-8",
                    "--auth-local=scram-sha-256",
                    "--auth-host=scram-sha-256",
                    "--pwfile=password",
                    "--pgdata=pgdata",
                ],
                cwd=making,
                timeout=300,
            )
            if done.returncode != 0:
                raise _failed("initdb", done.stdout)
            os.rename(making / "pgdata", self.folder.postgres)
            sync_folder(self.folder.path)
        finally:
            shutil.rmtree(making, ignore_errors=True)

    def start(self, programs: Programs, account: Account) -> None:
        """Start the server, or wait for one that is starting or stopping, until it answers.

        Raises:
            EmbeddedError: it does not within 60 s of each try; names the log.
        """
        deadline = time.monotonic() + PATIENCE
        while not self.answers():
            if time.monotonic() > deadline:
                raise self._unstarted("it does not answer")
            if self._unreachable():
                # Whoever is attached connects again, by the new socket.
                self.stop(programs, account)
            if self.pid() is None:
                self._launch(programs, account)
            else:
                time.sleep(0.02)

    def stop(self, programs: Programs, account: Account) -> None:
        """Stop the server; sessions still open are ended, nothing committed is lost.

        Raises:
            EmbeddedError: it still runs.
        """
        pid = self.pid()
        if pid is None:
            return
        for mode in ("fast", "immediate"):
            account.run(
                [programs.postgres / "pg_ctl", "stop", "-w", "-t", f"{PATIENCE:.0f}", "-m", mode],
                env={"PGDATA": str(self.folder.postgres)},
                timeout=PATIENCE + 30,
            )
            # Where this process is the container's first, the postmaster is its child by adoption.
            with suppress(ChildProcessError):
                os.waitpid(pid, os.WNOHANG)
            if self.pid() is None:
                return
        raise EmbeddedError(f"PostgreSQL (process {pid}) does not stop. End it by hand: kill -INT {pid}")

    def provision(self) -> None:
        """Make roles, database and extensions, once per data folder and version of `provision`."""
        if self.folder.state().get("provisioned") != PROVISION:
            try:
                provision(self.admin_url, self.passwords["owner"], self.passwords["bot"])
            except psycopg.Error as error:
                raise EmbeddedError(f"The database could not be prepared: {reason(error)}. The log is {self._log}.") from error
            self.folder.remember(provisioned=PROVISION)

    @property
    def _log(self) -> Path:
        return self.folder.logs / LOG

    def _launch(self, programs: Programs, account: Account) -> None:
        self._clear_stale_pid()
        if self._log.exists() and self._log.stat().st_size > LARGEST_LOG:
            self._log.replace(self._log.with_suffix(".log.1"))
        settings = SETTINGS | {"unix_socket_directories": f'"{self.sockets}"'}
        options = " ".join(shlex.quote(f"-c{name}={value}") for name, value in settings.items())
        # pg_ctl hands paths to a shell in double quotes; by variable and by name alone they cannot break it.
        done = account.run(
            [programs.postgres / "pg_ctl", "start", "-w", "-t", f"{PATIENCE:.0f}", "-l", LOG, "-o", options],
            cwd=self.folder.logs,
            env={"PGDATA": str(self.folder.postgres)},
            timeout=PATIENCE + 30,
        )
        if done.returncode != 0 and self.pid() is None:
            raise self._unstarted("pg_ctl gave up")

    def _unreachable(self) -> bool:
        """Whether the server runs but its socket was removed, as cleaners of temporary folders do."""
        if self.pid() is None or (self.sockets / SOCKET).exists():
            return False
        return "ready" in (self.folder.postgres / "postmaster.pid").read_text()

    def _clear_stale_pid(self) -> None:
        # PostgreSQL believes a left-over lock file when any process, even a zombie, has the number now.
        locks = (self.folder.postgres / "postmaster.pid", self.sockets / f"{SOCKET}.lock")
        left = [path for path in locks if path.exists()]
        if left and not any(_lives_in(pid, self.folder.postgres) for pid in psutil.pids()):
            for path in left:
                path.unlink(missing_ok=True)

    def _unstarted(self, why: str) -> EmbeddedError:
        # Safe to show: this log never holds message text.
        last = self._log.read_text(errors="replace").splitlines()[-5:] if self._log.exists() else []
        return _failed(f"PostgreSQL did not start ({why}; the log is {self._log})", "\n".join(last))


def _lives_in(pid: int, folder: Path) -> bool:
    """Whether a live process works in a folder, as every PostgreSQL process does in its cluster."""
    try:
        process = psutil.Process(pid)
        if process.status() == psutil.STATUS_ZOMBIE:
            return False
        try:
            return process.cwd() == str(folder)
        except psutil.AccessDenied:
            # Root in a container may not look into another account's process: better one too many.
            return process.name() == "postgres" and process.uids().real == folder.stat().st_uid
    except psutil.Error:
        return False


def _check_version(cluster: Path, major: int) -> None:
    found = (cluster / "PG_VERSION").read_text().strip()
    if found != str(major):
        raise EmbeddedError(
            f"{cluster} was made by PostgreSQL {found}, and the programs here are PostgreSQL {major}. With "
            f"the former installation run `bot backup FILE`; then with this one, on a new data folder "
            f"(KEEPSAKE_DATA), `bot restore FILE`."
        )


def _failed(what: str, output: str) -> EmbeddedError:
    if os.strerror(errno.ENOSPC) in output:
        return EmbeddedError(f"The disk is full ({what}). Free some space, then start again.")
    lines = [line for line in output.splitlines() if line.strip()]
    return EmbeddedError(f"{what} failed. Its last words: {' | '.join(lines[-5:]) or 'none'}")
