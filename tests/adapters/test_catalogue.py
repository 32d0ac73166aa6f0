"""The catalogue of the bot's own lines: complete where people meet it daily, and the same parameters in every language."""

from __future__ import annotations

import ast
import re
import string
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest

from adapters import catalogue
from adapters.catalogue import ENGLISH, LINES, in_every_language, language_of, say

ROOT = Path(__file__).resolve().parents[2]
DAILY = ("de", "en", "es", "fr", "it", "pt")
"""Languages that have every line that people meet daily."""
OF_OVERSIGHT = re.compile(
    r"platform\.(about|slash|example|group|admin_group)|admin\..*|does\.admin_(?!who).*|does\.quit|erasing\.(exports_stay|others_exports_stay|nothing_of)|export\.of|count\.(call|person)"
)
"""What operators and admins alone are told, at their own commands, and what a platform is told of the bot once for all: in English."""


def forms(line: Any) -> list[str]:
    """The texts of a line: itself, its forms by number, its items."""
    if isinstance(line, Mapping):
        return [str(form) for form in line.values()]
    return [str(item) for item in line] if isinstance(line, list) else [str(line)]


def parameters(text: str) -> set[str]:
    return {name for _, name, _, _ in string.Formatter().parse(text) if name is not None}


@pytest.mark.parametrize("language", DAILY)
def test_what_people_meet_daily_is_there_in_six_languages(language: str) -> None:
    lacking = sorted(name for name in LINES[ENGLISH] if name not in LINES[language] and not OF_OVERSIGHT.fullmatch(name))
    assert not lacking


@pytest.mark.parametrize("language", sorted(LINES))
def test_a_language_has_the_lines_and_parameters_of_english(language: str) -> None:
    for name, line in LINES[language].items():
        english = LINES[ENGLISH][name]
        assert type(line) is type(english), name
        assert isinstance(line, str) or len(line) == len(english), name
        wanted = set().union(*map(parameters, forms(english)))
        for form in forms(line):
            # `once a day` need not name the number.
            assert parameters(form) | ({"n"} & wanted) == wanted, (name, form)
            assert form.strip() == form != "", name


def test_commands_are_named_alike_in_every_language() -> None:
    """What is to be typed stays as it is, but for the words that stand for the person's own."""
    for language in DAILY:
        for name, line in LINES[language].items():
            typed = [
                re.findall(r"(?<![\w>])/[a-z]+(?: (?:view|search|forget|export|pause|resume|on|off|yes|no)\b)?", form)
                for form in forms(line)
            ]
            told = [
                re.findall(r"(?<![\w>])/[a-z]+(?: (?:view|search|forget|export|pause|resume|on|off|yes|no)\b)?", form)
                for form in forms(LINES[ENGLISH][name])
            ]
            assert list(map(sorted, typed)) == list(map(sorted, told)), (language, name)


def test_a_locale_is_found_as_platforms_write_it() -> None:
    spoken = {"pt-BR": "pt", "de_AT": "de", "EN-us": "en", "fr": "fr", "": "en", None: "en", "tlh": "en"}
    assert {locale: language_of(locale) for locale in spoken} == spoken


def test_what_a_language_lacks_is_said_in_english(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(catalogue.LINES, "de", {"turn.apology": "Entschuldige."})
    assert say("turn.apology", "de") == "Entschuldige."
    assert say("turn.declined", "de") == LINES[ENGLISH]["turn.declined"]
    assert say("count.message", "de", n=1) == "1 message"


def test_numbers_choose_their_form() -> None:
    said = [[say("count.message", locale, n=n) for n in (0, 1, 2)] for locale in ("en", "fr", "de")]
    assert said == [
        ["0 messages", "1 message", "2 messages"],
        ["0 message", "1 message", "2 messages"],
        ["0 Nachrichten", "1 Nachricht", "2 Nachrichten"],
    ]


def test_what_people_write_is_not_read_as_a_template() -> None:
    assert say("reminders.cancelled", "en", purpose="buy {eggs} and }{") == "Cancelled: buy {eggs} and }{."


def test_the_database_chooses_among_all_languages() -> None:
    assert set(in_every_language("turn.apology")) == set(DAILY)


# That the code names its lines, and that it names no other --------------------------------------------------


def product() -> Iterator[tuple[str, ast.Module]]:
    for package in ("bot", "adapters", "memory"):
        for file in sorted((ROOT / package).rglob("*.py")):
            if not file.is_relative_to(ROOT / "bot" / "bench"):
                yield file.relative_to(ROOT).as_posix(), ast.parse(file.read_text(encoding="utf-8"))


SECTIONS = {name.split(".")[0] for name in LINES[ENGLISH]}
NAME = re.compile(rf"(?:{'|'.join(sorted(SECTIONS))})\.\w+")
CALLS = {"say": 0, "words": 0, "in_every_language": 0, "CommandRefused": 0, "_close": 1}
"""What takes the name of a line, and where."""


def named(node: ast.AST) -> Iterator[str]:
    """The names of lines in an expression; not those that are put together."""
    if isinstance(node, ast.Constant) and isinstance(node.value, str) and NAME.fullmatch(node.value):
        yield node.value
    elif not isinstance(node, ast.JoinedStr | ast.BinOp):
        for inner in ast.iter_child_nodes(node):
            yield from named(inner)


def called(call: ast.Call) -> str:
    return call.func.attr if isinstance(call.func, ast.Attribute) else call.func.id if isinstance(call.func, ast.Name) else ""


def test_every_line_that_the_code_names_is_there_with_its_parameters() -> None:
    wrong = []
    for path, tree in product():
        for call in (node for node in ast.walk(tree) if isinstance(node, ast.Call) and called(node) in CALLS):
            at = CALLS[called(call)]
            for name in named(call.args[at]) if len(call.args) > at else ():
                if name not in LINES[ENGLISH]:
                    wrong.append(f"{path}:{call.lineno}: {name} is not in the catalogue")
                elif called(call) in ("say", "CommandRefused") and all(keyword.arg for keyword in call.keywords):
                    given = {str(keyword.arg) for keyword in call.keywords}
                    wanted = set().union(*map(parameters, forms(LINES[ENGLISH][name])))
                    if not wanted <= given:
                        wrong.append(f"{path}:{call.lineno}: {name} lacks {sorted(wanted - given)}")
    assert not wrong, "\n".join(wrong)


def test_every_line_of_the_catalogue_is_said() -> None:
    said: set[str] = set()
    begun: set[str] = set()
    for _, tree in product():
        for node in ast.walk(tree):
            if isinstance(node, ast.Constant) and isinstance(node.value, str) and NAME.fullmatch(node.value):
                said.add(node.value)
            elif isinstance(node, ast.JoinedStr) and isinstance(node.values[0], ast.Constant):
                begun.add(str(node.values[0].value))
            elif isinstance(node, ast.BinOp) and isinstance(node.left, ast.Constant):
                begun.add(str(node.left.value))
    prefixes = tuple(each for each in begun if re.fullmatch(rf"(?:{'|'.join(SECTIONS)})\.\w*", each))
    silent = sorted(name for name in LINES[ENGLISH] if name not in said and not name.startswith(prefixes))
    assert not silent, "nothing says these lines any more"
