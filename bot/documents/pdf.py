"""The reader of PDF: the text of its pages, and headings from its table of contents where it has one."""

from __future__ import annotations

import io
import re
from collections.abc import Iterator
from contextlib import suppress
from typing import Any

from bot.documents.blocks import Block, Limits, Tell, Unreadable

_FAULTS = (ValueError, KeyError, TypeError, IndexError, AttributeError, ZeroDivisionError)
"""What pypdf raises beside its own errors where a file is not what it says."""


def pdf(data: bytes, limits: Limits, tell: Tell) -> Iterator[Block]:
    """Page by page. A page that cannot be read leaves the others; of a picture of text there is no text."""
    from pypdf import PdfReader
    from pypdf.errors import DependencyError, PyPdfError

    try:
        reader = PdfReader(io.BytesIO(data), strict=False)
        if reader.is_encrypted and not reader.decrypt(""):
            raise Unreadable("encrypted")
        count = len(reader.pages)
    except DependencyError:  # a cipher that nothing here knows: locked all the same
        raise Unreadable("encrypted") from None
    except PyPdfError:
        raise Unreadable("broken") from None
    if count > limits.pages:
        raise Unreadable("too_many_pages")
    headings = _headings(reader)
    read = 0
    for number in range(1, count + 1):
        for level, title in headings.get(number, ()):
            yield Block(title, number, level=level)
        with suppress(PyPdfError, *_FAULTS):
            said = reader.pages[number - 1].extract_text()
            read += 1
            for paragraph in re.split(r"\n\s*\n", said):
                yield Block(paragraph.strip("\n"), number)
        tell(number, count)
    if not read:
        raise Unreadable("broken")


def _headings(reader: Any) -> dict[int, list[tuple[int, str]]]:
    """The titles of the table of contents with their levels, by page; what is broken in it is left out."""
    from pypdf.errors import PyPdfError

    found: dict[int, list[tuple[int, str]]] = {}
    pending: list[tuple[int, Any]] = []
    with suppress(PyPdfError, *_FAULTS):
        pending = [(1, each) for each in reversed(reader.outline)]
    while pending:
        level, entry = pending.pop()
        if isinstance(entry, list):
            pending += [(level + 1, each) for each in reversed(entry)]
            continue
        with suppress(PyPdfError, *_FAULTS):
            page = reader.get_destination_page_number(entry)
            if page is not None and page >= 0 and (title := " ".join(str(entry.title).split())):
                found.setdefault(page + 1, []).append((min(level, 6), title))
    return found
