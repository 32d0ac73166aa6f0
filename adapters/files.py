"""Attachments: text is read up to a cap, everything else described."""

from __future__ import annotations

import codecs
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from pathlib import PurePosixPath

READ_AT_ONCE = 4
"""Files of one message that are read; the others are described."""
_TEXT_TYPES = frozenset(
    (
        "application/json",
        "application/xml",
        "application/yaml",
        "application/x-yaml",
        "application/toml",
        "application/javascript",
        "application/x-sh",
        "application/sql",
        "application/x-python",
        "application/csv",
        "application/ld+json",
    )
)
_TEXT_ENDINGS = frozenset(
    (
        ".txt",
        ".md",
        ".markdown",
        ".rst",
        ".log",
        ".csv",
        ".tsv",
        ".json",
        ".jsonl",
        ".xml",
        ".yaml",
        ".yml",
        ".toml",
        ".ini",
        ".cfg",
        ".conf",
        ".py",
        ".js",
        ".ts",
        ".html",
        ".htm",
        ".css",
        ".sql",
        ".sh",
        ".c",
        ".h",
        ".cpp",
        ".rs",
        ".go",
        ".java",
        ".kt",
        ".rb",
        ".php",
        ".lua",
        ".tex",
        ".srt",
        ".vtt",
        ".diff",
        ".patch",
        ".eml",
    )
)


@dataclass(frozen=True, slots=True)
class File:
    """An attachment as its message names it."""

    name: str
    size: int
    url: str
    content_type: str | None = None


Read = Callable[[File, int], Awaitable[bytes | None]]
"""The first bytes of a file, at most so many; None when it cannot be had."""


def is_text(file: File) -> bool:
    """By its type, or where that says nothing (which platforms leave out at times) by its ending."""
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


async def told(files: Sequence[File], cap: int, read: Read) -> list[str]:
    """Every file as text for the message; `cap` is the most bytes read of one, `read` how a platform's files are had."""
    wanted = [file for file in files if is_text(file)][:READ_AT_ONCE] if cap else []
    lines: list[str] = []
    for file in files:
        content = await read(file, cap) if file in wanted else None
        lines.append(described(file) if content is None else with_content(file, content))
    return lines


def _plain(name: str) -> str:
    return "".join(c for c in name if c.isprintable() and c not in "[]")[:100]


def _size(size: int) -> str:
    return f"{size} bytes" if size < 10_000 else f"{size / 1000:.0f} kB" if size < 10_000_000 else f"{size / 1_000_000:.0f} MB"
