"""A platform number three touches its package and one registration: the contract holds, and the bot talks, remembers and forgets there."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path

from tests.adapters.contract import AdapterContract, Recorder, Stage, running
from tests.lines.adapter import LinesAdapter
from tests.scenarios.running_bot import RunningBot
from tests.servers.model import Request, ScriptedModel, Step, reply, unused_port
from tests.waiting import until


@dataclass
class Ada:
    """Somebody with a terminal; `got` are the messages that came, by their number."""

    port: int
    got: list[str] = field(default_factory=list)
    said: int = 0
    writer: asyncio.StreamWriter | None = None
    reading: asyncio.Task[None] | None = None

    async def connect(self) -> None:
        await until(self._connected, timeout=60)
        assert self.writer is not None
        self.writer.write(b"ada\n")

    async def _connected(self) -> bool:
        try:
            reader, self.writer = await asyncio.open_connection("127.0.0.1", self.port)
        except OSError:
            return False
        self.reading = asyncio.create_task(self._read(reader))
        return True

    async def _read(self, reader: asyncio.StreamReader) -> None:
        while line := (await reader.readline()).decode():
            self.got.append(json.loads(line.partition(" ")[2]))

    async def say(self, text: str, *, again: bool = False) -> None:
        self.said += not again
        assert self.writer is not None
        self.writer.write(f"{self.said} {text}\n".encode())
        await self.writer.drain()

    async def leave(self) -> None:
        if self.writer is not None:
            self.writer.close()
        if self.reading is not None:
            self.reading.cancel()
            await asyncio.wait([self.reading])


class Wire(Stage):
    def __init__(self, adapter: LinesAdapter, ada: Ada) -> None:
        self.adapter, self.ada, self.last = adapter, ada, ""

    @property
    def channel(self) -> str:
        return "ada"

    async def say(self, text: str) -> None:
        self.last = text
        await self.ada.say(text)

    async def again(self) -> None:
        await self.ada.say(self.last, again=True)

    def heard(self) -> list[str]:
        return self.ada.got


@asynccontextmanager
async def on_the_wire(bot: Recorder) -> AsyncIterator[Stage]:
    port = unused_port()
    adapter, ada = LinesAdapter(port), Ada(port)
    async with running(adapter, bot):
        await ada.connect()
        try:
            yield Wire(adapter, ada)
        finally:
            await ada.leave()


class TestLines(AdapterContract):
    def stage(self, bot: Recorder) -> AbstractAsyncContextManager[Stage]:
        return on_the_wire(bot)


@dataclass(slots=True)
class LinesBot(RunningBot):
    """The bot with the third platform."""

    lines_port: int = field(default_factory=unused_port)
    program: str = "tests.lines"

    def chosen(self) -> dict[str, str]:
        return {"LINES_PORT": str(self.lines_port), "PYTHONPATH": str(Path(__file__).parents[2])}


async def test_a_third_platform_talks_remembers_and_shows_what_it_keeps(tmp_path: Path) -> None:
    def answer(request: Request) -> Step:
        told = sum("I am Ada" in said for said in request.contents("user"))
        asked = any("What am I called?" in said for said in request.contents("user"))
        return reply("Of course: Ada." if told and asked else "Nice to meet you, Ada." if told else "Who are you?")

    async with ScriptedModel(policy=answer) as model:
        bot = LinesBot(model, tmp_path / "data", {})
        ada = Ada(bot.lines_port)
        try:
            await bot.start(listening=False)
            await ada.connect()
            await ada.say("I am Ada")
            await until(lambda: ada.got == ["Nice to meet you, Ada."], 60)
            assert await bot.ready()
            await bot.kill()
            await ada.leave()
            await bot.start(listening=False)
            await ada.connect()
            await ada.say("What am I called?")
            await until(lambda: len(ada.got) == 2, 60)
            assert ada.got[1] == "Of course: Ada."
            await ada.say("/whoami")
            await until(lambda: len(ada.got) == 3, 60)
            assert "ada" in ada.got[2]
        finally:
            await ada.leave()
            await bot.leave()
