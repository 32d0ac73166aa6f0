"""Function schemas in what every endpoint reads alike: the words that OpenAI (also strict), Gemini, Anthropic, Mistral and Groq share.

Gemini refuses an empty string in an enum, an object without properties, and words it does not know (`const`, `exclusiveMinimum`,
`$ref`); OpenAI refuses an object that does not name its properties; Mistral wants `parameters` always. What is left out here only told
the model something: calls are checked by the full schema (`bot.model.calls`). Sources: OpenAI "Structured Outputs, supported schemas";
Google "Function calling, Schema"; litellm #14155, langchainjs #9875, opencode #46676. Pure.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

NO_ARGUMENTS: Mapping[str, object] = {"reason": {"type": "string"}}
"""The properties of a function that takes none: every function takes a reason."""

Schema = Mapping[str, object]


def common(parameters: Schema) -> dict[str, object]:
    """A JSON schema of type object in the common words, with at least one property; references resolved."""
    definitions = parameters.get("$defs")
    reduced = _reduced(parameters, definitions if isinstance(definitions, Mapping) else {}, ())
    return {**reduced, "type": "object", "properties": reduced.get("properties") or dict(NO_ARGUMENTS)}


def _reduced(schema: Schema, definitions: Schema, inside: tuple[str, ...]) -> dict[str, object]:
    """One schema; `inside` are the definitions it stands in, so that one that holds itself comes to an end."""
    name = str(schema.get("$ref") or "").rsplit("/", 1)[-1]
    if name:
        found = definitions.get(name)
        known = isinstance(found, Mapping) and name not in inside
        return _reduced(found, definitions, (*inside, name)) if known else {"type": "object", "properties": dict(NO_ARGUMENTS)}  # type: ignore[arg-type]
    options = schema.get("anyOf") or schema.get("oneOf")
    if isinstance(options, Sequence) and options:
        # Of several kinds the first that says something: null is what an optional argument is anyway.
        kinds = [one for one in options if isinstance(one, Mapping) and one.get("type") != "null"]
        told = {"description": schema["description"]} if schema.get("description") else {}
        return {**_reduced(kinds[0], definitions, inside), **told} if kinds else {"type": "string", **told}
    return _plain(schema, definitions, inside)


def _plain(schema: Schema, definitions: Schema, inside: tuple[str, ...]) -> dict[str, object]:
    kind = schema.get("type")
    if isinstance(kind, list):
        kind = next((one for one in kind if one != "null"), "string")
    if kind is None:
        kind = "object" if "properties" in schema else "array" if "items" in schema else "string"
    reduced: dict[str, object] = {"type": kind}
    if schema.get("description"):
        reduced["description"] = schema["description"]
    choices = schema.get("enum", [schema["const"]] if "const" in schema else [])
    if kind == "string" and isinstance(choices, Sequence) and (said := [one for one in choices if isinstance(one, str) and one]):
        reduced["enum"] = said
    if kind == "array":
        items = schema.get("items")
        reduced["items"] = _reduced(items if isinstance(items, Mapping) else {}, definitions, inside)
    if kind == "object":
        given = schema.get("properties")
        properties = given if isinstance(given, Mapping) else {}
        reduced["properties"] = {str(name): _reduced(one, definitions, inside) for name, one in properties.items()} or dict(
            NO_ARGUMENTS
        )
        required = schema.get("required")
        if isinstance(required, Sequence) and (needed := [one for one in required if one in properties]):
            reduced["required"] = needed
    return reduced
