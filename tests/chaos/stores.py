"""PostgreSQL and Redis of a running bot from outside: their processes, locks that stop a turn at a point, and what they hold."""

from __future__ import annotations

import os
import signal
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import psutil
import psycopg
from psycopg.rows import dict_row
from redis.asyncio import Redis
from redis.exceptions import RedisError

from bot.embedded import Servers, attach
from bot.embedded.lease import living
from tests.chaos.snapshots import Change, Event, Kept, Memory, Reply, Row
from tests.waiting import until

PATIENCE = 90.0
"""Seconds in which the servers have to answer again."""
LEFT = {
    "jobs": "SELECT id || ' ' || status || ' ' || lock FROM procrastinate_jobs WHERE status IN ('todo', 'doing')",
    "wake flags": "SELECT 'agent ' || id FROM agents WHERE wake",
    "running turns": "SELECT 'turn ' || id || ' of agent ' || agent_id || ', step ' || step FROM turns WHERE state = 'running'",
    "rows without a vector": "SELECT 'message ' || coalesce(message_id, 0) || ', passage ' || coalesce(passage_id, 0) FROM unembedded",
    "log without its text": "SELECT 'change ' || id FROM memory_log l WHERE NOT EXISTS (SELECT FROM memory_log_content c WHERE c.log_id = l.id)",
    "log of turns that never were": """SELECT 'change ' || id FROM memory_log l
        WHERE turn_id IS NOT NULL AND NOT EXISTS (SELECT FROM turns t WHERE t.id = l.turn_id)""",
    "calls without a result": """SELECT 'message ' || m.id FROM messages m, jsonb_array_elements(m.calls) c
        WHERE NOT EXISTS (SELECT FROM messages r WHERE r.conversation_id = m.conversation_id AND r.turn_id = m.turn_id AND r.call_id = c->>'id')""",
    "results without a call": """SELECT 'message ' || r.id FROM messages r WHERE r.call_id IS NOT NULL AND NOT EXISTS (
        SELECT FROM messages m, jsonb_array_elements(m.calls) c WHERE m.conversation_id = r.conversation_id AND c->>'id' = r.call_id)""",
    "events without a turn": "SELECT 'event ' || id FROM events WHERE status = 1 AND turn_id IS NULL",
    "empty turns": """SELECT 'turn ' || id FROM turns t WHERE state = 'done' AND NOT EXISTS (SELECT FROM events e WHERE e.turn_id = t.id)""",
}
"""What nothing should be found of at rest."""
_AT_REST = """SELECT (SELECT count(*) FROM events WHERE status = 0) + (SELECT count(*) FROM agents WHERE wake)
  + (SELECT count(*) FROM procrastinate_jobs WHERE status IN ('todo', 'doing'))
  + (SELECT count(*) FROM outbox WHERE state NOT IN ('sent', 'failed', 'withdrawn')) AS left"""


@dataclass(frozen=True, slots=True)
class Stores:
    """The servers of one data folder."""

    data: Path
    servers: Servers

    # Processes ---------------------------------------------------------------------------------------

    def postmaster(self) -> int:
        return int((self.data / "postgres" / "postmaster.pid").read_text().split("\n", 1)[0])

    def backends(self) -> list[int]:
        """The processes of PostgreSQL that serve the bot."""
        found = []
        for child in psutil.Process(self.postmaster()).children():
            with suppress(psutil.NoSuchProcess):
                if "keepsake_bot" in " ".join(child.cmdline()):
                    found.append(child.pid)
        return sorted(found)

    def redis(self) -> int:
        return int((self.data / "redis" / "redis.pid").read_text())

    async def empty_redis(self) -> int:
        """How many keys there were; after an earlier fault there may be none yet, so it waits for some."""
        async with Redis.from_url(self.servers.redis_url) as redis:
            await until(redis.dbsize, timeout=PATIENCE)
            keys = int(await redis.dbsize())
            await redis.flushall()
            return keys

    async def until_back(self) -> None:
        """Until both answer."""
        await until(self._answers, timeout=PATIENCE, every=0.05)

    async def _answers(self) -> bool:
        with suppress(psycopg.OperationalError, RedisError, OSError):
            async with Redis.from_url(self.servers.redis_url) as redis:
                await redis.ping()
            return await self.one("SELECT 1") == 1
        return False

    # Looking -----------------------------------------------------------------------------------------

    @asynccontextmanager
    async def owner(self) -> AsyncIterator[psycopg.AsyncConnection[dict[str, Any]]]:
        """A connection that sees every row."""
        options = "-c search_path=keepsake,procrastinate,public"
        connection = await psycopg.AsyncConnection.connect(
            self.servers.owner_url, autocommit=True, row_factory=dict_row, options=options, connect_timeout=5
        )
        async with connection:
            yield connection

    async def rows(self, statement: str, *arguments: object) -> list[dict[str, Any]]:
        async with self.owner() as connection:
            return await (await connection.execute(statement.encode(), arguments)).fetchall()

    async def one(self, statement: str, *arguments: object) -> Any:
        """The first column of the first row, None without one."""
        rows = await self.rows(statement, *arguments)
        return next(iter(rows[0].values())) if rows else None

    @asynccontextmanager
    async def holding(self, statement: str, *arguments: object) -> AsyncIterator[Callable[[], Awaitable[bool]]]:
        """What the statement locks stays locked inside the block. Gives a question: whether somebody is held up by it."""
        async with self.owner() as connection, connection.transaction():
            await connection.execute(statement.encode(), arguments)
            holder = connection.info.backend_pid

            async def held_up() -> bool:
                return bool(
                    await self.one("SELECT count(*) FROM pg_stat_activity WHERE %s = ANY (pg_blocking_pids(pid))", holder)
                )

            yield held_up

    async def answered(self) -> bool:
        """Whether nothing waits for its turn or for sending."""
        with suppress(psycopg.OperationalError):
            return await self.one(_AT_REST) == 0
        return False

    async def at_rest(self) -> bool:
        """Whether nothing waits at all, for a vector neither."""
        with suppress(psycopg.OperationalError):
            return await self.answered() and await self.one("SELECT count(*) FROM unembedded") == 0
        return False

    async def waiting(self) -> int:
        """How many events wait for their turn."""
        return int(await self.one("SELECT count(*) FROM events WHERE status = 0"))

    async def kept(self) -> Kept:
        """Everything that the auditor compares, while the bot is at rest and runs."""
        async with self.owner() as connection:

            async def every(kind: Any, statement: str) -> tuple[Any, ...]:
                return tuple(kind(**row) for row in await (await connection.execute(statement.encode())).fetchall())

            left = {}
            for name, statement in LEFT.items():
                found = await (await connection.execute(statement.encode())).fetchall()
                left[name] = tuple(str(next(iter(row.values()))) for row in found)
            left["Redis keys"] = tuple(
                await self._strays({row["id"] for row in await (await connection.execute("SELECT id FROM agents")).fetchall()})
            )
            return Kept(
                events=await every(
                    Event,
                    """SELECT e.id, agent_id AS agent, seq, external_id AS where, status,
                    coalesce(payload->>'message_id', '') AS message_id, turn_id AS turn FROM events e JOIN places p ON p.id = place_id""",
                ),
                rows=await every(
                    Row,
                    """SELECT m.id, agent_id AS agent, external_id AS where, conversation_id AS conversation, position, role,
                    m.kind, content, event_id AS event, turn_id AS turn FROM messages m JOIN places p ON p.id = place_id""",
                ),
                replies=await every(Reply, "SELECT id, turn_id AS turn, channel AS where, state, body, platform_id FROM outbox"),
                memories=await every(
                    Memory,
                    """SELECT 'working_context' AS table, id, agent_id AS agent, content, turn_id AS turn,
                    (SELECT count(*) FROM sources WHERE entry_id = w.id) AS sources FROM working_context w UNION ALL
                    SELECT 'passage', id, agent_id, content, turn_id, (SELECT count(*) FROM sources WHERE passage_id = q.id) FROM passages q""",
                ),
                changes=await every(
                    Change, "SELECT id, agent_id AS agent, actor, action, target, target_id, turn_id AS turn FROM memory_log"
                ),
                leftovers=left,
            )

    async def _strays(self, agents: set[int]) -> list[str]:
        """Keys of agents that are not there, and keys that stay for ever."""
        strays = []
        async with Redis.from_url(self.servers.redis_url, decode_responses=True) as redis:
            async for key in redis.scan_iter():
                known = key.startswith("keepsake-hold:") or (key.startswith("keepsake:") and int(key.split(":")[1]) in agents)
                if not known or await redis.ttl(key) == -1:
                    strays.append(key)
        return strays


def stores_of(data: Path) -> Stores:
    """The servers of a data folder on which a bot runs; blocks for a moment, and leaves them running."""
    held = attach(data)
    held.release()
    return Stores(data, held.servers)


def left_behind(data: Path) -> dict[str, tuple[str, ...]]:
    """Leases and processes of a data folder; none of either, once every process of the bot has stopped cleanly."""
    working = []
    for process in psutil.process_iter(["pid", "name"]):
        with suppress(psutil.Error):
            if Path(process.cwd()).is_relative_to(data) and process.status() != psutil.STATUS_ZOMBIE:
                working.append(f"{process.info['pid']} {process.info['name']}")
    return {"leases": tuple(str(entry.pid) for entry in living(data / "leases.json")), "processes": tuple(working)}


def kill(pid: int, how: signal.Signals = signal.SIGKILL) -> None:
    """Sends a signal to a process that may have ended."""
    with suppress(ProcessLookupError):
        os.kill(pid, how)


async def ended(pid: int) -> None:
    """Until a process is no more."""
    await until(lambda: not _lives(pid), timeout=PATIENCE)


def _lives(pid: int) -> bool:
    try:
        return psutil.Process(pid).status() != psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return False
