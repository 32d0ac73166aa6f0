"""Blocks into chunks: each of one page and one section, small enough that a search shows it whole. Pure.

What parts the text (headings, pages, tables) is known from the readers; only a paragraph that is longer than a chunk has to be cut, and that
is done where messages are cut, at the ends of sentences. A library of splitters knows neither pages nor what stands in a table's first row.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from adapters.text import split
from bot.documents.blocks import Block

LARGEST = 1_000
"""Characters of a chunk: some 250 tokens, and what a search shows of one hit."""
PAGE = 3_000
"""Characters that count as a page where the format has none."""
_HEADING = 200


@dataclass(frozen=True, slots=True)
class Chunk:
    """A piece of a document: its page (from 1), the headings above it (`Leave › Holidays`), and its text."""

    page: int
    heading: str
    text: str


@dataclass(slots=True)
class _Packer:
    """What is being put together."""

    above: list[str] = field(default_factory=list)
    lines: list[str] = field(default_factory=list)
    page: int = 1
    header: str = ""
    written: int = 0

    def heading(self) -> str:
        """Where the text stands, its nearest headings first to stay."""
        return " › ".join(self.above)[-_HEADING:]

    def close(self) -> Iterator[Chunk]:
        """The chunk so far."""
        said = "\n".join(self.lines)
        self.lines.clear()
        for text in split(said, LARGEST):
            yield Chunk(self.page, self.heading(), text)

    def begin(self, block: Block) -> Iterator[Chunk]:
        """What a block ends: a page, a section, a table."""
        page = block.page or 1 + self.written // PAGE
        if block.level or page != self.page or (self.header and not block.row):
            yield from self.close()
        self.header = self.header if block.row else ""
        self.lines += [self.header] if self.header and not self.lines else []
        self.page = page

    def add(self, block: Block) -> Iterator[Chunk]:
        """A block, after what it ends."""
        self.written += len(block.text)
        if block.level:
            self.above[block.level - 1 :] = [" ".join(block.text.split())]
            self.lines.append(block.text)
            return
        if sum(map(len, self.lines)) + len(self.lines) + len(block.text) > LARGEST and self.lines:
            yield from self.close()
            # A row says little without the names of its columns.
            self.lines += [self.header] if self.header else []
        if block.row and not self.header:
            self.header = block.text if len(block.text) < LARGEST // 2 else ""
        self.lines.append(block.text)


def chunks(blocks: Sequence[Block]) -> list[Chunk]:
    """The blocks of a document as chunks, in order. Heading, paragraph and table borders are kept where the size allows it."""
    packer = _Packer()
    made: list[Chunk] = []
    for block in blocks:
        made += packer.begin(block)
        made += packer.add(block)
    return [*made, *packer.close()]


def headings(blocks: Sequence[Block], most: int) -> list[str]:
    """The highest headings of a document, at most so many, for whoever is told what is in it."""
    levels = sorted({block.level for block in blocks if block.level})
    for wanted in reversed(levels):
        found = [" ".join(block.text.split())[:_HEADING] for block in blocks if 0 < block.level <= wanted]
        if len(found) <= most or wanted == levels[0]:
            return found[:most]
    return []
