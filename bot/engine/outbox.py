"""The outbox: what goes out, each channel in order and one at a time, different channels side by side.

A row is marked as being sent before the platform is called, so a crash leaves it doubtful, never forgotten. A doubtful row is looked
up on the platform before it is sent again. Only the head of a channel is ever taken, so one that fails holds up its own channel alone.
What came of a sending is written down until the database has taken it: to the process that knows it, the row is not doubtful.
A row whose text grew on the platform while the model wrote (`bot/turn/streaming.py`) is finished here, by an edit of its message.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from functools import partial

from psycopg import OperationalError
from psycopg.types.json import Jsonb

from adapters.base import Adapter, Button, Outgoing, Person, Streams, TryLater, Undeliverable, Unreachable
from adapters.catalogue import in_every_language
from bot.engine.listen import listen
from bot.engine.loops import forever, insist, named
from bot.engine.settings import EngineSettings
from bot.engine.signals import Senders
from memory.db import Database, value

log = logging.getLogger(__name__)

BACKOFF_CAP = 300.0  # seconds
STOPPED = " … ⏹"
"""What stands behind a growing reply whose turn ended without it."""


@dataclass(frozen=True, slots=True)
class _Head:
    """A row taken at a time: the first unsent one of its channel."""

    id: int
    agent: int
    place: int
    doubtful: bool
    taken: datetime


@dataclass(frozen=True, slots=True)
class _Row:
    """What is to be sent. `begun` is the platform's id of a message that grew; `hopeless`: its person cannot be written to."""

    outgoing: Outgoing
    begun: str | None
    hopeless: bool


class OutboxSender:
    """Sends what waits for one adapter. `run` goes on until it is cancelled, and lets what is being sent come to its end."""

    def __init__(
        self,
        db: Database,
        adapter: Adapter,
        settings: EngineSettings,
        *,
        now: Callable[[], datetime] = lambda: datetime.now(UTC),
        outbound: Senders | None = None,
        number: int | None = None,
    ) -> None:
        """`number`: that of the process. Without one nobody knows when it is dead, and what it was sending is doubtful only after a while."""
        self._db, self._adapter, self._now, self._number = db, adapter, now, number
        self._settings = settings
        self._outbound = outbound or Senders()
        self._sending: set[asyncio.Task[None]] = set()
        self._under_way: set[int] = set()
        self._lost_looks: list[datetime] = []
        self._look = asyncio.Event()

    async def run(self) -> None:
        """Send until cancelled."""
        self._look = self._outbound.serve(self._adapter.platform, self._adapter.channels)
        try:
            async with asyncio.TaskGroup() as group:
                group.create_task(listen(self._db.url, "keepsake_outbox", self._heard, number=self._number))
                group.create_task(forever(f"sending on {self._adapter.platform}", self._round, every=0.0))
        finally:
            self._outbound.leave(self._look)
            await self._let_end()

    async def flush(self) -> bool:
        """Start sending every channel's head that may go now; returns whether there was any. For tests and for a last round."""
        free = self._settings.sends_at_once - len(self._sending)
        if free <= 0:
            return False
        heads = await self._take(free)
        for head in heads:
            self._under_way.add(head.id)
            task = asyncio.create_task(self._deliver(head))
            self._sending.add(task)
            task.add_done_callback(partial(self._ended, head.id))
        return bool(heads)

    async def _take(self, most: int) -> list[_Head]:
        now, platform = self._now(), self._adapter.platform
        while self._lost_looks:
            await self._db.once("SELECT doubt_sending(%s, %s, %s)", (now, platform, self._lost_looks[-1]))
            self._lost_looks.pop()
        channels = None if self._adapter.channels is None else list(self._adapter.channels)
        doubtful = now - timedelta(seconds=self._settings.doubtful_after)
        try:
            rows = await self._db.once(
                "SELECT * FROM claim_outbox(%s, %s, %s, %s, %s, %s, %s)",
                (platform, channels, most, now, doubtful, STOPPED, self._number),
            )
        except OperationalError:
            # The answer may be lost and the rows taken, for nobody.
            self._lost_looks.append(now)
            raise
        heads = [_Head(row["outbox_id"], row["agent_id"], row["place_id"], row["doubtful"], now) for row in rows]
        # What this process is sending is not doubtful to it, whether the clock jumps meanwhile or the database keeps us from writing it down.
        return [head for head in heads if head.id not in self._under_way]

    async def _round(self) -> None:
        self._look.clear()
        if not await self.flush():
            try:
                async with asyncio.timeout(self._settings.outbox_poll):
                    await self._look.wait()
            except TimeoutError:
                pass  # the poll finds what nobody told us of, and what had to wait

    async def _heard(self, payload: str) -> None:
        if payload in ("", self._adapter.platform):
            self._look.set()

    def _ended(self, row: int, task: asyncio.Task[None]) -> None:
        self._sending.discard(task)
        self._under_way.discard(row)
        if not task.cancelled() and (error := task.exception()) is not None:
            # The row stays marked as being sent and is looked up when it has become doubtful.
            log.warning("an outbox row could not be settled: %s", named(error))
        self._look.set()

    async def _deliver(self, head: _Head) -> None:
        row = await insist(f"reading outbox row {head.id}", partial(self._read, head))
        if row is None:
            return  # erased, or taken by another process, meanwhile
        if row.hopeless:
            await self._settle(head, "state = 'failed', last_error = %s", Unreachable.__name__)
            return
        # A platform's library may raise anything; what is not one of the contract's two means that the outcome is unknown.
        (outcome,) = await asyncio.gather(self._send(row, doubtful=head.doubtful), return_exceptions=True)
        match outcome:
            case str():
                await self._sent(head, outcome)
            case Undeliverable():
                log.warning("outbox row %d is undeliverable", head.id)
                # First, as the next row of the channel may go out as soon as this one is settled.
                first = self._mark if isinstance(outcome, Unreachable) else self._redirect
                await insist(f"outbox row {head.id} is undeliverable", partial(first, head))
                await self._settle(head, "state = 'failed', last_error = %s", named(outcome))
            case TryLater():
                await self._settle(head, "state = 'waiting', not_before = %s", self._now() + timedelta(seconds=outcome.seconds))
            case _:
                await insist(f"outbox row {head.id} is doubtful", partial(self._unknown, head, outcome))

    async def _send(self, row: _Row, *, doubtful: bool) -> str:
        outgoing, adapter = row.outgoing, self._adapter
        async with asyncio.timeout(self._settings.send_timeout):
            found = await adapter.find(outgoing) if doubtful and row.begun is None else None
            if outgoing.streamed and isinstance(adapter, Streams):
                return await adapter.finish(outgoing, row.begun or found or await adapter.begin(outgoing))
            return found if found is not None else await adapter.send(outgoing)

    async def _mark(self, head: _Head) -> None:
        """Nothing more is tried until the person writes again, in no process."""
        await self._db.once("SELECT mark_unreachable(%s, %s, %s)", (head.agent, head.place, self._now()))

    async def _redirect(self, head: _Head) -> None:
        """What a timer made for a channel that is gone goes to the person's direct message, or has failed; never elsewhere."""
        note = Jsonb(in_every_language("outbox.redirected"))
        async with self._db.bare() as connection:
            if await value(connection, "SELECT redirect_timed(%s, %s, %s)", (head.id, note, self._now())):
                log.warning("outbox row %d goes to the direct message of agent %d instead", head.id, head.agent)

    async def _unknown(self, head: _Head, error: BaseException) -> None:
        """Perhaps it was sent: stays marked as being sent, and is looked up after a while that grows with each attempt.

        After a day it is given up, so that its channel is not held up for ever.
        """
        log.warning("outbox row %d: outcome unknown: %s", head.id, named(error))
        async with self._db.agent(head.agent, head.place) as connection:
            await connection.execute(
                """UPDATE outbox SET last_error = %(error)s, not_before = %(now)s + least(%(cap)s, 2 ^ least(attempts, 20)) * interval '1 s',
                     state = CASE WHEN created_at < %(now)s - %(give_up)s * interval '1 s' THEN 'failed' ELSE state END
                   WHERE id = %(id)s AND state = 'sending' AND sending_since = %(taken)s""",
                {
                    "error": named(error),
                    "now": self._now(),
                    "cap": BACKOFF_CAP,
                    "give_up": self._settings.give_up,
                    "id": head.id,
                    "taken": head.taken,
                },
            )

    async def _read(self, head: _Head) -> _Row | None:
        rows = await self._db.as_agent(
            head.agent,
            head.place,
            """SELECT channel, body, reply_to, streamed, platform_id, unreachable_at(agent_id, place_id) AS hopeless, buttons,
                      notify AND p.kind <> 'direct' AS notify, p.workspace, p.realm,
                      CASE WHEN buttons IS NOT NULL OR notify THEN person_at(outbox.agent_id, outbox.place_id) END AS person
               FROM outbox JOIN places p ON p.id = outbox.place_id WHERE outbox.id = %s AND state = 'sending' AND sending_since = %s""",
            (head.id, head.taken),
        )
        if not rows:
            return None
        row = rows[0]
        body, limit = row["body"], self._adapter.limit
        # Only a message that stood full when it was stopped is longer.
        text = body if len(body) <= limit or not row["streamed"] else body[: limit - len(STOPPED)] + STOPPED
        person = row["person"] or ""
        outgoing = Outgoing(
            head.id,
            row["channel"],
            text,
            row["reply_to"],
            row["streamed"],
            row["workspace"] or "",
            mention=person if row["notify"] else "",
            buttons=tuple(Button(**button) for button in row["buttons"] or ()) if person else (),
            made_for=Person(self._adapter.platform, row["realm"], person, "").author_id if person else "",
        )
        return _Row(outgoing, row["platform_id"] if row["streamed"] else None, row["hopeless"])

    async def _sent(self, head: _Head, platform_id: str) -> None:
        """A message that the platform has is sent, whoever has taken the row since and whatever they found."""
        sent = "UPDATE outbox SET state = 'sent', platform_id = %s WHERE id = %s AND state IN ('sending', 'waiting')"
        await self._write(head, sent, (platform_id, head.id))

    async def _settle(self, head: _Head, change: str, argument: object) -> None:
        """What else became of a row, unless somebody has taken it since."""
        settled = f"UPDATE outbox SET {change} WHERE id = %s AND state = 'sending' AND sending_since = %s"  # noqa: S608
        await self._write(head, settled, (argument, head.id, head.taken))

    async def _write(self, head: _Head, statement: str, parameters: tuple[object, ...]) -> None:
        returning = f"{statement} RETURNING id"
        await insist(f"settling outbox row {head.id}", lambda: self._db.as_agent(head.agent, head.place, returning, parameters))

    async def _let_end(self) -> None:
        """What is being sent gets its time; what does not end in it is doubtful at the next start."""
        if self._sending:
            _, late = await asyncio.wait(self._sending, timeout=self._settings.release_within)
            for task in late:
                task.cancel()
