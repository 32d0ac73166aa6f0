"""How large prompts are, counted with another tokenizer than the bot's, and how much of each was in a prompt seen before.

A prompt is compared message by message, in the order in which endpoints read it: functions, then messages. In the first message
that differs the common beginning counts too, as prompt caches go by tokens and not by messages.
"""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any

from memory import tokens

OTHER = "cl100k_base"
"""The encoding that counts here; the bot counts with o200k_base."""
PER_MESSAGE = tokens.PER_MESSAGE + 1


@dataclass(frozen=True, slots=True)
class Sized:
    """One request in tokens: all of it, and the beginning that an earlier request had too."""

    tokens: int
    seen: int
    for_summary: bool

    @property
    def unseen(self) -> int:
        """What no prompt cache can hold."""
        return self.tokens - self.seen


@dataclass(slots=True)
class _Node:
    """What followed one beginning: the next parts by digest, and the newest of them as text."""

    next: dict[bytes, _Node] = field(default_factory=dict)
    newest: str = ""


class Sizes:
    """Sizes requests one after the other; remembers their beginnings."""

    def __init__(self) -> None:
        self._root = _Node()

    def of(self, body: Mapping[str, Any]) -> Sized:
        """The size of a request's body, and what of it was seen before this call."""
        parts = [json.dumps(body["tools"], ensure_ascii=False)] if "tools" in body else []
        overhead = [0] * len(parts) + [PER_MESSAGE] * len(body["messages"])
        parts += [_text(message) for message in body["messages"]]
        sizes = [_count(part) + more for part, more in zip(parts, overhead, strict=True)]
        return Sized(sum(sizes) + tokens.PER_REPLY, self._seen(parts, sizes), "tools" not in body)

    def _seen(self, parts: list[str], sizes: list[int]) -> int:
        node, seen, known = self._root, 0, True
        for part, size in zip(parts, sizes, strict=True):
            digest = hashlib.blake2b(part.encode("utf-8", "surrogatepass"), digest_size=12).digest()
            following = node.next.get(digest)
            if known and following is not None:
                seen += size
            elif known:
                seen += _count(os.path.commonprefix([part, node.newest]))
                known = False
            node.newest = part
            node = node.next.setdefault(digest, _Node())
        return seen


def _text(message: Mapping[str, Any]) -> str:
    """Everything of a message that is sent: what is said, the calls, and which call a result answers."""
    said = f"{message['role']}\n{message.get('content') or ''}"
    calls = "\n" + json.dumps(message["tool_calls"], ensure_ascii=False) if message.get("tool_calls") else ""
    return said + calls + (f"\n{message['tool_call_id']}" if "tool_call_id" in message else "")


@lru_cache(maxsize=50_000)
def _count(text: str) -> int:
    return tokens.count(text, OTHER)
