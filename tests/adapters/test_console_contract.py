"""The contract on the terminal."""

from __future__ import annotations

import io
import os
from collections.abc import AsyncIterator
from contextlib import AbstractAsyncContextManager, asynccontextmanager

from adapters.base import Person
from adapters.console import ConsoleAdapter, Lines
from tests.adapters.contract import AdapterContract, Recorder, Stage, running


class Terminal(Stage):
    knows = False
    forgets_channels = False

    def __init__(self, adapter: ConsoleAdapter, keys: int, screen: io.StringIO) -> None:
        self.adapter, self.keys, self.screen = adapter, keys, screen

    @property
    def channel(self) -> str:
        return "ada"

    async def say(self, text: str) -> None:
        os.write(self.keys, f"{text}\n".encode())

    def heard(self) -> list[str]:
        return self.screen.getvalue().splitlines()


@asynccontextmanager
async def in_a_pipe(bot: Recorder) -> AsyncIterator[Stage]:
    read, write = os.pipe()
    screen = io.StringIO()

    async def settled() -> None:
        return None

    adapter = ConsoleAdapter(
        Person("console", "", "ada", "Ada"), "ada", name="Kee", settled=settled, lines=Lines(read), out=screen
    )
    try:
        async with running(adapter, bot):
            yield Terminal(adapter, write, screen)
    finally:
        os.close(write)


class TestConsole(AdapterContract):
    def stage(self, bot: Recorder) -> AbstractAsyncContextManager[Stage]:
        return in_a_pipe(bot)
