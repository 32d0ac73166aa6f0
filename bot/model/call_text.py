"""Calls that a model wrote into its text: found, taken out, and never shown to the person.

Models trained on another dialect, or whose server does not parse theirs, write `<tool_call>{..}</tool_call>`,
`[TOOL_CALLS] [..]`, `<|python_tag|>{..}`, fenced JSON, `<function=name>`, or plain `name(argument="..")` on a
line of its own. Only names of functions that exist count, so text that talks about JSON stays text. Pure.
"""

import ast
import functools
import itertools
import json
import re
import warnings
from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass

from bot.model.calls import Call, balanced_end, exact_value
from memory.sanitise import clean

_NAME_KEYS = ("name", "function", "function_name", "tool", "tool_name", "action")
_ARGUMENT_KEYS = ("arguments", "parameters", "args", "params", "input", "action_input", "tool_input")
_LIST_KEYS = ("tool_calls", "function_calls", "calls")
_NESTED_KEYS = ("function", "function_call", "tool_call")
_META_KEYS = frozenset(("id", "type", "call_id", "tool_call_id"))


@dataclass(frozen=True, slots=True)
class _Found:
    start: int
    end: int
    calls: tuple[tuple[str, str], ...]
    """(function name, raw arguments) in the order written."""


SCANNED = 32_000
"""Characters of the longest text that is looked through for calls."""
STARTS = 200
"""Places in a text at which a call may begin and that are looked at."""


def calls_in_text(text: str, names: Collection[str], heard: Iterable[str] = ()) -> tuple[str, tuple[Call, ...]]:
    """What is left of `text` for the person, and the calls of the functions `names` that stood in it.

    A broken call keeps its broken arguments, so that the model is told of it and not the person. `heard` is what people wrote and what
    results brought: a call that stands there word for word is repeated by the model and stays text. Else whoever plants one in a
    message or a document would have it run as soon as the model reads it out.
    """
    text = clean(text)
    if len(text) > SCANNED:
        # Reading is quadratic at worst; a reply this long is no call, and the loop must not stand still for it.
        return text, ()
    found: list[tuple[str, str]] = []
    known = functools.cache(lambda: _squeezed("\n".join(heard)))
    # Until nothing is found: taking a call out may join two halves of another.
    while names and (one := _first(text, frozenset(names), known)) is not None:
        found += one.calls
        start, end = _with_wrapping(text, one.start, one.end)
        gap = "\n" if text[:start].strip() and text[end:].strip() else ""
        text = re.sub(r"\n{3,}", "\n\n", text[:start].rstrip() + gap + text[end:].lstrip())
    calls = tuple(Call(f"text_{number}", name, raw) for number, (name, raw) in enumerate(found, 1))
    return (text.strip() if calls else text), calls


_SPACING = re.compile(r"\\+[nrt]|[\s\\]")


def _squeezed(text: str) -> str:
    """Text without spacing and without what JSON puts before quotes, in which a repetition is found however it was packaged."""
    return _SPACING.sub("", text)


def _first(text: str, names: frozenset[str], known: Callable[[], str]) -> _Found | None:
    if not any(name in text for name in names):
        return None
    patterns = _patterns(names)
    for match in itertools.islice(patterns.start.finditer(text), STARTS):
        found = _read(text, match, names, patterns)
        if found is not None and _squeezed(text[found.start : found.end]) not in known():
            return found
    return None


@dataclass(frozen=True, slots=True)
class _Patterns:
    start: re.Pattern[str]
    named: re.Pattern[str]


@functools.lru_cache(maxsize=32)
def _patterns(names: frozenset[str]) -> _Patterns:
    known = "|".join(re.escape(name) for name in sorted(names, key=lambda name: (-len(name), name)))
    keys = "|".join((*_NAME_KEYS, *_ARGUMENT_KEYS, *_LIST_KEYS, *_NESTED_KEYS, *_META_KEYS, known))
    prefix = r"(?:functions?\.|tools\.|default_api\.)?"
    return _Patterns(
        start=re.compile(
            rf"""(?P<json>[\[{{]\s*(?:[\[{{]\s*){{0,8}}["'](?:{keys})["']\s*:)"""
            rf"""|<(?:function|invoke)(?:=|\s+name=)["']?{prefix}(?P<tag>{known})["']?\s*>"""
            rf"""|(?:\[TOOL_CALLS\]|<\|?(?:tool_call|function_call|python_tag)\|?>|<｜tool▁sep｜>|\bto=)\s*{prefix}"""
            rf"""(?P<marked>{known})\b(?![(.])(?:\[ARGS\]|[^{{}}\n]{{0,60}})\s*(?:```(?:json)?\s*)?(?=\{{|<arg_key>)"""
            rf"""|^[ \t>*-]*(?:(?:```[\w-]*|\[TOOL_CALLS\]|<\|?[\w]+\|?>)\s*)*(?P<head>(?P<print>print\()?"""
            rf"""{prefix}(?P<plain>{known}))[ \t]*\(""",
            re.MULTILINE,
        ),
        named=re.compile(rf"""["'](?:{"|".join(_NAME_KEYS)})["']\s*:\s*["']{prefix}({known})["']"""),
    )


def _read(text: str, match: re.Match[str], names: frozenset[str], patterns: _Patterns) -> _Found | None:
    if match["json"]:
        return _json_call(text, match.start(), names, patterns.named)
    if match["tag"]:
        return _tag_call(text, match.start(), match.end(), match["tag"])
    if match["marked"]:
        return _marked_call(text, match.start(), match.end(), match["marked"])
    return _plain_call(text, match)


# --- JSON in any envelope -------------------------------------------------------------------------


def _json_call(text: str, start: int, names: frozenset[str], named: re.Pattern[str]) -> _Found | None:
    end = balanced_end(text, start)
    if end is not None:
        try:
            calls = _calls_of(exact_value(text[start:end]), names)
        except ValueError:
            pass
        else:
            return _Found(start, end, tuple(calls)) if calls else None
    end = _end_of_broken(text, start) if end is None else end
    name = named.search(text, start, end)
    if name is None:
        return None
    key = re.compile(rf"""["'](?:{"|".join(_ARGUMENT_KEYS)})["']\s*:\s*""").search(text, start, end)
    return _Found(start, end, ((name[1], text[key.end() : end].strip() if key else text[start:end]),))


def _end_of_broken(text: str, start: int) -> int:
    """A call without its end goes to the next closing tag or fence, else to the end of the text."""
    closing = re.compile(r"</\w+>|\n```|<\||<｜").search(text, start)
    return closing.start() if closing else len(text)


def _calls_of(value: object, names: frozenset[str]) -> list[tuple[str, str]]:
    """The calls that a JSON value stands for; empty where it is something else."""
    if isinstance(value, list):
        each = [_calls_of(item, names) for item in value]
        return [call for calls in each for call in calls] if all(each) else []
    if not isinstance(value, dict):
        return []
    for key in _LIST_KEYS + _NESTED_KEYS:
        if isinstance(value.get(key), dict | list) and (calls := _calls_of(value[key], names)):
            return calls
    if len(value) == 1 and isinstance(arguments := next(iter(value.values())), dict):
        name = _known(next(iter(value)), names)
        return [(name, _raw(arguments))] if name else []
    return _flat_call(value, names)


def _flat_call(value: Mapping[str, object], names: frozenset[str]) -> list[tuple[str, str]]:
    for key in _NAME_KEYS:
        name = _known(value.get(key), names)
        if name is None:
            continue
        for argument_key in _ARGUMENT_KEYS:
            if argument_key in value:
                return [(name, _raw(value[argument_key]))]
        if key != "name":  # {"name": .., "description": ..} describes a function and calls none
            return [(name, _raw({k: v for k, v in value.items() if k != key and k not in _META_KEYS}))]
    return []


def _known(name: object, names: frozenset[str]) -> str | None:
    if not isinstance(name, str):
        return None
    return next((one for one in (name, name.rsplit(".", 1)[-1]) if one in names), None)


def _raw(arguments: object) -> str:
    return arguments if isinstance(arguments, str) else json.dumps(arguments, ensure_ascii=False)


# --- tags, markers, plain calls -------------------------------------------------------------------

_PARAMETER = re.compile(
    r"""<parameter(?:=|\s+name=)["']?([\w-]+)["']?\s*>\s?(.*?)\s?</parameter>"""
    r"""|<arg_key>\s*([\w-]+)\s*</arg_key>\s*<arg_value>(.*?)</arg_value>""",
    re.DOTALL,
)


def _parameters(body: str) -> str:
    """Arguments from `<parameter>` elements, or `body` as it is."""
    found = {one[1] or one[3]: one[2] if one[1] else one[4] for one in _PARAMETER.finditer(body)}
    return _raw(found) if found else body.strip()


def _tag_call(text: str, start: int, body: int, name: str) -> _Found:
    closing = re.compile(r"</(?:function|invoke)>").search(text, body)
    end = closing.end() if closing else len(text)
    return _Found(start, end, ((name, _parameters(text[body : closing.start() if closing else end])),))


def _marked_call(text: str, start: int, body: int, name: str) -> _Found:
    if text.startswith("{", body):
        end = balanced_end(text, body)
        end = _end_of_broken(text, body) if end is None else end
        fence = _FENCE_AFTER.match(text, end) if "```" in text[start:body] else None
        return _Found(start, fence.end() if fence else end, ((name, text[body:end].strip()),))
    closing = re.compile(r"</tool_call>").search(text, body)
    end = closing.start() if closing else len(text)
    return _Found(start, end, ((name, _parameters(text[body:end])),))


def _plain_call(text: str, match: re.Match[str]) -> _Found | None:
    """`name(..)` on a line of its own; a name in a sentence, or followed by bare words, is talk."""
    end = balanced_end(text, match.end() - 1)
    inner = text[match.end() : len(text) if end is None else end - 1].strip()
    if inner and not re.match(r"""[{"'\[]|\w+\s*=""", inner):
        return None
    if end is None:
        return _Found(match.start("head"), len(text), ((match["plain"], inner),)) if inner else None
    rest = re.compile(r"\)?[ \t]*;?[ \t]*(?=\n|$|```|<)" if match["print"] else r"[ \t]*;?[ \t]*(?=\n|$|```|<)")
    after = rest.match(text, end)
    if after is None:
        return None
    return _Found(match.start("head"), after.end(), ((match["plain"], _keywords(inner)),))


def _keywords(inner: str) -> str:
    """`a="x", b=2` as a JSON object; positional values as a list, which the executor refuses by name."""
    if inner.startswith("{") and balanced_end(inner, 0) == len(inner):
        return inner
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # a bad escape would be printed with its line: message text
            call = ast.parse(f"f({inner})", mode="eval").body
        if not isinstance(call, ast.Call):
            return inner
        positional = [exact_value(ast.unparse(one)) for one in call.args]
        named = {one.arg or "": exact_value(ast.unparse(one.value)) for one in call.keywords}
    except (ValueError, SyntaxError, RecursionError, MemoryError):
        return inner
    return _raw(positional if positional else named)


# --- what stands around a call --------------------------------------------------------------------

_TAG = r"(?:tool_calls?|function_calls?|tool_use|functions?|python_tag|eom_id|eot_id|call|end|start|message)"
_BEFORE = re.compile(rf"(?:(?:<\|?{_TAG}\|?>|\[/?TOOL_CALLS\]|<｜tool▁[^｜<>]*｜>(?:function)?|<(?:\w+:)?function_calls>)\s*)+\Z")
_AFTER = re.compile(rf"(?:\s*(?:</?(?:\w+:)?\|?{_TAG}\|?>|\[/TOOL_CALLS\]|<｜tool▁[^｜<>]*｜>|[;,](?=\s*[\[{{<]|\s*$)))+")
_FENCE_BEFORE = re.compile(r"```[\w-]*\s*\Z")
_FENCE_AFTER = re.compile(r"\s*```")


def _with_wrapping(text: str, start: int, end: int) -> tuple[int, int]:
    """The span of a call together with the tags, markers and code fence that only wrapped it."""
    while True:
        wider_start, wider_end = start, end
        if before := _BEFORE.search(text, max(0, start - 200), start):
            wider_start = before.start()
        if after := _AFTER.match(text, end):
            wider_end = after.end()
        opening = _FENCE_BEFORE.search(text, max(0, wider_start - 40), wider_start)
        closing = _FENCE_AFTER.match(text, wider_end)
        if opening and closing:
            wider_start, wider_end = opening.start(), closing.end()
        if (wider_start, wider_end) == (start, end):
            return start, end
        start, end = wider_start, wider_end
