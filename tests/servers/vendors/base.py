"""What a vendor's endpoint is for the tests: rules before the model, and habits of its answers."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any, ClassVar, cast

from tests.servers.model import Habits, Json, Status
from tests.servers.vendors.rules import PAIRED, SYSTEM_FIRST, VALID_ARGUMENTS, Rule


class Vendor(Habits):
    """One endpoint. A class of its own per vendor, whose docstring names the sources of its rules."""

    name: ClassVar[str]
    model: ClassVar[str]
    rules: ClassVar[tuple[Rule, ...]] = (SYSTEM_FIRST, PAIRED, VALID_ARGUMENTS)
    status: ClassVar[int] = 400
    first_id: ClassVar[str] = "call_"
    """How the ids of its calls begin."""

    def __init__(self) -> None:
        self.answers = 0
        self.learned: dict[str, None] = {}
        """What a client found out by a refusal, in order."""
        self.refused: list[str] = []
        """Refusals that nothing helps against."""

    def refusal(self, body: Json) -> Status | None:
        for rule in self.rules:
            if words := rule.check(cast(dict[str, Any], body)):
                if rule.learned and rule.name not in self.learned:
                    self.learned[rule.name] = None
                else:
                    self.refused.append(words)
                return self.error(words)
        return None

    def error(self, words: str) -> Status:
        """A refusal in the vendor's form; OpenAI's unless it has one of its own."""
        return Status(self.status, "invalid_request_error", words)

    def dressed(self, body: Json) -> Json:
        self.answers += 1
        choice = cast(list[dict[str, Any]], body["choices"])[0]
        for number, call in enumerate(choice["message"].get("tool_calls") or ()):
            call["id"] = self.call_id(call["function"]["name"], number)
        self.think(choice["message"])
        return self.used(body)

    def call_id(self, name: str, number: int) -> str:
        """The id that it gives a call."""
        return f"{self.first_id}{self.answers:04}{number:04}" + "x" * 12

    def think(self, message: dict[str, Any]) -> None:
        """Put the vendor's thoughts to a message."""

    def given(self, call_number: int) -> dict[str, object]:
        """What the vendor wants back with a call, as the agent keeps it."""
        return {}

    def used(self, body: Json) -> Json:
        """The usage, in the vendor's words."""
        return body


def whole_calls(message: Json, piece: int = 7) -> Iterator[Json]:
    """Deltas of a vendor that streams thoughts and text in pieces and each call whole."""
    for name in ("reasoning_content", "content"):
        text = message.get(name)
        for start in range(0, len(text) if isinstance(text, str) else 0, piece):
            yield {name: str(text)[start : start + piece]}
    for index, call in enumerate(cast(list[Json], message.get("tool_calls") or [])):
        yield {"tool_calls": [{"index": index, **call}]}


def raw(status: int, body: object) -> Status:
    """A refusal whose body is the vendor's own."""
    return Status(status, message=str(body), body=json.dumps(body))
