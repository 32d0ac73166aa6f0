"""Attach to the servers of a data folder, and leave: the first one starts them, the last one stops them.

The servers outlive a bot that is killed; its entry in the lease file is dropped by who comes or leaves next.
"""

import secrets
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path

from filelock import FileLock, Timeout

from bot.embedded import lease, programs
from bot.embedded.accounts import Account, Mode, choose
from bot.embedded.errors import EmbeddedError, explained
from bot.embedded.folder import MARKER, Folder, open_folder
from bot.embedded.postgres import Postgres, url
from bot.embedded.provision import BOT, DATABASE, OWNER
from bot.embedded.redis import Redis

# Seconds to wait while another process starts or stops the servers; it may itself wait for a recovery.
LOCK_PATIENCE = 180.0
Progress = Callable[[str], None]


@dataclass(frozen=True, slots=True)
class Servers:
    """Where the servers are. `admin_url` is in the maintenance database, the other two in the bot's; the
    addresses hold passwords: never log them."""

    admin_url: str = field(repr=False)
    owner_url: str = field(repr=False)
    bot_url: str = field(repr=False)
    redis_url: str


@dataclass(frozen=True, slots=True)
class Lease:
    """A use of the servers by this process, until `release`."""

    servers: Servers
    folder: Folder
    token: str

    def release(self) -> None:
        """Leave; the last one stops both servers. May be called twice.

        Raises:
            EmbeddedError: a server does not stop.
        """
        if not (self.folder.path / MARKER).exists():
            return  # Somebody removed the data folder; nothing may be made in its place.
        with explained(self.folder.path), _locked(self.folder, _silent):
            left = [entry for entry in lease.living(self.folder.leases) if entry.token != self.token]
            lease.keep(self.folder.leases, left)
            if not left:
                _Pair.of(self.folder, _account(self.folder, None)).stop()


def _silent(_: str) -> None:
    pass


@contextmanager
def servers(data: Path, *, progress: Progress = _silent) -> Iterator[Servers]:
    """The servers of a data folder for the time of the block; see `attach`."""
    held = attach(data, progress=progress)
    try:
        yield held.servers
    finally:
        held.release()


def answer(held: Lease) -> bool:
    """Whether both servers of a lease answer now; changes nothing."""
    pair = _Pair.of(held.folder, _account(held.folder, None))
    return pair.postgres.answers() and pair.redis.answers()


def attach(data: Path, *, progress: Progress = _silent, mode: Mode | None = None) -> Lease:
    """Find the servers of a data folder running, or start them; make everything at the first start.

    Args:
        data: the data folder; made (0700) if it is missing.
        progress: told in one line what takes time.
        mode: as whom the servers run in a new data folder; by default the best that works.

    Raises:
        EmbeddedError: it cannot be done; the text says why and what to do.
    """
    with explained(data):
        folder = open_folder(data)
        with _locked(folder, progress):
            account = _account(folder, mode)
            entries = lease.living(folder.leases)
            pair = _Pair.of(folder, account)
            try:
                if not (pair.postgres.answers() and pair.redis.answers()):
                    pair.start(progress)
                pair.postgres.provision()
                entry = lease.mine(secrets.token_hex(8))
                lease.keep(folder.leases, [*entries, entry])
            except BaseException:
                # An interrupt too must not leave servers behind that nobody holds.
                if not entries:
                    with suppress(EmbeddedError):
                        pair.stop()
                raise
        return Lease(pair.addresses(), folder, entry.token)


@dataclass(frozen=True, slots=True)
class _Pair:
    """Both servers of a folder."""

    folder: Folder
    account: Account
    postgres: Postgres
    redis: Redis

    @classmethod
    def of(cls, folder: Folder, account: Account) -> "_Pair":
        passwords, sockets = folder.passwords(), folder.sockets(account)
        return cls(folder, account, Postgres(folder, sockets, passwords), Redis(folder, sockets))

    def start(self, progress: Progress) -> None:
        """Start what does not answer."""
        folder, account = self.folder, self.account
        folder.prepare(account)
        account.check_reach(folder.path)
        found, major = programs.ready(programs.find(), account, folder)
        if not folder.postgres.exists():
            progress("Making the database (first start) ...")
        self.postgres.initialise(found, account, major)
        progress("Starting PostgreSQL and Redis ...")
        self.redis.start(found, account)
        self.postgres.start(found, account)

    def stop(self) -> None:
        """Stop what runs."""
        self.redis.stop()
        if self.postgres.pid() is not None:
            found, _ = programs.ready(programs.find(), self.account, self.folder)
            self.postgres.stop(found, self.account)
        self.folder.discard_sockets()

    def addresses(self) -> Servers:
        """Where both are."""
        passwords, sockets = self.postgres.passwords, self.postgres.sockets
        return Servers(
            admin_url=self.postgres.admin_url,
            owner_url=url(OWNER, passwords["owner"], sockets, DATABASE),
            bot_url=url(BOT, passwords["bot"], sockets, DATABASE),
            redis_url=self.redis.url,
        )


def _account(folder: Folder, forced: Mode | None) -> Account:
    state = folder.state()
    account = choose(state.get("mode"), state.get("account"), forced)
    if (state.get("mode"), state.get("account")) != (account.mode, account.name):
        folder.remember(layout=1, mode=account.mode, account=account.name)
    return account


@contextmanager
def _locked(folder: Folder, progress: Progress) -> Iterator[None]:
    lock = FileLock(folder.lock, mode=0o600)
    try:
        try:
            lock.acquire(timeout=0)
        except Timeout:
            progress("Another process is starting or stopping the servers; waiting for it ...")
            lock.acquire(timeout=LOCK_PATIENCE, poll_interval=0.02)
    except Timeout as error:
        raise EmbeddedError(
            f"Another process has held {folder.lock} for {LOCK_PATIENCE:.0f} s. End it, then start again."
        ) from error
    try:
        yield
    finally:
        lock.release()
