"""Draws the picture of a chat that the README begins with, and writes its transcript: `python -m tests.scenarios.picture FILE.svg`.

Both are real: the `bot chat` process is started on a new data folder, with the rehearsal model, and gets what a person types. A pipe does
not show who speaks, so what was typed and the bot's name are put before the lines as at an interactive terminal.
"""

from __future__ import annotations

import asyncio
import io
import re
import sys
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path

from rich.console import Console
from rich.text import Text

from tests.folders import remove
from tests.scenarios.terminal import terminal

ROOT = Path(__file__).parents[2]
README = ROOT / "README.md"
NAME = "Mika"
WIDTH = 100
PICTURED = (
    (
        "Hi! My name is Ada, and my dog is called Biscuit.",
        "My sister Clara moves to Porto in March.",
        "Remind me in 2 hours to water the plants.",
    ),
    ("What is my dog called?", "Where does my sister move?"),
)
"""What is typed for the picture, by start of `make chat`; all starts are on one data folder."""
WRITTEN = (("/memory view", "/memory forget everything yes", "What is my dog called?"),)
"""What is typed for the transcript in the README, after that."""
NOTHING = "/quit now"
"""A line whose answer is one line that names /quit: it comes after the whole answer to the line before it."""


async def chat(data: Path, lines: Sequence[str]) -> list[str]:
    """One start of the chat as it looks at a terminal, from its command to /quit."""
    shown = ["$ make chat"]
    async with terminal(data) as bot:
        for line in lines:
            await bot.say(line)
            await bot.say(NOTHING)
            first = len(bot.said)
            await bot.hear_until("/quit")
            answer = bot.said[first:-1]
            speaker = "" if line.startswith("/") else f"{NAME}: "
            shown += [f"> {line}", speaker + answer[0], *answer[1:]]
        await bot.leave()
    return [*shown, "> /quit"]


async def chats() -> tuple[list[str], list[str]]:
    """The lines of the picture, and those of the transcript."""
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as folder:
        data = Path(folder) / "data"
        try:
            pictured, written = [[line for one in part for line in await chat(data, one)] for part in (PICTURED, WRITTEN)]
        finally:
            remove(Path(folder))
    return pictured, written


def svg(lines: Sequence[str]) -> str:
    """The picture. Fonts are the reader's own: a picture in a repository loads nothing from elsewhere."""
    console = Console(record=True, width=WIDTH, file=io.StringIO(), force_terminal=True, color_system="truecolor")
    for line in lines:
        style = "bold green" if line.startswith("$") else "bold" if line.startswith("> ") else ""
        text = Text(line, style)
        text.highlight_regex(rf"^{NAME}:", "bold cyan")
        console.print(text)
    drawn = re.sub(r"\s*@font-face \{.*?\}\n", "\n", console.export_svg(title="Keepsake", unique_id="chat"), flags=re.DOTALL)
    return "\n".join(line.rstrip() for line in drawn.splitlines()) + "\n"


def with_transcript(readme: str, lines: Sequence[str]) -> str:
    """The README with its block of text that begins with `$ make chat` replaced."""
    block = "```text\n" + "\n".join(wrapped(lines)) + "\n```\n"
    text, found = re.subn(r"```text\n\$ make chat\n(?:.*?\n)?```\n", lambda _: block, readme, flags=re.DOTALL)
    assert found == 1, "the README has one transcript, which begins with $ make chat"
    return text


def wrapped(lines: Sequence[str], width: int = 118) -> Iterator[str]:
    """Lines broken at words as a terminal of that width shows them."""
    console = Console(width=width, file=io.StringIO())
    for line in lines:
        yield from (part.plain.rstrip() for part in Text(line).wrap(console, width))


def main(file: Path) -> None:
    """Draw the picture into a file, and write the transcript into the README."""
    pictured, written = asyncio.run(chats())
    file.write_text(svg(pictured), encoding="utf-8")
    README.write_text(with_transcript(README.read_text(encoding="utf-8"), written), encoding="utf-8")


if __name__ == "__main__":
    main(Path(sys.argv[1]))
