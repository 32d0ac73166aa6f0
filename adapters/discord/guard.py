"""The guards that all platforms share, under the name they have here."""

from __future__ import annotations

from adapters.guard import IN_WINDOW, SINCE_HUMAN, WINDOW, DailyLimit, PairGuard

__all__ = ["IN_WINDOW", "SINCE_HUMAN", "WINDOW", "DailyLimit", "PairGuard"]
