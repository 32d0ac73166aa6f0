"""What the commands of the command line share."""

import gc
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import typer

from bot.config import loading as config
from bot.config.findings import StartError
from bot.config.loading import Loaded
from bot.embedded.folder import MARKER


@dataclass(frozen=True, slots=True)
class Options:
    """What stands before the command."""

    config: Path | None


@contextmanager
def loading() -> Iterator[None]:
    """What is loaded inside stays as long as the process: the garbage collector looks at none of it, now or ever.

    A tenth of a second goes into each full look at it, in which a server does nothing else.
    """
    gc.disable()
    try:
        yield
    finally:
        gc.freeze()
        gc.enable()


def settings(context: typer.Context) -> Loaded:
    """The configuration. Raises ConfigError."""
    options = context.find_object(Options)
    return config.load(options.config if options else None)


def existing(loaded: Loaded) -> Loaded:
    """The configuration, where a bot has run with it: what acts on kept data makes no new database. Raises StartError."""
    if not loaded.config.database.url and not (loaded.data / MARKER).exists():
        raise StartError(
            f"data.folder: no bot has run with this configuration yet: {loaded.data} is no data folder; go to its folder, "
            f"or name the configuration with --config."
        )
    return loaded


def note(line: str) -> None:
    """Progress, on standard error: standard output is for answers."""
    print(line, file=sys.stderr, flush=True)  # noqa: T201


def secret_of(variable: str | None, option: str) -> str:
    """The value of the environment variable an option names. Raises StartError."""
    if not variable:
        raise StartError(
            f"{option}: is needed with an external database. Put an administrator's address in a variable and name it."
        )
    value = os.environ.get(variable, "").strip()
    if not value:
        raise StartError(f"{option}: the environment variable {variable} is not set. Set it to an administrator's address.")
    return value
