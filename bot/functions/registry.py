"""A function with docstring and annotations is its own schema.

Every function's first parameter is the `CallContext`, which the model never sees. Each also takes `request_heartbeat` and a short
`reason`, both with defaults, which the system instructions explain once for all; the executor reads those. The model is told of them
where they say something: a reason where memory changes, a heartbeat where going on is not what a call is for.
"""

from __future__ import annotations

import inspect
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, replace
from typing import Any, Literal, get_type_hints

from pydantic import ConfigDict, create_model

from bot.model.calls import FunctionSchema

# Only where they are keywords; an argument may be called so too, and is an object then.
_LEFT_OUT = frozenset({"title", "default", "additionalProperties"})
Kind = Literal["reply", "search", "write"]
_UNTOLD: dict[Kind, tuple[str, ...]] = {"reply": ("reason",), "search": ("reason", "request_heartbeat"), "write": ()}


@dataclass(frozen=True, slots=True)
class Function:
    """Something the model may call. `kind` decides the bounds it counts against and whether a heartbeat is its default."""

    takes: FunctionSchema
    """Everything it takes, by which calls are checked."""
    schema: FunctionSchema
    """What the model is told of it."""
    run: Callable[..., Awaitable[str]]
    kind: Kind

    @property
    def heartbeat(self) -> bool:
        """Without a word from the model, a search asks to go on (its result is of use only then); the others do not."""
        return self.kind == "search"


def describe(run: Callable[..., Awaitable[str]], *, kind: Kind) -> Function:
    """Make a function callable for the model: its name, docstring and annotated parameters become the schema."""
    fields: dict[str, Any] = {}
    hints = get_type_hints(run, include_extras=True)
    for name, parameter in list(inspect.signature(run).parameters.items())[1:]:
        fields[name] = (hints[name], ... if parameter.default is inspect.Parameter.empty else parameter.default)
    fields["request_heartbeat"] = (bool, False)
    fields["reason"] = (str, "")
    model = create_model(run.__name__, __config__=ConfigDict(extra="forbid"), **fields)
    parameters = _slim(model.model_json_schema())
    takes = FunctionSchema(run.__name__, " ".join((run.__doc__ or "").split()), parameters)
    told = {name: schema for name, schema in parameters["properties"].items() if name not in _UNTOLD[kind]}
    return Function(takes, replace(takes, parameters={**parameters, "properties": told}), run, kind)


def _slim(schema: Any) -> Any:
    """A schema goes along with every call: without titles (they repeat the names), defaults (the functions have them) and null types."""
    if isinstance(schema, list):
        return [_slim(item) for item in schema]
    if not isinstance(schema, dict):
        return schema
    return {key: _slim(item) for key, item in schema.items() if key not in _LEFT_OUT or isinstance(item, dict)}
