"""Pictures for a model that sees: which attachments are shown, and whether a file is the picture that it says it is. Pure."""

from __future__ import annotations

from collections.abc import Sequence

from adapters.base import Image
from adapters.files import File

MOST = 4
"""Pictures of one message that are shown; more are only described."""
TOTAL = 8_000_000
"""Bytes of all pictures of one message."""
TYPES = frozenset(("image/png", "image/jpeg", "image/gif", "image/webp"))
"""What models take."""


def wanted(attached: Sequence[File], cap: int) -> list[File]:
    """The attachments to be shown, of at most `cap` bytes each; 0: none."""
    chosen: list[File] = []
    for file in attached:
        kind = (file.content_type or "").partition(";")[0].strip().lower()
        fits = 0 < file.size <= cap and file.size + sum(one.size for one in chosen) <= TOTAL
        if len(chosen) < MOST and kind in TYPES and fits:
            chosen.append(file)
    return chosen


def image(name: str, data: bytes) -> Image | None:
    """A picture by its first bytes; None when it is none: an error page, or something else under a wrong name."""
    kind = _media_type(data)
    return Image(name, kind, data) if kind else None


def _media_type(data: bytes) -> str | None:
    if data.startswith(b"\x89PNG\r\n\x1a\n"):
        return "image/png"
    if data.startswith(b"\xff\xd8\xff"):
        return "image/jpeg"
    if data.startswith((b"GIF87a", b"GIF89a")):
        return "image/gif"
    return "image/webp" if data[:4] == b"RIFF" and data[8:12] == b"WEBP" else None
