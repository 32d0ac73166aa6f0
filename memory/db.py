"""Postgres: the pool, and the one transaction helper that names the agent and the usable places.

Every statement on personal rows runs inside `Database.agent`; row-level security refuses everything else.
"""

from __future__ import annotations

import select
import time
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager, suppress
from typing import Any

from psycopg import AsyncConnection, AsyncCursor, Error, OperationalError, Rollback
from psycopg.rows import DictRow, dict_row
from psycopg_pool import AsyncConnectionPool

from memory.clock import Clock

Connection = AsyncConnection[DictRow]
SEARCH_PATH = "keepsake,procrastinate,public"
# A process that is frozen in a transaction would keep its row locks from everybody else. What is committed is acted on, in messages to people
# and in numbers that are remembered, so it is on disk by then, whatever the server's own default is.
_OPTIONS = f"-c search_path={SEARCH_PATH} -c idle_in_transaction_session_timeout=60s -c synchronous_commit=on"


RECONNECT_EVERY = 0.5
"""Seconds between two attempts to reach a database that is away."""


async def _configure(connection: Connection) -> None:
    await connection.set_autocommit(True)


class Pool(AsyncConnectionPool[Any]):
    """A pool that is back as soon as the database is, and gives out no connection that the server has closed.

    psycopg's own doubles its waits up to minutes, and after a crash hands out one broken connection after the other.
    """

    def __init__(self, conninfo: str, **options: Any) -> None:
        super().__init__(conninfo, open=False, reconnect_timeout=RECONNECT_EVERY, reconnect_failed=_look_again, **options)

    async def getconn(self, timeout: float | None = None) -> AsyncConnection[Any]:
        """As psycopg's."""
        while True:
            connection: AsyncConnection[Any] = await super().getconn(timeout)
            closed = True
            try:
                closed = await _closed_by_the_server(connection)
            finally:  # also when this is cancelled meanwhile
                if closed:
                    await self.putconn(connection)
            if not closed:
                return connection


async def _look_again(pool: AsyncConnectionPool[Any]) -> None:
    """Begin anew instead of giving up until somebody asks."""
    await pool.check()


async def _closed_by_the_server(connection: AsyncConnection[Any]) -> bool:
    """Nothing comes over an idle connection but its end, so that only one with something to read has to be tried."""
    if connection.closed:
        return True
    waiting = select.poll()
    waiting.register(connection.fileno(), select.POLLIN)
    if not waiting.poll(0):
        return False
    try:
        await AsyncConnectionPool.check_connection(connection)
    except OperationalError:
        return True
    return False


class Database:
    """A pool of connections under the bot's role, and the time by the server's clock (`now`).

    Open it with `async with`; opening waits for a first connection and raises `psycopg_pool.PoolTimeout` after `timeout` seconds.
    """

    def __init__(self, url: str, *, size: int = 20, timeout: float = 10.0) -> None:
        self.url = url
        self.now = Clock()
        self._timeout = timeout
        self.pool: AsyncConnectionPool[Connection] = Pool(
            url,
            min_size=min(2, size),
            max_size=size,
            configure=_configure,
            timeout=30.0,
            kwargs={
                "row_factory": dict_row,
                "options": _OPTIONS,
                "application_name": "keepsake",
                "keepalives_idle": 10,
                "keepalives_interval": 5,
                "keepalives_count": 3,
            },
        )

    async def __aenter__(self) -> Database:
        await self.pool.open(wait=True, timeout=self._timeout)
        with suppress(OperationalError):
            await self.read_clock()
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.pool.close()

    @asynccontextmanager
    async def _lent(self) -> AsyncIterator[Connection]:
        """A connection of the pool, which takes none back on which a statement failed.

        Of statements behind the one that failed in a pipeline psycopg believes that the server has prepared them, and calls them by name
        from then on: each of them would fail on that connection for ever, with an error that is not one of a database that is away.
        """
        async with self.pool.connection() as connection:
            try:
                yield connection
            except Error:
                await connection.close()
                raise

    async def read_clock(self) -> None:
        """See what time it is there."""
        asked = time.monotonic()
        (row,) = await self.once("SELECT extract(epoch FROM clock_timestamp())::float8 AS theirs")
        self.now.told(row["theirs"], asked, time.monotonic())

    @asynccontextmanager
    async def agent(self, agent_id: int, place_id: int | None = None, *, everything: bool = False) -> AsyncIterator[Connection]:
        """A transaction that sees one agent's rows that are usable at a place.

        With `everything` all places of the agent are usable and writable: the person's own view in their direct message, an admin's act.
        """
        async with self.opened("SELECT enter(%s, %s, %s)", (agent_id, place_id, everything)) as (connection, _):
            yield connection

    @asynccontextmanager
    async def bare(self) -> AsyncIterator[Connection]:
        """A transaction without an agent: only the functions that look across agents are of use in it."""
        async with self._lent() as connection, connection.transaction():
            yield connection

    async def once(self, statement: str, parameters: tuple[Any, ...] = ()) -> list[DictRow]:
        """The rows of one statement that looks across agents, in a transaction and a round trip of its own."""
        async with self._lent() as connection:
            return await (await connection.execute(statement, parameters)).fetchall()

    async def as_agent(
        self, agent_id: int, place_id: int | None, statement: str, parameters: tuple[Any, ...] = (), *, everything: bool = False
    ) -> list[DictRow]:
        """The rows that one statement gives as an agent at a place, in a transaction and a round trip of its own."""
        async with self._lent() as connection:
            try:
                async with connection.pipeline():
                    await connection.execute("BEGIN")
                    await connection.execute("SELECT enter(%s, %s, %s)", (agent_id, place_id, everything))
                    cursor = await connection.execute(statement, parameters)
                    await connection.execute("COMMIT")
                return await cursor.fetchall()
            except BaseException:
                with suppress(OperationalError):
                    await connection.execute("ROLLBACK")
                raise

    @asynccontextmanager
    async def opened(self, statement: str, parameters: tuple[Any, ...]) -> AsyncIterator[tuple[Connection, AsyncCursor[DictRow]]]:
        """A transaction together with its first statement, in one round trip; gives the connection and the statement's result.

        As `connection.transaction()` (Rollback rolls back and is swallowed), which would keep the whole of it in pipeline mode, where
        a statement's count and errors come late.
        """
        async with self._lent() as connection:
            try:
                async with connection.pipeline():
                    await connection.execute("BEGIN")
                    cursor = await connection.execute(statement, parameters)
                yield connection, cursor
            except BaseException as error:
                with suppress(OperationalError):  # a broken connection has nothing left to roll back
                    await connection.execute("ROLLBACK")
                if not isinstance(error, Rollback):
                    raise
            else:
                await connection.execute("COMMIT")


async def value(connection: Connection, statement: str, parameters: Mapping[str, Any] | tuple[Any, ...] = ()) -> Any:
    """The first column of the first row, or None without a row."""
    row = await (await connection.execute(statement, parameters)).fetchone()
    return None if row is None else next(iter(row.values()))
