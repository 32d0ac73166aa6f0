"""The command line as operators run it: real processes, exit codes, one line for what they can mend."""

import asyncio
import json
import os
import re
import shutil
import sys
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import urlsplit, urlunsplit

import aiohttp
import pytest
from typer.main import get_command

from bot.cli import main as cli
from bot.embedded import Servers
from tests.conftest import Urls
from tests.folders import data_folder
from tests.scenarios.terminal import environment, run
from tests.servers.model import unused_port
from tests.waiting import stretched


@pytest.fixture(scope="module")
def data() -> Iterator[Path]:
    with data_folder("cli") as data:
        yield data


def command_lines() -> list[str]:
    """All commands, as `bot ...`."""
    found = []
    for name, command in get_command(cli.app).commands.items():  # type: ignore[attr-defined]
        inner = getattr(command, "commands", None)
        found += [f"bot {name} {sub}" for sub in inner] if inner else [f"bot {name}"]
    return found


async def test_help_shows_every_command_with_an_example(data: Path) -> None:
    code, out, _ = await run(data, "--help", COLUMNS="120")
    assert code == 0
    for line in command_lines():
        assert any(example.startswith(line) or f"| {line}" in example for example, _ in cli.EXAMPLES), f"no example of {line}"
    for example, _ in cli.EXAMPLES:
        assert example in out


async def test_every_command_has_help_with_its_own_example(data: Path) -> None:
    for name, command in get_command(cli.app).commands.items():  # type: ignore[attr-defined]
        for one in getattr(command, "commands", {name: command}).values():
            assert one.help, one.name
            assert one.epilog, one.name
            assert one.epilog.startswith("Example: "), one.name


@pytest.mark.parametrize(
    ("arguments", "setting", "said"),
    [
        (("chat",), {"KEEPSAKE__MODEL__CHTA": "x"}, "KEEPSAKE__MODEL__CHTA: no such key"),
        (("doctor",), {"KEEPSAKE__TURN__PASSES": "x"}, "turn.passes: must be a whole number"),
        (("run",), {"KEEPSAKE__MODEL__API_KEY_ENV": "NOPE", "KEEPSAKE__MODEL__CHAT": "x"}, "model.api_key_env"),
        (("--config", "/nowhere.yaml", "users"), {}, "/nowhere.yaml: no such file"),
        (("run", "--only", "everything"), {}, "--only: there is no part everything"),
        (("bench", "nothing", "--data", "/"), {}, "bench: there is no nothing. There is:"),
        (("migrate",), {"KEEPSAKE__DATABASE__URL": "postgresql://keepsake_bot:a@h/d"}, "--admin-url-env"),
        (("migrate", "--admin-url-env", "ADMIN_URL"), {}, "database.url: is empty"),
        (("slack", "manifest", "--url", "keepsake.example.com"), {}, "--url: must be an address that begins with https://"),
        (
            ("backup", "--admin-url-env", "NOPE"),
            {"KEEPSAKE__DATABASE__URL": "postgresql://keepsake_bot:a@h/d"},
            "NOPE is not set",
        ),
        (("chat",), {"KEEPSAKE_DATA": "/proc/nothing"}, "KEEPSAKE_DATA"),
    ],
)
async def test_a_fault_of_the_operators_is_one_line_and_exit_code_2(
    data: Path, arguments: tuple[str, ...], setting: dict[str, str], said: str
) -> None:
    code, out, err = await run(data, *arguments, **setting)
    assert (code, out) == (2, "")
    [line] = err.splitlines()
    assert line.startswith("bot: ")
    assert said in line


@pytest.mark.parametrize(
    "arguments",
    [
        ("users",),
        ("memory", "view", "ada"),
        ("memory", "export", "ada"),
        ("usage", "show"),
        ("dead-letters", "list"),
        ("backup",),
    ],
)
async def test_looking_where_no_bot_has_run_makes_no_database(tmp_path: Path, arguments: tuple[str, ...]) -> None:
    code, out, err = await run(tmp_path / "data", *arguments)
    assert (code, out) == (2, "")
    [line] = err.splitlines()
    assert "no bot has run with this configuration yet" in line
    assert "--config" in line
    assert not (tmp_path / "data").exists()


async def test_a_backup_that_is_not_there(tmp_path: Path) -> None:
    code, _, err = await run(tmp_path / "data", "restore", "nothing.dump")
    assert code == 2
    assert err == f"bot: There is no file {tmp_path / 'nothing.dump'}. Name a file that `bot backup` wrote.\n"
    assert not (tmp_path / "data").exists()


async def test_the_data_folder_is_private_also_without_servers_in_it(tmp_path: Path, urls: Urls, cluster: Servers) -> None:
    external = {"KEEPSAKE__DATABASE__URL": urls.bot, "KEEPSAKE__REDIS__URL": cluster.redis_url}
    code, _, err = await run(tmp_path / "data", "users", **external)
    assert code == 0, err
    assert (tmp_path / "data").stat().st_mode & 0o777 == 0o700


async def test_a_budget_that_is_too_small_names_the_least(data: Path) -> None:
    small = {"KEEPSAKE__CONTEXT__BUDGET": "3000"}
    code, _, err = await run(data, "chat", user="budget", **small)
    assert code == 2
    least = re.search(r"Raise context.budget to (\d+)", err)
    assert least, err
    small["KEEPSAKE__CONTEXT__BUDGET"] = least[1]
    code, _, err = await run(data, "chat", user="budget", **small)
    assert code == 0, err


@pytest.mark.parametrize("size", ["small", "large"])
async def test_a_budget_of_4000_is_enough_to_start_with(tmp_path: Path, size: str) -> None:
    small = {"KEEPSAKE__CONTEXT__BUDGET": "4000", "KEEPSAKE__MODEL__SIZE": size}
    given = "My dog is called Rex.\nWhat is my dog called?\n"
    code, out, err = await run(tmp_path / "data", "chat", user="ada", given=given, **small)
    assert code == 0, err
    assert "As far as I know: Dog: called Rex." in out


async def test_an_external_database_that_was_never_prepared(data: Path, urls: Urls) -> None:
    parts = urlsplit(urls.bot)
    missing = urlunsplit(parts._replace(path="/not_there"))
    code, _, err = await run(data, "users", KEEPSAKE__DATABASE__URL=missing, KEEPSAKE__REDIS__URL="redis://127.0.0.1:1/0")
    assert code == 2
    assert "bot migrate --admin-url-env NAME" in err


async def test_an_unreachable_service_is_one_line(data: Path) -> None:
    port = unused_port()
    external = {
        "KEEPSAKE__DATABASE__URL": f"postgresql://keepsake_bot:hunter2@127.0.0.1:{port}/keepsake",
        "KEEPSAKE__REDIS__URL": "redis://127.0.0.1:1/0",
    }
    code, _, err = await run(data, "users", **external)
    assert code == 2
    [line] = err.splitlines()
    assert "database.url: cannot be reached" in line
    assert "hunter2" not in line


async def test_an_unreachable_redis_and_a_wrong_role_are_refused(data: Path, urls: Urls) -> None:
    redis = {"KEEPSAKE__REDIS__URL": f"redis://127.0.0.1:{unused_port()}/0"}
    code, _, err = await run(data, "users", KEEPSAKE__DATABASE__URL=urls.bot, **redis)
    assert (code, "redis.url: cannot be reached" in err) == (2, True)
    code, _, err = await run(data, "users", KEEPSAKE__DATABASE__URL=urls.admin, **redis)
    assert code == 2
    assert "is a superuser" in err
    assert "keepsake_bot" in err


async def test_the_operators_day(data: Path) -> None:
    limits = {"KEEPSAKE__BUDGET__PERSON_TOKENS": "200000", "KEEPSAKE__BUDGET__BOT_TOKENS": "3000000"}
    code, out, err = await run(data, "chat", user="ada", given="My name is Ada.\n", **limits)
    assert code == 0, err

    code, out, err = await run(data, "users")
    assert code == 0, err
    assert "console::ada" in out

    code, out, err = await run(data, "usage", "show", **limits)
    assert code == 0, err
    assert re.search(r"tokens today(.|\n)*all +[\d,]+ +3,000,000(.|\n)*\d+ +[\d,]+ +200,000", out), out
    assert "begins anew" in (await run(data, "usage", "reset", "ada"))[1]
    assert " 200,000" not in (await run(data, "usage", "show", **limits))[1]

    code, out, err = await run(data, "doctor")
    assert code == 0, out
    assert "All is well." in out
    assert "✗" not in out

    code, out, err = await run(data, "memory", "view", "ada")
    assert code == 0, err
    assert "Name: Ada" in out
    assert "operator: memory view" in out
    assert "always in view" in out

    code, out, err = await run(data, "memory", "view", "nobody")
    assert code == 2
    assert "bot: nobody is nobody the bot knows" in err

    code, out, err = await run(data, "memory", "export", "console::ada")
    assert code == 0, err
    assert out.startswith("Everything that is kept of console::ada")
    written = next(line for line in out.splitlines() if line.endswith(".json")).strip()
    with open(written, encoding="utf-8") as file:  # noqa: ASYNC230 - a test, and instant
        assert json.load(file)["working_context"]

    code, out, err = await run(data, "backup", str(data.parent / "saved.dump"))
    assert code == 0, err
    assert os.stat(data.parent / "saved.dump").st_mode & 0o777 == 0o600

    code, out, err = await run(data, "memory", "delete", "ada", given="n\n")
    assert code == 1
    code, out, err = await run(data, "memory", "verify", "name is ada", "ottokar")
    assert code == 1, "her words stand, as they should"
    assert "1 in messages" in out
    assert f"These words stand in {written}." in out
    taken_away = str(data.parent / "ada.json")
    shutil.copy(written, taken_away)
    code, out, err = await run(data, "memory", "delete", "ada", "--yes")
    assert code == 0, err
    assert "found nothing left" in out
    assert "2 files of exports" in out
    assert not list((data / "exports").iterdir())
    written = taken_away
    code, out, err = await run(data, "memory", "verify", "name is ada", "--scrub")
    assert (code, err.count("writing keepsake.messages again")) == (0, 1), err + out
    assert "Scrubbed" in out
    assert "If you write" not in out, "said to the operator, who is somebody else"
    assert (await run(data, "users"))[1].strip() == "Nobody yet."

    code, out, err = await run(data, "memory", "import", written, "console::ada")
    assert code == 0, err
    assert out.startswith("Brought in: ")
    assert "Name: Ada" in (await run(data, "memory", "view", "ada"))[1]
    code, out, err = await run(data, "memory", "import", written, "console::ada")
    assert code == 2
    assert "something is kept of that person already" in err

    code, out, err = await run(data, "restore", str(data.parent / "saved.dump"), "--replace")
    assert code == 0, err
    assert "Erased again: 1 person" in out
    assert "console::ada" not in (await run(data, "users"))[1], "the backup was made before she had herself erased"

    for arguments in (("list",), ("replay", "--all")):
        assert (await run(data, "dead-letters", *arguments))[1].strip() == "No dead letters."
    code, _, err = await run(data, "backup", str(data.parent / "nowhere" / "saved.dump"))
    assert code == 2
    assert f"There is no folder {data.parent / 'nowhere'}. Make it" in err
    assert "no such dead letter" in (await run(data, "dead-letters", "replay", "7"))[1]
    assert (await run(data, "dead-letters", "replay"))[0] == 2
    assert (await run(data, "migrate"))[1].strip() == "Nothing to do."
    assert (await run(data, "version"))[1].startswith("keepsake ")


async def test_the_server_process_answers_probes_and_ends_on_sigterm(data: Path) -> None:
    port = unused_port()
    process = await asyncio.create_subprocess_exec(
        sys.executable,
        "-m",
        "bot",
        "run",
        "--only",
        "worker",
        "--only",
        "scheduler",
        cwd=data.parent,
        stderr=asyncio.subprocess.PIPE,
        env=environment(data, "ada", {"KEEPSAKE__HEALTH__BIND": f"127.0.0.1:{port}", "KEEPSAKE__LOG__FORMAT": "json"}),
    )
    assert process.stderr is not None
    try:
        async with asyncio.timeout(stretched(60)):
            while not (line := await process.stderr.readline()).startswith(b"Running: scheduler, worker"):
                assert line, "ended before it ran"
            async with aiohttp.ClientSession(f"http://127.0.0.1:{port}") as client:
                assert (await client.get("/live")).status == 200
                assert (await client.get("/ready")).status == 200
            code, _, err = await run(data, "run", KEEPSAKE__HEALTH__BIND=f"127.0.0.1:{port}")
            assert code == 2
            assert "health.bind" in err.splitlines()[-1]
            process.terminate()
            assert await process.wait() == 0
    finally:
        if process.returncode is None:
            process.kill()
        await process.communicate()


def test_unexpected_faults_are_a_class_and_a_pointer(capsys: pytest.CaptureFixture[str]) -> None:
    assert cli._told(ExceptionGroup("several", [ZeroDivisionError("secret words")])) == 1
    said = capsys.readouterr().err
    assert "ZeroDivisionError" in said
    assert "KEEPSAKE_DEBUG=1" in said
    assert "secret words" not in said
    assert cli._told(KeyboardInterrupt()) == 130
