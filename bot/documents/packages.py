"""Zipped packages and the XML in them, opened so that neither can cost more than the file's limits."""

from __future__ import annotations

import io
import re
import zipfile
import zlib
from typing import Any

from bot.documents.blocks import Limits, Unreadable

_MOST_PARTS = 20_000
_DECLARATIONS = re.compile(rb"<!(?:DOCTYPE|ENTITY)[^>]*(?:\[|<!ENTITY|SYSTEM\s)", re.IGNORECASE)
"""A document type that declares something of its own or names a file: no package needs one."""


class Package:
    """A zipped package in memory. What is read of it adds up to `limits.unpacked` at most."""

    def __init__(self, data: bytes, limits: Limits) -> None:
        """Raises Unreadable: broken, locked, with macros, or too large when unpacked."""
        try:
            self._zip = zipfile.ZipFile(io.BytesIO(data))
        except (zipfile.BadZipFile, ValueError, NotImplementedError, EOFError):
            raise Unreadable("broken") from None
        parts = self._zip.infolist()
        if len(parts) > _MOST_PARTS or sum(each.file_size for each in parts) > limits.unpacked:
            raise Unreadable("too_much")
        if any(each.flag_bits & 1 for each in parts):
            raise Unreadable("encrypted")
        self._names = {each.filename for each in parts}
        if any(name.rpartition("/")[2].casefold() == "vbaproject.bin" for name in self._names):
            raise Unreadable("macros")

    def has(self, name: str) -> bool:
        """Whether there is a part of that name."""
        return name in self._names

    def names(self, form: str) -> list[str]:
        """The parts whose whole name a regular expression fits, by the number in it."""
        found = [(int(match[1]), name) for name in self._names if (match := re.fullmatch(form, name)) and match[1].isdecimal()]
        return [name for _, name in sorted(found)]

    def read(self, name: str) -> bytes:
        """A part. Raises Unreadable. A part never gives more than its entry says, whatever is packed in it."""
        try:
            return self._zip.read(name)
        except (KeyError, zipfile.BadZipFile, zlib.error, NotImplementedError, EOFError, RuntimeError, OSError):
            raise Unreadable("broken") from None

    def forbid_declarations(self) -> None:
        """Raises Unreadable if any XML of the package declares entities or names a file to load; the office formats know neither."""
        for name in self._names:
            if name.endswith((".xml", ".rels")) and _DECLARATIONS.search(self.read(name)[:100_000]):
                raise Unreadable("broken")


def tree_of(data: bytes) -> Any:
    """XML as a tree, with no entity replaced and nothing loaded. Raises Unreadable."""
    from lxml import etree

    try:
        return etree.fromstring(data, etree.XMLParser(resolve_entities=False, no_network=True, load_dtd=False, huge_tree=False))
    except (etree.LxmlError, ValueError):
        raise Unreadable("broken") from None
