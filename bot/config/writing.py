"""Writing single keys into config.yaml, which keeps its comments, its order and everything else as it is.

A line is changed or put in, nothing is written anew; whether that came out as meant is checked by reading the result, and where it did
not (a section in braces, a value over several lines) the file is left alone and the operator told which lines to write.
"""

from __future__ import annotations

import copy
import json
import os
import re
import shutil
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import yaml

from bot.config.findings import StartError


def write(file: Path, values: Mapping[str, object]) -> None:
    """Set `section.key` to values in a file, which is made where there is none. Raises StartError, and then nothing was changed."""
    target = file.resolve()
    try:
        with target.open(encoding="utf-8", newline="") as before:
            text = before.read()
    except FileNotFoundError:
        text = ""
    except (OSError, UnicodeDecodeError) as error:
        raise StartError(f"{file}: cannot be read ({type(error).__name__}). Make it a readable UTF-8 file.") from error
    try:
        for key, value in values.items():
            text = with_value(text, key, value)
    except ValueError as error:
        wanted = ", ".join(f"{key}: {_scalar(value)}" for key, value in values.items())
        raise StartError(f"{file.name}: {error}; write it by hand: {wanted}.") from error
    fresh = target.with_name(f".{target.name}.new")
    try:
        with fresh.open("w", encoding="utf-8", newline="") as written:
            written.write(text)
        if target.exists():
            shutil.copymode(target, fresh)
        os.replace(fresh, target)
    except OSError as error:
        fresh.unlink(missing_ok=True)
        raise StartError(f"{file}: cannot be written ({error.strerror}). Make it writable.") from error


def with_value(text: str, key: str, value: object) -> str:
    """The text with `section.key` set. Raises ValueError where that is no matter of one line."""
    section, name = key.split(".")
    wanted: dict[str, Any] = copy.deepcopy(_parsed(text))
    wanted[section] = {**(wanted.get(section) or {}), name: value}
    made = _edited(text, section, name, _scalar(value))
    if _parsed(made) != wanted:
        raise ValueError(f"{key} cannot be set by changing one line")
    return made


def _parsed(text: str) -> dict[str, Any]:
    try:
        found = yaml.safe_load(text) or {}
    except yaml.YAMLError as error:
        raise ValueError("is no valid YAML") from error
    if not isinstance(found, dict):
        raise ValueError("holds no sections")
    return found


def _scalar(value: object) -> str:
    return value if isinstance(value, str) and re.fullmatch(r"[A-Za-z][\w.-]*", value) else json.dumps(value)


_LINE = re.compile(r"""\s*\w+:\s*(?:"(?:[^"\\]|\\.)*"|'(?:[^']|'')*'|[^#"']*?)(\s+\#.*)?""")
"""A key with a value of one line, and its comment."""


def _edited(text: str, section: str, name: str, value: str) -> str:
    end = "\r\n" if "\r\n" in text else "\n"
    lines = text.splitlines(keepends=True)
    start = next((n for n, line in enumerate(lines) if re.match(rf"{section}:\s*(?:\{{\s*\}}|~|null)?\s*(?:#.*)?$", line)), None)
    if start is None:
        gap = "" if not text else end if text.endswith("\n") else end * 2
        return f"{text}{gap}{section}:{end}  {name}: {value}{end}"
    stop = next((n for n, line in enumerate(lines[start + 1 :], start + 1) if re.match(r"[^\s#]", line)), len(lines))
    indent = next((found[1] for line in lines[start + 1 : stop] if (found := re.match(r"([ ]+)[^\s#]", line))), "  ")
    for number in range(start + 1, stop):
        if re.match(rf"{indent}{name}:(?:\s|$)", lines[number]):
            found = _LINE.fullmatch(lines[number].rstrip())
            if found is None:
                raise ValueError(f"{section}.{name} holds more than one value of one line")
            lines[number] = f"{indent}{name}: {value}{found[1] or ''}{end}"
            return "".join(lines)
    # A section that was empty in braces is one with lines now; a last line may lack its end.
    lines[start] = re.sub(r":\s*(?:\{\s*\}|~|null)", ":", lines[start]).rstrip("\r\n") + end
    lines.insert(start + 1, f"{indent}{name}: {value}{end}")
    return "".join(lines)
