"""The queue: Procrastinate carries wake-ups ("this agent has work"), never the work itself.

Order, single effect and the record of what waits are in our own rows, so this can be any at-least-once transport.
No job has a `queueing_lock`: with retries it leaves jobs that are `doing` for ever. The wake flag of the agent does its work.
"""

from __future__ import annotations

import asyncio
import logging
import random as random_numbers
import secrets
import time
from collections import deque
from collections.abc import Awaitable, Callable, Iterable
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from functools import partial
from typing import Any, Self

from procrastinate import App, BaseRetryStrategy, JobContext, PsycopgConnector, RetryDecision
from procrastinate.exceptions import ConnectorException
from procrastinate.jobs import Job, Status
from procrastinate.manager import JobManager
from psycopg import AsyncConnection

from bot.engine.events import Setback
from bot.engine.loops import forever, insist, named
from bot.engine.settings import EngineSettings
from memory.db import Connection, Pool

log = logging.getLogger(__name__)

SEARCH_PATH = "procrastinate,public"
# The statements of the queue are planned once a connection, perhaps while there are ten jobs, and kept: a scan of the whole table that was
# right then makes a fetch take 50 ms with a thousand jobs, as it compares each with each. In the order of the indexes it is always right.
_BY_INDEX = " ".join(f"-c enable_{way}=off" for way in ("seqscan", "bitmapscan", "sort", "hashjoin", "mergejoin"))

Body = Callable[[Job, int], Awaitable[None]]
"""What a wake-up does: takes its job and the agent."""

KEEPALIVE = {"keepalives_idle": 10, "keepalives_interval": 5, "keepalives_count": 3, "tcp_user_timeout": 20_000}


class Reschedule(BaseRetryStrategy):
    """Every job that ends in an error is run again: its agent's wake flag is up, and nothing else would wake it.

    A cancelled job (the process stops) is free at once. What failed by itself waits for what it asks for, or twice as long each time up to
    a cap. Anything else is the database that was away: a short wait, always the same, as it says nothing about the turn.
    """

    def __init__(self, settings: EngineSettings, random: Callable[[], float], now: Callable[[], datetime]) -> None:
        self._settings, self._random, self._now = settings, random, now

    def seconds(self, error: BaseException) -> float:
        """How long to wait before the next attempt."""
        if isinstance(error, asyncio.CancelledError):
            return 0.0
        settings = self._settings
        wait = settings.retry_away
        if isinstance(error, Setback):
            if error.seconds is not None:
                # A little later, never earlier than asked, and not everybody at once.
                return min(error.seconds, settings.retry_longest) * (1 + 0.1 * self._random())
            wait = min(settings.retry_cap, settings.retry_first * 2.0 ** min(error.times, 30))
        return wait * (0.5 + 0.5 * self._random())

    def get_retry_decision(self, *, exception: BaseException, job: Job) -> RetryDecision:  # noqa: ARG002 - the library's
        return RetryDecision(retry_at=self._now() + timedelta(seconds=self.seconds(exception)))


# In a subquery with OFFSET, which is not flattened: the function is called once a row, not once a column.
_FETCH = """SELECT (fetched.job).* FROM (SELECT procrastinate_fetch_job_v2(%(queues)s::varchar[], %(worker_id)s) AS job
            FROM generate_series(1, %(most)s) OFFSET 0) fetched WHERE (fetched.job).id IS NOT NULL"""
AHEAD = 8
"""The most jobs that are fetched in one round trip while there are many."""

# A run of a job is named by id, attempts (every return to `todo` counts them up) and worker (a crash of the server may take a fetch back,
# and then somebody else fetches the same attempt). The worker's row may be gone: then nobody has fetched the job since.
_SAME = """id = %(id)s AND status = 'doing' AND attempts = %(attempts)s AND (worker_id = %(worker)s OR worker_id IS NULL)"""
# Locked first, so that of two who end the same run only one finds it.
_RUN = f"(SELECT id FROM procrastinate_jobs WHERE {_SAME} FOR UPDATE) AS run"  # noqa: S608
_RETRY = f"SELECT procrastinate_retry_job_v2(run.id, %(retry_at)s, %(priority)s, %(queue)s, %(lock)s) FROM {_RUN}"  # noqa: S608
_FINISH = f"SELECT procrastinate_finish_job_v1(run.id, %(status)s, %(delete_job)s) FROM {_RUN}"  # noqa: S608
_REGISTER = """INSERT INTO procrastinate_workers (id) OVERRIDING SYSTEM VALUE VALUES (%(number)s)
               ON CONFLICT (id) DO UPDATE SET last_heartbeat = now()"""
_DOING = "SELECT * FROM procrastinate_jobs WHERE status = 'doing' AND (worker_id = %(number)s) = %(own)s"
PATIENCE = 30.0
"""Seconds for which the end of a job is tried to be written down; what is not taken by then is freed as a lost one."""


class _OwnRuns(JobManager):
    """Ends only the run of a job that this process fetched, knows which of them it is running, and outlives the database.

    Procrastinate ends a job by its id alone. After a pause beyond the stall limit a job belongs to another worker, and the ending
    of the first run would delete or reschedule it under that worker's hands. And it ends the worker when the database is away, to begin
    again only when every running turn has ended.
    """

    last_fetch: float | None = None

    def __init__(self, connector: PsycopgConnector, number: int, room: Callable[[], int], now: Callable[[], datetime]) -> None:
        """`number`: this process's own, as a worker too. `room`: how many jobs it can begin at once."""
        super().__init__(connector)
        self._number, self._room, self._now = number, room, now
        self._fetched: deque[Job] = deque()
        self._most = 1
        self._runs: dict[int | None, Job] = {}
        self._registered = False
        self._fetching = asyncio.Lock()

    async def register_worker(self) -> int:
        """As the library's, with our number."""
        await self.connector.execute_query_async(_REGISTER, number=self._number)
        self._registered = True
        return self._number

    async def update_heartbeat(self, worker_id: int) -> None:
        """As the library's, which ends the worker with its first failure."""
        with suppress(ConnectorException):
            await super().update_heartbeat(worker_id)

    async def listen_for_jobs(self, **options: Any) -> None:
        """As the library's, likewise."""
        await forever("listening for jobs", partial(super().listen_for_jobs, **options), every=0.5)

    async def owns(self, job: Job) -> bool:
        """Whether the job is still in the run that `job` was fetched for."""
        if self._runs.get(job.id) is not job:
            return False
        rows = await self.connector.execute_query_all_async(f"SELECT 1 FROM procrastinate_jobs WHERE {_SAME}", **_run(job))  # noqa: S608
        return bool(rows)

    async def fetch_job(self, queues: Iterable[str] | None, worker_id: int) -> Job | None:
        """As the library's, which takes one a round trip; while there are many, several are taken and given out one by one.

        None also while the database is away. It may have lost our registration, or somebody taken it for dead: it is made again.
        """
        if not self._fetched:
            try:
                if not self._registered:
                    await self.register_worker()
                await self._fetch(queues, worker_id)
            except ConnectorException as error:
                log.info("no work can be fetched: %s", named(error))
                self._registered = False
        return self._fetched.popleft() if self._fetched else None

    async def _fetch(self, queues: Iterable[str] | None, worker_id: int) -> None:
        most = max(1, min(self._most, self._room()))
        async with self._fetching:
            rows = await self.connector.execute_query_all_async(_FETCH, queues=queues, worker_id=worker_id, most=most)
            self._fetched.extend(Job.from_row(row) for row in rows)
            self._runs |= {job.id: job for job in self._fetched}
        self.last_fetch = time.monotonic()
        self._most = min(2 * self._most, AHEAD) if len(rows) == most else 1

    async def give_back(self) -> None:
        """Let others have what was fetched and not begun. What cannot be given back is found as lost, or by the reaper."""
        while self._fetched:
            job = self._fetched.popleft()
            self._runs.pop(job.id, None)
            with suppress(ConnectorException):
                await self.free(job)

    async def free_lost(self) -> int:
        """Free the jobs that stand as being done by this process although it is not doing them; returns how many.

        The answer to a fetch was lost, or the end of a run could not be written down or was taken back by a crash of the server.
        """
        async with self._fetching:  # between a fetch and its answer a job would seem to be lost
            rows = await self._doing(own=True)
        lost = [job for job in rows if job.id not in self._runs]
        for job in lost:
            await self.free(job)
        return len(lost)

    async def of_others(self) -> list[Job]:
        """What other processes are said to be doing."""
        return await self._doing(own=False)

    async def _doing(self, *, own: bool) -> list[Job]:
        rows = await self.connector.execute_query_all_async(_DOING, number=self._number, own=own)
        return [Job.from_row(row) for row in rows]

    async def free(self, job: Job) -> None:
        """Let a run of a job be taken again at once, whoever had it."""
        await self.connector.execute_query_all_async(
            _RETRY, **_run(job), retry_at=self._now(), priority=None, queue=None, lock=None
        )

    async def finish_job(self, job: Job, status: Status, delete_job: bool) -> None:
        """As the library's, for this run only."""
        await self._end(job, _FINISH, status=status.value, delete_job=delete_job)

    async def retry_job(
        self,
        job: Job,
        retry_at: datetime | None = None,
        priority: int | None = None,
        queue: str | None = None,
        lock: str | None = None,
    ) -> None:
        """As the library's, for this run only."""
        await self._end(job, _RETRY, retry_at=retry_at or self._now(), priority=priority, queue=queue, lock=lock)

    async def _end(self, job: Job, statement: str, **arguments: Any) -> None:
        if self._runs.get(job.id) is not job:
            return  # fetched again since: a crash of the server had taken the first fetch back
        try:
            await insist(
                f"the end of job {job.id}",
                partial(self.connector.execute_query_all_async, statement, **_run(job), **arguments),
                on=ConnectorException,
                within=PATIENCE,
            )
        finally:
            if self._runs.get(job.id) is job:  # not, where it is being done again already
                del self._runs[job.id]


def _run(job: Job) -> dict[str, Any]:
    return {"id": job.id, "attempts": job.attempts, "worker": job.worker_id}


async def _configure(connection: AsyncConnection[Any]) -> None:
    # Not through the pool's kwargs: the listener would pass autocommit twice and the worker would stop without a word.
    await connection.set_autocommit(True)


def _pool(**options: Any) -> Pool:
    """Ours, without the round trip for every checkout that Procrastinate asks for."""
    return Pool(**{name: option for name, option in options.items() if name not in ("check", "open")})


class Queue:
    """The Procrastinate app on the bot's database. Open it with `async with`; deferring alone needs no opening.

    Its own commits are not flushed: what a crash of the server takes back of a job's state is mended by the sweeper, the reaper and the
    worker's look for lost jobs. A turn's claim is flushed, and with it the fetch before it.
    """

    def __init__(
        self,
        url: str,
        settings: EngineSettings,
        *,
        random: Callable[[], float] = random_numbers.random,
        now: Callable[[], datetime] = lambda: datetime.now(UTC),
    ) -> None:
        self.settings = settings
        self.number = secrets.randbelow(2**31 - 1) + 1
        """By which other processes know this one (`listen`)."""
        self.body: Body | None = None
        self._running = 0
        connector = PsycopgConnector(
            pool_factory=_pool,
            conninfo=url,
            min_size=1,
            max_size=5,
            configure=_configure,
            name="keepsake-queue",
            kwargs={
                "options": f"-c search_path={SEARCH_PATH} -c synchronous_commit=off {_BY_INDEX}",
                "application_name": "keepsake-queue",
                **KEEPALIVE,
            },
        )
        self.app = App(connector=connector)
        self.jobs = _OwnRuns(connector, self.number, lambda: self.settings.concurrency - self._running, now)
        self.app.job_manager = self.jobs

        @self.app.task(name="wake", pass_context=True, retry=Reschedule(self.settings, random, now))
        async def wake(context: JobContext, agent: int) -> None:
            assert self.body is not None, "a worker sets the body before it runs"
            self._running += 1
            try:
                await self.body(context.job, agent)
            finally:
                self._running -= 1

        self._wake = wake

    async def __aenter__(self) -> Self:
        await self.app.open_async()
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.app.close_async()

    async def defer_wake(self, connection: Connection, agent: int) -> None:
        """Wake an agent when the caller's transaction commits. The caller keeps the invariant: flag up, exactly one job."""
        await connection.execute("SELECT defer_wake(%s)", (agent,))

    async def owns(self, job: Job) -> bool:
        """Whether a job still belongs to the run it was fetched for; False once another worker was given it."""
        return await self.jobs.owns(job)

    @property
    def idle_for(self) -> float | None:
        """Seconds since this process last asked for work successfully; None before the first time. The worker's pulse."""
        last = self.jobs.last_fetch
        return None if last is None else time.monotonic() - last
