"""The rules that all platforms share, under the name they have here."""

from __future__ import annotations

from adapters.triggers import Author, Decision, Facts, decide, listening

__all__ = ["Author", "Decision", "Facts", "decide", "listening"]
