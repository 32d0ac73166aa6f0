"""The real `bot chat` process behind a pipe, as a person at a terminal would run it."""

import asyncio
import os
import signal
import sys
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path

from tests.waiting import stretched

PATIENCE = 90.0


def environment(data: Path, user: str, more: Mapping[str, str] | None = None) -> dict[str, str]:
    """This process's environment without any setting of Keepsake, and the given ones."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith("KEEPSAKE")}
    return {**kept, "KEEPSAKE_DATA": str(data), "KEEPSAKE__CONSOLE__USER": user, "PYTHONUNBUFFERED": "1", **(more or {})}


@dataclass(slots=True)
class Terminal:
    """A running chat. `said` are all lines of its standard output so far."""

    process: asyncio.subprocess.Process
    said: list[str] = field(default_factory=list)

    async def hear(self) -> str:
        """The next line of standard output; empty at its end."""
        assert self.process.stdout is not None
        async with asyncio.timeout(stretched(PATIENCE)):
            line = (await self.process.stdout.readline()).decode().rstrip("\n")
        self.said.append(line)
        return line

    async def hear_until(self, part: str) -> str:
        """Read on until a line contains something; fails at the end of the output."""
        while part not in (line := await self.hear()):
            assert not self.process.stdout.at_eof(), f"ended without {part!r}: {self.said}"  # type: ignore[union-attr]
        return line

    async def say(self, text: str) -> None:
        """Type a line."""
        assert self.process.stdin is not None
        self.process.stdin.write(text.encode("utf-8", "surrogateescape") + b"\n")
        await self.process.stdin.drain()

    async def leave(self) -> str:
        """Close the pipe; returns what was still said. Fails on another exit code than 0."""
        assert self.process.stdin is not None
        self.process.stdin.close()
        async with asyncio.timeout(stretched(PATIENCE)):
            out, _ = await self.process.communicate()
        rest = out.decode()
        assert self.process.returncode == 0, rest
        return rest

    def kill(self) -> None:
        """kill -9."""
        self.process.send_signal(signal.SIGKILL)


@asynccontextmanager
async def terminal(data: Path, user: str = "ada", **more: str) -> AsyncIterator[Terminal]:
    """Start `bot chat` with a pipe for its input; killed at the end if it still runs."""
    process = await asyncio.create_subprocess_exec(
        sys.executable,
        "-m",
        "bot",
        "chat",
        cwd=data.parent,
        env=environment(data, user, more),
        stdin=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.DEVNULL,
        limit=2**22,
        # As a terminal starts it, also where the tests themselves were told to ignore a hangup (nohup).
        preexec_fn=lambda: signal.signal(signal.SIGHUP, signal.SIG_DFL),
    )
    try:
        yield Terminal(process)
    finally:
        if process.returncode is None:
            process.kill()
        await process.communicate()


async def run(
    data: Path, *arguments: str, user: str = "ada", given: str = "", patience: float = PATIENCE, **more: str
) -> tuple[int, str, str]:
    """A command of `bot` to its end: exit code, standard output, standard error. One that does not end fails with what it said."""
    process = await asyncio.create_subprocess_exec(
        sys.executable,
        "-m",
        "bot",
        *arguments,
        cwd=data.parent,
        env=environment(data, user, more),
        stdin=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
    )
    out, err = await ended(process, given, patience=patience)
    assert process.returncode is not None
    return process.returncode, out, err


async def ended(process: asyncio.subprocess.Process, given: str = "", *, patience: float = PATIENCE) -> tuple[str, str]:
    """What a process still says until it ends, on both of its outputs. One that does not end is killed, and fails with that."""
    typed = None if process.stdin is None else given.encode("utf-8", "surrogateescape")
    communicating = asyncio.create_task(process.communicate(typed))
    await asyncio.wait([communicating], timeout=stretched(patience))
    stuck = not communicating.done()
    if stuck:
        process.kill()
    out, err = await communicating
    assert not stuck, f"not ended after {patience:.0f} s: {out.decode()}{err.decode()}"
    return out.decode(), err.decode()
