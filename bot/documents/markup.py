"""Readers of HTML and of EPUB, which is HTML in a package. Nothing is loaded that the file only names."""

from __future__ import annotations

import posixpath
from collections.abc import Iterator
from typing import Any
from urllib.parse import unquote

from bot.documents.blocks import Block, Limits, Tell, Unreadable, cells
from bot.documents.packages import Package, tree_of

_SILENT = frozenset({"script", "style", "noscript", "template", "head", "svg", "math", "object", "iframe"})
_HEADINGS = {f"h{level}": level for level in range(1, 7)}
_APART = """address article aside blockquote body br dd details div dl dt fieldset figcaption figure footer form header hr html li main nav ol p pre
section summary table tbody tfoot thead ul"""
_BLOCKS = frozenset(_APART.split()) | frozenset(_HEADINGS)


def html(data: bytes, limits: Limits, tell: Tell) -> Iterator[Block]:  # noqa: ARG001 - every reader is called so
    """Headings, paragraphs and rows of tables, in the order of the text."""
    from lxml import etree
    from lxml import html as reader

    # Without a word on it in the file, bytes that are UTF-8 are just that.
    try:
        encoding: str | None = "utf-8" if data.decode("utf-8") else None
    except UnicodeDecodeError:
        encoding = None
    parser = reader.HTMLParser(no_network=True, remove_comments=True, remove_pis=True, huge_tree=False, encoding=encoding)
    try:
        root = reader.document_fromstring(data, parser=parser)
    except etree.ParserError:
        raise Unreadable("no_text") from None
    except etree.LxmlError:
        raise Unreadable("broken") from None
    yield from _blocks(root)


def _blocks(root: Any) -> Iterator[Block]:
    """The text of a tree. Walked, not descended into: its depth is the file's choice."""
    from lxml import etree

    words: list[str] = []
    row: list[str] | None = None
    silent = 0

    def flush(level: int = 0) -> Iterator[Block]:
        said = " ".join("".join(words).split())
        words.clear()
        if said:
            yield Block(said, level=level)

    for event, element in etree.iterwalk(root, events=("start", "end")):
        tag = element.tag if isinstance(element.tag, str) else ""
        if event == "start":
            silent += tag in _SILENT
            if tag == "tr" and row is None:
                yield from flush()
                row = []
            elif row is None and tag in _BLOCKS:
                yield from flush()
            if not silent and element.text:
                words.append(element.text)
            continue
        silent -= tag in _SILENT
        if tag in ("td", "th") and row is not None:
            row.append("".join(words))
            words.clear()
        elif tag == "tr" and row is not None:
            if shown := cells([*row, "".join(words)]):
                yield Block(shown, row=True)
            words.clear()
            row = None
        elif row is None and tag in _BLOCKS:
            yield from flush(_HEADINGS.get(tag, 0))
        elif row is not None and tag in _BLOCKS:
            words.append(" ")
        if not silent and element.tail:
            words.append(element.tail)
    yield from flush()


def epub(data: bytes, limits: Limits, tell: Tell) -> Iterator[Block]:
    """The chapters of a book, in its order."""
    package = Package(data, limits)
    container = tree_of(package.read("META-INF/container.xml"))
    [book, *_] = [each.get("full-path") for each in container.iter("{*}rootfile")] or [""]
    described = tree_of(package.read(book))
    files = {each.get("id"): each.get("href") or "" for each in described.iter("{*}item")}
    chapters = [
        posixpath.normpath(posixpath.join(posixpath.dirname(book), unquote(files[each.get("idref")])))
        for each in described.iter("{*}itemref")
        if files.get(each.get("idref"))
    ]
    if package.has("META-INF/encryption.xml"):
        locked = {
            unquote(each.get("URI") or "") for each in tree_of(package.read("META-INF/encryption.xml")).iter("{*}CipherReference")
        }
        if locked & set(chapters):
            raise Unreadable("encrypted")
    for number, chapter in enumerate(chapters, 1):
        yield from html(package.read(chapter), limits, tell)
        tell(number, len(chapters))
