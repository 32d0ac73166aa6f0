"""Data folders whose servers are stopped in the end, whatever the test did to them."""

import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path

import psutil
import psycopg
import pytest

from bot.embedded import Servers, attach
from bot.embedded.accounts import Mode, namespace_works

ROOT = os.geteuid() == 0
MODES: list[Mode] = [*(["namespace"] if namespace_works() else []), "account"] if ROOT else ["direct"]  # type: ignore[list-item]
"""The ways in which this user can run the servers on this machine."""
REPOSITORY = Path(__file__).parents[3]


def until(condition: Callable[[], object], seconds: float = 15) -> None:
    """Wait for a condition; fail after some seconds."""
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline, "waited in vain"
        time.sleep(0.01)


def processes(data: Path) -> list[psutil.Process]:
    """The live server processes of a data folder."""
    found = []
    for process in psutil.process_iter():
        with suppress(psutil.Error):
            if process.status() != psutil.STATUS_ZOMBIE and Path(process.cwd()).is_relative_to(data):
                found.append(process)
    return found


def kill_servers(data: Path) -> list[psutil.Process]:
    """End all server processes of a data folder with SIGKILL; which ones there were."""
    left = processes(data)
    for process in left:
        with suppress(psutil.NoSuchProcess):
            process.send_signal(signal.SIGKILL)
    until(lambda: not processes(data))
    return left


def ask(address: str, query: str) -> object:
    """The first value of a query's answer."""
    with psycopg.connect(address, autocommit=True) as connection:
        row = connection.execute(query.encode()).fetchone()
    return row[0] if row else None


class Child:
    """Another process that attaches to a data folder and stays until it is told to leave."""

    script = (
        "import sys; from pathlib import Path; from bot.embedded import servers\n"
        "with servers(Path(sys.argv[1])) as found:\n"
        "    print(found.admin_url, flush=True); sys.stdin.readline()\n"
    )

    def __init__(self, data: Path) -> None:
        self.process = subprocess.Popen(
            [sys.executable, "-c", self.script, str(data)],
            cwd=REPOSITORY,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )

    def attached(self) -> str:
        """Wait until it is attached; its administrator's address."""
        assert self.process.stdout is not None
        return self.process.stdout.readline().strip()

    def leave(self) -> int:
        """Let it leave in order; its exit code."""
        self.process.communicate("\n", timeout=30)
        return self.process.returncode

    def kill(self) -> None:
        """End it with SIGKILL."""
        self.process.kill()
        self.process.communicate()


@pytest.fixture
def data() -> Iterator[Path]:
    """A data folder to be made, below folders that everybody may walk through."""
    top = Path(tempfile.mkdtemp(prefix="ks-"))
    top.chmod(0o711)
    try:
        yield top / "data"
    finally:
        left = kill_servers(top)
        shutil.rmtree(top, ignore_errors=True)
    assert not left, "servers were left running"


@pytest.fixture(params=MODES)
def mode(request: pytest.FixtureRequest) -> Mode:
    """Each way in which this user can run the servers."""
    chosen: Mode = request.param
    return chosen


@pytest.fixture(scope="module")
def running() -> Iterator[tuple[Path, Servers]]:
    """Servers shared by the tests of a module that do not start or stop any."""
    top = Path(tempfile.mkdtemp(prefix="ks-"))
    held = attach(top / "data")
    try:
        yield top / "data", held.servers
    finally:
        held.release()
        left = processes(top)
        shutil.rmtree(top, ignore_errors=True)
    assert not left, "servers were left running"
