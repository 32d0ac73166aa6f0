"""Writes docs/configuration.md from the sections of the configuration: `python -m bot.config.documentation > docs/configuration.md`.

Every key, default, range and explanation comes from the fields themselves, so the page cannot say anything else than the code.
"""

import sys
from collections.abc import Iterator, Mapping
from datetime import date, time
from types import NoneType, UnionType
from typing import Annotated, Any, Literal, Union, get_args, get_origin

from annotated_types import Ge, Gt, Le, Lt, MaxLen
from pydantic.fields import FieldInfo
from pydantic_settings import NoDecode

from bot.config.loading import PREFIX, Config
from bot.config.sections import ConfigSection

HEAD = f"""\
# Configuration

All settings, section by section. Everything is optional: a key you leave out has the default shown here.

- Settings live in `config.yaml`, as `section:` with `key: value` lines below it. [config.yaml](../config.yaml) shows the keys most
  operators need; the other keys on this page can be added to it.
- `{PREFIX}SECTION__KEY` in the environment overrides the file: `{PREFIX}MODEL__CHAT=gpt-5-mini` sets `model.chat`. Lists are separated
  by commas there, and what is marked *JSON* is written as JSON.
- The file may be kept in a repository, so it holds only the NAMES of environment variables with secrets, never the secrets themselves.
- Without `--config` or `KEEPSAKE_CONFIG`, the file is `config.yaml` in the current folder. `bot doctor` checks your changes.

This page is made from the code by `make docs`; change the texts there.
"""
LONG = 100
"""Characters of a default above which it is written below its table."""
KINDS: Mapping[object, str] = {
    bool: "`true`, `false`",
    str: "text",
    int: "whole number",
    float: "number",
    date: "day",
    time: "time of day",
}


def page() -> str:
    """The whole page."""
    return "\n".join([HEAD, *(line for name, field in Config.model_fields.items() for line in _section(name, field.annotation))])


def _section(name: str, kind: Any) -> Iterator[str]:
    yield from (f"## {name}", "", _words(kind.__doc__), "")
    yield from _table(kind, name)
    for key, field in kind.model_fields.items():
        if isinstance(default := _default(field), dict | str) and len(_shown(default)) > LONG:
            yield from ("", f"The default of `{name}.{key}`:", "", *_listing(default))
    for key, field in kind.model_fields.items():
        for inner in _sections_in(field.annotation):
            yield from ("", f"Each entry of `{name}.{key}`: {_words(inner.__doc__)}", "", *_table(inner, ""))
    yield ""


def _table(kind: type[ConfigSection], section: str) -> Iterator[str]:
    yield from ("| key | default | values | meaning |", "|---|---|---|---|")
    for key, field in kind.model_fields.items():
        name = f"{section}.{key}" if section else key
        values = _values(field.annotation, field.metadata, top=bool(section))
        yield f"| `{name}` | {_cell(field)} | {values} | {_words(field.description)} |"


def _cell(field: FieldInfo) -> str:
    if field.is_required():
        return "required"
    if (default := _default(field)) is None:
        return "unset"
    shown = _shown(default)
    return "see below" if len(shown) > LONG else f"`{shown}`" if shown else "empty"


def _default(field: FieldInfo) -> Any:
    return None if field.is_required() else field.get_default(call_default_factory=True)


def _shown(value: Any) -> str:
    """A default as YAML writes it; empty for an empty text."""
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, tuple):
        return f"[{', '.join(map(str, value))}]"
    if isinstance(value, time):
        return f'"{value:%H:%M}"'
    if isinstance(value, float):
        return f"{value:g}"
    return str(value)


def _listing(default: dict[str, str] | str) -> Iterator[str]:
    if isinstance(default, str):
        yield f"> {default}"
    else:
        yield from (f"- `{language}`: {text}" for language, text in default.items())


def _values(kind: Any, metadata: list[Any], *, top: bool) -> str:
    """What a field may hold, in words. `top`: a key of its own, which the environment can set."""
    kind, metadata = _plain(kind, metadata)
    if get_origin(kind) is Literal:
        return ", ".join(f"`{choice}`" for choice in get_args(kind))
    if get_origin(kind) in (tuple, dict):
        listed = get_origin(kind) is tuple
        choices = _values(get_args(kind)[0], [], top=False) if listed else ""
        json = " (JSON)" if top and not any(one is NoDecode for one in metadata) else ""
        most = next((f", at most {one.max_length}" for one in metadata if isinstance(one, MaxLen)), "")
        return f"{'list' if listed else 'mapping'}{json}{most}" + (f" of {choices}" if choices.startswith("`") else "")
    return KINDS.get(kind, "mapping") + _range(metadata)


def _plain(kind: Any, metadata: list[Any]) -> tuple[Any, list[Any]]:
    """A type without its annotations and without None, and all the annotations."""
    while get_origin(kind) in (Annotated, Union, UnionType):
        if get_origin(kind) is Annotated:
            kind, *more = get_args(kind)
            metadata = [*metadata, *more]
        else:
            kind = next(one for one in get_args(kind) if one is not NoneType)
    return kind, [inner for one in metadata for inner in (one.metadata if isinstance(one, FieldInfo) else [one])]


def _range(metadata: list[Any]) -> str:
    words = []
    for one in metadata:
        match one:
            case Ge(ge=low):
                words.append(f"from {low:,}")
            case Gt(gt=low):
                words.append(f"above {low:,}")
            case Le(le=high):
                words.append(f"to {high:,}" if words else f"at most {high:,}")
            case Lt(lt=high):
                words.append(f"below {high:,}")
            case MaxLen(max_length=most):
                words.append(f"at most {most:,} characters")
    return f", {' '.join(words)}" if words else ""


def _sections_in(kind: Any) -> Iterator[type[ConfigSection]]:
    """The sections that a list or mapping holds."""
    if isinstance(kind, type) and issubclass(kind, ConfigSection):
        yield kind
    for inner in get_args(kind):
        yield from _sections_in(inner)


def _words(text: str | None) -> str:
    assert text, "each section and each key is explained by the text below it"
    return " ".join(text.split()).replace("|", "\\|")


if __name__ == "__main__":
    sys.stdout.write(page())
