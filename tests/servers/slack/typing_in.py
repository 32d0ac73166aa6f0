"""How Slack's client turns what people type into what apps read: entities, mentions, links, rich_text blocks."""

from __future__ import annotations

import re

from tests.servers.slack.world import Json

TOKEN = re.compile(r"<(?:[@#!][^<>\s]+(?:\|[^<>]*)?|(?:https?|mailto|slack):[^<>\s]+)>")
LINK = re.compile(r"(?<![<|])\bhttps?://[^\s<>|]+")
ELEMENT = re.compile(
    r"<@(?P<user>[UW][A-Z0-9]+)>|<#(?P<channel>C[A-Z0-9]+)[^>]*>|<!(?P<range>here|channel|everyone)[^>]*>|<(?P<url>https?:[^>|]+)[^>]*>"
)


def encode(text: str) -> str:
    """`&`, `<` and `>` become entities and links are put in angle brackets; tokens such as <@U…> stay."""
    parts, start = [], 0
    for token in TOKEN.finditer(text):
        parts += [_plain(text[start : token.start()]), token.group()]
        start = token.end()
    return "".join([*parts, _plain(text[start:])])


def rich_text(text: str) -> list[Json]:
    """The block that goes with an encoded text."""
    elements: list[Json] = []
    start = 0
    for token in ELEMENT.finditer(text):
        elements += _words(text[start : token.start()])
        kinds: dict[str, Json] = {
            "user": {"type": "user", "user_id": token["user"]},
            "channel": {"type": "channel", "channel_id": token["channel"]},
            "range": {"type": "broadcast", "range": token["range"]},
            "url": {"type": "link", "url": token["url"]},
        }
        elements.append(kinds[token.lastgroup or "url"])
        start = token.end()
    elements += _words(text[start:])
    return [{"type": "rich_text", "block_id": "typed", "elements": [{"type": "rich_text_section", "elements": elements}]}]


def _plain(text: str) -> str:
    text = text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")
    return LINK.sub(lambda link: f"<{link.group()}>", text)


def _words(text: str) -> list[Json]:
    text = text.replace("&lt;", "<").replace("&gt;", ">").replace("&amp;", "&")
    return [{"type": "text", "text": text}] if text else []
