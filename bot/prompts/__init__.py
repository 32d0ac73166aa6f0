"""The texts for the model, in Markdown, replaceable per model: a folder `prompts/<model name>/` beside config.yaml wins over these."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from pathlib import Path

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


def load(model: str, folder: Path | None = None) -> Prompts:
    """The prompts for a model: from `folder/<model>/NAME.md`, `folder/NAME.md`, or the built-in ones, each on its own."""
    safe = model.replace("/", "_").replace("..", "_")
    found = {}
    for name in NAMES:
        places = [folder / safe / f"{name}.md", folder / f"{name}.md"] if folder else []
        path = next((place for place in places if place.is_file()), _HERE / f"{name}.md")
        found[name] = path.read_text(encoding="utf-8").strip()
    return Prompts(**found)
