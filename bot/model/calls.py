"""Function calls as models really write them: the values, and arguments parsed without guessing.

Pure: no clock, no network. `parse_arguments` turns a model's raw arguments into validated values or into a
`CallFault`, whose text is the result the model reads next. Calls written as text are found in `call_text`.
"""

import ast
import difflib
import functools
import json
import operator
import re
import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Annotated, Literal, cast

from pydantic import BaseModel, ConfigDict, Field, ValidationError, create_model

from bot.model.schemas import common
from memory.sanitise import clean, clean_json


@dataclass(frozen=True, slots=True)
class FunctionSchema:
    """What the model is told about one function: `parameters` is a JSON schema of type object."""

    name: str
    description: str
    parameters: Mapping[str, object]

    def as_tool(self) -> dict[str, object]:
        """The entry for the `tools` list of a chat request."""
        return {
            "type": "function",
            "function": {"name": self.name, "description": self.description, "parameters": common(self.parameters)},
        }


@dataclass(frozen=True, slots=True)
class Call:
    """One function call as the model gave it: `arguments` is raw JSON text, possibly broken.

    `vendor`: what its endpoint wants back with it (`bot.model.vendor`).
    """

    id: str
    name: str
    arguments: str
    vendor: Mapping[str, object] | None = field(default=None, compare=False)


@dataclass(frozen=True, slots=True)
class CallFault:
    """Why a call was not run; `message` is written for the model and says what to do next."""

    message: str


# --- arguments ------------------------------------------------------------------------------------


class _BrokenError(Exception):
    """The raw arguments are no single JSON object; the text says why, for the model."""


def parse_arguments(raw: str, schema: FunctionSchema) -> dict[str, object] | CallFault:
    """The validated arguments of one call, or the fault to hand back to the model.

    Nothing is guessed: blank means no arguments; an exact other spelling of the same values (code fence,
    Python literal, JSON inside a string, the same object twice) is read; anything else is a fault.
    """
    try:
        return _validated(_object(raw), schema)
    except (_BrokenError, RecursionError) as broken:
        why = broken if isinstance(broken, _BrokenError) else "are nested too deeply"
        return CallFault(
            f"{schema.name} was not run: its arguments {why}. Nothing was changed. Call it again with one "
            f"complete JSON object. It takes: {_signature(schema)}."
        )


def _object(raw: str) -> dict[str, object]:
    """The one JSON object in `raw`; raises `_BrokenError`."""
    text = _unfenced(clean(raw).strip())
    if text in ("", "null", "None"):
        return {}
    try:
        value = _json(text)
    except ValueError as error:
        value = _other_spelling(text, error)
    if isinstance(value, str):
        # Some servers encode the arguments twice.
        inner = value.strip()
        if not inner.startswith("{"):
            raise _BrokenError("are a string, not an object")
        return _object(inner)
    if isinstance(value, list):
        if len(value) == 1 and isinstance(value[0], dict):
            return cast(dict[str, object], value[0])
        raise _BrokenError("are a list; every argument needs its name")
    if not isinstance(value, dict):
        raise _BrokenError("are no JSON object")
    return cast(dict[str, object], value)


def exact_value(text: str) -> object:
    """The value of `text` as JSON or as a Python literal of the same values; raises ValueError."""
    try:
        try:
            return _json(text)
        except ValueError:
            return _python_literal(text)
    except (_BrokenError, SyntaxError, RecursionError, MemoryError) as error:
        raise ValueError("neither JSON nor a literal") from error


def _json(text: str) -> object:
    """`json.loads`, but raw newlines in strings pass; contradictory keys and NaN do not."""
    try:
        return json.loads(text, strict=False, object_pairs_hook=_pairs, parse_constant=_no_constant)
    except RecursionError as error:
        raise ValueError("nested too deeply") from error


def _pairs(pairs: list[tuple[str, object]]) -> dict[str, object]:
    found: dict[str, object] = {}
    for key, value in pairs:
        if key in found and found[key] != value:
            raise _BrokenError(f'give "{key[:60]}" twice with different values')
        found[key] = value
    return found


def _no_constant(name: str) -> object:
    raise ValueError(f"{name} is no JSON")


def _other_spelling(text: str, error: ValueError) -> object:
    """A value written in another exact way than JSON; raises `_BrokenError` where only a guess would help."""
    objects = _consecutive(text)
    if objects is not None:
        filled = [value for value in objects if value]
        if all(value == filled[0] for value in filled[1:]):
            return filled[0] if filled else {}
        raise _BrokenError(f"are {len(filled)} different JSON objects in a row; make one call for each")
    try:
        return _python_literal(text)
    except (ValueError, SyntaxError, RecursionError, MemoryError):
        pass
    opens = text.lstrip()[:1] in ("{", "[")
    if opens and balanced_end(text, 0) is None:
        raise _BrokenError("are cut off before their end; send shorter content, in several calls if needed") from None
    where = f" at character {error.pos}" if isinstance(error, json.JSONDecodeError) else ""
    raise _BrokenError(f"are not valid JSON (the fault is{where or ' in the values'})") from None


_BETWEEN = re.compile(r"[\s,;]*")


def _consecutive(text: str) -> list[dict[str, object]] | None:
    """The objects of `{..}{..}`, or None where `text` is something else."""
    decoder = json.JSONDecoder(strict=False)
    found: list[dict[str, object]] = []
    position = 0
    while position < len(text):
        try:
            value, end = decoder.raw_decode(text, position)
        except (ValueError, RecursionError):
            return None
        if not isinstance(value, dict):
            return None
        found.append(value)
        position = end + len(_BETWEEN.match(text, end)[0])  # type: ignore[index]
    return found if len(found) > 1 else None


class _JsonNames(ast.NodeTransformer):
    def visit_Name(self, node: ast.Name) -> ast.AST:
        values = {"true": True, "false": False, "null": None}
        return ast.copy_location(ast.Constant(values[node.id]), node) if node.id in values else node


def _python_literal(text: str) -> object:
    """The value of a Python literal that JSON can express; raises ValueError, SyntaxError and the like."""
    with warnings.catch_warnings():
        # A bad escape would be printed with the line it stands in: message text on the console.
        warnings.simplefilter("ignore")
        tree = _JsonNames().visit(ast.parse(text, mode="eval"))
    value = ast.literal_eval(ast.fix_missing_locations(tree))
    if not _is_json(value):
        raise ValueError("a value that JSON does not have")
    return value


def _is_json(value: object) -> bool:
    if isinstance(value, dict):
        return all(isinstance(key, str) and _is_json(item) for key, item in value.items())
    if isinstance(value, list | tuple):
        return all(map(_is_json, value))
    return value is None or isinstance(value, str | int | float)


_STRUCTURE = re.compile(r"""[{}()\[\]]|"(?:[^"\\]|\\.)*"|'(?:[^'\\]|\\.)*'|["']""", re.DOTALL)


def balanced_end(text: str, start: int) -> int | None:
    """Where the bracket at `start` is closed (the index after it), minding strings; None if it never is."""
    depth = 0
    for token in _STRUCTURE.finditer(text, start):
        if token[0] in "{[(":
            depth += 1
        elif token[0] in "}])":
            depth -= 1
            if depth == 0:
                return token.end()
        elif len(token[0]) == 1:
            return None  # a string that never ends
    return None


_FENCE = re.compile(r"```[\w-]*[ \t]*\n?(.*?)\n?[ \t]*```", re.DOTALL)


def _unfenced(text: str) -> str:
    match = _FENCE.fullmatch(text)
    return match[1].strip() if match else text


# --- validation -----------------------------------------------------------------------------------


def _validated(values: dict[str, object], schema: FunctionSchema) -> dict[str, object] | CallFault:
    properties = _mapping(schema.parameters.get("properties"))
    required = _strings(schema.parameters.get("required"))
    given: dict[str, object] = {}
    for name, value in values.items():
        kind = _mapping(properties.get(name))
        if value is None and name in properties and name not in required and not _takes_null(kind):
            continue  # null for an optional argument means "the default"
        given[name] = clean_json(_listed(value, kind))
    try:
        model = _model(json.dumps(schema.parameters))
        return model.model_validate(given).model_dump(by_alias=True, exclude_unset=True)
    except ValidationError as error:
        faults = "; ".join(_fault(dict(item), properties) for item in error.errors()[:8])
        return CallFault(
            f"{schema.name} was not run: {faults}. Nothing was changed. Correct the arguments and call it "
            f"again. It takes: {_signature(schema)}."
        )


def _fault(item: Mapping[str, object], properties: Mapping[str, object]) -> str:
    location = [str(part) for part in cast(Sequence[object], item["loc"])]
    name = location[0][:60] if location else "?"
    if item["type"] == "missing":
        return f'"{name}" is missing'
    if item["type"] == "extra_forbidden":
        close = difflib.get_close_matches(name, list(properties), 1)
        return f'there is no argument "{name}"' + (f', perhaps "{close[0]}"' if close else "")
    return f'"{name}": {str(item["msg"])[:120]}'


def _signature(schema: FunctionSchema) -> str:
    properties = _mapping(schema.parameters.get("properties"))
    required = _strings(schema.parameters.get("required"))
    parts = []
    for name, value in properties.items():
        kind = _mapping(value)
        parts.append(f"{name} ({_shown(kind)}{', required' if name in required else ''})")
    return ", ".join(parts) or "no arguments"


def _shown(kind: Mapping[str, object]) -> str:
    choices = kind.get("enum") or kind.get("type") or kind.get("anyOf") or kind.get("oneOf") or "any"
    each = choices if isinstance(choices, list) else [choices]
    names = [_shown(one) if isinstance(one, Mapping) else str(one) for one in each]
    return " or ".join(name for name in names if name not in ("null", ""))


def _listed(value: object, kind: Mapping[str, object]) -> object:
    """A list argument given as one plain string or as JSON text becomes the list it means."""
    if kind.get("type") != "array" or not isinstance(value, str):
        return value
    try:
        found = _json(value)
    except (ValueError, _BrokenError):
        found = None
    return found if isinstance(found, list) else [value] if value.strip() else []


@functools.lru_cache(maxsize=256)
def _model(parameters: str) -> type[BaseModel]:
    """A pydantic model for a JSON schema of type object, given as its canonical JSON text."""
    schema = _mapping(json.loads(parameters))
    definitions = _mapping(schema.get("$defs"))
    required = _strings(schema.get("required"))
    fields: dict[str, tuple[object, object]] = {}
    # Aliases, because an argument may be called what pydantic forbids for a field.
    for number, (name, kind) in enumerate(_mapping(schema.get("properties")).items()):
        default = ... if name in required else None
        fields[f"f{number}"] = (_type(_mapping(kind), definitions), Field(default, alias=name))
    extra: Literal["allow", "forbid"] = "allow" if schema.get("additionalProperties") is True else "forbid"
    config = ConfigDict(extra=extra, coerce_numbers_to_str=True)
    return cast(type[BaseModel], create_model("Arguments", __config__=config, **fields))  # type: ignore[call-overload]


_PLAIN: Mapping[str, object] = {
    "string": str,
    "integer": int,
    "number": float,
    "boolean": bool,
    "null": None,
    "object": dict[str, object],
}


def _type(kind: Mapping[str, object], definitions: Mapping[str, object]) -> object:
    bounds = {ours: kind[theirs] for theirs, ours in _BOUNDS.items() if theirs in kind}
    plain = _unbounded(kind, definitions)
    return Annotated[plain, Field(**bounds)] if bounds else plain  # type: ignore[call-overload]


def _unbounded(kind: Mapping[str, object], definitions: Mapping[str, object]) -> object:
    reference = kind.get("$ref")
    if isinstance(reference, str):
        return _type(_mapping(definitions.get(reference.rsplit("/", 1)[-1])), definitions)
    choices = kind.get("enum")
    if isinstance(choices, list) and choices:
        return Literal[tuple(choices)]
    options = kind.get("anyOf") or kind.get("oneOf")
    if isinstance(options, list) and options:
        return functools.reduce(operator.or_, [_type(_mapping(option), definitions) for option in options])
    named = kind.get("type")
    if isinstance(named, list) and named:
        return functools.reduce(operator.or_, [_unbounded({**kind, "type": one}, definitions) for one in named])
    if named == "array":
        return list[_type(_mapping(kind.get("items")), definitions)]  # type: ignore[misc]
    return _PLAIN.get(str(named), object)


_BOUNDS: Mapping[str, str] = {
    "minimum": "ge",
    "maximum": "le",
    "exclusiveMinimum": "gt",
    "exclusiveMaximum": "lt",
    "minLength": "min_length",
    "maxLength": "max_length",
    "minItems": "min_length",
    "maxItems": "max_length",
}


def _takes_null(kind: Mapping[str, object]) -> bool:
    return "null" in str([kind.get("type"), kind.get("anyOf"), kind.get("oneOf")])


def _mapping(value: object) -> Mapping[str, object]:
    return value if isinstance(value, Mapping) else {}


def _strings(value: object) -> list[str]:
    return [str(item) for item in value] if isinstance(value, list | tuple) else []
