"""Databases that go away for their bot: connections that break, and a time in which no new ones are taken."""

from __future__ import annotations

import asyncio
import re
from dataclasses import dataclass

import psycopg

from bot.embedded import Servers
from tests.conftest import Urls


@dataclass(frozen=True, slots=True)
class Outage:
    """Of one test's database; connections of the owner's stay."""

    admin_url: str
    database: str

    @staticmethod
    def of(cluster: Servers, urls: Urls) -> Outage:
        [database] = re.findall("@/([^?]*)", urls.admin)
        return Outage(cluster.admin_url, database)

    async def cut(self, application: str = "keepsake%") -> None:
        """Break the bot's connections whose application's name is like this."""
        await self._run(
            "SELECT pg_terminate_backend(pid, 5000) FROM pg_stat_activity WHERE datname = %s AND application_name LIKE %s",
            (self.database, application),
        )

    async def begin(self) -> None:
        """The bot's connections break, and it gets no new ones."""
        await self._run(f"ALTER DATABASE {self.database} ALLOW_CONNECTIONS false")
        await self.cut()

    async def end(self) -> None:
        await self._run(f"ALTER DATABASE {self.database} ALLOW_CONNECTIONS true")

    async def _run(self, statement: str, parameters: tuple[str, ...] | None = None) -> None:
        def run() -> None:
            with psycopg.connect(self.admin_url, autocommit=True) as admin:
                admin.execute(statement.encode(), parameters)

        await asyncio.to_thread(run)
