"""The terminal as a platform: pipes, a real pseudo-terminal, and text that may not steer it."""

import asyncio
import contextlib
import fcntl
import io
import os
import pty
import select
import subprocess
import sys
import tempfile
import termios
import textwrap
import time
from collections.abc import Iterator

import pytest

from adapters.base import Answer, Changed, Incoming, Newest, Outgoing, Person, PlaceOf, TryLater
from adapters.console import ConsoleAdapter, Lines, printable, readable, wrapped
from tests.waiting import until

ADA = Person("console", "", "ada", "Ada")


@pytest.mark.parametrize(
    ("given", "shown"),
    [
        ("plain\ttext\nwith lines", "plain\ttext\nwith lines"),
        ("\x1b[31mred\x1b[0m", "red"),
        ("\x1b]0;title\x07after", "after"),
        ("\x1b]8;;http://x\x1b\\link\x1b]8;;\x1b\\", "link"),
        ("\x1bP secret \x1b\\rest", "rest"),
        ("\x9b2Jcleared", "2Jcleared"),
        ("over\rwritten\x08\x00\x7f", "overwritten"),
        ("a\u202eb", "ab"),
        ("half \ud800", "half ?"),
        ("ünïcödé 👩‍👩‍👧 日本", "ünïcödé 👩‍👩‍👧 日本"),
    ],
)
def test_what_a_model_writes_cannot_steer_the_terminal(given: str, shown: str) -> None:
    assert printable(given) == shown


@pytest.mark.parametrize(
    ("given", "shown"),
    [
        ("one two three four five", "one two three four\nfive"),
        ("- one two three four five", "- one two three four\n  five"),
        ("short\n\nlines", "short\n\nlines"),
        ("a " + "x" * 40 + " b", "a\n" + "x" * 40 + "\nb"),
        ("```\none two three four five six\n```", "```\none two three four five six\n```"),
        ("| one | two | three | four |", "| one | two | three | four |"),
    ],
)
def test_long_lines_are_broken_at_words(given: str, shown: str) -> None:
    assert wrapped(given, 20) == shown


def test_half_characters_are_replaced() -> None:
    assert readable("a\udcffb\ud83d") == "a\ufffdb\ufffd"
    assert readable("fine 👍") == "fine 👍"


@pytest.fixture
def pipe() -> Iterator[tuple[int, int]]:
    ends = os.pipe()
    yield ends
    for end in ends:
        with contextlib.suppress(OSError):
            os.close(end)


class Bot:
    """What the adapter is given: takes messages in and answers at once."""

    def __init__(self, lines: Lines | None) -> None:
        self.events: list[str] = []
        self.out = io.StringIO()
        self.adapter = ConsoleAdapter(ADA, "ada", name="Kee", settled=self.settled, lines=lines, out=self.out)
        self.keys: set[str] = set()

    async def settled(self) -> None:
        self.events.append("settled")

    async def receive(self, incoming: Incoming) -> bool:
        self.events.append(incoming.text)
        self.keys.add(incoming.key)
        await self.adapter.send(Outgoing(len(self.events), "ada", f"re: {incoming.text[:20]}"))
        return True

    async def command(self, person: Person, place: PlaceOf, line: str, *, made_for: str | None = None) -> Answer | None:
        assert (person, place) == (ADA, PlaceOf("console", "", "", "ada", "direct"))
        return {"/do": Answer("commanded"), "/silent": Answer("")}.get(line)

    async def heard(self, platform: str) -> str | None:
        raise AssertionError("a terminal has nothing to catch up")

    async def hear(self, platform: str, message_id: str) -> None:
        raise AssertionError("a terminal has nothing to catch up")

    async def newest(self, platform: str) -> list[Newest]:
        raise AssertionError("a terminal has nothing to catch up")

    async def changed(self, changed: Changed) -> None:
        raise AssertionError("a terminal's lines cannot be edited afterwards")

    async def run(self) -> None:
        async with asyncio.timeout(10):
            await self.adapter.run(self)


async def test_a_pipe_is_read_a_line_at_a_time(pipe: tuple[int, int]) -> None:
    os.write(pipe[1], b"one\r\n\n  \n/do\n/silent\n\xff\xfe\nlast")
    os.close(pipe[1])
    bot = Bot(Lines(pipe[0]))
    await bot.run()
    assert bot.events == ["settled", "one", *["settled"] * 3, "settled", "settled", "\ufffd\ufffd", "settled", "last", "settled"]
    assert bot.out.getvalue() == "re: one\ncommanded\nre: \ufffd\ufffd\nre: last\n"
    assert len(bot.keys) == 3


async def test_quit_leaves_the_rest_unread(pipe: tuple[int, int]) -> None:
    os.write(pipe[1], b"one\n/QUIT\ntwo\n")
    bot = Bot(Lines(pipe[0]))
    await bot.run()
    assert "two" not in bot.events


async def test_lines_of_any_length_and_files() -> None:
    with tempfile.TemporaryFile() as file:
        file.write(b"x" * 100_000 + b"\n" + "ü".encode() * 70_000)
        file.seek(0)
        lines = Lines(file.fileno())
        assert [len(await lines.next() or ""), len(await lines.next() or ""), await lines.next()] == [100_000, 70_000, None]


async def test_waiting_for_a_line_can_be_cancelled(pipe: tuple[int, int]) -> None:
    bot = Bot(Lines(pipe[0]))
    running = asyncio.ensure_future(bot.run())
    await until(lambda: bot.events)
    running.cancel()
    with pytest.raises(asyncio.CancelledError):
        await running


async def test_a_reader_that_has_gone_is_no_lost_message() -> None:
    class Gone(io.StringIO):
        def write(self, _: str) -> int:
            raise BrokenPipeError

    bot = Bot(None)
    bot.adapter = ConsoleAdapter(ADA, "ada", name="Kee", settled=bot.settled, lines=None, out=Gone())
    with pytest.raises(TryLater):
        await bot.adapter.send(Outgoing(1, "ada", "hello"))


async def test_the_contract() -> None:
    bot = Bot(None)
    assert bot.adapter.channels == ("ada",)
    assert await bot.adapter.find(Outgoing(1, "ada", "x")) is None
    assert await bot.adapter.send(Outgoing(7, "ada", "x\x1b[2J")) == "ada-7"
    assert bot.out.getvalue() == "Kee: x\n"
    async with bot.adapter.working("ada"):
        assert "thinking" in (bot.adapter._prompt())
    assert bot.adapter._prompt() == "> "


INTERACTIVE = """
import asyncio, types
import signal
from adapters.base import Answer, Outgoing, Person
from adapters.console import ConsoleAdapter

async def main():
    stopped = asyncio.Event()
    async def settled(): pass
    async def receive(incoming):
        async def answer():
            async with adapter.working("ada"):
                if incoming.text == "wait":
                    await stopped.wait()
            await adapter.send(Outgoing(1, "ada", "heard " + incoming.text))
        tasks.append(asyncio.ensure_future(answer()))
        return True
    async def command(person, place, line):
        if line == "/stop":
            stopped.set()
            return Answer("Stopped.")
        return None
    tasks = []
    adapter = ConsoleAdapter(Person("console", "", "ada", "Ada"), "ada", name="Kee", settled=settled, lines=None)
    asyncio.get_running_loop().add_signal_handler(signal.SIGINT, adapter.interrupt)
    await adapter.run(types.SimpleNamespace(receive=receive, command=command))
    print("LEFT", flush=True)

asyncio.run(main())
"""


class Screen:
    """A process on a pseudo-terminal."""

    def __init__(self, program: str) -> None:
        self.master, slave = pty.openpty()
        self.process = subprocess.Popen(
            [sys.executable, "-c", textwrap.dedent(program)],
            stdin=slave,
            stdout=slave,
            stderr=slave,
            start_new_session=True,
            preexec_fn=lambda: fcntl.ioctl(slave, termios.TIOCSCTTY, 0),
            env={**os.environ, "TERM": "xterm"},
        )
        os.close(slave)
        self.seen = ""

    def type(self, keys: str) -> None:
        os.write(self.master, keys.encode())

    def see(self, part: str, seconds: float = 30.0) -> None:
        """Wait until the screen was sent something."""
        until = time.monotonic() + seconds
        while part not in self.seen:
            ready, _, _ = select.select([self.master], [], [], max(0.0, until - time.monotonic()))
            assert ready, f"no {part!r} on the screen: {self.seen!r}"
            try:
                sent = os.read(self.master, 65_536).decode(errors="replace")
            except OSError:
                sent = ""
            assert sent, f"ended without {part!r}: {self.seen!r}"
            self.seen += sent
            if "\x1b[6n" in sent:  # the library asks where the cursor is, as it would a real terminal
                self.type("\x1b[1;1R")
        self.seen = self.seen[self.seen.index(part) + len(part) :]


@pytest.fixture
def screen() -> Iterator[Screen]:
    made = Screen(INTERACTIVE)
    yield made
    made.process.kill()
    made.process.wait()
    os.close(made.master)


def test_interactive(screen: Screen) -> None:
    def see(text: str) -> None:
        screen.see(text)
        screen.see(">")  # the prompt is drawn again below it

    see("Kee is here")
    screen.type("hello\r")
    see("Kee: heard hello")
    screen.type("wait\r")
    see("Kee is thinking")
    screen.type("\x03")
    screen.see("Stopped.")
    see("Kee: heard wait")
    screen.type("\x03")
    see("Nothing to stop")
    screen.type("half a line\x03whole\r")
    see("Kee: heard whole")
    screen.type("\x04")
    screen.see("LEFT")
    assert screen.process.wait(20) == 0
