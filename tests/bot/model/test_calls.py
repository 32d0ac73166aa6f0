"""Arguments and calls as models really write them."""

import json

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bot.model.call_text import calls_in_text
from bot.model.calls import CallFault, FunctionSchema, balanced_end, exact_value, parse_arguments

SEARCH = FunctionSchema(
    "archival_storage_search",
    "Searches.",
    {
        "type": "object",
        "properties": {
            "query": {"type": "string", "maxLength": 20},
            "page": {"type": "integer", "minimum": 1},
            "tags": {"type": "array", "items": {"type": "string"}},
            "before": {"anyOf": [{"type": "string"}, {"type": "null"}]},
            "after": {"type": "string"},
            "order": {"enum": ["new", "old"]},
            "request_heartbeat": {"type": "boolean"},
        },
        "required": ["query"],
    },
)
PLAIN = FunctionSchema("list_timers", "Lists.", {"type": "object", "properties": {}})
NAMES = frozenset(("send_message", "recall_storage_search", "stay_silent"))


@pytest.mark.parametrize(
    ("raw", "values"),
    [
        ('{"query":"tea"}', {"query": "tea"}),
        ('  {"query": "tea"}\n', {"query": "tea"}),
        ('```json\n{"query": "tea"}\n```', {"query": "tea"}),
        ('"{\\"query\\": \\"tea\\"}"', {"query": "tea"}),
        ('[{"query": "tea"}]', {"query": "tea"}),
        ('{"query":"tea"}{"query":"tea"}', {"query": "tea"}),
        ('{}{"query":"tea"}', {"query": "tea"}),
        ("{'query': 'it\\'s', 'request_heartbeat': True,}", {"query": "it's", "request_heartbeat": True}),
        ('{"query": "tea", }', {"query": "tea"}),
        ('{"query": "two\nlines"}', {"query": "two\nlines"}),
        ('{"query": "tea", "page": "2"}', {"query": "tea", "page": 2}),
        ('{"query": 5, "page": 2.0}', {"query": "5", "page": 2}),
        ('{"query": "tea", "tags": "food"}', {"query": "tea", "tags": ["food"]}),
        ('{"query": "tea", "tags": "[\\"a\\", \\"b\\"]"}', {"query": "tea", "tags": ["a", "b"]}),
        ('{"query": "tea", "request_heartbeat": "true"}', {"query": "tea", "request_heartbeat": True}),
        ('{"query": "tea", "after": null, "page": null}', {"query": "tea"}),
        ('{"query": "tea", "before": null}', {"query": "tea", "before": None}),
        ('{"query": "\\ud800\\u0000x"}', {"query": "\ufffdx"}),
        ('{"query": "\\ud83d\\ude00"}', {"query": "😀"}),
    ],
)
def test_exact_spellings_are_read(raw: str, values: dict[str, object]) -> None:
    assert parse_arguments(raw, SEARCH) == values


@pytest.mark.parametrize("raw", ["", "  ", "{}", "null", "None"])
def test_blank_means_no_arguments(raw: str) -> None:
    assert parse_arguments(raw, PLAIN) == {}


@pytest.mark.parametrize(
    ("raw", "told"),
    [
        ("", '"query" is missing'),
        ('{"query": "tea', "cut off"),
        ('{"query": "tea", "page": 2', "cut off"),
        ('["tea"]', "are a list"),
        ('[{"query": "a"}, {"query": "b"}]', "are a list"),
        ('{"query": "a"}{"query": "b"}', "2 different JSON objects"),
        ('{"query": "a", "query": "b"}', "twice with different values"),
        ('{"query": "a "b" c"}', "not valid JSON"),
        ('{"query": NaN}', "not valid JSON"),
        ("search for tea", "not valid JSON"),
        ('"search for tea"', "are a string"),
        ("17", "no JSON object"),
        ("[" * 50_000, "cut off"),
        ('{"query": null}', '"query": Input should be a valid string'),
        ('{"query": "tea", "page": "two"}', '"page": Input should be a valid integer'),
        ('{"query": "tea", "page": 0}', "greater than or equal to 1"),
        ('{"query": "tea", "page": 1.5}', '"page"'),
        ('{"query": "tea", "order": "hot"}', "'new' or 'old'"),
        ('{"query": "tea", "pagee": 2}', 'no argument "pagee", perhaps "page"'),
        ('{"query": "' + "x" * 21 + '"}', "at most 20 characters"),
    ],
)
def test_a_fault_says_what_to_do_and_nothing_runs(raw: str, told: str) -> None:
    fault = parse_arguments(raw, SEARCH)
    assert isinstance(fault, CallFault)
    assert told in fault.message
    assert fault.message.startswith("archival_storage_search was not run: ")
    assert "Nothing was changed" in fault.message
    assert "query (string, required)" in fault.message
    assert len(fault.message) < 700


def test_references_nested_lists_and_open_schemas_are_understood() -> None:
    schema = FunctionSchema(
        "f",
        "",
        {
            "type": "object",
            "properties": {"mood": {"$ref": "#/$defs/Mood"}, "rows": {"type": "array", "items": {"type": ["integer", "null"]}}},
            "$defs": {"Mood": {"enum": ["good", "bad"], "type": "string"}},
            "additionalProperties": True,
        },
    )
    assert parse_arguments('{"mood": "good", "rows": [1, null], "more": 1}', schema) == {
        "mood": "good",
        "rows": [1, None],
        "more": 1,
    }
    assert isinstance(parse_arguments('{"mood": "fine"}', schema), CallFault)


@pytest.mark.parametrize("name", ["model_config", "_private", "copy", "class", "self"])
def test_an_argument_may_have_any_name(name: str) -> None:
    schema = FunctionSchema("f", "", {"properties": {name: {"type": "string"}}, "required": [name]})
    assert parse_arguments(json.dumps({name: "x"}), schema) == {name: "x"}


@pytest.mark.parametrize(
    ("text", "left", "calls"),
    [
        (
            '<tool_call>\n{"name": "send_message", "arguments": {"text": "hi"}}\n</tool_call>',
            "",
            [("send_message", {"text": "hi"})],
        ),
        (
            'Sure.\n```json\n{"name":"send_message","arguments":{"text":"hi"}}\n```\nDone.',
            "Sure.\nDone.",
            [("send_message", {"text": "hi"})],
        ),
        ('send_message({"text": "hi"})', "", [("send_message", {"text": "hi"})]),
        (
            'send_message(text="I\'m here", request_heartbeat=false)',
            "",
            [("send_message", {"text": "I'm here", "request_heartbeat": False})],
        ),
        ("```tool_code\nprint(send_message(text='x'))\n```", "", [("send_message", {"text": "x"})]),
        (
            '[TOOL_CALLS] [{"name": "recall_storage_search", "arguments": {"query": "x"}}]',
            "",
            [("recall_storage_search", {"query": "x"})],
        ),
        ('[TOOL_CALLS]recall_storage_search[ARGS]{"query": "x"}', "", [("recall_storage_search", {"query": "x"})]),
        (
            '<|python_tag|>{"name": "recall_storage_search", "parameters": {"query": "x"}}<|eom_id|>',
            "",
            [("recall_storage_search", {"query": "x"})],
        ),
        ('<|python_tag|>recall_storage_search(query="x")', "", [("recall_storage_search", {"query": "x"})]),
        ('{"function": "send_message", "parameters": {"text": "a"}}', "", [("send_message", {"text": "a"})]),
        (
            '{"type": "function", "function": {"name": "send_message", "arguments": "{\\"text\\": \\"x\\"}"}}',
            "",
            [("send_message", {"text": "x"})],
        ),
        (
            '{"tool_calls": [{"name": "stay_silent", "arguments": {}}, {"tool": "send_message", "text": "x"}]}',
            "",
            [("stay_silent", {}), ("send_message", {"text": "x"})],
        ),
        ('{"send_message": {"text": "x"}}', "", [("send_message", {"text": "x"})]),
        ('Hm. <function=send_message>{"text": "x"}</function>', "Hm.", [("send_message", {"text": "x"})]),
        (
            "<tool_call>\n<function=send_message>\n<parameter=text>\nhello\n</parameter>\n</function>\n</tool_call>",
            "",
            [("send_message", {"text": "hello"})],
        ),
        (
            '<function_calls><invoke name="send_message"><parameter name="text">x</parameter></invoke></function_calls>',
            "",
            [("send_message", {"text": "x"})],
        ),
        (
            "<tool_call>send_message\n<arg_key>text</arg_key>\n<arg_value>hi</arg_value>\n</tool_call>",
            "",
            [("send_message", {"text": "hi"})],
        ),
        (
            '<｜tool▁calls▁begin｜><｜tool▁call▁begin｜>function<｜tool▁sep｜>send_message\n```json\n{"text":"x"}\n```<｜tool▁call▁end｜><｜tool▁calls▁end｜>',
            "",
            [("send_message", {"text": "x"})],
        ),
        (
            "{'name': 'send_message', 'arguments': {'text': 'it is', 'request_heartbeat': True}}",
            "",
            [("send_message", {"text": "it is", "request_heartbeat": True})],
        ),
        (
            '```\n{"name":"send_message","arguments":{"text":"a"}}\n{"name":"stay_silent","arguments":{}}\n```',
            "",
            [("send_message", {"text": "a"}), ("stay_silent", {})],
        ),
        ('{"name": "functions.stay_silent", "arguments": {}}', "", [("stay_silent", {})]),
    ],
)
def test_calls_in_every_dialect_are_taken_out(text: str, left: str, calls: list[tuple[str, dict[str, object]]]) -> None:
    remaining, found = calls_in_text(text, NAMES)
    assert remaining == left
    assert [(one.name, json.loads(one.arguments)) for one in found] == calls
    assert len({one.id for one in found}) == len(found)


@pytest.mark.parametrize(
    "text",
    [
        "You could call recall_storage_search(query) for that.",
        "recall_storage_search(the thing you look for)",
        'I used send_message("x") in my code.',
        'The JSON {"name": "Ada", "arguments": 3} is fine.',
        '{"name": "send_message", "description": "sends a message"}',
        '```json\n{"name": "unknown_function", "arguments": {}}\n```',
        "send_message is a function, stay_silent() too, and both are mine.",
        "{[(",
        "",
        "   ",
    ],
)
def test_talk_stays_text(text: str) -> None:
    assert calls_in_text(text, NAMES) == (text, ())


@pytest.mark.parametrize(
    "text",
    [
        '{"name": "send_message", "arguments": {"text": "hello',
        '<tool_call>{"name": "send_message", "arguments": {"text": "hello}</tool_call>',
        '<tool_call>{"name": "send_message", "arguments": {"text": "a "quoted" b"}}</tool_call>',
        'send_message(text="hello',
        'send_message("hello")',
        '<function=send_message>{"text": "hel',
        '[TOOL_CALLS]send_message[ARGS]{"text": "hel',
    ],
)
def test_a_broken_call_is_hidden_and_refused(text: str) -> None:
    schema = FunctionSchema("send_message", "", {"properties": {"text": {"type": "string"}}, "required": ["text"]})
    remaining, (found,) = calls_in_text(text, NAMES)
    assert remaining == ""
    assert isinstance(parse_arguments(found.arguments, schema), CallFault)


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=6), inner, max_size=3),
    max_leaves=8,
)
PIECES = st.sampled_from(
    [
        *NAMES,
        "{",
        "}",
        "[",
        "]",
        "(",
        ")",
        '"',
        "'",
        "\n",
        "```",
        "```json\n",
        "<tool_call>",
        "</tool_call>",
        "\\",
        "[TOOL_CALLS]",
        "[ARGS]",
        "<|python_tag|>",
        '"name":',
        '"arguments":',
        "<function=",
        ">",
        "=",
        "print(",
        '{"name": "send_message", "arguments": {"text": "x"}}',
        "<invoke name=",
        "<arg_key>",
        " ",
        ",",
        "\ud800",
        "\x00",
    ]
)


@given(st.text() | JSON.map(json.dumps) | JSON.map(repr) | st.lists(PIECES, max_size=12).map("".join))
def test_parsing_never_raises_and_gives_clean_values(raw: str) -> None:
    found = parse_arguments(raw, SEARCH)
    assert isinstance(found, dict | CallFault)
    json.dumps(found.message if isinstance(found, CallFault) else found, ensure_ascii=False).encode()


@given(JSON.map(lambda value: json.dumps({"query": "tea", "more": value})), st.data())
def test_no_cut_off_object_is_ever_run(raw: str, data: st.DataObject) -> None:
    cut = raw[: data.draw(st.integers(1, len(raw) - 1))]
    schema = FunctionSchema("f", "", {"properties": {}, "additionalProperties": True})
    assert isinstance(parse_arguments(cut, schema), CallFault)


@settings(max_examples=300)
@given(st.lists(PIECES | st.text(max_size=5), max_size=14).map("".join))
def test_what_is_shown_holds_no_call(text: str) -> None:
    remaining, calls = calls_in_text(text, NAMES)
    assert calls_in_text(remaining, NAMES) == (remaining, ())
    assert all(call.name in NAMES for call in calls)
    remaining.encode()


@given(st.dictionaries(st.text(min_size=1, max_size=8), st.text(), max_size=3), st.sampled_from(sorted(NAMES)))
def test_a_written_call_arrives_whole(arguments: dict[str, str], name: str) -> None:
    written = json.dumps({"name": name, "arguments": arguments})
    remaining, calls = calls_in_text(f"Well.\n<tool_call>\n{written}\n</tool_call>", frozenset((name,)))
    assert remaining == "Well."
    assert json.loads(calls[0].arguments) == arguments


def test_brackets_are_matched_outside_strings() -> None:
    assert balanced_end('{"a": "}"} rest', 0) == 10
    assert balanced_end('{"a": [1, 2', 0) is None
    with pytest.raises(ValueError, match="neither"):
        exact_value("{1, 2}x")
