"""Temporary folders of tests: with a database as after a bot's first start, and with servers that may still run, as after a kill."""

from __future__ import annotations

import atexit
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from functools import cache
from pathlib import Path

import psutil

from bot.embedded import attach
from memory.migrations import migrate


def make(name: str) -> Path:
    """A folder with a data folder (`data`) in it that a bot was started in once; first starts have tests of their own."""
    top = Path(tempfile.mkdtemp(prefix=f"ks-{name}-"))
    top.chmod(0o711)  # the servers inside may run under an account of their own
    subprocess.run(["cp", "-a", str(_started()), str(top / "data")], check=True)
    return top


@contextmanager
def data_folder(name: str) -> Iterator[Path]:
    """A data folder to be made, below a folder that everybody may walk through; whatever runs in it is ended in the end."""
    top = Path(tempfile.mkdtemp(prefix=f"ks-{name}-"))
    top.chmod(0o711)
    try:
        yield top / "data"
    finally:
        remove(top)


@cache
def _started() -> Path:
    """Made once in each test process: making a cluster and its tables takes seconds, a copy of both a fraction of one."""
    top = Path(tempfile.mkdtemp(prefix="ks-started-"))
    top.chmod(0o711)
    atexit.register(shutil.rmtree, top, ignore_errors=True)
    held = attach(top / "data")
    try:
        migrate(held.servers.owner_url)
    finally:
        held.release()
    return top / "data"


def remove(top: Path) -> None:
    """End every process that works in the folder, and remove it."""
    for process in psutil.process_iter():
        with suppress(psutil.Error):
            if Path(process.cwd()).is_relative_to(top):
                process.kill()
    shutil.rmtree(top, ignore_errors=True)
