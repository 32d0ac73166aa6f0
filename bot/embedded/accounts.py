"""Under which account the servers run, and how a program is started there.

PostgreSQL refuses to run as root. So root uses an unprivileged user namespace (the files stay root's), else
an account of its own (`keepsake`, else `nobody`; the servers' folders become that account's). Other users run
the programs directly.
"""

import os
import pwd
import subprocess
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Literal

from bot.embedded.errors import EmbeddedError

Mode = Literal["direct", "namespace", "account"]
MODES: tuple[Mode, ...] = ("direct", "namespace", "account")
ACCOUNTS = ("keepsake", "nobody")
KEPT = ("PATH", "LD_LIBRARY_PATH", "TMPDIR")
WAY_OUT = (
    "Run the bot as an ordinary user, make an account for the servers (useradd --system keepsake), or give "
    "the addresses of an external PostgreSQL and Redis in config.yaml."
)


@dataclass(frozen=True, slots=True)
class Account:
    """Who runs the servers: `uid` and `gid` own their files; `name` is empty unless the mode is "account"."""

    mode: Mode
    name: str
    uid: int
    gid: int

    def run(
        self, argv: Sequence[str | Path], *, timeout: float, cwd: Path = Path("/"), env: Mapping[str, str] | None = None
    ) -> subprocess.CompletedProcess[str]:
        """Run a program to its end in a process session of its own, output collected, `timeout` in seconds.

        The environment is a bare one, so that no secret of ours reaches the servers. A program that cannot be
        executed returns 126 or 127.

        Raises:
            EmbeddedError: the program did not end in time, or this process may not become the account.
        """
        # A core file would put message text on the disk.
        command = ["/bin/sh", "-c", 'ulimit -c 0; exec "$@"', "sh"]
        if self.mode == "namespace":
            command += _namespace()
        command += [str(part) for part in argv]
        bare = {name: os.environ[name] for name in KEPT if name in os.environ}
        other = self.mode == "account"
        try:
            return subprocess.run(
                command,
                cwd=cwd,
                env=bare | {"LC_ALL": "C", "TZ": "UTC"} | dict(env or {}),
                timeout=timeout,
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
                encoding="utf-8",
                errors="replace",
                start_new_session=True,
                umask=0o077,
                user=self.uid if other else None,
                group=self.gid if other else None,
                extra_groups=[] if other else None,
            )
        except subprocess.TimeoutExpired as error:
            raise EmbeddedError(f"{Path(argv[0]).name} did not end within {timeout:.0f} s. Try again.") from error
        except PermissionError as error:
            raise EmbeddedError(
                f"This process may not run a program in {cwd} as the account {self.name or self.uid}. {WAY_OUT}"
            ) from error

    def take(self, path: Path) -> None:
        """Give a folder of ours, with all in it, to this account where root made it for another one."""
        if os.geteuid() != 0 or not path.exists() or path.lstat().st_uid == self.uid:
            return
        for folder, folders, files in os.walk(path):
            for name in (*folders, *files):
                os.chown(os.path.join(folder, name), self.uid, self.gid, follow_symlinks=False)
        # The top comes last: it says that the rest is done.
        os.chown(path, self.uid, self.gid, follow_symlinks=False)

    def check_reach(self, path: Path) -> None:
        """Check that the account can walk to `path`; a parent folder's mode is never changed.

        Raises:
            EmbeddedError: it cannot; names the way out.
        """
        if self.mode == "direct":
            return
        if self.run(["/bin/sh", "-c", 'cd "$1"', "sh", path], timeout=10).returncode != 0:
            raise EmbeddedError(
                f"The servers cannot run as root, and {self.name or 'an ordinary account'}, who runs them "
                f"instead, cannot reach {path}. Choose a data folder below folders that everybody may walk "
                f"through, such as /var/lib/keepsake, with KEEPSAKE_DATA. Or: {WAY_OUT}"
            )


def choose(recorded: object = None, recorded_name: object = None, forced: Mode | None = None) -> Account:
    """The account for this user: the one recorded in the data folder, else the best that works here.

    Args:
        recorded: the mode that the data folder remembers; where namespaces ceased to work, it is an account.
        recorded_name: the account that the data folder remembers.
        forced: the mode for a new data folder (tests).

    Raises:
        EmbeddedError: this is root, and nothing works.
    """
    uid, gid = os.geteuid(), os.getegid()
    if uid != 0:
        return Account("direct", "", uid, gid)
    wanted = recorded if recorded in MODES else forced
    if wanted in (None, "namespace", "direct") and namespace_works():
        return Account("namespace", "", uid, gid)
    for name in (str(recorded_name), *ACCOUNTS):
        found = _account(name)
        if found is not None and found.pw_uid != 0:
            return Account("account", name, found.pw_uid, found.pw_gid)
    raise EmbeddedError(f"PostgreSQL cannot run as root, and there is neither a user namespace nor an account here. {WAY_OUT}")


@cache
def namespace_works() -> bool:
    """Whether root can start a program in an unprivileged user namespace here."""
    try:
        done = subprocess.run([*_namespace(), "true"], capture_output=True, timeout=10, check=False)
    except (OSError, subprocess.TimeoutExpired):
        return False
    return done.returncode == 0


@cache
def _namespace() -> tuple[str, ...]:
    # initdb wants an id that has a name: uid 1000 is unnamed in many containers, nobody hardly ever.
    nobody = _account("nobody")
    uid = nobody.pw_uid if nobody is not None else 1000
    return ("unshare", "--user", f"--map-user={uid}", f"--map-group={uid}", "--")


def _account(name: str) -> pwd.struct_passwd | None:
    try:
        return pwd.getpwnam(name)
    except KeyError:
        return None
