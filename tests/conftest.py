"""Real servers for the tests: one PostgreSQL and one Redis per test process, an empty database per test."""

from __future__ import annotations

import logging
import os
import re
import shutil
import tempfile
from collections.abc import AsyncIterator, Iterator
from dataclasses import dataclass
from pathlib import Path

import psycopg
import pytest

from bot.embedded import Servers, attach
from memory.db import Database
from memory.migrations import migrate
from tests.databases import Databases

os.environ["LC_ALL"] = "C.UTF-8"  # whoever runs the tests: the terminal's language is English


@dataclass(frozen=True, slots=True)
class Urls:
    """One database as each of the three roles sees it."""

    admin: str
    owner: str
    bot: str


@pytest.fixture(scope="session")
def cluster() -> Iterator[Servers]:
    """A private PostgreSQL and Redis; the database `keepsake` is the migrated template and stays untouched."""
    top = Path(tempfile.mkdtemp(prefix="ks-test-"))
    top.chmod(0o711)
    held = attach(top / "data")
    try:
        migrate(held.servers.owner_url)
        with psycopg.connect(held.servers.admin_url, autocommit=True) as admin:
            # Power cuts are not among the faults tested; kill -9 is, and needs no fsync.
            for setting in ("fsync = off", "synchronous_commit = on", "full_page_writes = off"):
                admin.execute(f"ALTER SYSTEM SET {setting}".encode())
            admin.execute("SELECT pg_reload_conf()")
        logging.getLogger("alembic").setLevel(logging.WARNING)
        yield held.servers
    finally:
        held.release()
        shutil.rmtree(top, ignore_errors=True)


@pytest.fixture(scope="session")
def databases(cluster: Servers) -> Databases:
    """Databases like the template, one after the other."""
    return Databases(cluster)


@pytest.fixture
def urls(cluster: Servers, databases: Databases) -> Iterator[Urls]:
    """A database like the template, for one test."""
    name = databases.take()
    yield Urls(_into(cluster.admin_url, name), _into(cluster.owner_url, name), _into(cluster.bot_url, name))
    databases.give_back()


@pytest.fixture
async def db(urls: Urls) -> AsyncIterator[Database]:
    """The clone, opened under the bot's role."""
    async with Database(urls.bot, size=10) as opened:
        yield opened


def _into(url: str, database: str) -> str:
    return re.sub(r"@/[^?]*", f"@/{database}", url)


def pytest_addoption(parser: pytest.Parser) -> None:
    """`--lives`: how many random lives are lived, with one thing of each forgotten. `--full`: also what is marked as a sample's rest."""
    parser.addoption("--full", action="store_true", help="all of what a sample is taken of otherwise")
    parser.addoption("--lives", type=int, default=0, help="random lives in tests/memory/test_lives.py, instead of a sample")


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Leave the rest of samples to `--full`, which `make soak` asks for."""
    if config.getoption("--full"):
        return
    rest = [item for item in items if item.get_closest_marker("full")]
    config.hook.pytest_deselected(items=rest)
    items[:] = [item for item in items if item not in rest]
