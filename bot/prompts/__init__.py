"""The texts for the model, in Markdown, replaceable per model: a folder `prompts/<model name>/` beside config.yaml wins over these."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

_HERE = Path(__file__).parent
NAMES = ("system", "summary")


@dataclass(frozen=True, slots=True)
class Prompts:
    """The texts of one model."""

    system: str
    summary: str

    @property
    def version(self) -> str:
        """Changes with any of the texts."""
        return hashlib.sha256("\0".join((self.system, self.summary)).encode()).hexdigest()[:12]


GROWING = (
    "While you write, the person sees the text of a `send_message` call grow, and plain text only when it is whole. So say what you have to "
    "say by one `send_message` call, together with the calls that save something."
)
"""What the model is told where replies grow while it writes them: plain text may still turn out to be a thought."""


_EXAMPLES: list[Mapping[str, Any]] = yaml.safe_load((_HERE / "examples.yaml").read_text(encoding="utf-8"))


def examples(functions: Collection[str]) -> str:
    """Exchanges that show how calls by JSON schema are answered, a line each, of those that need no other functions; empty without any."""
    shown = [one for one in _EXAMPLES if all(call["function"] in functions for call in one.get("calls", ()))]
    if not any(one.get("calls") for one in shown):
        return ""
    answers = ({"calls": one.get("calls", []), "text": one.get("text", "")} for one in shown)
    return "\n".join(
        f"{one['said']} -> {json.dumps(answer, ensure_ascii=False)}" for one, answer in zip(shown, answers, strict=True)
    )


def load(model: str, folder: Path | None = None, *, growing: bool = False, small: bool = False) -> Prompts:
    """The prompts for a model: from `folder/<model>/NAME.md`, `folder/NAME.md`, or the built-in ones, each on its own.

    `growing`: replies are shown while they are written. `small`: the built-in instructions are the compact ones, where there are such.
    """
    safe = model.replace("/", "_").replace("..", "_")
    found = {}
    for name in NAMES:
        places = [folder / safe / f"{name}.md", folder / f"{name}.md"] if folder else []
        places += [_HERE / f"{name}_small.md"] if small else []
        path = next((place for place in places if place.is_file()), _HERE / f"{name}.md")
        found[name] = path.read_text(encoding="utf-8").strip()
    # A small model has `send_message` only where nothing else speaks.
    found["system"] += f"\n\n{GROWING}" if growing and not small else ""
    return Prompts(**found)
