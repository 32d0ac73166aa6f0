"""What we rely on in Procrastinate (its version is pinned; each of these could change), and what we add to it."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from datetime import timedelta

import psycopg
import pytest
from procrastinate.jobs import Job, Status

from bot.app.runtime import engine_settings
from bot.config.sections import EngineSection
from bot.engine.events import Claim, Setback, TryAgainLater
from bot.engine.queue import Queue, Reschedule
from tests.bot.engine.outage import Outage
from tests.bot.engine.world import NOW, QUICK, Turns, World, working
from tests.conftest import Urls
from tests.waiting import until


def job(attempts: int = 0) -> Job:
    return Job(
        id=1, status="doing", queue="default", priority=0, lock=None, queueing_lock=None, task_name="wake", attempts=attempts
    )


@pytest.mark.parametrize(
    ("error", "least", "most"),
    [
        (TryAgainLater("the database is away"), 0.5, 1.0),
        (psycopg.OperationalError(), 0.5, 1.0),
        (Setback("ModelUnavailable", 0), 0.5, 1.0),
        (Setback("ModelUnavailable", 3), 4.0, 8.0),
        (Setback("ModelUnavailable", 500), 30.0, 60.0),
        (Setback("ModelUnavailable", 3, 20), 20.0, 22.0),
        (Setback("ModelUnavailable", 0, 1e9), 900.0, 990.0),
        (asyncio.CancelledError(), 0.0, 0.0),
    ],
)
def test_waits(error: BaseException, least: float, most: float) -> None:
    """However often the job was given back before: a crash is no reason to wait longer after the next one."""
    for random, expected in ((0.0, least), (1.0, most)):
        decision = Reschedule(engine_settings(EngineSection()), lambda random=random: random, lambda: NOW).get_retry_decision(  # type: ignore[misc]
            exception=error, job=job(attempts=9)
        )
        assert decision.retry_at == NOW + timedelta(seconds=expected)


async def test_the_index_against_slow_fetches_is_there(engine: World) -> None:
    (definition,) = await engine.column("SELECT indexdef FROM pg_indexes WHERE indexname = 'keepsake_jobs_lock'")
    assert "(lock, id)" in definition
    (options,) = await engine.column("SELECT reloptions::text FROM pg_class WHERE relname = 'procrastinate_jobs'")
    assert "autovacuum_analyze_scale_factor=0.02" in options


async def test_a_fetch_among_many_blocked_jobs_is_quick(engine: World) -> None:
    """Traps 3 and 4: without the index one such fetch takes many seconds before the first analysis."""
    jobs = "procrastinate_jobs"
    await engine.owner.execute(
        f"INSERT INTO {jobs} (queue_name, task_name, lock, status) SELECT 'default', 'wake', 'agent:' || n, 'doing' FROM generate_series(1, 2000) n"
    )
    await engine.owner.execute(
        f"INSERT INTO {jobs} (queue_name, task_name, lock) SELECT 'default', 'wake', 'agent:' || n % 2000 + 1 FROM generate_series(1, 10000) n"
    )
    worker = await engine.queue.jobs.register_worker()
    async with asyncio.timeout(3):
        assert await engine.queue.jobs.fetch_job(None, worker) is None


async def test_a_fetch_planned_among_few_jobs_goes_by_index_among_many(engine: World) -> None:
    """The plan of the first jobs stays with the connection; a scan of all jobs in it took 50 ms a fetch among a thousand."""
    jobs, add = (
        "procrastinate_jobs",
        "INSERT INTO procrastinate_jobs (queue_name, task_name, lock) SELECT 'default', 'wake', 'agent:' || n FROM generate_series(%s, %s::int) n",
    )
    await engine.owner.execute(add, (1, 20))
    await engine.owner.execute(f"ANALYZE {jobs}")
    worker = await engine.queue.jobs.register_worker()
    async with engine.queue.app.connector.pool.connection() as connection, connection.transaction():  # type: ignore[attr-defined]
        fetch = ("SELECT (procrastinate_fetch_job_v2(NULL, %s)).id", (worker,))
        for _ in range(10):
            assert await (await connection.execute(*fetch)).fetchone()
        await engine.owner.execute(add, (21, 1000))
        assert await (await connection.execute(*fetch)).fetchone()
        read = await connection.execute("SELECT seq_tup_read FROM pg_stat_xact_user_tables WHERE relname = %s", (jobs,))
        assert await read.fetchone() == (0,)


async def defer(engine: World, agent: int, seconds: float = 0.0) -> None:
    async with engine.db.bare() as connection:
        await engine.queue.defer_wake(connection, agent)
    if seconds:
        await engine.owner.execute("UPDATE procrastinate_jobs SET scheduled_at = now() + %s * interval '1 s'", (seconds,))


async def begun(engine: World) -> int:
    return len([job for job in await engine.jobs() if job["status"] == "doing"])


async def test_while_there_are_many_several_are_fetched_at_once_and_no_more_than_there_is_room_for(engine: World) -> None:
    for agent in range(1, 13):
        await defer(engine, agent)
    engine.queue.settings = replace(engine.queue.settings, concurrency=3)
    worker = await engine.queue.jobs.register_worker()
    locks, ahead = [], []
    for number in range(1, 13):
        fetched = await engine.queue.jobs.fetch_job(None, worker)
        assert fetched is not None
        locks.append(fetched.lock)
        ahead.append(await begun(engine) - number)
    assert locks == [f"agent:{agent}" for agent in range(1, 13)]
    assert ahead[0] == 0, "one alone is no crowd"
    assert max(ahead) == 2
    assert await engine.queue.jobs.fetch_job(None, worker) is None


async def test_what_was_fetched_and_not_begun_is_given_back(engine: World) -> None:
    for agent in range(1, 13):
        await defer(engine, agent)
    worker = await engine.queue.jobs.register_worker()
    for _ in range(4):
        await engine.queue.jobs.fetch_job(None, worker)
    assert await begun(engine) > 4
    await engine.queue.jobs.give_back()
    assert await begun(engine) == 4
    others = await engine.queue.jobs.register_worker()
    assert [(await engine.queue.jobs.fetch_job(None, others) or job()).lock for _ in range(8)] == [
        f"agent:{n}" for n in range(5, 13)
    ]


async def test_no_queueing_lock_and_the_agents_lock(engine: World) -> None:
    """Trap 5: a queueing lock and a retry leave jobs that are `doing` for ever."""
    await defer(engine, 7)
    (row,) = await engine.jobs()
    assert (row["lock"], row["queueing_lock"], row["args"]) == ("agent:7", None, {"agent": 7})


async def test_a_future_job_holds_up_the_later_ones_of_its_lock_and_no_other(engine: World) -> None:
    """Trap 6, which the order of retries rests on; it may become an option."""
    await defer(engine, 1, seconds=1000)
    await defer(engine, 1)
    await defer(engine, 2)
    worker = await engine.queue.jobs.register_worker()
    fetched = await engine.queue.jobs.fetch_job(None, worker)
    assert fetched is not None
    assert fetched.lock == "agent:2"
    assert await engine.queue.jobs.fetch_job(None, worker) is None


async def test_a_later_job_does_not_overtake_a_rescheduled_one(engine: World) -> None:
    """Trap 7."""
    await defer(engine, 1)
    worker = await engine.queue.jobs.register_worker()
    first = await engine.queue.jobs.fetch_job(None, worker)
    assert first is not None
    await defer(engine, 1)
    assert await engine.queue.jobs.fetch_job(None, worker) is None
    await engine.queue.jobs.retry_job(first)
    again = await engine.queue.jobs.fetch_job(None, worker)
    assert again is not None
    assert again.id == first.id


async def test_jobs_of_a_stopping_worker_are_free_again(engine: World) -> None:
    """Trap 8: without a strategy that always reschedules they would end as aborted and be lost."""

    async def think(claim: object) -> None:
        await asyncio.Event().wait()

    turn = Turns(engine, [think] * 20)
    for number in range(20):
        await engine.say("x", user=f"user{number}")
    async with working(engine, turn):
        await until(lambda: len(turn.seen) == 20)
    assert [row["status"] for row in await engine.jobs()] == ["todo"] * 20
    assert await engine.one("SELECT count(*) FROM procrastinate_jobs") == 20


async def test_only_the_current_run_of_a_job_may_end_it(engine: World) -> None:
    """A worker that was thought dead must neither delete nor free the job that another one is running."""
    await defer(engine, 1)
    jobs = engine.queue.jobs
    first = await jobs.fetch_job(None, await jobs.register_worker())
    assert first is not None
    await jobs.retry_job(first)
    second = await jobs.fetch_job(None, await jobs.register_worker())
    assert second is not None
    assert not await engine.queue.owns(first)
    await jobs.finish_job(first, Status.SUCCEEDED, delete_job=True)
    await jobs.retry_job(first)
    assert await engine.queue.owns(second)
    await jobs.finish_job(second, Status.SUCCEEDED, delete_job=True)
    assert await engine.jobs() == []


async def test_of_two_that_fetched_the_same_run_the_one_in_the_table_has_it(engine: World) -> None:
    """A crash of the server takes a fetch back that was not on disk; then another process fetches the same attempt."""
    await defer(engine, 1)
    async with Queue(engine.db.url, engine.settings) as other:
        ours = await engine.queue.jobs.fetch_job(None, await engine.queue.jobs.register_worker())
        await engine.owner.execute("UPDATE procrastinate_jobs SET status = 'todo', worker_id = NULL")
        theirs = await other.jobs.fetch_job(None, await other.jobs.register_worker())
        assert ours is not None
        assert theirs is not None
        assert not await engine.queue.owns(ours)
        await engine.queue.jobs.retry_job(ours)
        await engine.queue.jobs.finish_job(ours, Status.SUCCEEDED, delete_job=True)
        assert await other.owns(theirs)
        assert [(row["status"], row["attempts"]) for row in await engine.jobs()] == [("doing", 0)]


async def test_a_run_that_its_own_process_fetched_again_is_over(engine: World) -> None:
    await defer(engine, 1)
    jobs = engine.queue.jobs
    worker = await jobs.register_worker()
    first = await jobs.fetch_job(None, worker)
    await engine.owner.execute("UPDATE procrastinate_jobs SET status = 'todo', worker_id = NULL")
    second = await jobs.fetch_job(None, worker)
    assert first is not None
    assert second is not None
    assert not await engine.queue.owns(first)
    await jobs.finish_job(first, Status.SUCCEEDED, delete_job=True)
    assert await engine.queue.owns(second)


async def test_the_end_of_a_job_is_written_down_until_it_is_taken(engine: World, outage: Outage, urls: Urls) -> None:
    """Its connection breaks in the middle: the job stood as being done for ever, and what its person wrote next waited behind it."""
    turn = Turns(engine)
    engine.settings = replace(QUICK, heartbeat=60.0, reap_every=3600.0)
    async with await psycopg.AsyncConnection.connect(urls.owner) as other:

        async def hold(claim: Claim) -> None:
            await engine.finish(claim, "re first")
            await other.execute("SELECT FROM procrastinate.procrastinate_jobs FOR UPDATE")

        turn.acts.append(hold)
        async with working(engine, turn):
            await engine.say("first")
            await until(lambda: engine.one("SELECT count(*) FROM pg_locks WHERE NOT granted"))
            await outage.cut("keepsake-queue")
            await other.rollback()
            await engine.say("second")
            await until(engine.at_rest, timeout=20)
    assert turn.seen == [["first"], ["second"]]


async def test_a_living_worker_frees_what_it_is_not_doing_and_nothing_else(engine: World) -> None:
    """The answer to its fetch was lost, or the end of the run was taken back by a crash: only the worker itself can know."""
    thinking = asyncio.Event()

    async def think(claim: Claim) -> None:
        await thinking.wait()

    turn = Turns(engine, [think])
    engine.settings = replace(QUICK, heartbeat=60.0, reap_every=0.05)
    await engine.say("first")
    async with working(engine, turn):
        await until(lambda: turn.seen)
        await engine.say("lost", user="bob")
        await until(lambda: len(turn.seen) == 2)
        await until(lambda: _idle(engine, "agent:2"))
        await engine.owner.execute("UPDATE agents SET wake = true WHERE id = 2")
        await engine.say("again", user="bob")
        await engine.owner.execute(
            """INSERT INTO procrastinate_jobs (queue_name, task_name, lock, args, status, worker_id)
               SELECT queue_name, task_name, 'agent:2', '{"agent": 2}', 'doing', worker_id FROM procrastinate_jobs WHERE lock = 'agent:1'"""
        )
        await until(lambda: len(turn.seen) == 3)
        [running] = [row for row in await engine.jobs() if row["lock"] == "agent:1"]
        assert (running["status"], running["attempts"]) == ("doing", 0)
        thinking.set()
        await until(engine.at_rest)
    assert turn.seen == [["first"], ["lost"], ["again"]]


async def _idle(engine: World, lock: str) -> bool:
    return not [row for row in await engine.jobs() if row["lock"] == lock]


async def test_the_pulse(engine: World) -> None:
    assert engine.queue.idle_for is None
    async with working(engine, Turns(engine)):
        await until(lambda: engine.queue.idle_for is not None and engine.queue.idle_for < QUICK.poll)


async def test_deferring_rolls_back_with_the_callers_transaction(engine: World) -> None:
    with pytest.raises(ZeroDivisionError):
        await _defer_and_fail(engine)
    assert await engine.jobs() == []


async def _defer_and_fail(engine: World) -> None:
    async with engine.db.bare() as connection:
        await engine.queue.defer_wake(connection, 1)
        raise ZeroDivisionError
