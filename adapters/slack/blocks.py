"""Messages, buttons, modals and App Home as Slack's blocks. Pure."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

from adapters.base import Answer, Button, Outgoing
from adapters.catalogue import say
from adapters.slack.names import Json
from adapters.slack.texts import harmless, mrkdwn, plain, shortened
from adapters.text import split

ACTION = "keepsake"
ASK = "keepsake_ask"
FIELD, INPUT = "said", "text"
SECTION = 2900
"""Characters of a section, which takes 3,000 after escaping."""
VALUE = 2000
BLOCKS_AT_HOME = 90
_STYLES = {"good": "primary", "danger": "danger"}


def message(markdown: str) -> Json:
    """A message's `text` and `blocks`: shown by the block, read out and notified by the text."""
    return {"text": plain(markdown), "blocks": [{"type": "markdown", "text": harmless(markdown)}]}


def outgoing(message_: Outgoing) -> Json:
    """A message of the outbox: with the mark that notifies its person, and its buttons."""
    shown = message(message_.text)
    shown["text"] = notifying(message_, shown["text"])
    shown["blocks"][0]["text"] = notifying(message_, shown["blocks"][0]["text"])
    shown["blocks"] += actions(message_.buttons, message_.made_for) if message_.made_for else []
    return shown


def notifying(message_: Outgoing, text: str) -> str:
    """A text that was made harmless, with the one mark that is meant to notify."""
    return f"<@{message_.mention}> {text}" if message_.mention else text


def answer(markdown: str, buttons: Sequence[Button], made_for: str) -> Json:
    """An answer with the buttons that lead on."""
    shown = message(markdown)
    shown["blocks"] += actions(buttons, made_for)
    return shown


def actions(buttons: Sequence[Button], made_for: str, first: int = 0) -> list[Json]:
    """Buttons in blocks; each knows for whom it was made. One whose command does not fit is left out."""
    elements = [
        element
        for number, button in enumerate(buttons, first)
        if len((element := _element(button, made_for, number))["value"]) <= VALUE
    ]
    return [{"type": "actions", "elements": elements[at : at + 20]} for at in range(0, len(elements), 20)]


def _element(button: Button, made_for: str, number: int) -> Json:
    element: Json = {
        "type": "button",
        "text": {"type": "plain_text", "text": shortened(button.label, 75)},
        "action_id": f"{ACTION}_{number}",
        "value": json.dumps({"line": button.line, "for": made_for, "ask": button.ask}),
    }
    if button.style in _STYLES:
        element["style"] = _STYLES[button.style]
    return element


def pressed(value: object) -> tuple[str, str, str] | None:
    """Command line, for whom, and what is asked for, of a button's value; None for what is no value of ours."""
    try:
        found = json.loads(value if isinstance(value, str) else "")
        return str(found["line"]), str(found["for"]), str(found.get("ask", ""))
    except (ValueError, KeyError, TypeError, AttributeError):
        return None


def modal(ask: str, memo: Json, locale: str | None) -> Json:
    """A window that asks for one text; `memo` comes back with it."""
    return {
        "type": "modal",
        "callback_id": ASK,
        "private_metadata": json.dumps(memo),
        "title": {"type": "plain_text", "text": "Keepsake"},
        "submit": {"type": "plain_text", "text": say("platform.go_on", locale)},
        "close": {"type": "plain_text", "text": say("platform.never_mind", locale)},
        "blocks": [
            {
                "type": "input",
                "block_id": FIELD,
                "label": {"type": "plain_text", "text": shortened(ask, 2000)},
                "element": {"type": "plain_text_input", "action_id": INPUT, "multiline": False, "max_length": 1000},
            }
        ],
    }


def submitted(view: Any) -> tuple[Json, str] | None:
    """What a window was opened with and what was typed into it, on one line; None for a window of somebody else."""
    try:
        memo = json.loads(view["private_metadata"])
        typed = view["state"]["values"][FIELD][INPUT]["value"] or ""
    except (ValueError, KeyError, TypeError):
        return None
    return (memo, " ".join(str(typed).split())) if isinstance(memo, dict) else None


def home(parts: Sequence[tuple[str, Answer]], made_for: str, notice: str = "") -> Json:
    """App Home: what was just done, then each part under its heading with its buttons."""
    blocks: list[Json] = [*_sections(notice), {"type": "divider"}] if notice else []
    number = 0
    for heading, said in parts:
        blocks.append({"type": "header", "text": {"type": "plain_text", "text": shortened(heading, 150)}})
        blocks += _sections(said.text)
        blocks += actions(said.buttons, made_for, number)
        number += len(said.buttons)
    return {"type": "home", "blocks": blocks[:BLOCKS_AT_HOME]}


def _sections(markdown: str) -> list[Json]:
    # Escaping makes five characters of one at the worst.
    texts = [mrkdwn(part) for part in split(harmless(markdown), SECTION // 2)]
    return [{"type": "section", "text": {"type": "mrkdwn", "text": shortened(text, 3000)}} for text in texts]
