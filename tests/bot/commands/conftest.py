"""Commands run on a real database, for people who have talked to a scripted model."""

from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

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
        for button in answer.buttons:
            assert len(button.line) <= 60, "a platform holds no more of a button"
        return answer

    async def follow(self, answer: Answer, label: str, said: str = "", talk: Dialogue | None = None) -> Answer:
        """Press the button of an answer, and where it asks for something say that."""
        [button] = [each for each in answer.buttons if each.label == label]
        at = talk or self.talk
        return await self.press(f"{button.line} {said}".strip(), at, made_for=at.person.author_id)


Opener = Callable[..., AbstractAsyncContextManager[Desk]]


@pytest.fixture
def desk(db: Database, tmp_path: Path) -> Opener:
    """Opens a desk whose model plays a script."""

    @asynccontextmanager
    async def opened(*script: object, operators: tuple[str, ...] = (), **more: Any) -> AsyncIterator[Desk]:
        async with dialogue(db, *script) as talk:

            async def accept(incoming: Incoming) -> bool:
                found = await inbox.accept(db, incoming, burst=talk.clock[0] - talk.clock[0], now=talk.at, erasure_key=KEY)
                return found.event_id is not None

            async def replay(letter: int | None) -> int:
                return await deadletters.replay(db, letter)

            parts = Parts(
                db,
                talk.cache,
                accept,
                talk.meaning.of,
                replay,
                Health(),
                tmp_path,
                KEY,
                operators,
                model="scripted",
                now=lambda: talk.at,
                **more,
            )
            yield Desk(talk, parts)

    return opened
