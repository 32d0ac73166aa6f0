"""What a reply cites of documents (`handbook.pdf, p. 12`), and a reply without what it had no right to cite. Pure."""

from __future__ import annotations

import re
from collections.abc import Collection

Cited = tuple[str, int]
"""A document's name in lower case, and a page."""

_PAGE = r"(?:p|pp|pg|page|s|seite|pág|página|pagina|seitenzahl)\.?"
_NAMED = r"[^\s()\[\]{{}},;:\"“”„«»]+\.(?:{endings})"
_QUOTE = "[\"'“”„«»*_`]{0,3}"


def _pattern(names: Collection[str], endings: Collection[str]) -> re.Pattern[str]:
    """A citation of one of the names, or of anything that is called like a document."""
    known = "|".join(re.escape(name) for name in sorted(names, key=len, reverse=True))
    other = _NAMED.format(endings="|".join(ending.removeprefix(".") for ending in sorted(endings, key=len, reverse=True)))
    name = f"(?P<name>{known + '|' if known else ''}{other})"
    return re.compile(
        rf"{_QUOTE}{name}{_QUOTE},?\s{{0,3}}(?P<bracket>\()?{_PAGE}\s{{0,3}}(?P<page>\d{{1,6}})(?(bracket)\))", re.IGNORECASE
    )


def cited(text: str, names: Collection[str], endings: Collection[str]) -> set[Cited]:
    """All citations in a text. `names`: the documents there are; `endings` (`.pdf`): how others are called."""
    return {_of(found) for found in _pattern(names, endings).finditer(text)}


def without(text: str, false: Collection[Cited], names: Collection[str], endings: Collection[str]) -> str:
    """The text without these citations, with the brackets that held nothing else."""
    pattern = _pattern(names, endings)
    text = pattern.sub(lambda found: "\0" if _of(found) in false else found[0], text)
    text = re.sub(r"[ \t]*[(\[]\s*\0(?:\s*[;,]?\s*\0)*\s*[)\]]", "", text)
    text = re.sub(r"\s*[;,]\s*\0(?=\s*[;,)\]])|\0\s*[;,]\s*", "", text)
    return re.sub(r"[ \t]*\0", "", text)


def _of(found: re.Match[str]) -> Cited:
    return found["name"].casefold(), int(found["page"])
