"""Readers of DOCX, PPTX and XLSX. What is asked of the first two is their text in its order, which is a walk through their XML."""

from __future__ import annotations

import io
import re
from collections.abc import Iterator
from typing import Any

from bot.documents.blocks import Block, Limits, Tell, Unreadable, cells
from bot.documents.packages import Package, tree_of

_WORD = "{http://schemas.openxmlformats.org/wordprocessingml/2006/main}"
_DRAWN = "{http://schemas.openxmlformats.org/drawingml/2006/main}"
_SHOWN = "{http://schemas.openxmlformats.org/presentationml/2006/main}"
_BREAKS = {f"{_WORD}tab": "\t", f"{_WORD}br": "\n", f"{_WORD}cr": "\n", f"{_DRAWN}br": "\n"}


def _package(data: bytes, limits: Limits, part: str) -> Package:
    package = Package(data, limits)
    if not package.has(part):
        raise Unreadable("wrong_ending" if package.has("[Content_Types].xml") or package.has("mimetype") else "broken")
    package.forbid_declarations()
    return package


def _said(element: Any, text: str) -> str:
    """The words of a paragraph. What was deleted with changes tracked has other elements, and is not said."""
    return "".join(each.text or "" if each.tag == text else _BREAKS.get(each.tag, "") for each in element.iter())


def docx(data: bytes, limits: Limits, tell: Tell) -> Iterator[Block]:  # noqa: ARG001 - every reader is called so
    """Headings, paragraphs and rows of tables."""
    package = _package(data, limits, "word/document.xml")
    levels = _heading_styles(package)
    body = tree_of(package.read("word/document.xml")).find(f"{_WORD}body")
    for element in body if body is not None else ():
        if element.tag == f"{_WORD}p":
            yield Block(_said(element, f"{_WORD}t"), level=_level(element, levels))
        elif element.tag == f"{_WORD}tbl":
            for row in element.iter(f"{_WORD}tr"):
                yield Block(cells([_said(cell, f"{_WORD}t") for cell in row.iter(f"{_WORD}tc")]), row=True)
        elif element.tag == f"{_WORD}sdt":
            for paragraph in element.iter(f"{_WORD}p"):
                yield Block(_said(paragraph, f"{_WORD}t"), level=_level(paragraph, levels))


def _heading_styles(package: Package) -> dict[str, int]:
    """The levels of the styles that are headings, by their ids: in the file their names are English, whatever the language of the program."""
    if not package.has("word/styles.xml"):
        return {}
    levels = {}
    for style in tree_of(package.read("word/styles.xml")).iter(f"{_WORD}style"):
        name = style.find(f"{_WORD}name")
        found = re.fullmatch(r"heading (\d)|(title)", (name.get(f"{_WORD}val") or "").casefold()) if name is not None else None
        if found:
            levels[style.get(f"{_WORD}styleId") or ""] = int(found[1] or 1)
    return levels


def _level(paragraph: Any, levels: dict[str, int]) -> int:
    style = paragraph.find(f"{_WORD}pPr/{_WORD}pStyle")
    return 0 if style is None else levels.get(style.get(f"{_WORD}val") or "", 0)


def pptx(data: bytes, limits: Limits, tell: Tell) -> Iterator[Block]:
    """The slides, each a page, with their notes."""
    package = _package(data, limits, "ppt/presentation.xml")
    slides = package.names(r"ppt/slides/slide(\d{1,6})\.xml")
    if len(slides) > limits.pages:
        raise Unreadable("too_many_pages")
    for page, name in enumerate(slides, 1):
        for shape in tree_of(package.read(name)).iter(f"{_SHOWN}sp", f"{_SHOWN}graphicFrame"):
            title = any(each.get("type") in ("title", "ctrTitle") for each in shape.iter(f"{_SHOWN}ph"))
            for row in shape.iter(f"{_DRAWN}tr"):
                yield Block(cells([_said(cell, f"{_DRAWN}t") for cell in row.iter(f"{_DRAWN}tc")]), page, row=True)
            for paragraph in shape.iterfind(f"{_SHOWN}txBody/{_DRAWN}p"):
                yield Block(_said(paragraph, f"{_DRAWN}t"), page, level=1 if title else 0)
        notes = name.replace("slides/slide", "notesSlides/notesSlide")
        if package.has(notes):
            for paragraph in tree_of(package.read(notes)).iter(f"{_DRAWN}p"):
                yield Block(_said(paragraph, f"{_DRAWN}t"), page)
        tell(page, len(slides))


def xlsx(data: bytes, limits: Limits, tell: Tell) -> Iterator[Block]:
    """The sheets, each under its name, row by row, as they were last calculated."""
    import openpyxl
    from openpyxl.utils.exceptions import InvalidFileException

    _package(data, limits, "xl/workbook.xml")
    try:
        book = openpyxl.load_workbook(io.BytesIO(data), read_only=True, data_only=True, keep_links=False)
    except (InvalidFileException, KeyError, ValueError, TypeError):
        raise Unreadable("broken") from None
    for number, sheet in enumerate(book.worksheets, 1):
        yield Block(sheet.title, level=1)
        # The size that a sheet says of itself need not be true.
        sheet.reset_dimensions()
        for row in sheet.iter_rows(values_only=True):
            if shown := cells(["" if value is None else str(value) for value in row]):
                yield Block(shown, row=True)
        tell(number, len(book.worksheets))
