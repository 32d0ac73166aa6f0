"""Where installations of the Slack app are kept: rows that the bot's role can reach through three functions only.

What is kept is a secret; it is never logged, exported or shown, and no command reads it.
"""

from __future__ import annotations

import hashlib
from datetime import datetime

from memory.db import Database, value


class SlackVault:
    """The adapter's `Vault` on Postgres."""

    def __init__(self, db: Database) -> None:
        self._db = db

    async def save(self, enterprise: str, team: str, secret: str) -> None:
        """Keep an installation in place of an earlier one."""
        async with self._db.bare() as connection:
            await connection.execute("SELECT slack_install(%s, %s, %s)", (enterprise, team, secret))

    async def find(self, enterprise: str, team: str) -> str | None:
        """An installation's secret."""
        async with self._db.bare() as connection:
            found = await value(connection, "SELECT slack_installed(%s, %s)", (enterprise, team))
            return None if found is None else str(found)

    async def forget(self, enterprise: str, team: str) -> None:
        """Delete it."""
        async with self._db.bare() as connection:
            await connection.execute("SELECT slack_uninstall(%s, %s)", (enterprise, team))

    async def issue(self, state: str, until: datetime) -> None:
        """Remember that an installation began; only a hash of its state is kept."""
        async with self._db.bare() as connection:
            await connection.execute("SELECT slack_begin(%s, %s)", (_hashed(state), until))

    async def consume(self, state: str, now: datetime) -> bool:
        """Whether one began with this, not too long ago; true once only."""
        async with self._db.bare() as connection:
            return bool(await value(connection, "SELECT slack_begun(%s, %s)", (_hashed(state), now)))


def _hashed(state: str) -> bytes:
    return hashlib.sha256(state.encode()).digest()
