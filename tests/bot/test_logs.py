"""The log holds no words of people and no secrets, whoever writes the line."""

import json
import logging
from collections.abc import Iterator
from pathlib import Path

import pytest
import structlog

from bot import logs
from bot.model.errors import from_body

CANARY = "canary-4c1d"


@pytest.fixture
def log(tmp_path: Path) -> Iterator[Path]:
    root = logging.getLogger()
    before, level = root.handlers[:], root.level
    for handler in before:
        root.removeHandler(handler)
    file = tmp_path / "bot.log"
    logs.configure(level="debug", style="json", file=file)
    yield file
    for handler in root.handlers[:]:
        root.removeHandler(handler)
        handler.close()
    for handler in before:
        root.addHandler(handler)
    root.setLevel(level)
    structlog.reset_defaults()


def lines(file: Path) -> list[dict[str, object]]:
    return [json.loads(line) for line in file.read_text().splitlines()]


def test_nothing_anybody_says_is_written(log: Path) -> None:
    own = structlog.get_logger("bot.somewhere")
    own.info("a turn ended", agent=7, text=CANARY, content=CANARY, long=CANARY * 20, error=ValueError(CANARY))
    plain = logging.getLogger("memory.somewhere")
    plain.warning("something is %s", CANARY * 20)
    plain.warning("something failed (%s)", ValueError(CANARY))
    foreign = logging.getLogger("psycopg.pool")
    foreign.error(f"connection {CANARY} broke: %s", CANARY)
    for logger in (own, plain, foreign):
        try:
            raise RuntimeError(CANARY)
        except RuntimeError:
            logger.exception("broke off")
    assert CANARY not in log.read_text()
    written = lines(log)
    assert written[0]["agent"] == 7
    assert written[0]["error"] == "ValueError"
    assert written[-3]["error"] == "RuntimeError"
    assert "test_nothing_anybody_says_is_written" in str(written[-1]["where"])


def test_short_values_of_ours_stay(log: Path) -> None:
    logging.getLogger("bot.x").info("turn %d of agent %d ended: %s", 3, 4, "ModelUnavailable")
    assert lines(log)[0]["event"] == "turn 3 of agent 4 ended: ModelUnavailable"


def test_an_error_that_is_made_without_data_is_written_out(log: Path) -> None:
    refused = from_body(401, {"error": {"message": CANARY, "code": "invalid_api_key"}}, "some-model")
    logging.getLogger("bot.x").error("the endpoint of %s refuses: %s", "some-model", refused)
    logging.getLogger("bot.x").error("it is long: %s", logs.Tellable("x" * 1000))
    assert "status 401, invalid_api_key" in str(lines(log)[0]["event"])
    assert CANARY not in log.read_text()
    assert len(str(lines(log)[1]["event"])) < 250


def test_libraries_that_repeat_themselves_are_quiet(log: Path) -> None:
    for name in ("psycopg.pool", "apscheduler.scheduler"):
        logging.getLogger(name).warning("again")
    assert lines(log) == []


def test_the_folder_of_the_log_is_made_private(tmp_path: Path, log: Path) -> None:
    logs.configure(file=tmp_path / "data" / "bot.log")
    assert (tmp_path / "data").stat().st_mode & 0o777 == 0o700


def test_secrets_are_masked(log: Path) -> None:
    logging.getLogger("bot.x").error("cannot reach %s", "postgresql://bot:hunter2@db/keepsake")
    logging.getLogger("bot.x").error("key sk-abcdefghij refused")
    assert "hunter2" not in log.read_text()
    assert "abcdefghij" not in log.read_text()


def test_the_file_is_private_and_known(log: Path) -> None:
    assert log.stat().st_mode & 0o777 == 0o600
    assert logs.file() == log
