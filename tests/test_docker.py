"""The image and the composition, read: neither can be built where these tests run, so what can be seen without building is seen."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from fnmatch import fnmatch
from pathlib import Path
from typing import Any

import pytest
import yaml

from bot.config import loading as config
from bot.config.sections import EngineSection

ROOT = Path(__file__).resolve().parent.parent
KNOWN = {
    "ARG",
    "CMD",
    "COPY",
    "ENTRYPOINT",
    "ENV",
    "EXPOSE",
    "FROM",
    "HEALTHCHECK",
    "LABEL",
    "RUN",
    "SHELL",
    "STOPSIGNAL",
    "USER",
    "VOLUME",
    "WORKDIR",
}
"""Instructions of a Dockerfile that are in use today; ADD is left out, because it also takes addresses and unpacks."""
SECRET = re.compile(r"(?i)(password|passwd|secret|token|api_?key)\s*[=:]\s*\S")
OTHER_VARIABLES = {
    "KEEPSAKE_CONFIG",
    "KEEPSAKE_DATA",
    "KEEPSAKE_DEBUG",
    "KEEPSAKE_ADMIN_URL",
    "KEEPSAKE_ADMIN_PASSWORD",
    "KEEPSAKE_BOT_PASSWORD",
}


def instructions(text: str) -> Iterator[tuple[str, str]]:
    """Instruction and arguments, continued lines joined, comments left out."""
    lines = [line for line in text.splitlines() if not line.lstrip().startswith("#")]
    for line in re.sub(r"\\\n", " ", "\n".join(lines)).splitlines():
        if line.strip():
            word, _, rest = line.strip().partition(" ")
            yield word, " ".join(rest.split())


def sources(arguments: str) -> tuple[list[str], str | None]:
    """What a COPY takes from the folder (or from the stage it names), without its target."""
    words = arguments.split()
    stage = next((word.removeprefix("--from=") for word in words if word.startswith("--from=")), None)
    return [word for word in words if not word.startswith("--")][:-1], stage


def ignored(path: str, rules: list[str]) -> bool:
    """Whether .dockerignore keeps a path of the first level out: the last rule that fits decides."""
    out = False
    for rule in rules:
        if fnmatch(path, rule.removeprefix("!")):
            out = not rule.startswith("!")
    return out


DOCKERFILE = list(instructions((ROOT / "Dockerfile").read_text()))
IGNORE = [line.strip() for line in (ROOT / ".dockerignore").read_text().splitlines() if line.strip() and not line.startswith("#")]
COMPOSE = yaml.safe_load((ROOT / "compose.yaml").read_text())
STAGES = [arguments.partition(" AS ")[2] for word, arguments in DOCKERFILE if word == "FROM"]


def test_every_instruction_is_known() -> None:
    assert {word for word, _ in DOCKERFILE} <= KNOWN


def test_what_is_copied_exists_and_is_not_ignored() -> None:
    for word, arguments in DOCKERFILE:
        if word != "COPY":
            continue
        names, stage = sources(arguments)
        assert names, arguments
        if stage is not None:
            assert stage in STAGES, f"no stage {stage}"
            continue
        for name in names:
            assert (ROOT / name).exists(), f"COPY {name}: there is no such thing"
            assert not ignored(name, IGNORE), f"COPY {name}: .dockerignore keeps it out"


def test_the_build_context_holds_nothing_private() -> None:
    for name in (".git", ".env", ".venv", "data", "tests", "secrets.txt", "keepsake-20261129T120000Z.dump"):
        assert ignored(name, IGNORE), f".dockerignore lets {name} in"


def test_the_product_is_copied_whole() -> None:
    copied = {name for word, arguments in DOCKERFILE if word == "COPY" for name in sources(arguments)[0]}
    assert {"adapters", "bot", "memory", "pyproject.toml", "README.md", "LICENSE", "requirements.lock", "config.yaml"} <= copied


def test_the_account_that_runs_it_is_not_root() -> None:
    final = len(DOCKERFILE) - [word for word, _ in reversed(DOCKERFILE)].index("FROM") - 1
    users = [arguments for word, arguments in DOCKERFILE[final:] if word == "USER"]
    assert users, "the last stage sets no USER"
    assert users[-1].split(":")[0] not in ("root", "0")
    made = " ".join(arguments for word, arguments in DOCKERFILE[final:] if word == "RUN")
    # PostgreSQL looks its account up by name: a bare number would not do.
    assert re.search(rf"useradd .*\b{re.escape(users[-1])}\b", made)


def test_dependencies_are_installed_by_their_hashes_from_no_named_index() -> None:
    installs = [arguments for word, arguments in DOCKERFILE if word == "RUN" and "pip install" in arguments]
    assert installs
    for arguments in installs:
        assert ("--require-hashes" in arguments and "-r requirements.lock" in arguments) or "--no-deps" in arguments, arguments
        assert not re.search(r"index-url|find-links|trusted-host", arguments)


def test_no_addresses_and_no_secrets() -> None:
    for word, arguments in DOCKERFILE:
        addresses = [host for host in re.findall(r"https?://([^/:\s'\"]+)", arguments) if host != "127.0.0.1"]
        assert not addresses, f"{word} names {addresses}"
        assert not SECRET.search(arguments), f"{word} looks as if it held a secret"


def test_it_runs_the_bot_and_is_probed() -> None:
    last = dict(DOCKERFILE)
    assert json.loads(last["ENTRYPOINT"]) + json.loads(last["CMD"]) == ["bot", "run"]
    bind = re.search(r"KEEPSAKE__HEALTH__BIND=(\S+)", last["ENV"])
    assert bind
    assert f"http://{bind[1]}/ready" in last["HEALTHCHECK"]


def test_only_keys_that_exist_are_set() -> None:
    text = (ROOT / "Dockerfile").read_text() + (ROOT / "compose.yaml").read_text()
    known = {config.PREFIX + key.replace(".", "__").upper() for key in config.keys()}  # noqa: SIM118  a function of the module
    named = set(re.findall(r"\bKEEPSAKE_[A-Z_]+\b", text))
    assert named - known - OTHER_VARIABLES == set()


SERVICES: dict[str, dict[str, Any]] = COMPOSE["services"]


@pytest.mark.parametrize("name", SERVICES)
def test_a_service_is_whole(name: str) -> None:
    service = SERVICES[name]
    assert "image" in service
    assert "ports" not in service, "nothing is published to the outside"
    # The bot's own check is in the image.
    assert "healthcheck" in service or service.get("build") == "."
    for other in service.get("depends_on", {}):
        assert other in SERVICES
    for volume in service.get("volumes", []):
        assert volume.split(":")[0] in COMPOSE["volumes"]


def test_passwords_come_from_outside_and_have_no_default() -> None:
    text = (ROOT / "compose.yaml").read_text()
    variables = re.findall(r"\$\{([A-Za-z_]+)([^}]*)\}", text)
    assert {name for name, _ in variables} >= {"KEEPSAKE_ADMIN_PASSWORD", "KEEPSAKE_BOT_PASSWORD"}
    for name, rest in variables:
        if "PASSWORD" in name:
            assert rest.startswith(":?"), f"{name} must be required"
        else:
            assert rest in (":-", "") or rest.startswith(":?"), f"{name} has a default value"
    for address in re.findall(r"\w+://\S+@", text):
        assert re.fullmatch(r"\w+://\w+:\$\{\w+:\?[^}]*\}@", address) or "${" in address, f"{address} holds a password"


def test_the_bot_gets_no_administrator() -> None:
    assert "ADMIN" not in json.dumps(SERVICES["bot"]["environment"])
    assert "ADMIN" in json.dumps(SERVICES["migrate"]["environment"])
    assert SERVICES["migrate"]["restart"] == "no"
    assert SERVICES["bot"]["depends_on"]["migrate"]["condition"] == "service_completed_successfully"


def test_redis_keeps_nothing() -> None:
    command = SERVICES["redis"]["command"]
    assert command[command.index("--save") + 1] == ""
    assert command[command.index("--appendonly") + 1] == "no"


def test_turns_can_end_before_the_container_is_killed() -> None:
    grace = int(SERVICES["bot"]["stop_grace_period"].removesuffix("s"))
    assert grace > EngineSection().shutdown_grace + 5


def test_the_reader_reads() -> None:
    text = "# a\nFROM x AS y\nRUN a \\\n  && b\n# c\nCOPY --from=y /a /b ./\n"
    assert list(instructions(text)) == [("FROM", "x AS y"), ("RUN", "a && b"), ("COPY", "--from=y /a /b ./")]
    assert sources("--from=y /a /b ./") == (["/a", "/b"], "y")
    assert not ignored("bot", ["*", "!bot"])
    assert ignored("data", ["*", "!bot"])
