"""The choke point for text from outside: what Postgres and UTF-8 cannot hold is taken out, and nothing else is changed.

Postgres refuses NUL bytes in text and in jsonb, and a lone surrogate (half of a pair, from a broken client or from JSON escapes)
cannot be encoded at all. No length is cut and no Unicode form is changed here: people get back what they wrote.
"""

from __future__ import annotations

import math
from typing import Any


def clean(text: str) -> str:
    """The text without NUL bytes, with every lone surrogate as U+FFFD.

    The two halves of a pair that arrived as two code points are joined to the character they mean.
    """
    text = text.replace("\x00", "")
    try:
        text.encode()
    except UnicodeEncodeError:
        return text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")
    return text


def clean_json(value: Any) -> Any:
    """A JSON value with all its texts (keys too) cleaned; NaN and the infinities, which JSON does not know, become null."""
    if isinstance(value, str):
        return clean(value)
    if isinstance(value, dict):
        return {clean(str(key)): clean_json(inner) for key, inner in value.items()}
    if isinstance(value, list | tuple):
        return [clean_json(inner) for inner in value]
    if isinstance(value, float) and not math.isfinite(value):
        return None
    return value
