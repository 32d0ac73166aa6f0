"""The papers are true: they describe what the code has, and what they describe exists."""

from __future__ import annotations

import re
import subprocess
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import typer
import yaml

from bot import commands, functions
from bot.cli import main as cli
from bot.config import documentation as config_docs
from bot.config import loading as config

ROOT = Path(__file__).resolve().parent.parent
PAPERS = {
    file.relative_to(ROOT).as_posix(): file.read_text(encoding="utf-8")
    for file in (
        *(ROOT / name for name in ("README.md", "CONTRIBUTING.md", "CHANGELOG.md")),
        *sorted((ROOT / "docs").glob("*.md")),
    )
}
"""Every paper by its path."""
ALL = "\n".join(PAPERS.values())
MOST_LINES = {"README.md": 200, "config.yaml": 100}
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
FIGURES = ("turn_overhead", "throughput", "prompt_growth", "search", "footprint", "retrieval", "eviction", "nested-kv")
TEXTS = (".md", ".py", ".sql", ".yaml", ".yml", ".toml", ".lock", ".mako", ".json", ".txt", ".sh", "")


# config.yaml -----------------------------------------------------------------------------------------


def explained(text: str) -> dict[str, str]:
    """Every `section.key` of a configuration with the comment above it; the first key of a section may be explained above that."""
    found: dict[str, str] = {}
    section, comment, above_section = "", "", ""
    for line in text.splitlines():
        if line.lstrip().startswith("#"):
            comment += line.lstrip("# ") + "\n"
        elif match := re.fullmatch(r"([a-z_]+):", line):
            section, above_section, comment = match[1], comment, ""
        elif match := re.match(r"  ([a-z_]+):", line):
            found[f"{section}.{match[1]}"] = comment or above_section
            comment = above_section = ""
        elif not line.strip():
            comment = ""
    return found


SHOWN = {
    "data": ("folder",),
    "database": ("url",),
    "redis": ("url",),
    "model": ("base_url", "api_key_env", "chat", "summary", "filter", "embedding", "fallback", "sees_images"),
    "context": ("budget",),
    "persona": ("file",),
    "budget": ("person_tokens", "bot_money", "prices"),
    "discord": ("message_content", "members", "allow", "streaming"),
    "slack": ("workspaces", "bind", "allow"),
    "openers": ("enabled",),
    "schedules": ("entries",),
    "welcome": ("text",),
    "access": ("operators", "admins"),
    "retention": ("messages",),
    "log": ("level",),
    "health": ("bind",),
}
"""What an operator sets, and so what config.yaml shows; docs/configuration.md has every key."""


def test_config_yaml_shows_and_explains_what_operators_set() -> None:
    found = explained((ROOT / "config.yaml").read_text(encoding="utf-8"))
    assert list(found) == [f"{section}.{key}" for section, keys in SHOWN.items() for key in keys]
    silent = [key for key, comment in found.items() if len(comment.strip()) < 10]
    assert not silent, f"no comment above {silent}"


def test_config_yaml_shows_the_defaults() -> None:
    shown = config.Config(**yaml.safe_load((ROOT / "config.yaml").read_text(encoding="utf-8")))
    assert shown == config.Config()


def test_commands_named_in_config_yaml_and_configuration_exist() -> None:
    known = {" ".join(command) for command in cli_commands()}
    text = (ROOT / "config.yaml").read_text(encoding="utf-8") + ALL
    named = set(re.findall(r"`bot ([a-z-]+(?: [a-z-]+)?)", text))
    first = {name.split()[0] for name in known}
    groups = {name.split()[0] for name in known if " " in name}
    wrong = {name for name in named if name.split()[0] not in first or (name.split()[0] in groups and name not in known | groups)}
    assert not wrong


def test_the_page_of_every_key_is_made_from_the_fields() -> None:
    assert PAPERS["docs/configuration.md"] == config_docs.page(), "make docs makes it again"


def test_the_page_of_every_key_names_and_explains_each() -> None:
    rows = [line for line in PAPERS["docs/configuration.md"].splitlines() if line.startswith("| `")]
    keys = [re.match(r"\| `([^`]+)`", row)[1] for row in rows]  # type: ignore[index]
    assert [key for key in keys if "." in key] == list(config.keys())
    for row in rows:
        cells = row.strip("| ").split(" | ")
        assert len(cells) == 4, row
        assert len(cells[3]) > 10, row
        assert cells[3].endswith("."), row


def test_keys_named_in_the_papers_exist() -> None:
    sections = {key.split(".")[0] for key in config.keys()}  # noqa: SIM118  a function of the module
    named = {one for one in re.findall(r"`([a-z_]+\.[a-z_]+)(?:`|: )", ALL) if one.split(".")[0] in sections}
    others = {"discord.commands", "usage.turn_id"}  # a file, and a column
    assert named - set(config.keys()) - others == set()
    assert len(named) > 50


@pytest.mark.parametrize("name", MOST_LINES)
def test_what_is_read_first_is_short(name: str) -> None:
    assert len((ROOT / name).read_text(encoding="utf-8").splitlines()) <= MOST_LINES[name]


# The tables ------------------------------------------------------------------------------------------


def cli_commands() -> Iterator[tuple[str, ...]]:
    """Every command of `bot` by its words."""

    def walk(group: Any, words: tuple[str, ...]) -> Iterator[tuple[str, ...]]:
        inner = getattr(group, "commands", None)
        if inner is None:
            yield words
        else:
            for name, command in inner.items():
                yield from walk(command, (*words, name))

    yield from walk(typer.main.get_command(cli.app), ())


def table_under(heading: str, text: str) -> list[list[str]]:
    """The cells of the first table under a heading, without its head."""
    match = re.search(rf"^#+ {re.escape(heading)}\s*$(.*?)(?=^#+ |\Z)", text, re.MULTILINE | re.DOTALL)
    assert match, f"there is no heading {heading}"
    rows = [line for line in match[1].splitlines() if line.startswith("|")]
    return [[cell.strip() for cell in row.strip("|").split(" | ")] for row in rows[2:]]


def code(cell: str) -> str:
    """What is between a cell's first backticks."""
    match = re.search(r"`([^`]+)`", cell)
    assert match, f"no `name` in {cell!r}"
    return match[1]


def test_the_table_of_operator_commands_is_that_of_the_program() -> None:
    rows = table_under("Operator commands", PAPERS["docs/commands.md"])
    assert {code(row[0]) for row in rows} == {" ".join(("bot", *command)) for command in cli_commands()}
    for row in rows:
        assert code(row[2]).startswith("bot "), f"no example for {row[0]}"


def test_the_table_of_chat_commands_is_that_of_the_registry() -> None:
    named = {code(row[0]) for row in table_under("Chat commands", PAPERS["docs/commands.md"])}
    assert named == {command.name for command in commands.COMMANDS} | {commands.QUIT}


def test_every_function_of_the_model_is_named() -> None:
    rows = table_under("Functions of the model", PAPERS["docs/commands.md"])
    named = [name for row in rows for name in re.findall(r"`([a-z_]+)`", row[0])]
    assert sorted(named) == sorted(function.schema.name for function in functions.ALL)


def test_the_commands_shown_in_the_readme_exist() -> None:
    known = {command.name for command in commands.COMMANDS}
    for row in table_under("What people can do", PAPERS["README.md"]):
        first, *others = re.findall(r"`([^`]+)`", row[0])
        group = first.split()[0] if " " in first else ""
        assert {first, *(one if one.startswith("/") else f"{group} {one}" for one in others)} <= known


def direct_dependencies() -> set[str]:
    """Names of what pyproject.toml asks for, at run time and for development."""
    wanted = [*PROJECT["dependencies"], *(one for extra in PROJECT["optional-dependencies"].values() for one in extra)]
    return {re.split(r"[\[<>=!~; ]", one, maxsplit=1)[0].lower().replace(".", "-") for one in wanted}


def test_the_table_of_dependencies_is_that_of_pyproject() -> None:
    rows = table_under("Dependencies", PAPERS["docs/dependencies.md"])
    assert {code(row[0]).lower() for row in rows} == direct_dependencies()
    for row in rows:
        assert len(row) == 4, row
        assert all(len(cell) > 2 for cell in row[1:]), f"{row[0]}: say why it is there, its licence, and who maintains it"


def test_the_figures_have_their_places() -> None:
    page = PAPERS["docs/benchmarks.md"]
    for name in FIGURES:
        assert re.search(rf"^#+ {name}$", page, re.MULTILINE), f"no heading {name}"
        module = name.replace("-", "_")
        assert re.search(rf"bot bench {module}\b", page), f"no command under {name}"
    for module in set(re.findall(r"`bot bench ([a-z_]+)", ALL)):
        file = ROOT / "bot" / "bench" / f"{module}.py"
        assert file.is_file(), f"there is no bot bench {module}"
        assert re.search(r"^def main\(", file.read_text(encoding="utf-8"), re.MULTILINE), f"bot bench {module} cannot be run"


def test_every_target_of_the_makefile_is_documented() -> None:
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
    targets = re.findall(r"^([a-z-]+):", makefile, re.MULTILINE)
    phony = set(re.search(r"^\.PHONY: (.*)$", makefile, re.MULTILINE)[1].split())  # type: ignore[index]
    assert set(targets) <= phony
    lacking = [target for target in phony if f"make {target}" not in ALL]
    assert not lacking
    silent = [target for target in phony if not re.search(rf"^{target}:.*## \S", makefile, re.MULTILINE)]
    assert not silent, "make help shows what follows ##"
    named = set(re.findall(r"`make ([a-z-]+)", ALL))
    assert named <= phony


def test_the_changelog_keeps_its_form() -> None:
    text = PAPERS["CHANGELOG.md"]
    headings = re.findall(r"^## (.*)$", text, re.MULTILINE)
    assert headings[0] == "[Unreleased]"
    assert all(re.fullmatch(r"\[\d+\.\d+\.\d+\] - \d{4}-\d{2}-\d{2}", heading) for heading in headings[1:])
    kinds = set(re.findall(r"^### (.*)$", text, re.MULTILINE))
    assert kinds <= {"Added", "Changed", "Deprecated", "Removed", "Fixed", "Security"}


TRANSLATED = re.compile(
    r"\b(anew|whom|without a word|of yours)\b|\b(stands|stood)\b(?! for)|(?<!there )\b(is|are) no (?!longer)", re.IGNORECASE
)
"""Turns of phrase that are German in English words, where they were frequent once."""


@pytest.mark.parametrize("name", [*PAPERS, "config.yaml", "compose.yaml", "Dockerfile", "Makefile"])
def test_the_papers_are_native_english(name: str) -> None:
    text = re.sub(r"```.*?```", "", (ROOT / name).read_text(encoding="utf-8"), flags=re.DOTALL)
    assert not [found[0] for found in TRANSLATED.finditer(text)]


# Links and names -------------------------------------------------------------------------------------


def anchors(text: str) -> set[str]:
    """The anchors that GitHub makes of headings."""
    headings = re.findall(r"^#+ (.*)$", text, re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", heading.strip().lower()).replace(" ", "-") for heading in headings}


@pytest.mark.parametrize("name", PAPERS)
def test_links_resolve(name: str) -> None:
    for target in re.findall(r"\]\(([^)\s]+)\)", PAPERS[name]):
        if re.match(r"https?://", target):
            continue
        path, _, anchor = target.partition("#")
        file = (ROOT / name).parent / path if path else ROOT / name
        assert file.exists(), f"{name} links to {target}"
        if anchor:
            assert anchor in anchors(file.read_text(encoding="utf-8")), f"{name} links to {target}"


def test_every_page_can_be_reached_from_the_readme() -> None:
    reached, following = set[str](), ["README.md"]
    while following:
        name = following.pop()
        reached.add(name)
        for target in re.findall(r"\]\(([^)\s#]+\.md)", PAPERS[name]):
            path = ((ROOT / name).parent / target).resolve().relative_to(ROOT).as_posix()
            following += [path] if path in PAPERS and path not in reached else []
    assert reached == set(PAPERS)


@pytest.mark.parametrize("name", [name for name in PAPERS if name != "CHANGELOG.md"])
def test_files_that_are_named_exist(name: str) -> None:
    text = re.sub(r"```.*?```", "", PAPERS[name], flags=re.DOTALL)
    named = re.findall(r"`([\w.\-]+(?:/[\w.\-]+)*/?)`", text)
    ours = [
        one
        for one in named
        if one.startswith(("bot/", "memory/", "adapters/", "tests/", "docs/", ".ci/")) or one in ("Makefile", "Dockerfile")
    ]
    missing = [one for one in ours if not (ROOT / one).exists()]
    assert not missing, f"{name} names {missing}"


def test_modules_named_in_docstrings_exist() -> None:
    for package in ("bot", "memory", "adapters"):
        for file in (ROOT / package).rglob("*.py"):
            for name in re.findall(r"`((?:bot|memory|adapters)(?:\.[A-Za-z_]+)+)`", file.read_text(encoding="utf-8")):
                assert exists(name), f"{file.relative_to(ROOT)} names {name}"


def exists(name: str) -> bool:
    """Whether a dotted name is a package, a module, or something that its module mentions."""
    path = ROOT / name.replace(".", "/")
    if path.is_dir() or path.with_suffix(".py").is_file():
        return True
    module = path.parent / "__init__.py" if path.parent.is_dir() else path.parent.with_suffix(".py")
    return module.is_file() and re.search(rf"\b{path.name}\b", module.read_text(encoding="utf-8")) is not None


# What must be nowhere ---------------------------------------------------------------------------------


def our_files() -> list[Path]:
    """Tracked and new text files, or where there is no repository (an unpacked archive) all but the hidden folders."""
    listed = subprocess.run(
        ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"], cwd=ROOT, capture_output=True, check=False
    )
    if listed.returncode == 0:
        names = [name for name in listed.stdout.decode().split("\0") if name]
    else:
        names = [
            file.relative_to(ROOT).as_posix() for file in ROOT.rglob("*") if not file.relative_to(ROOT).parts[0].startswith(".")
        ]
    return [ROOT / name for name in names if Path(name).suffix in TEXTS and (ROOT / name).is_file()]


# Folders that exist on one machine only; those of the image (/var/lib, /etc, /opt) and /tmp are everybody's.
OF_A_MACHINE = re.compile(r"(?<![\w.$~{}-])/(?:root|work|home/[a-z]\w+|Users/\w+|mnt/\w+|workspace)/[\w.]")


def machine_paths(text: str) -> list[str]:
    """Paths in a text that only one machine has."""
    return OF_A_MACHINE.findall(text)


def test_no_file_names_the_folders_of_a_machine() -> None:
    wrong = {}
    for file in our_files():
        text = file.read_text(encoding="utf-8", errors="replace")
        if found := machine_paths(text):
            wrong[file.relative_to(ROOT).as_posix()] = found
    assert not wrong


def test_finds_the_folders_of_a_machine() -> None:
    for folder in ("root", "work", "home/ada", "Users/ada"):
        assert machine_paths(f"see /{folder}/main")
        assert not machine_paths(f"docs at https://example.org/{folder}/area and ./{folder}/x")
    assert not machine_paths("/tmp/x and /var/lib/keepsake")


@pytest.mark.parametrize("name", ["requirements.lock", "requirements-dev.lock"])
def test_lock_files_name_no_index_and_hash_everything(name: str) -> None:
    text = (ROOT / name).read_text(encoding="utf-8")
    assert not re.search(r"https?://|--(extra-)?index-url|--find-links|--trusted-host|file:", text)
    pinned = re.findall(r"^([A-Za-z0-9_.\-]+)==\S+.*?(?=^[A-Za-z]|\Z)", text, re.MULTILINE | re.DOTALL)
    assert len(pinned) > 20
    entries = re.split(r"^(?=[A-Za-z0-9_.\-]+==)", text, flags=re.MULTILINE)[1:]
    bare = [entry.split("==")[0] for entry in entries if "--hash=sha256:" not in entry]
    assert not bare
    if name == "requirements.lock":
        runtime = {re.split(r"[\[<>=!~; ]", one, maxsplit=1)[0].lower() for one in PROJECT["dependencies"]}
        assert runtime <= {one.lower() for one in pinned}


def test_nothing_names_a_registry() -> None:
    hosts = re.compile(r"(?i)pypi\.org|pythonhosted|artifactory|/simple/|index-url\s*=?\s*http")
    wrong = [file.name for file in our_files() if file != Path(__file__) and hosts.search(file.read_text("utf-8", "replace"))]
    assert not wrong
