"""Upkeep: what Procrastinate lists but leaves to its user, and the repair of what may still go wrong. One per process is fine.

reaper    jobs of workers without a heartbeat are free again (Procrastinate only lists them)
sweeper   agents whose flag is up without a job (a job that ended for good) are woken
cleaner   finished jobs go after some days
"""

from __future__ import annotations

import asyncio
import logging

from bot.engine.loops import forever
from bot.engine.queue import Queue
from bot.engine.settings import EngineSettings
from memory.db import Database, value

log = logging.getLogger(__name__)

# Advisory locks of the passes that one process at a time does.
_SWEEP, _CLEAN = 7_202_612, 7_202_613
_SWEEP_LIMIT = 1000


class Upkeep:
    """The three loops. `run` goes on until it is cancelled; the passes can be called by themselves."""

    def __init__(self, db: Database, queue: Queue, settings: EngineSettings | None = None) -> None:
        self._db, self._queue = db, queue
        self._settings = settings or queue.settings

    async def run(self) -> None:
        """Reap, sweep and clean until cancelled."""
        settings = self._settings
        async with asyncio.TaskGroup() as group:
            group.create_task(forever("reaper", self._reap, every=settings.reap_every))
            group.create_task(forever("sweeper", self._sweep, every=settings.sweep_every))
            group.create_task(forever("cleaner", self.clean, every=settings.clean_every))

    async def reap(self) -> int:
        """Free the jobs of dead workers; returns how many."""
        stalled = list(await self._queue.jobs.get_stalled_jobs(seconds_since_heartbeat=self._settings.stalled))
        for job in stalled:
            # Another process may have freed it a moment ago: the queue sees that it is another run by then.
            await self._queue.jobs.free(job)
        if stalled:
            log.warning("freed %d jobs of workers that stopped answering", len(stalled))
        return len(stalled)

    async def sweep(self) -> int:
        """Wake the agents that should have a job and have none; returns how many."""
        async with self._db.bare() as connection:
            # Two sweepers at once would both see the same agents without a job.
            if not await value(connection, "SELECT pg_try_advisory_xact_lock(%s)", (_SWEEP,)):
                return 0
            cursor = await connection.execute("SELECT unwoken_agents AS agent FROM unwoken_agents(%s)", (_SWEEP_LIMIT,))
            agents = [row["agent"] for row in await cursor.fetchall()]
            for agent in agents:
                await self._queue.defer_wake(connection, agent)
        if agents:
            log.warning("woke %d agents whose job was lost", len(agents))
        return len(agents)

    async def clean(self) -> None:
        """Delete jobs that ended long ago, with their history, and the hashes of erased events whose week is over."""
        async with self._db.bare() as connection:
            if await value(connection, "SELECT pg_try_advisory_xact_lock(%s)", (_CLEAN,)):
                await self._queue.jobs.delete_old_jobs(
                    self._settings.keep_jobs_hours, include_failed=True, include_cancelled=True, include_aborted=True
                )
            await connection.execute("SELECT purge_erased(now())")

    async def _reap(self) -> None:
        await self.reap()

    async def _sweep(self) -> None:
        await self.sweep()
