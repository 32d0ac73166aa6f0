"""What counts of a message, for the rules that all platforms share. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from adapters.slack.names import Scope
from adapters.triggers import Author, Facts

WRITTEN = frozenset((None, "", "file_share", "thread_broadcast", "me_message", "bot_message"))
"""Subtypes of what somebody wrote; every other one is a notice of Slack's."""
_MASS = ("<!channel", "<!here", "<!everyone", "<!subteam^")


def facts_of(
    event: Mapping[str, Any], scope: Scope, me: str, my_bot: str, *, direct: bool, mine: bool, bots: frozenset[str]
) -> Facts:
    """What counts of a message. `me` and `my_bot` are the bot's own ids, `mine`: in a thread that it takes part in."""
    text = str(event.get("text") or "")
    user, bot = str(event.get("user") or ""), str(event.get("bot_id") or "")
    author: Author = "person"
    if (me and user == me) or (my_bot and bot == my_bot):
        author = "myself"
    elif bot or event.get("subtype") == "bot_message" or event.get("bot_profile"):
        author = "bot"
    thread = event.get("thread_ts")
    return Facts(
        author=author,
        author_id=bot if bot in bots else user or bot,
        ordinary=event.get("subtype") in WRITTEN and not event.get("hidden"),
        direct=direct,
        workspace=scope.workspace,
        channel=str(event.get("channel") or ""),
        parent="",
        mentioned=event.get("type") == "app_mention" or (bool(me) and (f"<@{me}>" in text or f"<@{me}|" in text)),
        mass_mention=any(mark in text for mark in _MASS),
        my_thread=bool(thread) and (mine or (bool(me) and event.get("parent_user_id") == me)),
        readable=bool(text or event.get("files") or event.get("attachments") or event.get("blocks")),
    )


def is_stranger(event: Mapping[str, Any], scope: Scope) -> str:
    """The home of somebody who writes from another organisation into a shared channel; empty for one of our own."""
    home = str(event.get("user_team") or event.get("source_team") or event.get("team") or "")
    return "" if home in ("", scope.team, scope.enterprise) else home
