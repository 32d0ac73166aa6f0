"""A document at a real terminal: read in the bot's own process, remembered through kill -9, answered from."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.bot.documents import files
from tests.folders import data_folder
from tests.scenarios.terminal import run, terminal

PAGES = ["Welcome aboard.", "Everybody has thirty days of holidays."]


@pytest.fixture(scope="module")
def data() -> Iterator[Path]:
    with data_folder("documents") as data:
        yield data


def handbook(folder: Path) -> Path:
    path = folder / "My handbook.pdf"
    path.write_bytes(files.pdf(PAGES))
    return path


async def test_is_read_told_and_answered_from(data: Path, tmp_path: Path) -> None:
    path = handbook(tmp_path)
    given = (
        f"Hello\n/documents add {path}\nHow many holidays does everybody have?\n/documents remove my handbook.pdf\n/documents\n"
    )
    code, out, err = await run(data, "chat", user="ada", given=given)
    assert code == 0, err
    said = [
        "My handbook.pdf: read, 2 pages.",
        "I have read My handbook.pdf (2 pages). Ask me what is in it.",
        "thirty days of holidays",
        "My handbook.pdf is erased, with what I had made of it.",
        "You've given me no documents that I may use here.",
    ]
    places = [out.find(each) for each in said]
    assert -1 not in places, out
    assert places == sorted(places)


async def test_what_was_said_to_be_read_is_there_after_a_kill(data: Path, tmp_path: Path) -> None:
    async with terminal(data, "ben") as chat:
        await chat.say("Hello")
        await chat.hear_until("rehearsal model")
        await chat.say(f"/documents add {handbook(tmp_path)}")
        await chat.hear_until("My handbook.pdf: read, 2 pages.")
        chat.kill()
    code, out, err = await run(data, "chat", user="ben", given="/documents\nHow many holidays does everybody have?\n")
    assert code == 0, err
    assert "My handbook.pdf  (2 pages; " in out
    assert "thirty days of holidays" in out
