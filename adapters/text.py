"""Splitting a text into messages of a platform's size.

Pure; lengths are code points, as the platforms count. A chunk never ends inside a code fence (it is closed and opened again in the
next one), nor, where there is any other place, inside a link, inline code, a word or a grapheme cluster.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

import regex  # type: ignore[import-untyped]

SMALLEST = 40
"""The smallest limit that is served: a fence must fit around something."""

_FENCE = re.compile(r"[ \t]*(?P<mark>`{3,}|~{3,})(?P<info>.*)")
# Not to be cut: links (also with a label, also Slack's) and inline code. Bounded, so that a hostile text costs no quadratic search.
_WHOLE = re.compile(r"!?\[[^\]\n]{0,300}\]\([^)\s]{0,2000}\)|<[^<>\n]{1,2000}>|https?://\S{1,2000}|`[^`\n]{1,300}`")
_LOOKAHEAD = 2400  # at least the longest of these
_SENTENCE = re.compile(r"[.!?…][\"'”’)\]]*\s|[。！？]")
_SPACE = re.compile(r"\s")
_BLANK_LINES = re.compile(r"\A(?:[^\S\n]*\n)+")
_CLUSTER = regex.compile(r"\X")


@dataclass(frozen=True, slots=True)
class _Code:
    """A fenced block: its opening line, its marker and what is in it."""

    opening: str
    mark: str
    body: str


def split(text: str, limit: int) -> list[str]:
    """The text as messages of at most `limit` code points, none of them blank; a blank text gives none.

    Joined, they are the text but for white space at the cuts, the added fences, and a fence left open, which is closed.
    Raises ValueError for a limit below `SMALLEST`.
    """
    if limit < SMALLEST:
        raise ValueError(f"a limit of {limit} is below {SMALLEST}")
    packer = _Packer(limit)
    for block in _blocks(text, limit):
        if isinstance(block, _Code):
            packer.code(block)
        else:
            packer.prose(block)
    packer.flush()
    return packer.chunks


def _blocks(text: str, limit: int) -> Iterator[str | _Code]:
    """The text as stretches of prose and fenced blocks, in order; the newlines between them are left out."""
    prose: list[str] = []
    lines = iter(text.split("\n"))
    for line in lines:
        opened = _FENCE.fullmatch(line.rstrip("\r"))
        if opened is None or ("`" in opened["info"] and opened["mark"][0] == "`") or 4 * len(opened["mark"]) > limit:
            prose.append(line)
            continue
        if prose:
            yield "\n".join(prose)
            prose = []
        mark = opened["mark"]
        body: list[str] = []
        for inner in lines:
            if _closes(inner, mark):
                break
            body.append(inner)
        yield _Code(_opening(line.rstrip(), mark, limit), mark, "\n".join(body))
    if prose:
        yield "\n".join(prose)


def _closes(line: str, mark: str) -> bool:
    stripped = line.strip()
    return len(stripped) >= len(mark) and not stripped.strip(mark[0])


def _opening(line: str, mark: str, limit: int) -> str:
    """The opening line; one so long that little would fit beside it loses its info string, and its indent at need."""
    if len(line) <= limit // 4:
        return line
    bare = line[: line.index(mark) + len(mark)]
    return bare if len(bare) <= limit // 4 else mark


class _Packer:
    """Fills chunks; `_open` is the one that is being filled."""

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self._open: str | None = None
        self.chunks: list[str] = []

    def flush(self) -> None:
        """End the open chunk; a blank one is dropped."""
        if self._open is not None and self._open.strip():
            self.chunks.append(self._open.rstrip())
        self._open = None

    def _room(self) -> int:
        return self._limit if self._open is None else self._limit - len(self._open) - 1

    def _add(self, piece: str) -> None:
        self._open = piece if self._open is None else f"{self._open}\n{piece}"

    def prose(self, text: str) -> None:
        """Add prose, cut where it has to be."""
        if self._open is None:
            text = _BLANK_LINES.sub("", text)
        while len(text) > self._room():
            room = self._room()
            # Where little is left, only the end of a line or paragraph is worth a cut.
            end, rest = _natural(text, room) if room < self._limit // 2 else _best_cut(text, room)
            if end > 0:
                self._add(text[:end])
            text = _BLANK_LINES.sub("", text[rest:])
            self.flush()
        if text or self._open is not None:
            self._add(text)

    def code(self, block: _Code) -> None:
        """Add a fenced block whole where it fits, else in pieces that are blocks themselves."""
        frame = len(block.opening) + len(block.mark) + 2
        body = block.body
        if len(body) + frame > self._room() and len(body) + frame <= self._limit:
            self.flush()
        while len(body) + frame > self._room():
            room = self._room() - frame
            if room < self._limit // 4:
                self.flush()
                continue
            end = body.rfind("\n", 1, room + 1)
            end, rest = (end, end + 1) if end > 0 else _best_cut(body, room, block.mark)
            self._add(f"{block.opening}\n{body[:end]}\n{block.mark}")
            self.flush()
            body = body[rest:]
        self._add(f"{block.opening}\n{body}\n{block.mark}")


def _natural(text: str, room: int) -> tuple[int, int]:
    """The last end of a line within `room`, preferably before a blank line; nothing (0, 0) where there is none."""
    for pattern in ("\n\n", "\n"):
        at = text.rfind(pattern, 0, max(room, 0) + 1)
        if at > 0:
            return at, at + len(pattern)
    return 0, 0


def _best_cut(text: str, room: int, mark: str | None = None) -> tuple[int, int]:
    """Where to end a chunk that may take `room` of a longer text, and where the next one begins; `mark`: the text is in a fence.

    In the second half of the room by preference: before a blank line, at the end of a line, after a sentence, at white space; then at
    any white space; then between grapheme clusters; a single giant cluster is cut.
    """
    window = text[: room + 1]
    wholes = [] if mark else [match.span() for match in _WHOLE.finditer(text, 0, room + _LOOKAHEAD) if match.start() < room]
    # One that starts here and is longer than the room has to be cut.
    wholes = [(start, stop) for start, stop in wholes if start > 0 or stop <= room]

    def allowed(end: int, rest: int) -> bool:
        if not 0 < end <= room or any(start < rest and end < stop for start, stop in wholes):
            return False
        return _boundary(text, end) and _boundary(text, rest) and not _makes_fence(text, end, rest, mark)

    if not mark:
        for pattern in ("\n\n", "\n"):
            at = window.rfind(pattern, room // 2)
            if allowed(at, at + len(pattern)):
                return at, at + len(pattern)
        for match in reversed(list(_SENTENCE.finditer(window, room // 2))):
            end = match.end() - match.group()[-1].isspace()
            if allowed(end, match.end()):
                return end, match.end()
    for match in reversed(list(_SPACE.finditer(window, 1))):
        # In code white space means something.
        rest = match.start() if mark else match.end()
        if allowed(match.start(), rest):
            return match.start(), rest
    return _between_clusters(text, min([room, *(start for start, stop in wholes if start < room < stop)]), mark)


def _boundary(text: str, at: int) -> bool:
    """Whether no grapheme cluster spans a position beside white space."""
    cluster = _CLUSTER.match(text, at - 1)
    return cluster is None or cluster.end() == at


def _makes_fence(text: str, end: int, rest: int, mark: str | None) -> bool:
    """Whether a cut within a line leaves a piece that reads as a fence: opening one in prose, closing the one around code."""
    if text[end : end + 1] == "\n":
        return False
    stop = text.find("\n", rest)
    pieces = text[text.rfind("\n", 0, end) + 1 : end], text[rest : stop if stop >= 0 else len(text)]
    return any(_closes(piece, mark) if mark else _FENCE.match(piece) is not None for piece in pieces)


def _between_clusters(text: str, room: int, mark: str | None) -> tuple[int, int]:
    ends = []
    for match in _CLUSTER.finditer(text, 0, room + 64):
        if match.end() > room:
            break
        ends.append(match.end())
    # Of a run of nothing but backticks every cut leaves fences: then the last one.
    end = next((end for end in reversed(ends[-100:]) if not _makes_fence(text, end, end, mark)), ends[-1] if ends else room)
    return end, end
