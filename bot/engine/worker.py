"""The worker: runs wake-ups, and in each of them the turns of one agent, one after the other.

How a turn may end, and what becomes of it:

    finished              claimed on, until nothing waits
    TurnCancelled, /stop  ended as cancelled; its events do not come back
    StaleTurn             stops, unless the job is still ours (then nobody else runs the agent, and we claim anew)
    TryAgainLater         handed back uncounted; the job is retried later and later; after a day a dead letter
    the database away     handed back uncounted; the job is retried soon, however often: it is nobody's fault
    any other error       counted; the job is retried later and later; at the limit the next claim makes a dead letter
    the process stops     handed back uncounted; the job is free at once

A stop never uses Procrastinate's abort: that ends the job for good and would leave the agent's flag up without a job.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Awaitable, Callable
from contextlib import suppress
from datetime import UTC, datetime

import psycopg
from procrastinate.jobs import Job
from procrastinate.worker import Worker as Waker
from psycopg_pool import PoolClosed, PoolTimeout

from bot.engine import turns
from bot.engine.events import Claim, ContextChanged, Setback, StaleTurn, TryAgainLater, TurnCancelled, Wait
from bot.engine.listen import listen
from bot.engine.loops import ended, forever, named
from bot.engine.queue import Queue
from bot.engine.settings import EngineSettings
from bot.engine.signals import Senders, Stopper
from memory.db import Database

log = logging.getLogger(__name__)

STOPPED_WITHIN = 5.0
"""Seconds that a stop may take beyond the grace time of the running turns."""

Turn = Callable[[Claim], Awaitable[None]]
"""Runs one claimed turn to its end, through `turns.step`; the last step has `finish` set."""


class Unfinished(Exception):
    """The turn returned without a finishing step: a fault of the callable."""


class Worker:
    """Runs the agents' turns in this process. `run` goes on until it is cancelled, then hands back within the grace time."""

    def __init__(
        self,
        db: Database,
        queue: Queue,
        turn: Turn,
        settings: EngineSettings | None = None,
        *,
        now: Callable[[], datetime] = lambda: datetime.now(UTC),
        outbound: Senders | None = None,
    ) -> None:
        self._db, self._queue, self._turn, self._now = db, queue, turn, now
        self._settings = settings or queue.settings
        self._outbound = outbound
        self.stopper = Stopper()
        # Of each agent whose last turn failed here: that turn, and how often.
        self._failures: dict[int, tuple[int, int]] = {}
        self._stopping = asyncio.Event()
        queue.body = self.work

    async def run(self) -> None:
        """Work until cancelled. Ended by itself or by an error (a pruned worker, Postgres away for long), the worker is started again."""
        settings = self._settings
        async with asyncio.TaskGroup() as group:
            beside = [
                group.create_task(listen(self._db.url, "keepsake_stop", self._heard_stop, number=self._queue.number)),
                group.create_task(forever("the look for lost jobs", self._free_lost, every=settings.reap_every)),
            ]
            try:
                await forever(
                    "worker",
                    self._procrastinate,
                    every=settings.restart_first,
                    first=settings.restart_first,
                    cap=settings.restart_cap,
                )
            finally:
                for task in beside:
                    task.cancel()

    async def _procrastinate(self) -> None:
        settings = self._settings
        waker = Waker(
            self._queue.app,
            concurrency=settings.concurrency,
            fetch_job_polling_interval=settings.poll,
            listen_notify=True,
            update_heartbeat_interval=settings.heartbeat,
            stalled_worker_timeout=settings.stalled,
            shutdown_graceful_timeout=settings.shutdown_grace,
            delete_jobs="successful",
            install_signal_handlers=False,
        )
        inner = asyncio.create_task(waker.run())  # type: ignore[no-untyped-call]
        try:
            await asyncio.shield(inner)
        except asyncio.CancelledError:
            self._stopping.set()
            await asyncio.sleep(0)  # its first step forgets a stop from before it
            waker.stop()  # type: ignore[no-untyped-call] # stops fetching, waits for the grace time, then cancels the jobs
            await asyncio.gather(ended([inner], patience=settings.shutdown_grace + STOPPED_WITHIN), self._queue.jobs.give_back())
            if not inner.cancelled() and (error := inner.exception()) is not None:
                log.warning("worker did not stop cleanly: %s", named(error))
            raise
        finally:
            await self._queue.jobs.give_back()
        log.warning("worker ended by itself; starting it again")

    async def work(self, job: Job, agent: int) -> None:
        """The body of a wake-up: the agent's turns until nothing waits, or until it is the others' turn."""
        until = time.monotonic() + self._settings.hand_back
        while True:
            try:
                found = await turns.claim(self._db, agent, self._now(), self._settings)
            except psycopg.Error as error:
                log.warning("agent %d cannot be claimed: %s", agent, named(error))
                raise TryAgainLater(named(error)) from None
            if found is None:
                return
            more = True
            if isinstance(found, Wait):
                await self._sleep(found.until)
            else:
                more = await self._run(found, job)
            if not more:
                return
            if self._stopping.is_set() or time.monotonic() > until:
                # A new job goes behind those of the other agents; this one keeps the lock until it has ended.
                async with self._db.bare() as connection:
                    await self._queue.defer_wake(connection, agent)
                return

    async def _run(self, claim: Claim, job: Job) -> bool:
        """Run one turn; returns whether the agent has more to do."""
        try:
            if claim.cancel_requested:
                return await turns.end_cancelled(self._db, claim, now=self._now())
            error, stopped = await self._watch(claim)
            more = await self._settle(claim, error, stopped=stopped)
            self._failures.pop(claim.agent, None)
            return more
        except StaleTurn:
            log.warning("turn %d of agent %d was taken over", claim.turn, claim.agent)
            # A job that is no longer ours runs elsewhere, with a newer claim. One that is ours says that nobody else may run the
            # agent now: the newer claim was a stray one, or the person was erased; the next claim tells.
            return await self._queue.owns(job)
        except psycopg.Error as trouble:
            raise TryAgainLater(named(trouble)) from None

    async def _watch(self, claim: Claim) -> tuple[BaseException | None, bool]:
        """Run the callable in a task of its own; returns how it ended and whether `/stop` ended it."""
        task = asyncio.ensure_future(self._turn(claim))
        assert isinstance(task, asyncio.Task)
        self.stopper.add(claim, task)
        try:
            await asyncio.wait({task})
        except asyncio.CancelledError:
            await self._hand_back(claim, task)
            raise
        finally:
            stopped = self.stopper.remove(claim, task)
        return asyncio.CancelledError() if task.cancelled() else task.exception(), stopped

    async def _settle(self, claim: Claim, error: BaseException | None, *, stopped: bool) -> bool:
        """What becomes of a turn that ended in this way; raises what the queue shall see."""
        if claim.fence.more is not None:
            if error is not None:
                log.warning("turn %d of agent %d was over when it broke off: %s", claim.turn, claim.agent, named(error))
            return claim.fence.more
        if stopped or isinstance(error, TurnCancelled):
            log.info("turn %d of agent %d was stopped", claim.turn, claim.agent)
            return await turns.end_cancelled(self._db, claim, now=self._now())
        if isinstance(error, StaleTurn):
            raise error
        if isinstance(error, TryAgainLater | ContextChanged) or (error is not None and _database_away(error)):
            return await self._later(claim, error)
        name = named(error or Unfinished())
        log.error("turn %d of agent %d broke off: %s", claim.turn, claim.agent, name, exc_info=error)
        await turns.note_crash(self._db, claim, name)
        raise Setback(name, self._failed_before(claim))

    def _failed_before(self, claim: Claim) -> int:
        """How often the turn has failed here; from now on once more."""
        turn, times = self._failures.get(claim.agent, (claim.turn, 0))
        times = times if turn == claim.turn else 0
        self._failures[claim.agent] = claim.turn, times + 1
        return times

    async def _later(self, claim: Claim, error: BaseException) -> bool:
        settings, now = self._settings, self._now()
        reason = error.reason if isinstance(error, TryAgainLater) else named(error)
        log.warning("turn %d of agent %d cannot go on: %s", claim.turn, claim.agent, reason)
        age = (now - min((event.created_at for event in claim.events), default=claim.started_at)).total_seconds()
        tried = (now - claim.started_at).total_seconds()
        if age >= settings.give_up and tried >= min(settings.own_try, settings.give_up):
            log.error("turn %d of agent %d is given up: %s", claim.turn, claim.agent, reason)
            return await turns.give_up(self._db, claim, reason, now=now, outbound=self._outbound)
        await turns.release(self._db, claim, reason)
        if isinstance(error, psycopg.Error):
            raise TryAgainLater(reason)
        raise Setback(reason, self._failed_before(claim), error.seconds if isinstance(error, TryAgainLater) else None)

    async def _hand_back(self, claim: Claim, task: asyncio.Task[None]) -> None:
        """The process stops: end the turn where it is and let the next claim go on from its last step."""
        task.cancel()
        try:
            async with asyncio.timeout(self._settings.release_within):
                await asyncio.wait({task})
                if not task.cancelled():
                    task.exception()  # looked at, or asyncio would log its text
                await turns.release(self._db, claim, "stopped")
        except (TimeoutError, psycopg.Error) as error:
            log.warning("turn %d of agent %d was not handed back: %s", claim.turn, claim.agent, named(error))

    async def _sleep(self, until: datetime) -> None:
        """Wait for a burst to end, or for the process to stop."""
        seconds = (until - self._now()).total_seconds()
        with suppress(TimeoutError):
            async with asyncio.timeout(max(seconds, 0.0)):
                await self._stopping.wait()

    async def _free_lost(self) -> None:
        """The reaper frees the jobs of dead workers; this one lives, and nobody else can tell what it is not doing."""
        if lost := await self._queue.jobs.free_lost():
            log.warning("freed %d jobs that this process was said to be doing", lost)

    async def _heard_stop(self, payload: str) -> None:
        """Somebody, perhaps in another process, asked to stop an agent's work at some place; empty: look at all."""
        for claim in self.stopper.running(int(payload) if payload.isdigit() else None):
            if await turns.cancelled(self._db, claim):
                self.stopper.stop(claim)


def _database_away(error: BaseException) -> bool:
    """Whether an error means that the database is not there or has no time, rather than that it refuses what was asked."""
    if isinstance(error, PoolTimeout | PoolClosed):
        return True
    if not isinstance(error, psycopg.OperationalError):
        return False
    code = error.sqlstate or ""
    return code in ("", "55P03", "40001", "40P01") or code[:2] in ("08", "53", "57")
