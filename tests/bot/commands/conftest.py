"""Commands run on a real database, for people who have talked to a scripted model."""

from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from dataclasses import dataclass
from pathlib import Path

import pytest

from adapters.base import Answer, Incoming
from bot import commands
from bot.commands.context import Parts
from bot.engine import deadletters, inbox
from bot.health import Health
from memory.db import Database
from tests.bot.dialogue import Dialogue, dialogue

KEY = b"k" * 32


@dataclass
class Desk:
    """A dialogue with the commands beside it."""

    talk: Dialogue
    parts: Parts

    async def type(self, line: str, talk: Dialogue | None = None) -> str:
        """A command line by the dialogue's person at its place."""
        at = talk or self.talk
        return (await self.press(line, at)).text

    async def press(self, line: str, talk: Dialogue | None = None, made_for: str | None = None) -> Answer:
        """The whole answer to a line, or to a button that was made for somebody."""
        at = talk or self.talk
        answer = await commands.run(self.parts, at.person, at.place, line, made_for=made_for)
        assert answer is not None
        return answer


Opener = Callable[..., AbstractAsyncContextManager[Desk]]


@pytest.fixture
def desk(db: Database, tmp_path: Path) -> Opener:
    """Opens a desk whose model plays a script."""

    @asynccontextmanager
    async def opened(*script: object, operators: tuple[str, ...] = ()) -> AsyncIterator[Desk]:
        async with dialogue(db, *script) as talk:

            async def accept(incoming: Incoming) -> bool:
                found = await inbox.accept(
                    db, talk.queue, incoming, burst=talk.clock[0] - talk.clock[0], now=talk.at, erasure_key=KEY
                )
                return found.event_id is not None

            async def replay(letter: int | None) -> int:
                return await deadletters.replay(db, talk.queue, letter)

            parts = Parts(
                db, talk.cache, accept, talk.meaning.of, replay, Health(), tmp_path, KEY, operators, {"model": "scripted"},
                now=lambda: talk.at,
            )  # fmt: skip
            yield Desk(talk, parts)

    return opened
