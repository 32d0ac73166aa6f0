"""Function schemas in the words that all vendors share, whatever a function's full schema says."""

from __future__ import annotations

import pytest

from bot.model.schemas import NO_ARGUMENTS, common


@pytest.mark.parametrize(
    ("given", "told"),
    [
        ({"type": "string", "enum": ["", "day"]}, {"type": "string", "enum": ["day"]}),
        ({"type": "string", "enum": [""]}, {"type": "string"}),
        ({"const": "day"}, {"type": "string", "enum": ["day"]}),
        ({"type": "integer", "exclusiveMinimum": 0, "title": "Page", "default": 1}, {"type": "integer"}),
        (
            {"anyOf": [{"type": "null"}, {"type": "number"}], "description": "How many."},
            {"type": "number", "description": "How many."},
        ),
        ({"type": ["string", "null"]}, {"type": "string"}),
        ({"type": "array"}, {"type": "array", "items": {"type": "string"}}),
        ({"type": "object"}, {"type": "object", "properties": NO_ARGUMENTS}),
        ({"$ref": "#/$defs/Day"}, {"type": "string", "enum": ["Monday"]}),
        ({"$ref": "#/$defs/Tree"}, {"type": "object", "properties": {"inner": {"type": "object", "properties": NO_ARGUMENTS}}}),
    ],
)
def test_an_argument_is_told_in_words_that_no_vendor_refuses(given: dict[str, object], told: dict[str, object]) -> None:
    definitions = {"Day": {"const": "Monday"}, "Tree": {"type": "object", "properties": {"inner": {"$ref": "#/$defs/Tree"}}}}
    made = common({"type": "object", "properties": {"x": given}, "required": ["x"], "$defs": definitions})
    assert made == {"type": "object", "properties": {"x": told}, "required": ["x"]}


def test_a_function_without_arguments_has_a_property_all_the_same() -> None:
    assert common({"type": "object", "properties": {}}) == {"type": "object", "properties": NO_ARGUMENTS}
