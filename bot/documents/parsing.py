"""The process that reads one file: it takes the bytes from its input, tells what it finds in lines of JSON, and can do nothing else.

It has its limits of memory and time from the system. Before the first byte is read it gives up opening files for writing, the network and
other programs: what a file brings along is text and never runs. It ends with a line `{"end": …}`; an end without one is told by how it ended.
"""

from __future__ import annotations

import json
import os
import resource
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from dataclasses import asdict
from typing import Any

from bot.documents import markup, office, pdf, plain
from bot.documents.blocks import Block, Limits, Tell, Unreadable
from bot.documents.kinds import Kind, kind_of

Reader = Callable[[bytes, Limits, Tell], Iterator[Block]]
READERS: Mapping[Kind, Reader] = {
    "text": plain.text,
    "markdown": plain.markdown,
    "csv": plain.table,
    "email": plain.mail,
    "html": markup.html,
    "epub": markup.epub,
    "docx": office.docx,
    "pptx": office.pptx,
    "xlsx": office.xlsx,
    "pdf": pdf.pdf,
}
_FORBIDDEN = (
    "socket.",
    "subprocess.",
    "os.system",
    "os.exec",
    "os.posix_spawn",
    "os.fork",
    "os.remove",
    "os.rename",
    "os.mkdir",
    "shutil.",
    "ctypes.dlopen",
)
_WRITING = os.O_WRONLY | os.O_RDWR | os.O_CREAT | os.O_APPEND


def main() -> None:
    """Read the file of the standard input; the arguments are its name and its limits."""
    name, limits = sys.argv[1], Limits(**json.loads(sys.argv[2]))
    with suppress(ValueError, OSError):  # macOS knows no such limit
        resource.setrlimit(resource.RLIMIT_AS, (limits.memory, limits.memory))
    resource.setrlimit(resource.RLIMIT_CPU, (limits.seconds, limits.seconds + 1))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    sys.addaudithook(_forbid)
    try:
        _tell("end", _read(name, sys.stdin.buffer.read(), limits))
    except Unreadable as unreadable:
        _tell("fault", unreadable.fault)
    except MemoryError:
        _tell("fault", "too_heavy")
    except Exception:  # noqa: BLE001  whatever a parser makes of a broken file, it is a broken file
        _tell("fault", "broken")


def _read(name: str, data: bytes, limits: Limits) -> int:
    """Tell the file's blocks. Returns how many characters it has. Raises Unreadable, and whatever a parser raises."""
    told = 0

    def pages(done: int, of: int) -> None:
        _tell("page", [done, of])

    for block in READERS[kind_of(name, data)](data, limits, pages):
        if not (text := block.text.replace("\x00", "").strip()):
            continue
        told += len(text)
        if told > limits.text:
            raise Unreadable("too_much")
        _tell("block", {**asdict(block), "text": text})
    if not told:
        raise Unreadable("no_text")
    return told


def _tell(what: str, value: Any) -> None:
    sys.stdout.write(json.dumps({what: value}) + "\n")
    sys.stdout.flush()


def _forbid(event: str, arguments: tuple[Any, ...]) -> None:
    if event.startswith(_FORBIDDEN):
        raise PermissionError(event)
    if event == "open" and isinstance(arguments[2], int) and arguments[2] & _WRITING:
        raise PermissionError(event)


if __name__ == "__main__":
    main()
