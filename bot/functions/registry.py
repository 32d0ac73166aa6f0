"""A function with docstring and annotations is its own schema.

Every function's first parameter is the `CallContext`, which the model never sees. Each also takes `request_heartbeat` and a short
`reason`, both with defaults; the executor reads those.
"""

from __future__ import annotations

import inspect
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Annotated, Any, Literal, get_type_hints

from pydantic import ConfigDict, Field, create_model

from bot.calls import FunctionSchema

Kind = Literal["reply", "search", "write"]


@dataclass(frozen=True, slots=True)
class Function:
    """Something the model may call. `kind` decides the bounds it counts against and whether a heartbeat is its default."""

    schema: FunctionSchema
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
    heartbeat = "Run me again at once after this call" + (" (default true)." if kind == "search" else " (default false).")
    fields["request_heartbeat"] = (Annotated[bool, Field(description=heartbeat)], kind == "search")
    fields["reason"] = (Annotated[str, Field(description="Why, in a few words.")], "")
    model = create_model(run.__name__, __config__=ConfigDict(extra="forbid"), **fields)
    schema = _without_titles(model.model_json_schema())
    return Function(FunctionSchema(run.__name__, inspect.cleandoc(run.__doc__ or ""), schema), run, kind)


def _without_titles(schema: Any) -> Any:
    """Titles only repeat the names, and cost tokens in every call."""
    if isinstance(schema, dict):
        return {key: _without_titles(item) for key, item in schema.items() if key != "title" or not isinstance(item, str)}
    return [_without_titles(item) for item in schema] if isinstance(schema, list) else schema
