"""A function with docstring and annotations is its own schema.

Every function's first parameter is the `CallContext`, which the model never sees. Each also takes `request_heartbeat` and a short
`reason`, both with defaults, which the system instructions explain once for all; the executor reads those. The model is told of an
argument only where it says something (models fill in what they are offered), and a small model of fewer.
"""

from __future__ import annotations

import inspect
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal, get_type_hints

from pydantic import ConfigDict, create_model

from bot.model.calls import FunctionSchema

_LEFT_OUT = frozenset({"title", "default", "additionalProperties"})
"""Only where they are keywords; an argument may be called so too, and is an object then."""
Kind = Literal["reply", "search", "write"]
Need = Literal["always", "leave", "zone", "entries", "archive", "documents", "timers", "request", "unaddressed", "forgetting"]
"""What must be so for a function to be of use: the bot may ask for leave to write first; the time zone can be set here; there are entries,
texts in archival storage, documents, timers, a request that waits for a yes; nobody addressed the bot."""


@dataclass(frozen=True, slots=True)
class Function:
    """Something the model may call. `kind` decides the bounds it counts against and whether a heartbeat is its default."""

    takes: FunctionSchema
    """Everything it takes, by which calls are checked."""
    schema: FunctionSchema
    """What the model is told of it."""
    small: FunctionSchema | None
    """What a small model is told of it; None: it is not offered it."""
    run: Callable[..., Awaitable[str]]
    kind: Kind
    need: Need
    small_need: Need
    """The same for a small model, which is offered fewer."""

    @property
    def heartbeat(self) -> bool:
        """Without a word from the model, a search asks to go on (its result is of use only then); the others do not."""
        return self.kind == "search"


def describe(
    run: Callable[..., Awaitable[str]],
    *,
    kind: Kind,
    need: Need = "always",
    small_need: Need | None = None,
    tells: Sequence[str] = (),
    small: Sequence[str] | None = (),
    brief: str = "",
) -> Function:
    """Make a function callable for the model: its name, docstring and annotated parameters become the schema.

    `tells`: which of `request_heartbeat` and `reason` the model is told of. `small`: the optional arguments that a small model is told
    of, beside the required ones; None: a small model does without the function. `brief`: its description, where the docstring says more.
    """
    fields: dict[str, Any] = {}
    hints = get_type_hints(run, include_extras=True)
    for name, parameter in list(inspect.signature(run).parameters.items())[1:]:
        fields[name] = (hints[name], ... if parameter.default is inspect.Parameter.empty else parameter.default)
    own = tuple(fields)
    fields["request_heartbeat"] = (bool, False)
    fields["reason"] = (str, "")
    model = create_model(run.__name__, __config__=ConfigDict(extra="forbid"), **fields)
    takes = FunctionSchema(run.__name__, " ".join((run.__doc__ or "").split()), _slim(model.model_json_schema()))
    required = takes.parameters.get("required", [])
    assert isinstance(required, list)
    reduced = None if small is None else _told(replace(takes, description=brief or takes.description), (*required, *small))
    return Function(takes, _told(takes, (*own, *tells)), reduced, run, kind, need, small_need or need)


def _told(takes: FunctionSchema, names: Sequence[str]) -> FunctionSchema:
    """The schema with these arguments alone, in the subset of JSON schema that every known endpoint takes."""
    properties = takes.parameters["properties"]
    assert isinstance(properties, dict)
    # Some endpoints refuse an object without properties.
    told = {name: _plain(schema) for name, schema in properties.items() if name in (names or ("reason",))}
    return replace(takes, parameters={**takes.parameters, "properties": told})


def _plain(schema: dict[str, Any]) -> dict[str, Any]:
    """Without bounds, which a call is checked against anyway, and without the empty choice of an optional argument, which some
    endpoints refuse and which is said by leaving the argument out."""
    kept = {key: value for key, value in schema.items() if key not in ("minimum", "maximum")}
    return {**kept, "enum": [one for one in kept["enum"] if one != ""]} if "enum" in kept else kept


def _slim(schema: Any) -> Any:
    """A schema goes along with every call: without titles (they repeat the names), defaults (the functions have them) and null types."""
    if isinstance(schema, list):
        return [_slim(item) for item in schema]
    if not isinstance(schema, dict):
        return schema
    return {key: _slim(item) for key, item in schema.items() if key not in _LEFT_OUT or isinstance(item, dict)}
