"""Slack's markup: made readable on its way in, made harmless on its way out. Pure."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime

_TOKEN = re.compile(r"<([^<>\n]{1,3000})>")
_USER = re.compile(r"<@([UW][A-Z0-9]{1,30})(?:\|[^<>\n]{0,100})?>")
# What notifies people or stands for them; other angle brackets, as of HTML, are nobody's.
_PINGS = re.compile(
    r"<((?i:!(?:channel|here|everyone|group|subteam\^|date\^))[^<>\n]{0,200}|@[UWB][A-Z0-9]{1,40}(?:\|[^<>\n]{0,100})?"
    r"|#C[A-Z0-9]{1,40}(?:\|[^<>\n]{0,100})?)>"
)
_UNFINISHED = re.compile(r"<[!@#]?[^<>\n]{0,240}\Z")
_FENCE = re.compile(r"^[ \t]*(`{3,}|~{3,})")
PLAIN = 3000
"""Characters of the plain text beside a message's blocks, which notifications and screen readers take."""


@dataclass(frozen=True, slots=True)
class Names:
    """Whom and what ids stand for; None for what is not known."""

    user: Callable[[str], str | None]
    channel: Callable[[str], str | None] = lambda _: None


NOBODY = Names(lambda _: None)


def mentioned(text: str) -> tuple[str, ...]:
    """The ids of the users that a text names, each once."""
    return tuple(dict.fromkeys(_USER.findall(text)))


def readable(text: str, names: Names, *, me: str) -> str:
    """A text as its reader sees it, without the bot's own mention at the beginning; entities are decoded after the marks."""
    if me:
        text = re.sub(rf"\A(?:\s*<@{re.escape(me)}(?:\|[^<>\n]*)?>[\s,:;]*)+", "", text)
    text = _TOKEN.sub(lambda match: _spelled(match[1], names), text)
    return text.replace("&lt;", "<").replace("&gt;", ">").replace("&amp;", "&").strip()


def _spelled(token: str, names: Names) -> str:
    what, _, label = token.partition("|")
    if what.startswith("@"):
        return f"@{names.user(what[1:]) or label or 'somebody'}"
    if what.startswith("#"):
        return f"#{label or names.channel(what[1:]) or 'a channel'}"
    if what.startswith("!"):
        return _special(what[1:], label)
    address = what.removeprefix("mailto:").removeprefix("tel:")
    return address if label in ("", address, re.sub(r"^https?://|/$", "", what)) else f"{label} ({address})"


def _special(what: str, label: str) -> str:
    kind, *rest = what.split("^")
    if kind == "subteam":
        return f"@{label.removeprefix('@') or 'a group'}"
    if kind == "date":
        return label or _time(rest[0] if rest else "") or "a date"
    return f"@{kind}"


def _time(seconds: str) -> str:
    try:
        return f"{datetime.fromtimestamp(int(seconds), UTC):%Y-%m-%d %H:%M} UTC"
    except (ValueError, OverflowError, OSError):
        return ""


def harmless(text: str) -> str:
    """Markdown of the model in which no mark notifies or stands for anybody; as long as it was."""
    return _PINGS.sub(r"‹\1›", text)


def held_back(text: str) -> str:
    """A text that still grows, without an end of which nobody knows yet whether it becomes a mark."""
    return _UNFINISHED.sub("", text)


def escaped(text: str) -> str:
    """A text for fields in which Slack reads marks."""
    return text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")


def plain(markdown: str) -> str:
    """The text beside the blocks: the words without most marks."""
    text = escaped("\n".join(_without_marks(line, code) for line, code in _lines(markdown)))
    return text if len(text) <= PLAIN else re.sub(r"&[a-z]{0,3}\Z", "", text[: PLAIN - 1]) + "…"


def mrkdwn(markdown: str) -> str:
    """Markdown in Slack's older form, for places that know no markdown block (App Home, modals). Code stays as it is."""
    return "\n".join(escaped(line) if code else _converted(line) for line, code in _lines(markdown))


def shortened(text: str, most: int) -> str:
    """At most so many characters, with a sign where something was left out."""
    return text if len(text) <= most else text[: most - 1] + "…"


def _lines(markdown: str) -> list[tuple[str, bool]]:
    """Every line, and whether it belongs to a fenced block."""
    found: list[tuple[str, bool]] = []
    mark = ""
    for line in markdown.split("\n"):
        fence = _FENCE.match(line)
        found.append((line, bool(mark or fence)))
        if fence and not mark:
            mark = fence[1]
        elif fence and mark and fence[1].startswith(mark):
            mark = ""
    return found


def _outside_code(line: str, change: Callable[[str], str]) -> str:
    parts = re.split(r"(`[^`]*`)", line)
    return "".join(part if index % 2 else change(part) for index, part in enumerate(parts))


_HEADING = re.compile(r"^\s{0,3}#{1,6}\s+(.*?)\s*#*$")
_BOLD = re.compile(r"(\*\*|__)(?=\S)(.+?)(?<=\S)\1")
_LINK = re.compile(r"!?\[([^\]\n]{1,300})\]\((https?://[^)\s]{1,2000})\)")


def _without_marks(line: str, code: bool) -> str:
    if code:
        return "" if _FENCE.match(line) else line
    line = _HEADING.sub(r"\1", line)
    return _outside_code(line, lambda part: _LINK.sub(r"\1 (\2)", _BOLD.sub(r"\2", part)))


def _converted(line: str) -> str:
    line = _HEADING.sub(r"**\1**", line)

    def change(part: str) -> str:
        links: list[str] = []

        def keep(match: re.Match[str]) -> str:
            links.append(f"<{match[2]}|{escaped(match[1])}>")
            return f"\0{len(links) - 1}\0"

        part = escaped(_LINK.sub(keep, part))
        part = re.sub(r"~~(.+?)~~", r"~\1~", part)
        part = re.sub(r"(?<![\w*])\*(?=[^\s*])([^*\n]+?)(?<=[^\s*])\*(?![\w*])", r"_\1_", part)
        part = _BOLD.sub(r"*\2*", part)
        return re.sub("\0(\\d+)\0", lambda match: links[int(match[1])], part)

    parts = re.split(r"(`[^`]*`)", line.replace("\0", ""))
    return "".join(escaped(part) if index % 2 else change(part) for index, part in enumerate(parts))


def names_from(users: Mapping[str, str], channels: Mapping[str, str] | None = None) -> Names:
    """Lookups in what is known."""
    return Names(users.get, (channels or {}).get)
