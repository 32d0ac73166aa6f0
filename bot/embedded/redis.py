"""The Redis server inside (Valkey): a cache that is never saved, on a Unix socket only."""

import os
import re
import signal
import socket
import time
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import quote

import psutil

from bot.embedded.accounts import Account
from bot.embedded.errors import EmbeddedError
from bot.embedded.folder import Folder
from bot.embedded.programs import Programs

# Seconds to start or to stop.
PATIENCE = 15.0


@dataclass(frozen=True, slots=True)
class Redis:
    """The server of one data folder; used only under the folder's lock."""

    folder: Folder
    sockets: Path

    @property
    def url(self) -> str:
        """The server's address."""
        return f"unix://{quote(str(self._socket))}?db=0"

    def answers(self) -> bool:
        """Whether the server answers within a second."""
        return self._ask(b"PING\r\n").startswith(b"+PONG")

    def pid(self) -> int | None:
        """The number of the running server, or None. A number that another process now has does not count."""
        try:
            process = psutil.Process(int(self._pidfile.read_text()))
            ours = str(self._pidfile) in process.cmdline() and process.status() != psutil.STATUS_ZOMBIE
            return process.pid if ours else None
        except (FileNotFoundError, ValueError, psutil.Error):
            return None

    def start(self, programs: Programs, account: Account) -> None:
        """Start the server; one that runs but does not answer is replaced, as nothing in it is needed.

        Raises:
            EmbeddedError: it does not start.
        """
        if self.answers():
            return
        self._kill()
        self._socket.unlink(missing_ok=True)
        version = account.run([programs.redis, "--version"], timeout=30).stdout
        done = account.run([programs.redis, *self._options(version)], cwd=self.folder.redis, timeout=30)
        deadline = time.monotonic() + PATIENCE
        while not self.answers():
            if done.returncode != 0 or time.monotonic() > deadline:
                last = done.stdout.strip().splitlines()[-1:] or ["no message"]
                raise EmbeddedError(f"The Redis server did not start: {last[0]} (its log is {self._log})")
            time.sleep(0.005)

    def stop(self) -> None:
        """Stop the server without saving anything."""
        pid = self.pid()
        if pid is None:
            return
        self._ask(b"SHUTDOWN NOSAVE\r\n")
        self._wait_for_end()
        self._kill()
        with suppress(ChildProcessError):
            os.waitpid(pid, os.WNOHANG)

    @property
    def _socket(self) -> Path:
        return self.sockets / "redis.sock"

    @property
    def _pidfile(self) -> Path:
        return self.folder.redis / "redis.pid"

    @property
    def _log(self) -> Path:
        return self.folder.logs / "redis.log"

    def _options(self, version: str) -> list[str | Path]:
        options: list[str | Path] = [
            "--port",
            "0",
            "--unixsocket",
            self._socket,
            "--unixsocketperm",
            "700",
            "--dir",
            self.folder.redis,
            "--appendonly",
            "no",
            "--save",
            "",
            "--maxmemory",
            "256mb",
            "--maxmemory-policy",
            "allkeys-lru",
            "--daemonize",
            "yes",
            "--pidfile",
            self._pidfile,
            "--logfile",
            self._log,
            "--loglevel",
            "warning",
            "--set-proc-title",
            "no",
            "--crash-log-enabled",
            "no",
        ]
        match = re.search(r"v=(\d+)\.(\d+)", version)
        if match and (int(match[1]), int(match[2])) >= (7, 4):
            options += ["--hide-user-data-from-log", "yes"]
        return options

    def _ask(self, command: bytes) -> bytes:
        # Three commands over a socket; the client library would be the larger part here.
        with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as connection:
            connection.settimeout(1)
            try:
                connection.connect(str(self._socket))
                connection.sendall(command)
                return connection.recv(100)
            except OSError:
                return b""

    def _wait_for_end(self) -> None:
        deadline = time.monotonic() + PATIENCE
        while self.pid() is not None and time.monotonic() < deadline:
            time.sleep(0.005)

    def _kill(self) -> None:
        pid = self.pid()
        if pid is not None:
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
            self._wait_for_end()
