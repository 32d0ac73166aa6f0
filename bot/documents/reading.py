"""Reads a file in a process of its own, whose limits end it, and takes in what that process tells."""

from __future__ import annotations

import asyncio
import json
import signal
import sys
from collections.abc import Callable
from contextlib import suppress
from dataclasses import asdict, dataclass
from typing import Any

from bot.documents.blocks import Block, Limits, Unreadable

_LONGEST_LINE = 1 << 26
"""Bytes of a line of the reading process: a block may be as long as all the text."""
Progress = Callable[[int, int], None]


@dataclass(frozen=True, slots=True)
class Contents:
    """What a file holds: its blocks in order, and its pages (0: its format has none)."""

    blocks: tuple[Block, ...]
    pages: int


async def read(name: str, data: bytes, limits: Limits, progress: Progress = lambda done, of: None) -> Contents:  # noqa: ARG005
    """Read a file by the ending of its name. `progress` is told how many pages of how many are read.

    Raises Unreadable with the reason that people are told. Nothing of the file reaches the disk.
    """
    if len(data) > limits.file:
        raise Unreadable("too_large")
    process = await _started(name, limits)
    feeding = asyncio.create_task(_feed(process, data), name="feeding a document")
    try:
        async with asyncio.timeout(2 * limits.seconds):
            contents = await _taken_in(process, progress)
            code = await process.wait()
    except TimeoutError:
        raise Unreadable("too_slow") from None
    except ValueError:  # a line longer than any text may be
        raise Unreadable("too_much") from None
    finally:
        feeding.cancel()
        await _ended(process)
    if contents is None:
        raise Unreadable("too_slow" if code == -signal.SIGXCPU else "too_heavy")
    return contents


async def _started(name: str, limits: Limits) -> asyncio.subprocess.Process:
    starting = asyncio.ensure_future(
        asyncio.create_subprocess_exec(
            sys.executable,
            *("-I", "-B", "-m", "bot.documents.parsing", name.encode("utf-8", "replace").decode(), json.dumps(asdict(limits))),
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.DEVNULL,
            env={},
            cwd="/",
            limit=_LONGEST_LINE,
        )
    )
    try:
        return await asyncio.shield(starting)
    except asyncio.CancelledError:  # asyncio cannot break off a start: it waits for ever for what it has closed
        await _ended(await starting)
        raise


async def _ended(process: asyncio.subprocess.Process) -> None:
    """Nothing is left of a process, whatever it still had to tell; asyncio sees its end only when all of that is taken."""
    assert process.stdout is not None
    if process.returncode is None:
        process.kill()
    while await process.stdout.read(_LONGEST_LINE):
        pass
    await process.wait()


async def _feed(process: asyncio.subprocess.Process, data: bytes) -> None:
    assert process.stdin is not None
    with suppress(BrokenPipeError, ConnectionResetError):  # it has seen enough
        process.stdin.write(data)
        await process.stdin.drain()
    process.stdin.close()


async def _taken_in(process: asyncio.subprocess.Process, progress: Progress) -> Contents | None:
    """What the process tells; None when it ended without having told the end."""
    assert process.stdout is not None
    blocks: list[Block] = []
    async for line in process.stdout:
        [(what, value)] = _said(line).items()
        if what == "fault":
            raise Unreadable(value)
        if what == "end":
            return Contents(tuple(blocks), max(block.page for block in blocks))
        if what == "page":
            progress(*value)
        elif what == "block":
            blocks.append(Block(**value))
    return None


def _said(line: bytes) -> dict[str, Any]:
    """A line of the process; one that was torn as it was ended says nothing."""
    try:
        said: dict[str, Any] = json.loads(line)
    except json.JSONDecodeError:
        return {"torn": None}
    return said
