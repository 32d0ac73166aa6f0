"""Text levelled for comparison: one form for letters that are written in several ways. Pure."""

from __future__ import annotations

import re
import unicodedata

# Letters that are written with marks that many leave out; no mark is taken from scripts where it makes another letter.
_LEVELLED = str.maketrans(
    {"ß": "ss", "ł": "l", "ø": "o", "ı": "i", "’": "'", "‘": "'", "`": "'", "أ": "ا", "إ": "ا", "آ": "ا", "ى": "ي"}
)


_UNSEEN = re.compile("[\u00ad\u200b\u2060\ufeff]")


def level(text: str) -> str:
    """Text in the one form that the patterns are written in: lower case, Latin letters without accents, plain apostrophes and blanks."""
    lowered = unicodedata.normalize("NFKC", _UNSEEN.sub("", text)).casefold().translate(_LEVELLED)
    kept = _without_accents(lowered)
    return re.sub(r"[ \t\u00a0]+", " ", kept)


def _without_accents(text: str) -> str:
    parts: list[str] = []
    for character in text:
        if "\u0300" <= character <= "\u036f" and parts and parts[-1] < "\u0250":
            continue
        plain = unicodedata.normalize("NFD", character)
        parts.append(plain[0] if plain[0] < "\u0250" and len(plain) > 1 else character)
    return "".join(parts)
