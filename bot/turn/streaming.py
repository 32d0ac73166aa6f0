"""Replies that grow on their platform while the model writes them.

Shown is only what is certain to be a reply: the text of a `send_message` call as its JSON arrives, and plain text where no call is
allowed any more. Text beside calls may turn out to be a thought, which nobody sees.

A growing reply is an outbox row from its first words on. The platform's id is kept before a second change is shown, so whoever goes on
after a crash edits the same message; the pass that makes the reply takes the row over, and the outbox sends the final text as an edit. A
row that no pass takes over is finished with what stands there, marked as stopped, once its turn has ended.
"""

from __future__ import annotations

import asyncio
import json
import logging
import re
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime

from adapters.base import Outgoing, Streams, TryLater, Undeliverable
from adapters.text import split
from bot.engine.events import Claim
from bot.model.stream import Partial, Watch
from bot.model.thoughts import spoken_so_far
from memory.db import Database, value
from memory.sanitise import clean

log = logging.getLogger(__name__)

FIRST = 40
"""Characters that have to be there before a message is begun: what is shorter is there at once anyway."""
PATIENCE = 10.0
"""Seconds that one change may take."""
FAILURES = 3
"""Changes in a row that may fail before the rest of a reply is not shown until it is whole."""
_DECODER = json.JSONDecoder()
_BLANK = re.compile(r"[\s,:]*")
_HALF_ESCAPE = re.compile(r"(?:\\|\\u[0-9a-fA-F]{0,3}|\\u[dD][89abAB][0-9a-fA-F]{2}(?:\\(?:u[0-9a-fA-F]{0,3})?)?)\Z")
_PERHAPS_A_CALL = re.compile(r"[{<\[`]")


def certain(partial: Partial, *, plain: bool) -> str:
    """As much of what a model has written so far as will be a reply whatever follows. Empty: nothing is certain yet.

    `plain`: no call is allowed and nothing was said yet, so text is the reply.
    """
    for name, arguments in partial.calls:
        if name == "send_message":
            said = spoken_so_far(argument_so_far(arguments, "text"))
            return "" if said.startswith("{") else said  # perhaps one of our own packages, which is no reply
    if not plain or partial.calls or not partial.plain:
        return ""
    # A model may write a call as text; what could be the beginning of one is waited for.
    return spoken_so_far(_PERHAPS_A_CALL.split(partial.text, maxsplit=1)[0])


def argument_so_far(raw: str, wanted: str) -> str:
    """The text of one argument in a JSON object that may be unfinished; empty where it is not reached or no text."""
    at = raw.find("{") + 1
    with suppress(ValueError, IndexError):
        while at:
            key, at = _DECODER.raw_decode(raw, _skipped(raw, at))
            at = _skipped(raw, at)
            if key == wanted:
                return _string_so_far(raw[at:])
            _, at = _DECODER.raw_decode(raw, at)
    return ""


def _skipped(raw: str, at: int) -> int:
    found = _BLANK.match(raw, at)
    return found.end() if found else at


def _string_so_far(raw: str) -> str:
    if not raw.startswith('"'):
        return ""
    with suppress(ValueError):
        return str(_DECODER.raw_decode(raw)[0])
    with suppress(ValueError):
        return str(json.loads(_HALF_ESCAPE.sub("", raw) + '"', strict=False))
    return ""


@dataclass(slots=True)
class _Begun:
    """A message that grows: its row, its id on the platform once that is known, and what it shows."""

    row: int
    platform_id: str | None
    shown: str


class Stream:
    """The growing replies of one turn. Without an adapter (or its wish) nothing grows; what an earlier run began is taken over all the same."""

    def __init__(
        self,
        db: Database,
        claim: Claim,
        adapter: Streams | None,
        *,
        limit: int,
        reply_to: str | None,
        clock: Callable[[], datetime],
    ) -> None:
        self._db, self._claim, self._clock = db, claim, clock
        self._adapter = adapter if adapter is not None and adapter.pace is not None else None
        self._limit, self._reply_to = limit, reply_to
        self._begun: list[_Begun] = []
        self._text, self._fresh = "", asyncio.Event()
        self._task: asyncio.Task[None] | None = None
        self._failures = 0

    @property
    def shown(self) -> bool:
        """Whether the person sees something of a reply that is not there yet."""
        return bool(self._begun)

    async def load(self) -> None:
        """What an earlier run of the turn began."""
        async with self._db.agent(self._claim.agent, self._claim.place) as connection:
            cursor = await connection.execute(
                "SELECT id, platform_id, body FROM outbox WHERE turn_id = %s AND state = 'streaming' ORDER BY id",
                (self._claim.turn,),
            )
            self._begun = [_Begun(row["id"], row["platform_id"], row["body"]) for row in await cursor.fetchall()]

    def watch(self, *, plain: bool) -> Watch | None:
        """What a pass's model call is watched by; None where nothing grows. `plain`: its text will be the reply."""
        if self._adapter is None:
            return None
        self._text, self._failures = "", 0

        def see(partial: Partial) -> None:
            text = clean(certain(partial, plain=plain))
            if len(text) >= FIRST and self._failures < FAILURES:
                self._text = text
                self._fresh.set()
                self._task = self._task or asyncio.create_task(self._grow(), name="growing reply")

        return see

    async def settle(self) -> None:
        """The pass's model call is over: nothing more is shown from here; returns when a change that is under way has ended."""
        task, self._task = self._task, None
        self._text = ""
        self._fresh.clear()
        if task is not None:
            task.cancel()
            await asyncio.wait({task})

    @property
    def rows(self) -> list[int]:
        """The rows of the outbox, for the reply that takes them over."""
        return [each.row for each in self._begun]

    def taken(self) -> None:
        """They were taken over."""
        self._begun = []

    async def _grow(self) -> None:
        assert self._adapter is not None
        while True:
            await self._fresh.wait()
            self._fresh.clear()
            change = asyncio.ensure_future(self._show(self._text))
            try:
                await asyncio.wait({change})
            finally:
                # A change is never torn in the middle, or nobody would know what the message shows.
                await asyncio.wait({change})
                change.exception()  # looked at, or asyncio would log its text
            await asyncio.sleep((self._adapter.pace or 0.0) + self._delay(change))

    def _delay(self, change: asyncio.Future[None]) -> float:
        """More seconds to wait after a change. A platform's library may raise anything: the reply itself is not at stake."""
        error = change.exception()
        self._failures = self._failures + 1 if error else 0
        if isinstance(error, Undeliverable):
            self._failures = FAILURES
        if error:
            log.info("a growing reply of turn %d did not grow: %s", self._claim.turn, type(error).__name__)
        return error.seconds if isinstance(error, TryLater) else 0.0

    async def _show(self, text: str) -> None:
        assert self._adapter is not None
        async with asyncio.timeout(PATIENCE):
            for number, chunk in enumerate(split(text, self._limit)):
                if number == len(self._begun):
                    row = await self._open(chunk, self._reply_to if number == 0 else None)
                    if row is None:
                        self._failures = FAILURES
                        return
                    self._begun.append(_Begun(row, None, ""))
                begun = self._begun[number]
                if begun.shown != chunk:
                    await self._change(begun, chunk, self._reply_to if number == 0 else None)

    async def _change(self, begun: _Begun, chunk: str, reply_to: str | None) -> None:
        assert self._adapter is not None
        outgoing = Outgoing(begun.row, self._claim.channel, chunk, reply_to, streamed=True)
        if begun.platform_id is None:
            begun.platform_id = await self._adapter.begin(outgoing)
        else:
            await self._adapter.extend(outgoing, begun.platform_id)
        begun.shown = chunk
        async with self._db.agent(self._claim.agent, self._claim.place) as connection:
            await connection.execute(
                "UPDATE outbox SET body = %s, platform_id = %s WHERE id = %s AND state = 'streaming'",
                (chunk, begun.platform_id, begun.row),
            )

    async def _open(self, chunk: str, reply_to: str | None) -> int | None:
        claim = self._claim
        async with self._db.bare() as connection:
            row = await value(
                connection,
                "SELECT open_stream(%s, %s, %s, %s, %s, %s, %s)",
                (claim.agent, claim.place, claim.turn, claim.fence.epoch, chunk, reply_to, self._clock()),
            )
        return None if row is None else int(row)
