"""`bot run` while its database is away: the later one after a restart of the machine is waited for; what no waiting mends is said at once."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from urllib.parse import urlsplit, urlunsplit

from bot.embedded import Servers
from tests.bot.engine.outage import Outage
from tests.conftest import Urls
from tests.scenarios.running_bot import RunningBot
from tests.servers.model import ScriptedModel, unused_port
from tests.waiting import until

LOOKING = "The database or Redis does not answer; looking again for 60 s ..."
RUNNING = "Running: scheduler, worker. SIGTERM or Ctrl-C ends it."


@asynccontextmanager
async def started(folder: Path, database: str, redis: str) -> AsyncIterator[RunningBot]:
    settings = {"KEEPSAKE__DATABASE__URL": database, "KEEPSAKE__REDIS__URL": redis}
    async with ScriptedModel() as model:
        bot = RunningBot(model, folder / "data", settings, ("--only", "worker", "--only", "scheduler"))
        await bot.start(listening=False)
        try:
            yield bot
        finally:
            await bot.leave()


async def test_a_database_that_is_away_at_the_start_is_waited_for(cluster: Servers, urls: Urls, tmp_path: Path) -> None:
    outage = Outage.of(cluster, urls)
    await outage.begin()
    try:
        async with started(tmp_path, urls.bot, cluster.redis_url) as bot:
            await until(lambda: LOOKING in bot.lines, timeout=60)
            assert RUNNING not in bot.lines
            await outage.end()
            await until(lambda: RUNNING in bot.lines, timeout=60)
            assert bot.lines.count(LOOKING) == 1
            assert await bot.stop() == 0, bot.lines
    finally:
        await outage.end()


async def test_a_redis_too(urls: Urls, tmp_path: Path) -> None:
    async with started(tmp_path, urls.bot, f"redis://127.0.0.1:{unused_port()}/0") as bot:
        await until(lambda: LOOKING in bot.lines, timeout=60)
        assert bot.process is not None
        assert bot.process.returncode is None


async def test_a_database_that_is_not_there_is_said_at_once(cluster: Servers, urls: Urls, tmp_path: Path) -> None:
    missing = urlunsplit(urlsplit(urls.bot)._replace(path="/not_there"))
    async with started(tmp_path, missing, cluster.redis_url) as bot:
        assert await bot.ended() == 2
        [line] = bot.lines
        assert "bot migrate --admin-url-env NAME" in line
