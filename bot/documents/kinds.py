"""What can be read, by a file's ending, and whether its first bytes bear the ending out. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import PurePosixPath
from typing import Literal

from bot.documents.blocks import Unreadable

Kind = Literal["text", "markdown", "html", "pdf", "docx", "pptx", "xlsx", "csv", "epub", "email"]

_BY_ENDING: Mapping[Kind, str] = {
    "text": ".txt .text .log .rst .tex .srt .vtt .json .jsonl .xml .yaml .yml .toml .ini .cfg .conf",
    "markdown": ".md .markdown",
    "html": ".html .htm .xhtml",
    "pdf": ".pdf",
    "docx": ".docx",
    "pptx": ".pptx",
    "xlsx": ".xlsx",
    "csv": ".csv .tsv",
    "epub": ".epub",
    "email": ".eml",
}
ENDINGS: Mapping[str, Kind] = {ending: kind for kind, endings in _BY_ENDING.items() for ending in endings.split()}
_MACROS = frozenset({".docm", ".dotm", ".pptm", ".potm", ".ppsm", ".xlsm", ".xltm", ".xlsb"})
_ZIPPED = frozenset({"docx", "pptx", "xlsx", "epub"})
_OLD_OFFICE = b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1"
"""How files of old office programs begin, and new ones that are locked with a password."""
_NO_TEXT = (
    b"%PDF-",
    b"PK\x03\x04",
    _OLD_OFFICE,
    b"\x89PNG",
    b"\xff\xd8\xff",
    b"GIF8",
    b"\x7fELF",
    b"MZ\x90",
    b"\x1f\x8b",
    b"Rar!",
    b"7z\xbc\xaf",
)
"""How files begin that are certainly no text."""


def ending_of(name: str) -> str:
    """`.pdf` for `Handbook.PDF`."""
    return PurePosixPath(name.replace("\\", "/").strip().casefold()).suffix


def readable(name: str) -> bool:
    """Whether a file of this name is a document as far as its ending says; one with macros is, to be told that it is not read."""
    return ending_of(name) in ENDINGS or ending_of(name) in _MACROS


def kind_of(name: str, data: bytes) -> Kind:
    """How a file is to be read. Raises Unreadable: of no known kind, with macros, or not what its ending says."""
    ending = ending_of(name)
    if ending in _MACROS:
        raise Unreadable("macros")
    kind = ENDINGS.get(ending)
    if kind is None:
        raise Unreadable("unknown")
    if not data.strip(b"\x00\t\r\n "):
        raise Unreadable("no_text")
    if kind in _ZIPPED:
        if data.startswith(_OLD_OFFICE):
            raise Unreadable("encrypted" if b"E\x00n\x00c\x00r\x00y\x00p\x00t" in data else "wrong_ending")
        if not data.startswith(b"PK"):
            raise Unreadable("wrong_ending")
    elif kind == "pdf":
        if b"%PDF-" not in data[:1024]:
            raise Unreadable("wrong_ending")
    elif data.startswith(_NO_TEXT) or (b"\x00" in data[:4096] and not data.startswith((b"\xff\xfe", b"\xfe\xff"))):
        raise Unreadable("wrong_ending")
    return kind
