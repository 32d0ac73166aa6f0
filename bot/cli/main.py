"""The command line of operators: `bot --help` shows every command with an example.

Faults that an operator can mend are one line on standard error and exit code 2; whatever else goes wrong is its class, a pointer
to the log, and exit code 1 (with KEEPSAKE_DEBUG=1 the traceback).
"""

import asyncio
import logging
import os
import sys
import traceback
from collections.abc import Coroutine
from importlib.metadata import version as installed_version
from pathlib import Path
from typing import Annotated, Any

import psycopg
import typer

from bot import logs
from bot.cli import data, people, platforms, proving
from bot.cli.bench import NAMES
from bot.cli.shared import Options, loading, note, settings
from bot.config.findings import StartError
from bot.config.loading import ConfigError, Loaded
from bot.embedded import EmbeddedError

LOG = "bot.log"

EXAMPLES = (
    ("bot chat", "talk in the terminal"),
    ("echo 'My name is Ada.' | bot chat", "talk through a pipe"),
    ("bot --config /etc/keepsake.yaml run", "run the server process"),
    ("bot run --only worker", "run one part of it"),
    ("bot doctor", "what is wrong, and what to do"),
    ("bot doctor --fix", "write the settings that mend it"),
    ("bot migrate --admin-url-env ADMIN_URL", "prepare an external database"),
    ("bot backup /var/backups", "write everything into one file"),
    ("bot restore keepsake-20261129T120000Z.dump --replace", "bring it back"),
    ("bot users", "whom the bot knows"),
    ("bot memory view console::ada", "what is kept of a person"),
    ("bot memory export console::ada", "all of it as files"),
    ("bot memory delete console::ada", "erase a person"),
    ("bot memory verify 'words that should be gone'", "whether they are"),
    ("bot memory import ada-20261130.json console::ada", "bring an export in again"),
    ("bot usage show --days 7", "what model calls cost"),
    ("bot usage reset --all", "start the budget of the day anew"),
    ("bot dead-letters list", "what could not be answered"),
    ("bot dead-letters replay --all", "put it back"),
    ("bot discord invite", "the link that lets the bot into a server"),
    ("bot slack manifest", "the manifest to make the Slack app from"),
    ("bot bench retrieval --data locomo10.json", "measure"),
    ("bot version", "the version"),
)

app = typer.Typer(
    name="bot",
    help="Keepsake: a companion that remembers.",
    epilog="\n\n".join(["Examples:", *(f"  {line}   [dim]{does}[/dim]" for line, does in EXAMPLES)]),
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    add_completion=False,
    rich_markup_mode="rich",
    context_settings={"help_option_names": ["-h", "--help"]},
)


@app.callback()
def options(
    context: typer.Context,
    config: Annotated[
        Path | None, typer.Option(help="The configuration; KEEPSAKE_CONFIG, or config.yaml here, without it.")
    ] = None,
) -> None:
    """Keepsake: a companion that remembers. `bot COMMAND --help` shows an example of each command."""
    context.obj = Options(config)


def _go(work: Coroutine[Any, Any, int]) -> None:
    raise typer.Exit(asyncio.run(work))


def _log_to_file(loaded: Loaded) -> None:
    logs.configure(level=loaded.config.log.level, style=loaded.config.log.format, file=loaded.data / LOG)


@app.command(epilog="Example: bot chat   or   echo 'My name is Ada.' | bot chat")
def chat(context: typer.Context) -> None:
    """Talk to the bot in the terminal (or through a pipe: a line is a message, /quit leaves)."""
    from bot.app.chatting import chat as run_chat

    loaded = settings(context)
    _go(run_chat(loaded, progress=note, log=_log_to_file))


@app.command(epilog="Example: bot run   or   bot run --only worker")
def run(
    context: typer.Context,
    only: Annotated[
        list[str] | None, typer.Option(help="Only this part: worker, adapters or scheduler. May be given more than once.")
    ] = None,
) -> None:
    """Run the bot as a server process until it is told to stop (SIGTERM)."""
    with loading():
        from bot.app.modes import serve
        from bot.app.runtime import PARTS

    loaded = settings(context)
    parts = frozenset(only or PARTS)
    if parts - PARTS:
        raise StartError(f"--only: there is no part {', '.join(sorted(parts - PARTS))}. Name worker, adapters or scheduler.")
    logs.configure(level=loaded.config.log.level, style=loaded.config.log.format)
    _go(serve(loaded, parts=parts, progress=note))


@app.command(epilog="Example: bot doctor --fix")
def doctor(
    context: typer.Context,
    fix: Annotated[bool, typer.Option("--fix", help="Write the settings that mend a fault into the configuration file.")] = False,
) -> None:
    """Check configuration, data folder, database, Redis, model and embedding, and say what to do about each fault."""
    from bot.app.modes import examine

    _go(examine(settings(context), fix=fix, progress=note))


app.command(epilog="Example: bot migrate --admin-url-env ADMIN_URL")(data.migrate)
app.command(epilog="Example: bot backup /var/backups/keepsake")(data.backup)
app.command(epilog="Example: bot restore keepsake-20261129T120000Z.dump --replace")(data.restore)
app.command(epilog="Example: bot users")(people.users)
people.memory.command("verify", epilog="Example: bot memory verify 'words that should be gone'")(proving.verify)
app.add_typer(people.memory, name="memory")
app.add_typer(people.dead_letters, name="dead-letters")
app.add_typer(people.usage, name="usage")
app.add_typer(platforms.discord, name="discord")
app.add_typer(platforms.slack, name="slack")


@app.command(epilog="Example: bot bench retrieval --data locomo10.json")
def bench(
    context: typer.Context,
    name: Annotated[str, typer.Argument(help=f"Which figures: {', '.join(sorted(NAMES))}.")],
    data: Annotated[Path, typer.Option(help="The evaluation data, where there is any.", exists=True)] = Path(),
) -> None:
    """Measure quality or speed and print the figures."""
    from bot.cli.bench import measure

    _go(measure(name, data, settings(context)))


@app.command(epilog="Example: bot version")
def version() -> None:
    """Print the version."""
    typer.echo(f"keepsake {installed_version('keepsake-companion')}")


def main() -> None:
    """The entry point."""
    logs.configure(level="warning")
    try:
        app()
    except SystemExit:
        raise
    except BaseException as error:  # noqa: BLE001 - the last resort: an operator reads a line, not a traceback
        sys.exit(_told(error))


def _told(error: BaseException) -> int:
    """Say what went wrong, and return the exit code."""
    while isinstance(error, BaseExceptionGroup):
        error = error.exceptions[0]
    if isinstance(error, SystemExit):
        return int(error.code or 0)
    if isinstance(error, ConfigError | StartError | EmbeddedError):
        print("bot: " + " ".join(str(error).split()), file=sys.stderr)  # noqa: T201
        return 2
    if isinstance(error, KeyboardInterrupt):
        return 130
    if isinstance(error, psycopg.OperationalError):
        print("bot: the database does not answer. Run `bot doctor`.", file=sys.stderr)  # noqa: T201
        return 2
    logging.getLogger("bot.cli").error("unexpected fault", exc_info=error)
    if os.environ.get("KEEPSAKE_DEBUG", "") not in ("", "0"):
        traceback.print_exception(error)
    where = f"{logs.file()} tells where" if logs.file() else "the line above tells where"
    said = f"bot: stopped by an unexpected fault ({type(error).__name__}); {where}. KEEPSAKE_DEBUG=1 shows the traceback."
    print(said, file=sys.stderr)  # noqa: T201
    return 1
