"""Upkeep: what Procrastinate lists but leaves to its user, and the repair of what may still go wrong. One per process is fine.

reaper    what dead processes were doing is free again: jobs (Procrastinate only lists them) and replies that they were sending
sweeper   agents whose flag is up without a job (a job that ended for good) are woken
teller    people whose turn does not begin hear that it takes longer, though no worker has a hand free
cleaner   finished jobs go after some days
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from datetime import UTC, datetime, timedelta

from psycopg.types.json import Jsonb

from adapters.catalogue import in_every_language
from bot.engine.listen import living
from bot.engine.loops import forever
from bot.engine.queue import Queue
from bot.engine.settings import EngineSettings
from memory.db import Database, value

log = logging.getLogger(__name__)

# Advisory locks of the passes that one process at a time does.
_SWEEP, _CLEAN = 7_202_612, 7_202_613
_SWEEP_LIMIT = 1000
_TELL_LIMIT = 200
_WAITING = Jsonb(in_every_language("turn.waiting"))


class Upkeep:
    """The four loops. `run` goes on until it is cancelled; the passes can be called by themselves."""

    def __init__(
        self,
        db: Database,
        queue: Queue,
        settings: EngineSettings | None = None,
        *,
        now: Callable[[], datetime] = lambda: datetime.now(UTC),
    ) -> None:
        self._db, self._queue, self._now = db, queue, now
        self._settings = settings or queue.settings
        self._seen: frozenset[int] | None = None

    async def run(self) -> None:
        """Reap, sweep, tell and clean until cancelled."""
        settings = self._settings
        async with asyncio.TaskGroup() as group:
            group.create_task(forever("reaper", self._reap, every=settings.reap_every))
            group.create_task(forever("sweeper", self._sweep, every=settings.sweep_every))
            group.create_task(forever("teller", self._tell, every=settings.tell_every))
            group.create_task(forever("cleaner", self.clean, every=settings.clean_every))

    async def reap(self, *, at_once: bool = False) -> int:
        """Free the jobs of workers that died or froze, and doubt what dead processes were sending; returns how many jobs.

        Dead is who is missing in two looks in a row: a living process is back sooner when its connection breaks. `at_once`: in one, and its
        jobs only, for which a mistake costs a model call and nothing else.
        """
        looked, jobs = self._now(), self._queue.jobs
        others = await jobs.of_others()
        stalled = {job.id: job for job in await jobs.get_stalled_jobs(seconds_since_heartbeat=self._settings.stalled)}
        # After the jobs: who took one since the last look is among the living by now.
        found = await living(self._db)
        seen, self._seen = self._seen, found.numbers
        steady = seen is not None and found.steady >= self._settings.steady_after
        if at_once or steady:
            lives = found.numbers | (seen or frozenset())
            stalled |= {job.id: job for job in others if job.worker_id not in lives}
            if steady:
                await self._db.once("SELECT doubt_sending_but_of(%s, %s)", (list(lives), looked))
        for job in stalled.values():
            # Another process may have freed it a moment ago: the queue sees that it is another run by then.
            await jobs.free(job)
        if stalled:
            log.warning("freed %d jobs of workers that died or stopped answering", len(stalled))
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

    async def tell(self) -> int:
        """Tell those who have waited for as long as people have patience, and whose turn has not begun; returns how many."""
        now = self._now()
        before = now - timedelta(seconds=self._settings.patience)
        async with self._db.bare() as connection:
            told = await value(connection, "SELECT tell_waiting(%s, %s, %s, %s)", (before, now, _TELL_LIMIT, _WAITING))
        if told:
            log.warning("told %d people that it takes longer: their turns do not begin", told)
        return int(told)

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

    async def _tell(self) -> None:
        await self.tell()
