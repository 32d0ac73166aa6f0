"""Time zones and clocks: which zones there are, and how a moment reads on a person's clock. Pure."""

from __future__ import annotations

from datetime import UTC, datetime, tzinfo
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError


def known_zone(name: str) -> bool:
    """Whether there is an IANA zone of this name."""
    try:
        ZoneInfo(name)
    except (ZoneInfoNotFoundError, ValueError, OSError):
        return False
    return True


def instant(wall: datetime, zone: ZoneInfo) -> datetime:
    """The moment (UTC) of a naive wall time: one that a clock change skips is moved by the gap, of two the first counts."""
    return wall.replace(tzinfo=zone, fold=0).astimezone(UTC)


def zone_named(name: str) -> ZoneInfo | None:
    """A zone by its IANA name; None where it is empty or unknown."""
    try:
        return ZoneInfo(name) if name else None
    except (ZoneInfoNotFoundError, ValueError, OSError):
        return None


def local(at: datetime, zone: tzinfo) -> str:
    """A time as the person reads it on a clock, with the offset: `Mon 2026-11-30 08:05 +01:00`."""
    moment = at.astimezone(zone)
    offset = moment.strftime("%z")
    return f"{moment:%a %Y-%m-%d %H:%M} {offset[:3]}:{offset[3:]}"


def clock(at: datetime, zone: tzinfo, before: datetime | None) -> str:
    """A time after that of the message above: with the day when that is new, else the minute, and nothing within the same ten minutes."""
    now, then = at.astimezone(zone), before.astimezone(zone) if before else None
    if then is None or then.date() != now.date() or then.utcoffset() != now.utcoffset():
        return local(at, zone)
    return "" if (now.hour, now.minute // 10) == (then.hour, then.minute // 10) else f"{now:%H:%M}"
