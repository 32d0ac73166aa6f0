"""Discord's markup for people, roles, channels, emoji and times, made readable. Pure."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime

_MARKS = re.compile(
    r"<@!?(?P<user>\d{1,20})>|<@&(?P<role>\d{1,20})>|<#(?P<channel>\d{1,20})>|<a?:(?P<emoji>\w{1,40}):\d{1,20}>"
    r"|<t:(?P<time>-?\d{1,12})(?::[tTdDfFR])?>|</(?P<command>[^:<>\n]{1,100}):\d{1,20}>"
)


@dataclass(frozen=True, slots=True)
class Names:
    """Who and what the ids in a text stand for; a lookup returns None for what it does not know."""

    user: Callable[[int], str | None]
    role: Callable[[int], str | None]
    channel: Callable[[int], str | None]


def readable(text: str, names: Names, *, me: int) -> str:
    """A text as its reader sees it, without the bot's own mention at the beginning."""
    text = re.sub(rf"\A(?:\s*<@!?{me}>[\s,:;]*)+", "", text)
    return _MARKS.sub(lambda match: _spelled(match, names), text).strip()


def _spelled(match: re.Match[str], names: Names) -> str:
    kind, value = match.lastgroup, match[match.lastgroup or 0]
    match kind:
        case "user":
            return f"@{names.user(int(value)) or 'somebody'}"
        case "role":
            return f"@{names.role(int(value)) or 'a role'}"
        case "channel":
            return f"#{names.channel(int(value)) or 'a channel'}"
        case "emoji":
            return f":{value}:"
        case "command":
            return f"/{value}"
        case _:
            return _moment(int(value)) or match[0]


def _moment(seconds: int) -> str | None:
    try:
        return f"{datetime.fromtimestamp(seconds, UTC):%Y-%m-%d %H:%M} UTC"
    except (ValueError, OverflowError, OSError):
        return None
