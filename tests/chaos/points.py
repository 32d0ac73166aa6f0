"""kill -9 of every process of the bot at a named point of one turn, seen from outside: by the database, the model or the platform.

accepted         the event is in the inbox, nobody may claim it
claimed          a turn runs, its first step is held up
appended         the model is asked, so the words are stored
between_calls    the model is asked a second time, after calls
flushing         the summary model is asked
model_answered   the answer is there, the step that keeps it is held up
handed_over      the platform has the post and has not carried it out
sent_unrecorded  the platform has carried it out, and the bot does not know
erasing          the person has themselves erased; all rows are deleted, the last one of the record is held up
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from contextlib import suppress
from dataclasses import dataclass, field

import psycopg

from tests.chaos.brain import REMEMBER, SUMMARISER, Brain, unanswered
from tests.chaos.crew import Crew
from tests.chaos.schedule import Point
from tests.chaos.snapshots import Said, tokens
from tests.chaos.stage import Stage
from tests.chaos.stores import Stores
from tests.servers.model import Request
from tests.waiting import until

PATIENCE = 60.0
"""Seconds in which a point is reached, or the person has their answer."""
LONG = "it was a long story about the sea and the garden " * 120
"""What fills the context in a few messages."""
MOST = 40
"""Long messages after which the context has to have been flushed."""
ERASE = "memory forget everything yes"


@dataclass(slots=True)
class Points:
    """Kills at points. Each time somebody new speaks (`Q`; `E` who is erased), and has to be answered in the end."""

    crew: Crew
    stage: Stage
    brain: Brain
    stores: Stores
    erased: set[str] = field(default_factory=set)

    async def kill(self, point: Point, number: int) -> None:
        """Bring somebody's turn to a point, kill every process, start them again, and wait for the answer."""
        name = f"{'E' if point == 'erasing' else 'Q'}{number}"
        self.stage.join(name)
        reach: dict[Point, Callable[[str], Awaitable[Said]]] = {
            "accepted": self._accepted, "claimed": self._claimed, "appended": self._appended, "between_calls": self._between_calls,
            "flushing": self._flushing, "model_answered": self._model_answered, "handed_over": self._handed_over,
            "sent_unrecorded": self._sent_unrecorded, "erasing": self._erasing,
        }  # fmt: skip
        said = await reach[point](name)
        await self.crew.start()
        if point == "erasing":
            await self._erase_again(name)
        elif not await self.stage.answered(said, PATIENCE):
            raise AssertionError(f"no answer to {said.token} after a kill at {point}")

    def _say(self, name: str, text: str = "hello", number: int = 1) -> Said:
        return self.stage.say(name, "direct", f"{name}-{number}", text)

    async def _accepted(self, name: str) -> Said:
        async with self.stores.locked("turns"):
            said = self._say(name)
            await until(lambda: self._count("SELECT count(*) FROM events WHERE payload->>'message_id' = %s", said.id), PATIENCE)
            await self.crew.kill_all()
        return said

    async def _claimed(self, name: str) -> Said:
        async with self.stores.locked("messages"):
            said = self._say(name)
            claimed = (
                "SELECT count(*) FROM events e JOIN turns t ON t.id = e.turn_id WHERE payload->>'message_id' = %s AND t.step = 0"
            )
            await until(lambda: self._count(claimed, said.id), PATIENCE)
            await self.crew.kill_all()
        return said

    async def _appended(self, name: str) -> Said:
        gate = self.brain.catch(lambda request: asks_about(request, f"{name}-1"))
        said = self._say(name)
        await until(gate.reached.is_set, PATIENCE)
        await self.crew.kill_all()
        return said

    async def _between_calls(self, name: str) -> Said:
        gate = self.brain.catch(lambda request: asks_about(request, f"{name}-1") and unanswered(request).called)
        said = self._say(name, f"{REMEMBER} it was fine")
        await until(gate.reached.is_set, PATIENCE)
        await self.crew.kill_all()
        return said

    async def _flushing(self, name: str) -> Said:
        gate = self.brain.catch(lambda request: request.model == SUMMARISER and f"{name}-" in str(request.messages))
        for number in range(1, MOST):
            said = self._say(name, LONG, number)
            await until(lambda: gate.reached.is_set() or f"{name}-{number}" in self.brain.answered, PATIENCE)  # noqa: B023
            if gate.reached.is_set():
                await self.crew.kill_all()
                return said
            await self.stage.answered(said, PATIENCE)
        raise AssertionError(f"{MOST} long messages of {name}, and no flush")

    async def _model_answered(self, name: str) -> Said:
        async with self.stores.locked("outbox"):
            said = self._say(name)
            await until(lambda: said.token in self.brain.answered, PATIENCE)
            await until(lambda: self._in_step(said), PATIENCE)
            await self.crew.kill_all()
        return said

    async def _handed_over(self, name: str) -> Said:
        hold = self.stage.hold_post(f"{name}-1")
        said = self._say(name)
        await until(hold.reached.is_set, PATIENCE)
        await self.crew.kill_all()
        hold.release()
        return said

    async def _sent_unrecorded(self, name: str) -> Said:
        self.stage.hold_answer(f"{name}-1")
        said = self._say(name)
        await until(lambda: any(said.token in tokens(shown.text) for shown in self.stage.shown()), PATIENCE, every=0.05)
        await self.crew.kill_all()
        return said

    async def _erasing(self, name: str) -> Said:
        said = self._say(name)
        assert await self.stage.answered(said, PATIENCE), f"no answer to {said.token} before an erasure"
        async with self.stores.locked("erasures"):
            asking = asyncio.ensure_future(self.stage.command(name, ERASE))
            await until(lambda: self.stores.waited_for("erasures"), PATIENCE)
            await self.crew.kill_all()
            asking.cancel()
            await asyncio.wait({asking})
        return said

    async def _erase_again(self, name: str) -> None:
        answer = await self.stage.command(name, ERASE)
        assert answer, f"no answer to {name} who asks to be erased"
        self.erased.add(name)

    async def _count(self, statement: str, *arguments: object) -> int:
        with suppress(psycopg.OperationalError):
            return int(await self.stores.one(statement, *arguments))
        return 0

    async def _in_step(self, said: Said) -> bool:
        """Whether a step of the person's agent is open: its row is locked, and the outbox waited for."""
        statement = """SELECT count(*) FROM agents WHERE id = (SELECT agent_id FROM events WHERE payload->>'message_id' = %s)"""
        async with self.stores.owner() as connection, connection.transaction():
            whole = await (await connection.execute(statement.encode(), (said.id,))).fetchone()
            free = await (await connection.execute(
                b"SELECT id FROM agents WHERE id = (SELECT agent_id FROM events WHERE payload->>'message_id' = %s) FOR UPDATE SKIP LOCKED",
                (said.id,))).fetchone()  # fmt: skip
        return bool(whole and next(iter(whole.values()))) and free is None and await self.stores.waited_for("outbox")


def asks_about(request: Request, token: str) -> bool:
    """Whether the chat model is asked for the answer to a token."""
    return request.model != SUMMARISER and token in [one for one, _ in unanswered(request).texts]
