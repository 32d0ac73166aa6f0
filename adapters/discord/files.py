"""Attachments: text is read up to a cap, everything else described."""

from __future__ import annotations

import codecs
import logging
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import PurePosixPath

import aiohttp

log = logging.getLogger(__name__)

READ_AT_ONCE = 4
"""Files of one message that are read; the others are described."""
SECONDS = 20.0
_TEXT_TYPES = frozenset(
    ("application/json", "application/xml", "application/yaml", "application/x-yaml", "application/toml", "application/javascript",
     "application/x-sh", "application/sql", "application/x-python", "application/csv", "application/ld+json")
)  # fmt: skip
_TEXT_ENDINGS = frozenset(
    (".txt", ".md", ".markdown", ".rst", ".log", ".csv", ".tsv", ".json", ".jsonl", ".xml", ".yaml", ".yml", ".toml", ".ini", ".cfg",
     ".conf", ".py", ".js", ".ts", ".html", ".htm", ".css", ".sql", ".sh", ".c", ".h", ".cpp", ".rs", ".go", ".java", ".kt", ".rb",
     ".php", ".lua", ".tex", ".srt", ".vtt", ".diff", ".patch", ".eml")
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class File:
    """An attachment as its message names it."""

    name: str
    size: int
    url: str
    content_type: str | None = None


def is_text(file: File) -> bool:
    """By its type, or where that says nothing (Discord leaves it out at times) by its ending."""
    kind = (file.content_type or "").partition(";")[0].strip().lower()
    if kind.startswith("text/") or kind in _TEXT_TYPES:
        return True
    return kind in ("", "application/octet-stream") and PurePosixPath(file.name.lower()).suffix in _TEXT_ENDINGS


def described(file: File) -> str:
    """A file in a line."""
    kind = (file.content_type or "").partition(";")[0] or "unknown type"
    what = "image" if kind.startswith("image/") else "file"
    return f"[{what} {_plain(file.name)}, {kind}, {_size(file.size)}]"


def with_content(file: File, content: bytes) -> str:
    """A text file with its beginning, or all of it."""
    text = codecs.getincrementaldecoder("utf-8")("replace").decode(content, final=len(content) >= file.size)
    cut = f"\n[truncated {len(content)} of {file.size} bytes]" if len(content) < file.size else ""
    return f"[file {_plain(file.name)}]\n{text}{cut}\n[end of {_plain(file.name)}]"


async def told(files: Sequence[File], cap: int) -> list[str]:
    """Every file as text for the message; `cap` is the most bytes read of one."""
    wanted = [file for file in files if is_text(file)][:READ_AT_ONCE] if cap else []
    lines: list[str] = []
    timeout = aiohttp.ClientTimeout(total=SECONDS)
    for file in files:
        content = None
        if file in wanted:
            async with aiohttp.ClientSession(timeout=timeout) as session:
                content = await _beginning(session, file, cap)
        lines.append(described(file) if content is None else with_content(file, content))
    return lines


async def _beginning(session: aiohttp.ClientSession, file: File, cap: int) -> bytes | None:
    """The first bytes of a file, None when it cannot be had."""
    content = b""
    try:
        async with session.get(file.url) as response:
            if response.status != 200:
                log.warning("an attachment could not be read: status %d", response.status)
                return None
            while len(content) < cap and (chunk := await response.content.read(cap - len(content))):
                content += chunk
    except (aiohttp.ClientError, TimeoutError, ValueError) as error:
        log.warning("an attachment could not be read: %s", type(error).__name__)
        return None
    return content


def _plain(name: str) -> str:
    return "".join(c for c in name if c.isprintable() and c not in "[]")[:100]


def _size(size: int) -> str:
    return f"{size} bytes" if size < 10_000 else f"{size / 1000:.0f} kB" if size < 10_000_000 else f"{size / 1_000_000:.0f} MB"
