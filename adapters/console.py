"""The terminal as a platform: interactive with a prompt, or a pipe in which each line is answered before the next is read.

A person's console is their direct message. A terminal cannot be asked what it has shown, so after a crash a reply whose printing is
doubtful is printed again: at least once, never lost.
"""

import asyncio
import os
import re
import shutil
import sys
import textwrap
import threading
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from datetime import UTC, datetime
from typing import TextIO
from uuid import uuid4

from prompt_toolkit import PromptSession
from prompt_toolkit.history import InMemoryHistory
from prompt_toolkit.key_binding import KeyBindings
from prompt_toolkit.patch_stdout import patch_stdout

from adapters.base import Answer, Bot, Incoming, Outgoing, Person, PlaceOf, TryLater
from adapters.catalogue import say

PLATFORM = "console"
LIMIT = 1_000_000
"""Characters of one message: a terminal takes any length."""
CHUNK = 65_536
UNREAD = 2.0
"""Seconds until a reply that nobody could read is due again."""
NARROWEST = 20
"""Columns of a terminal in which lines are still broken at words."""

# CSI, OSC and the other string sequences, two-character escapes; then every other control character but newline and tab, and
# what turns the reading direction of the rest of the line around.
_SEQUENCES = re.compile(
    r"\x1b\[[0-?]*[ -/]*[@-~]|(?:\x1b[\]PX^_]|[\x90\x98\x9d-\x9f])[^\x07\x1b\x9c]*(?:\x07|\x1b\\|\x9c)?|\x1b[ -/]*[0-~]?"
)
_CONTROLS = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u202d\u202e]")


def printable(text: str) -> str:
    """Text that cannot steer the terminal: what a model writes is not trusted."""
    text = _CONTROLS.sub("", _SEQUENCES.sub("", text))
    return text.encode("utf-8", "replace").decode("utf-8")


def wrapped(text: str, width: int) -> str:
    """Text with its long lines broken at words, under their own indent; code fences and tables stay as they are."""
    lines: list[str] = []
    fenced = False
    for line in text.split("\n"):
        fence = line.lstrip().startswith(("```", "~~~"))
        fenced ^= fence
        if fence or fenced or len(line) <= width or line.lstrip().startswith("|"):
            lines.append(line)
            continue
        indent = re.match(r"\s*(?:[-*\u2022]\s+|\d+[.)]\s+)?", line)
        further = " " * min(len(indent[0]) if indent else 0, width // 2)
        lines += textwrap.wrap(
            line, width, subsequent_indent=further, break_long_words=False, break_on_hyphens=False, replace_whitespace=False
        ) or [line]
    return "\n".join(lines)


def readable(text: str) -> str:
    """Text as typed, without halves of characters; bytes that are no UTF-8 become the replacement character."""
    if not re.search(r"[\ud800-\udfff]", text):
        return text
    return re.sub(r"[\ud800-\udfff]", "\N{REPLACEMENT CHARACTER}", text)


class Lines:
    """Lines of a file descriptor, read only when asked for, without a thread that stands in the way of leaving.

    A daemon thread per read does the waiting; the descriptor is read raw, because a buffered reader's lock would be held by
    that thread when the interpreter ends.
    """

    def __init__(self, descriptor: int) -> None:
        self._descriptor = descriptor
        self._rest = b""
        self._ended = False

    async def next(self) -> str | None:
        """The next line without its end, or None at the end of the input."""
        while b"\n" not in self._rest and not self._ended:
            chunk = await self._chunk()
            self._ended = not chunk
            self._rest += chunk
        if not self._rest:
            return None
        line, _, self._rest = self._rest.partition(b"\n")
        return line.decode("utf-8", "replace").rstrip("\r")

    async def _chunk(self) -> bytes:
        loop = asyncio.get_running_loop()
        done: asyncio.Future[bytes] = loop.create_future()

        def give(chunk: bytes) -> None:
            if not done.done():
                done.set_result(chunk)

        def read() -> None:
            try:
                chunk = os.read(self._descriptor, CHUNK)
            except OSError:  # the terminal is gone
                chunk = b""
            try:
                loop.call_soon_threadsafe(give, chunk)
            except RuntimeError:  # the loop has closed: nobody waits any more
                return

        threading.Thread(target=read, name="stdin", daemon=True).start()
        return await done


class ConsoleAdapter:
    """One terminal of one person.

    Args:
        person: who sits there, by the operating system or the configuration.
        channel: the place's id, `<user>`, or `<user>:1` for a second terminal of the same person at the same time.
        name: what the bot is called, shown before its messages.
        settled: returns when nothing of this channel waits for an answer or for sending any more.
        lines: where to read in pipe mode; None: interactive, with a prompt.
    """

    platform = PLATFORM
    limit = LIMIT

    def __init__(
        self,
        person: Person,
        channel: str,
        *,
        name: str,
        settled: Callable[[], Awaitable[None]],
        lines: Lines | None,
        out: TextIO | None = None,
    ) -> None:
        self.person = person
        self.place = PlaceOf(PLATFORM, "", "", channel, "direct")
        self._name = printable(name)
        self._settled = settled
        self._lines = lines
        self._out = out
        self._working = 0
        self._session: PromptSession[str] | None = None
        self._left = asyncio.Event()
        self._stop: Callable[[], Awaitable[Answer | None]] | None = None
        self._stopping: asyncio.Future[None] | None = None

    @property
    def channels(self) -> tuple[str, ...]:
        """This terminal alone: another process's person sits at another one."""
        return (self.place.external_id,)

    async def run(self, bot: Bot) -> None:
        """Read until /quit, Ctrl-D, or the end of the pipe (after its last answer)."""
        if self._lines is None:
            await self._interactive(bot)
        else:
            await self._pipe(self._lines, bot)

    async def _pipe(self, lines: Lines, bot: Bot) -> None:
        await self._settled()  # what a crash left unanswered comes first
        while not self._left.is_set() and (line := await lines.next()) is not None:
            if not await self._take(line, bot):
                return
            await self._settled_or_left()

    async def _interactive(self, bot: Bot) -> None:
        keys = KeyBindings()
        keys.add("c-c")(lambda _: self.interrupt())
        self._session = PromptSession(history=InMemoryHistory(), reserve_space_for_menu=0, key_bindings=keys)
        self._stop = lambda: bot.command(self.person, self.place, "/stop")
        self._print(say("terminal.greeting", self.person.locale, name=self._name))
        with patch_stdout(raw=False):
            while not self._left.is_set():
                try:
                    line = await self._session.prompt_async(self._prompt, handle_sigint=False)
                except (EOFError, OSError):  # Ctrl-D, or the terminal is gone
                    return
                if not await self._take(line, bot):
                    return

    async def _settled_or_left(self) -> None:
        """Wait for the answer, or for the reader of the pipe to go away: then nobody waits for it any more."""
        settled, left = asyncio.ensure_future(self._settled()), asyncio.ensure_future(self._left.wait())
        try:
            await asyncio.wait({settled, left}, return_when=asyncio.FIRST_COMPLETED)
        finally:
            for task in (settled, left):
                task.cancel()
        if settled.done() and not settled.cancelled():
            settled.result()

    def interrupt(self) -> None:
        """Ctrl-C: throws away the line that is being typed, else stops the answer that is being made. The prompt stays."""
        if self._session is not None and self._session.app.is_running and self._session.default_buffer.text:
            self._session.default_buffer.reset()
        elif not self._working:
            self._print(say("terminal.idle", self.person.locale))
        elif self._stop is not None and (self._stopping is None or self._stopping.done()):
            self._stopping = asyncio.ensure_future(self._stop_now(self._stop))

    async def _stop_now(self, stop: Callable[[], Awaitable[Answer | None]]) -> None:
        answer = await stop()
        self._print(answer.text if answer else say("conversation.idle", self.person.locale))

    async def _take(self, line: str, bot: Bot) -> bool:
        """One line: nothing, a command, or a message. False when the person leaves."""
        text = readable(line).strip()
        if not text:
            return True
        if text.casefold() == "/quit":
            return False
        answer = await bot.command(self.person, self.place, text)
        if answer is None:
            key = f"{self.place.external_id}:{uuid4().hex}"
            await bot.receive(Incoming("message", self.person, self.place, key, datetime.now(UTC), text=text))
        elif answer.text:
            self._print(answer.text)
        return True

    def _prompt(self) -> str:
        # A line that was sent or left stays on the screen, and without the thinking.
        done = self._session is not None and self._session.app.is_done
        return f"{say('terminal.thinking', self.person.locale, name=self._name)} > " if self._working and not done else "> "

    def _redraw(self) -> None:
        if self._session is not None:
            self._session.app.invalidate()

    def _print(self, text: str) -> None:
        # Looked up at each call: while a prompt is open, standard output is the one that prints above it.
        text = printable(text)
        width = shutil.get_terminal_size((0, 0)).columns if self._lines is None else 0
        text = wrapped(text, width) if width >= NARROWEST else text
        try:
            print(text, file=self._out or sys.stdout, flush=True)
        except UnicodeEncodeError:
            # A terminal of another character set gets what it can show.
            print(text.encode("ascii", "replace").decode("ascii"), file=self._out or sys.stdout, flush=True)

    async def send(self, outgoing: Outgoing) -> str:
        """Print a reply. Raises TryLater when nobody reads any more: it is printed at the next start."""
        try:
            text = "\n".join([outgoing.text, *(f"    {button.label}: {button.line}" for button in outgoing.buttons)])
            self._print(text if self._lines is not None else f"{self._name}: {text}")
        except (OSError, ValueError) as error:
            self._left.set()
            # Due again as soon as somebody looks: the next start takes this place over and must not wait.
            raise TryLater(UNREAD) from error
        return f"{outgoing.channel}-{outgoing.outbox_id}"

    async def find(self, outgoing: Outgoing) -> str | None:  # noqa: ARG002 - the contract's signature
        """Never known: see the module's docstring."""
        return None

    def working(self, channel: str) -> AbstractAsyncContextManager[None]:  # noqa: ARG002
        """Show that the agent thinks while the context is open."""

        @asynccontextmanager
        async def shown() -> AsyncIterator[None]:
            self._working += 1
            self._redraw()
            try:
                yield
            finally:
                self._working -= 1
                self._redraw()

        return shown()
