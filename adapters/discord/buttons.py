"""Buttons under the answer of a command, and the question that some ask first.

What a button does and whom it serves stands in its custom_id, which comes back with every press: it works after a restart, in any
process, and nothing is kept of it. A line that does not fit is written under the answer, to be typed.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import discord

from adapters.base import Answer, Button

LONGEST = 100
"""Characters of a custom_id."""
MOST = 25
"""Buttons of one message."""
LABEL, TITLE, TYPED = 80, 45, 1500
"""Characters of a button's label, of a modal's title and question, and of what is typed in it."""
_MARK = "ks"
_STYLES = {"plain": discord.ButtonStyle.secondary, "good": discord.ButtonStyle.success, "danger": discord.ButtonStyle.danger}


@dataclass(frozen=True, slots=True)
class Pressed:
    """What a button's custom_id says: the user it was made for, what is asked first (empty: nothing), and the line to run."""

    user: int
    ask: str
    line: str


def custom_id(user: int, button: Button) -> str | None:
    """A button as its custom_id; the question is cut where it must be. None: the line does not fit."""
    ask = button.ask.replace("|", "/")
    room = LONGEST - len(f"{_MARK}|{user}||{button.line}")
    if room < bool(ask):
        return None
    return f"{_MARK}|{user}|{ask[:room]}|{button.line}"


def pressed(text: str) -> Pressed | None:
    """The button of a custom_id; None for one that is not ours."""
    mark, *rest = text.split("|", 3)
    if mark != _MARK or len(rest) != 3 or not rest[0].isdecimal():
        return None
    return Pressed(int(rest[0]), rest[1], rest[2])


def shown(answer: Answer, user: int) -> tuple[str, discord.ui.View | None]:
    """An answer's text, and its buttons where it has any; to be called in the event loop."""
    named = [(button, custom_id(user, button)) for button in answer.buttons]
    fit = [(button, name) for button, name in named if name is not None][:MOST]
    left = [button for button in answer.buttons if button not in [one for one, _ in fit]]
    text = "\n".join([answer.text, *(f"{button.label}: `{button.line}`" for button in left)])
    if not fit:
        return text, None
    view = discord.ui.View(timeout=None)
    for button, name in fit:
        view.add_item(discord.ui.Button(label=button.label[:LABEL], style=_STYLES[button.style], custom_id=name))
    view.stop()  # the library need not keep it: presses come by their custom_id
    return text, view


def question(button: Pressed, name: str, title: str) -> discord.ui.Modal:
    """The modal in which a button asks; it carries the button's custom_id on."""
    modal = discord.ui.Modal(title=title[:TITLE], custom_id=name, timeout=None)
    answer: discord.ui.TextInput[discord.ui.Modal] = discord.ui.TextInput(
        style=discord.TextStyle.paragraph, custom_id="text", max_length=TYPED
    )
    modal.add_item(discord.ui.Label(text=button.ask[:TITLE], component=answer))
    modal.stop()
    return modal


def typed(data: Mapping[str, Any]) -> str:
    """What was typed in a modal."""
    return " ".join(value for value in _values(data.get("components") or []) if value).strip()


def _values(components: Sequence[Mapping[str, Any]]) -> Iterator[str]:
    for one in components:
        if isinstance(one.get("value"), str):
            yield one["value"]
        yield from _values(one.get("components") or [])
        if isinstance(one.get("component"), dict):
            yield from _values([one["component"]])
