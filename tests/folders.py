"""Temporary folders of tests in which servers may still run, as after a bot that was killed."""

from __future__ import annotations

import shutil
from contextlib import suppress
from pathlib import Path

import psutil


def remove(top: Path) -> None:
    """End every process that works in the folder, and remove it."""
    for process in psutil.process_iter():
        with suppress(psutil.Error):
            if Path(process.cwd()).is_relative_to(top):
                process.kill()
    shutil.rmtree(top, ignore_errors=True)
