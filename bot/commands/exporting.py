"""/memory export: everything at once, as files on the console, as text elsewhere."""

import os
from pathlib import Path

from adapters.base import Answer
from bot.commands.context import Asking
from bot.keeping import exports
from memory import export as everything


async def export(asking: Asking) -> Answer:
    """Write JSON and Markdown into the data folder (console), or return the Markdown, with `json` the JSON (elsewhere)."""
    verdict = asking.allowed("export")
    zone, now = await asking.zone(), asking.parts.now()
    async with asking.open(verdict) as connection:
        tables = await everything.collect(connection, partly=not verdict.everything)
    readable, data = (
        everything.as_markdown(tables, now, asking.say, lambda at: asking.when(at, zone)),
        everything.as_json(tables, now),
    )
    if asking.where.platform != "console":
        return Answer(data if asking.argument.strip().casefold() == "json" else readable)
    name = exports.stem(asking.person.user_id, now)
    folder = asking.parts.data / exports.FOLDER
    written = [write(folder / f"{name}.json", data), write(folder / f"{name}.md", readable)]
    of = {"name": asking.person.author_id} if asking.about_another else {}
    return Answer("\n".join([asking.say("export.of" if of else "export.yours", **of), *(f"  {path}" for path in written)]))


def write(path: Path, text: str) -> Path:
    """Write a private file (0600, in a folder 0700) that must not exist yet; a number is added to its name when it does."""
    path.parent.mkdir(mode=0o700, exist_ok=True)
    free, number = path, 1
    while True:
        try:
            descriptor = os.open(free, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
            break
        except FileExistsError:
            number += 1
            free = path.with_stem(f"{path.stem}-{number}")
    with open(descriptor, "w", encoding="utf-8", errors="replace") as file:
        file.write(text)
    return free
