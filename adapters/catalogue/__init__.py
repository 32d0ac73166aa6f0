"""The one catalogue of the bot's own lines: everything that it says to people itself, in a file for each language.

A line has a name, and parameters by name. English has every line; what another language lacks is said in English. A line that counts
has a form for `one` and one for `other`, chosen by its parameter `n`. To add a language, add a file.

It is here, on the lowest floor, because the platforms say things, too. What operators read (the program, its log) and what models read
is not in it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime, tzinfo
from pathlib import Path
from typing import Any

import yaml

ENGLISH = "en"
_ONE = {"fr": (0, 1)}
"""Numbers that take the form for one, where they are not 1 alone."""


def _read(file: Path) -> Mapping[str, Any]:
    """The lines of a language by their names, `settings.usage`."""
    sections = yaml.load(file.read_text(encoding="utf-8"), Loader=getattr(yaml, "CSafeLoader", yaml.SafeLoader))
    return {f"{section}.{name}": line for section, lines in sections.items() for name, line in lines.items()}


LINES: Mapping[str, Mapping[str, Any]] = {file.stem: _read(file) for file in sorted(Path(__file__).parent.glob("*.yaml"))}


def language_of(locale: str | None) -> str:
    """The catalogue's language for a locale as platforms write it (`pt-BR`, `en_US`); English for one that it lacks."""
    language = (locale or "").replace("_", "-").casefold().split("-")[0]
    return language if language in LINES else ENGLISH


def say(name: str, locale: str | None, /, **values: object) -> str:
    """A line in a person's language. Raises KeyError for a name or a parameter that does not exist."""
    language = language_of(locale)
    if name not in LINES[language]:
        language = ENGLISH
    line = LINES[language][name]
    if isinstance(line, Mapping):
        line = line["one" if values["n"] in _ONE.get(language, (1,)) else "other"]
    return str(line).format(**values)


def words(name: str, locale: str | None) -> Sequence[str]:
    """A list of the catalogue, such as the days of the week."""
    found: Sequence[str] = LINES[language_of(locale)].get(name) or LINES[ENGLISH][name]
    return found


def in_every_language(name: str) -> dict[str, str]:
    """A line without parameters by language, for whom the language is known only in the database."""
    return {language: lines[name] for language, lines in LINES.items() if name in lines}


def date_and_time(at: datetime, zone: tzinfo, locale: str | None) -> str:
    """A time, day and minute, on a clock."""
    local = at.astimezone(zone)
    return f"{local:%d} {words('time.months', locale)[local.month - 1]} {local:%Y %H:%M}"
