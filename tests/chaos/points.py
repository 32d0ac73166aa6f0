"""kill -9 of every process of the bot at a named point of one turn, seen from outside: by the database, the model or the platform.

accepted         the event is in the inbox, and no turn has it
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
import time
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
TRIES = 10
_EVENT = "SELECT count(*) FROM events WHERE payload->>'message_id' = %s"
# A step of a turn appends to its conversation; a claim only refers to it.
_CONVERSATION = """SELECT c.id FROM conversations c JOIN identities i ON i.agent_id = c.agent_id
                   WHERE lower(i.display_name) = lower(%s) FOR NO KEY UPDATE OF c"""


@dataclass(slots=True)
class Points:
    """Kills at points. Each time somebody new speaks (`Q`; `E` who is erased), and has to be answered in the end.

    `killed_at`: when everything was killed last, on the monotonic clock.
    """

    crew: Crew
    stage: Stage
    brain: Brain
    stores: Stores
    erased: set[str] = field(default_factory=set)
    killed_at: float = 0.0

    async def kill(self, point: Point, number: int) -> None:
        """Bring somebody's turn to a point, kill every process, start them again, and wait for the answer."""
        name = f"{'E' if point == 'erasing' else 'Q'}{number}"
        self.stage.join(name)
        reach: dict[Point, Callable[[str], Awaitable[Said]]] = {
            "accepted": self._accepted,
            "claimed": self._claimed,
            "appended": self._appended,
            "between_calls": self._between_calls,
            "flushing": self._flushing,
            "model_answered": self._model_answered,
            "handed_over": self._handed_over,
            "sent_unrecorded": self._sent_unrecorded,
            "erasing": self._erasing,
        }
        said = await reach[point](name)
        await self.crew.start()
        if point == "erasing":
            await self._erase_again(name)
        elif not await self.stage.answered(said, PATIENCE):
            raise AssertionError(f"no answer to {said.token} after a kill at {point}")

    async def _kill_all(self) -> None:
        self.killed_at = time.monotonic()
        await self.crew.kill_all()

    def _say(self, name: str, text: str = "hello", number: int = 1) -> Said:
        return self.stage.say(name, "direct", f"{name}-{number}", text)

    async def _accepted(self, name: str) -> Said:
        for number in range(1, TRIES):
            said = self._say(name, number=number)
            await until(lambda: self._count(_EVENT, said.id), PATIENCE)  # noqa: B023
            await self._kill_all()
            if await self._count(f"{_EVENT} AND turn_id IS NULL", said.id):
                return said
            await self.crew.start()  # it was claimed already
            await self.stage.answered(said, PATIENCE)
        raise AssertionError(f"{TRIES} messages of {name}, and each was claimed at once")

    async def _claimed(self, name: str) -> Said:
        await self._known(name)
        async with self.stores.holding(_CONVERSATION, name) as held_up:
            said = self._say(name, number=2)
            await until(held_up, PATIENCE)
            assert await self._count(f"{_EVENT} AND turn_id IS NOT NULL", said.id)
            await self._kill_all()
        return said

    async def _appended(self, name: str) -> Said:
        gate = self.brain.catch(lambda request: asks_about(request, f"{name}-1"))
        said = self._say(name)
        await until(gate.reached.is_set, PATIENCE)
        await self._kill_all()
        return said

    async def _between_calls(self, name: str) -> Said:
        gate = self.brain.catch(lambda request: asks_about(request, f"{name}-1") and unanswered(request).called)
        said = self._say(name, f"{REMEMBER} it was fine")
        await until(gate.reached.is_set, PATIENCE)
        await self._kill_all()
        return said

    async def _flushing(self, name: str) -> Said:
        gate = self.brain.catch(lambda request: request.model == SUMMARISER and f"{name}-" in str(request.messages))
        for number in range(1, MOST):
            said = self._say(name, LONG, number)
            await until(lambda: gate.reached.is_set() or f"{name}-{number}" in self.brain.answered, PATIENCE)  # noqa: B023
            if gate.reached.is_set():
                await self._kill_all()
                return said
            await self.stage.answered(said, PATIENCE)
        raise AssertionError(f"{MOST} long messages of {name}, and no flush")

    async def _model_answered(self, name: str) -> Said:
        gate = self.brain.catch(lambda request: asks_about(request, f"{name}-1"))
        said = self._say(name)
        await until(gate.reached.is_set, PATIENCE)
        async with self.stores.holding(_CONVERSATION, name) as held_up:
            gate.release()
            await until(held_up, PATIENCE)
            await self._kill_all()
        return said

    async def _handed_over(self, name: str) -> Said:
        hold = self.stage.hold_post(f"{name}-1")
        said = self._say(name)
        await until(hold.reached.is_set, PATIENCE)
        await self._kill_all()
        hold.release()
        return said

    async def _sent_unrecorded(self, name: str) -> Said:
        self.stage.hold_answer(f"{name}-1")
        said = self._say(name)
        await until(lambda: any(said.token in tokens(shown.text) for shown in self.stage.shown()), PATIENCE, every=0.2)
        await self._kill_all()
        return said

    async def _erasing(self, name: str) -> Said:
        said = await self._known(name)
        async with self.stores.holding("LOCK TABLE erasures IN EXCLUSIVE MODE") as held_up:
            asking = asyncio.ensure_future(self.stage.command(name, ERASE))
            await until(held_up, PATIENCE)
            await self._kill_all()
            asking.cancel()
            await asyncio.wait({asking})
        return said

    async def _erase_again(self, name: str) -> None:
        assert await self.stage.command(name, ERASE), f"no answer to {name} who asks to be erased"
        self.erased.add(name)

    async def _known(self, name: str) -> Said:
        """They have spoken before, so that there is a conversation."""
        said = self._say(name)
        assert await self.stage.answered(said, PATIENCE), f"no answer to {said.token}"
        await until(lambda: self._count(f"{_EVENT} AND status = 1", said.id), PATIENCE)
        return said

    async def _count(self, statement: str, *arguments: object) -> int:
        with suppress(psycopg.OperationalError):
            return int(await self.stores.one(statement, *arguments))
        return 0


def asks_about(request: Request, token: str) -> bool:
    """Whether the chat model is asked for the answer to a token."""
    return request.model != SUMMARISER and token in [one for one, _ in unanswered(request).texts]
