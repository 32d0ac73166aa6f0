"""No text that reaches a person is written in the code: it has a name in the catalogue, from which it is said in their language."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator, Mapping
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
ROOMS = ("adapters", "bot/commands", "bot/engine", "bot/keeping", "bot/speaking", "bot/turn")
"""What says something to people."""
OUTSIDE: Mapping[str, str] = {
    # file, or file and name of a constant or function: who reads what is written there
    "adapters/base.py:TryLater": "the log",
    "adapters/discord/adapter.py": "the operator",
    "adapters/discord/catchup.py": "the log",
    "adapters/discord/connection.py": "the operator",
    "adapters/discord/inbound.py:Inbound": "the model",
    "adapters/discord/outbound.py:meaning": "the operator",
    "adapters/discord/quotes.py": "the model",
    "adapters/discord/texts.py:_moment": "the model",
    "adapters/files.py": "the model",
    "adapters/slack/adapter.py:GONE": "the operator",
    "adapters/slack/events.py:Events": "the log",
    "adapters/slack/files.py": "the model",
    "adapters/slack/home.py:PAGES": "the names of commands",
    "adapters/slack/inbound.py:Inbound": "the model",
    "adapters/slack/outbound.py": "the operator",
    "adapters/slack/quotes.py": "the model",
    "adapters/slack/socket.py": "the log",
    "adapters/slack/texts.py:_time": "the model",
    "adapters/slack/web.py:Door": "the log",
    "adapters/slack/workspaces.py": "the operator",
    "bot/commands/context.py:person_named": "the operator, at the command line",
    "bot/commands/forgetting.py:forget_workspace": "a line to type",
    "bot/commands/linking.py:_hash": "a key",
    "bot/commands/paging.py:turning": "a line to type",
    "bot/commands/reminders.py:snooze": "what reads times",
    "bot/engine/changes.py": "the model",
    "bot/engine/listen.py:listen": "the log",
    "bot/engine/queue.py": "the log, and parts of statements",
    "bot/keeping/to_forget.py:question": "a line to type",
    "bot/keeping/decision.py": "the model",
    "bot/keeping/erasures.py": "the operator",
    "bot/keeping/keeper.py": "the model",
    "bot/keeping/notice.py:HERE": "a mark in the database",
    "bot/speaking/appointments.py": "the model",
    "bot/speaking/by_words.py": "the model, and what reads times",
    "bot/speaking/initiative.py:OPENER_PURPOSE": "a row; /memory view says it from the catalogue",
    "bot/speaking/listening.py": "the model",
    "bot/speaking/openers.py": "the model",
    "bot/speaking/welcome.py:Welcome": "a key",
    "bot/turn/echoes.py": "the model",
    "bot/turn/executor.py": "the model",
    "bot/turn/inference.py:Inference": "the log",
    "bot/turn/pressure.py": "the model",
    "bot/turn/specimen.py": "the model",
    "bot/turn/summariser.py": "the model",
}
SAYS = {"Answer": 0, "Button": 0, "reply": 0, "say": 1, "say_after": 3, "Outgoing": 2}
"""Calls whose argument people read, with its place: no word of it may be written there, however short."""
OPERATORS = {
    "debug",
    "info",
    "warning",
    "error",
    "exception",
    "critical",
    "insist",
    "create_task",
    "StartError",
    "compile",
    "describe",
}
"""Calls whose texts are for the log, the operator or the program itself."""
WORDS = re.compile(r"[^\W\d_]{2,}[,;:.!?]?[ \n]+(?:[^\W\d_]|\{)|\{\}[,;:]? [^\W\d_]{2,}")
SQL = re.compile(
    r"\s*(?:SELECT|INSERT|UPDATE|DELETE|WITH|UNION|CASE|WHERE|AND|LOCK|LISTEN|NOTIFY|\(SELECT|\(%\(|-- |id, |.* RETURNING)"
)
LINE = re.compile(r"/[a-z{]|-c |Bearer ")
"""What is to be typed or sent, rather than read."""


def text_of(node: ast.AST) -> str:
    """The text of a literal, with {} for what is filled in."""
    if isinstance(node, ast.JoinedStr):
        return "".join(str(part.value) if isinstance(part, ast.Constant) else "{}" for part in node.values)
    return node.value if isinstance(node, ast.Constant) and isinstance(node.value, str) else ""


def called(node: ast.AST) -> str:
    func = node.func if isinstance(node, ast.Call) else None
    return func.attr if isinstance(func, ast.Attribute) else func.id if isinstance(func, ast.Name) else ""


def texts(node: ast.AST, inside: str = "") -> Iterator[tuple[str, int, str]]:
    """The texts that people might read: their constant's or function's name, their line, the text."""
    for inner in ast.iter_child_nodes(node):
        name = inside
        if isinstance(inner, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            name = inside or inner.name
        elif isinstance(inner, ast.Assign) and isinstance(inner.targets[0], ast.Name) and not inside:
            name = inner.targets[0].id
        elif isinstance(inner, ast.AnnAssign) and isinstance(inner.target, ast.Name) and not inside:
            name = inner.target.id
        if isinstance(inner, ast.Expr) and isinstance(inner.value, ast.Constant):
            continue  # a docstring
        if isinstance(inner, ast.Raise) and inner.exc is not None and called(inner.exc) != "CommandRefused":
            continue
        if called(inner) in OPERATORS:
            continue
        if called(inner) in SAYS:
            yield from ((name, getattr(inner, "lineno", 0), said) for said in literals_said(inner))
        if (said := text_of(inner)) and WORDS.search(said) and not SQL.match(said) and not LINE.match(said):
            yield name, getattr(inner, "lineno", 0), said
        if not isinstance(inner, ast.JoinedStr):
            yield from texts(inner, name)
        else:
            yield from (found for part in inner.values if isinstance(part, ast.FormattedValue) for found in texts(part, name))


def literals_said(call: ast.AST) -> Iterator[str]:
    """Words that are written where a call takes what people read."""
    assert isinstance(call, ast.Call)
    at = SAYS[called(call)]
    said = text_of(call.args[at]) if len(call.args) > at else ""
    if re.search(r"[^\W\d_]{2,}", said):
        yield said


def written_in(source: str) -> list[str]:
    return [said for _, _, said in texts(ast.parse(source))]


def modules(rooms: tuple[str, ...] = ROOMS) -> Iterator[tuple[str, ast.Module]]:
    for room in rooms:
        for file in sorted((ROOT / room).rglob("*.py")):
            yield file.relative_to(ROOT).as_posix(), ast.parse(file.read_text(encoding="utf-8"))


def test_what_people_read_stands_in_the_catalogue_alone() -> None:
    wrong, seen = [], set()
    for path, tree in modules():
        for name, line, said in texts(tree):
            places = {path, f"{path}:{name}"} & set(OUTSIDE)
            seen |= places
            if not places:
                wrong.append(f"{path}:{line} ({name}): {said[:100]!r}")
    assert not wrong, "give these names in adapters/catalogue, or say in OUTSIDE who reads them:\n" + "\n".join(wrong)
    assert set(OUTSIDE) - seen == set(), "nothing is written there any more: take the entry out of OUTSIDE"


def test_rooms_that_speak_to_others_hand_people_no_words_of_their_own() -> None:
    wrong = [
        f"{path}:{getattr(call, 'lineno', 0)}: {said!r}"
        for path, tree in modules(("bot/app", "bot/functions"))
        for call in ast.walk(tree)
        if called(call) in SAYS
        for said in literals_said(call)
    ]
    assert not wrong


@pytest.mark.parametrize(
    "planted",
    [
        'async def view(asking): return "Nothing to see here."',
        'NOTHING = "Nothing is running."',
        'def view(): raise CommandRefused("Ask for that in a direct message.")',
        'answer = Answer("Done.")',
        'answer = Answer(f"Done: {purpose}.")',
        'button = Button("Forget", "/memory forget")',
        'async def end(step): await step.reply("Sorry!")',
        'async def end(step): await step.say(-3, "Sorry!")',
        'async def edited(): await say_after(connection, turn, -3, "Moved.", at)',
        'lines = [f"of our conversation: {count}"]',
        'said = f"{count} were forgotten"',
    ],
)
def test_finds_a_line_that_was_written_into_the_code(planted: str) -> None:
    assert written_in(planted)


@pytest.mark.parametrize(
    "other",
    [
        '"""A module says what it is for."""',
        'log.warning("turn %d was given up", turn)',
        'rows = await value(connection, "SELECT count(*) FROM agents")',
        'raise ValueError("this is the program\'s own")',
        'answer = Answer(asking.say("view.here"), (Button(asking.say("button.forget"), "/memory forget w3"),))',
        'line = f"  w{number}  {text}"',
    ],
)
def test_leaves_other_texts_alone(other: str) -> None:
    assert not written_in(other)
