"""/documents, and what the agent does with what was read: told, found with its source, read on, cited, and gone without a trace."""

from __future__ import annotations

import json
from collections.abc import Sequence
from datetime import timedelta
from pathlib import Path

import pytest

from memory import retention
from memory.db import Database, value
from tests.bot.commands.conftest import Desk, Opener
from tests.bot.commands.test_forgetting import everywhere
from tests.bot.documents import files
from tests.conftest import Urls
from tests.servers.model import Request, call, reply

PAGES = ["Welcome aboard.", "Everybody has thirty days of holidays.", "Questions go to Ottoline."]


def handbook(folder: Path, pages: Sequence[str] = PAGES, name: str = "Handbook.pdf") -> Path:
    path = folder / name
    path.write_bytes(files.pdf(pages, [("Start", 1), ("Holidays", 2)]))
    return path


async def told(desk: Desk) -> list[str]:
    """The turn that a finished upload wakes the agent for, and what it says."""
    [agent] = await desk.talk.rows("SELECT id FROM agents")
    claim = await desk.talk.claim(int(str(agent["id"])))
    await desk.talk.agent.turn(claim)
    return await desk.talk.outbox(claim)


def exported(folder: Path) -> str:
    [data] = folder.glob("exports/*.json")
    return data.read_text()


def results(request: Request) -> list[str]:
    return [str(message["content"]) for message in request.messages if message["role"] == "tool"]


async def test_a_file_is_read_told_listed_and_shown(desk: Opener, tmp_path: Path) -> None:
    async with desk(reply("Hello."), reply("You can ask me about holidays now.")) as one:
        await one.talk.hear("Hello")
        assert await one.type(f"/documents add {handbook(tmp_path)}") == "Handbook.pdf: read, 3 pages."
        assert await told(one) == ["You can ask me about holidays now."]
        event = json.dumps(one.talk.model.requests[-1].messages)
        assert "Upload finished: Handbook.pdf (3 pages)" in event
        assert "Heading: Holidays" in event
        listing = await one.type("/documents")
        assert "Handbook.pdf  (3 pages; " in listing
        assert "by words only for now: 3 parts" in listing
        assert (
            await one.type("/documents read handbook.pdf 2")
            == "Handbook.pdf, page 2 of 3\n\nHolidays\nEverybody has thirty days of holidays."
        )
        assert await one.type("/documents read handbook.pdf 9") == "Handbook.pdf, page 9 of 3\n\nThere is no text on that page."


async def test_what_cannot_be_read_is_said_in_a_line_and_stores_nothing(desk: Opener, tmp_path: Path) -> None:
    async with desk(reply("Hello.")) as one:
        await one.talk.hear("Hello")
        name, made, _ = files.HOSTILE["a locked PDF"]
        (tmp_path / name).write_bytes(made())
        assert (
            await one.type(f"/documents add {tmp_path / name}")
            == "locked.pdf: the file is locked with a password. Please send it without one."
        )
        assert await one.type(f"/documents add {tmp_path}") == f"{tmp_path.name}: I couldn't get the file. Please send it again."
        assert await one.type("/documents add ~nobody/x.pdf") == "x.pdf: I couldn't get the file. Please send it again."
        assert await one.type("/documents add") == "Name a file: /documents add PATH"
        assert await one.type("/documents remove other.pdf") == "There is no document other.pdf here; /documents lists them."
        assert await one.type("/documents") == "You've given me no documents that I may use here."
        assert await one.talk.rows("SELECT FROM documents UNION ALL SELECT FROM passages") == []


async def test_nothing_is_taken_in_while_memory_is_paused_nor_from_elsewhere(desk: Opener, tmp_path: Path) -> None:
    async with desk(reply("Hello.")) as one:
        await one.talk.hear("Hello")
        await one.type("/memory pause")
        assert "Your memory is paused" in await one.type(f"/documents add {handbook(tmp_path)}")
        assert await one.talk.rows("SELECT FROM documents") == []


async def test_a_second_file_of_the_name_takes_the_place_of_the_first(desk: Opener, tmp_path: Path, urls: Urls) -> None:
    async with desk(reply("Hello."), reply("Read."), reply("Read again.")) as one:
        await one.talk.hear("Hello")
        await one.type(f"/documents add {handbook(tmp_path)}")
        await told(one)
        await one.type(f"/documents add {handbook(tmp_path, ['Now it is forty days.', 'And no more.'])}")
        await told(one)
        assert (await one.type("/documents")).count("Handbook.pdf") == 1
        assert await everywhere(urls.owner, "Ottoline") == []
        assert [row["content"] for row in await one.talk.rows("SELECT content FROM passages ORDER BY id")] == [
            "Start\nNow it is forty days.",
            "Holidays\nAnd no more.",
        ]


async def test_the_agent_finds_reads_on_and_cites(desk: Opener, tmp_path: Path) -> None:
    search = reply(None, call("archival_storage_search", query="holidays"))
    read_on = reply(None, call("archival_storage_read", document="handbook.pdf", page=3))
    answer = reply(
        "Thirty days (Handbook.pdf, p. 2). Ask Ottoline (Handbook.pdf, p. 3). Nobody works on Sundays (Handbook.pdf, p. 1; guide.pdf, p. 7)."
    )
    async with desk(reply("Hello."), reply("Read."), search, read_on, answer) as one:
        await one.talk.hear("Hello")
        assert "archival_storage_read" not in json.dumps(one.talk.model.requests[-1].body["tools"])
        await one.type(f"/documents add {handbook(tmp_path)}")
        await told(one)
        assert "archival_storage_read" in json.dumps(one.talk.model.requests[-1].body["tools"])
        said = await one.talk.hear("How many holidays do I have?")
        found, page = results(one.talk.model.requests[-1])[-2:]
        assert '"source": "Handbook.pdf, p. 2", "heading": "Holidays"' in found
        assert page.startswith("Handbook.pdf, p. 3 of 3;")
        assert "Questions go to Ottoline." in page
        assert said == ["Thirty days (Handbook.pdf, p. 2). Ask Ottoline (Handbook.pdf, p. 3). Nobody works on Sundays."]


async def test_one_document_is_searched_by_its_name_as_a_tag(desk: Opener, tmp_path: Path) -> None:
    search = reply(None, call("archival_storage_search", query="days", tags=["second.pdf"]))
    async with desk(reply("Hello."), reply("Read."), reply("Read."), search, reply("Forty.")) as one:
        await one.talk.hear("Hello")
        for path in (handbook(tmp_path), handbook(tmp_path, ["Forty days.", "No more days."], "Second.pdf")):
            await one.type(f"/documents add {path}")
            await told(one)
        await one.talk.hear("And in the second?")
        [found] = results(one.talk.model.requests[-1])[-1:]
        assert "Second.pdf, p. 1" in found
        assert "Handbook.pdf" not in found


async def test_a_page_or_document_that_is_not_there_is_refused_with_what_there_is(desk: Opener, tmp_path: Path) -> None:
    wrong = reply(
        None,
        call("archival_storage_read", document="manual.pdf"),
        call("archival_storage_read", document="handbook.pdf", page=12),
    )
    async with desk(reply("Hello."), reply("Read."), wrong, reply("Hm.")) as one:
        await one.talk.hear("Hello")
        await one.type(f"/documents add {handbook(tmp_path)}")
        await told(one)
        await one.talk.hear("Read me page 12.")
        name, page = results(one.talk.model.requests[-1])[-2:]
        assert name == "Error: There is no document of that name here. There are: Handbook.pdf."
        assert page == "Error: Handbook.pdf has no text on page 12; it has 3 pages."


async def _used(one: Desk, tmp_path: Path) -> None:
    await one.talk.hear("Hello")
    await one.type(f"/documents add {handbook(tmp_path)}")
    await told(one)
    await one.talk.hear("Who answers questions?")


USED = (
    reply("Hello."),
    reply("Ask me about Ottoline."),
    reply(None, call("archival_storage_search", query="questions")),
    reply(None, call("archival_storage_insert", request_heartbeat=True, content="Questions go to Ottoline.")),
    reply("Ottoline does (Handbook.pdf, p. 3)."),
)


async def test_removing_a_document_takes_what_was_made_of_it(desk: Opener, tmp_path: Path, urls: Urls) -> None:
    async with desk(*USED) as one:
        await _used(one, tmp_path)
        assert {"passages", "messages", "documents"} <= {
            *await everywhere(urls.owner, "Ottoline"),
            *await everywhere(urls.owner, "Handbook"),
        }
        assert await one.type("/documents remove handbook.pdf") == "Handbook.pdf is erased, with what I had made of it."
        assert await everywhere(urls.owner, "Ottoline") == []
        assert await everywhere(urls.owner, "Handbook.pdf") == []
        said = await one.talk.rows("SELECT content FROM messages WHERE kind = 'message' ORDER BY id")
        assert [row["content"] for row in said] == ["Hello", "Hello.", "Who answers questions?"]


async def test_a_document_goes_after_its_time_with_the_results_that_showed_it(desk: Opener, tmp_path: Path, db: Database) -> None:
    async with desk(*USED[:3], reply("She does.")) as one:
        await _used(one, tmp_path)
        await retention.apply(db, one.talk.cache, {"documents": timedelta(days=1)}, one.talk.at + timedelta(days=2))
        assert await one.talk.rows("SELECT FROM documents UNION ALL SELECT FROM passages") == []
        assert await one.talk.rows("SELECT FROM messages WHERE kind = 'result'") == []


async def test_a_document_from_a_private_place_is_used_nowhere_else(desk: Opener, tmp_path: Path) -> None:
    async with desk(reply("Hello."), reply("Read."), reply("Hi all.")) as one:
        await one.talk.hear("Hello")
        await one.type(f"/documents add {handbook(tmp_path)}")
        await told(one)
        pier = one.talk.elsewhere("pier", "public")
        await pier.hear("Hi")
        assert "archival_storage_read" not in json.dumps(one.talk.model.requests[-1].body["tools"])
        assert await one.type("/documents", pier) == "You've given me no documents that I may use here."
        async with one.talk.db.agent(int(str((await pier.rows("SELECT id FROM agents"))[0]["id"])), None) as connection:
            assert await value(connection, "SELECT count(*) FROM documents") == 0


async def test_everything_goes_with_the_person_and_a_copy_goes_out_before(desk: Opener, tmp_path: Path, urls: Urls) -> None:
    async with desk(reply("Hello."), reply("Read.")) as one:
        await one.talk.hear("Hello")
        await one.type(f"/documents add {handbook(tmp_path)}")
        await told(one)
        await one.type("/memory export")
        copy = json.loads(exported(tmp_path))
        assert [(each["name"], each["pages"]) for each in copy["documents"]] == [("Handbook.pdf", 3)]
        assert [(each["page"], each["heading"]) for each in copy["passages"]] == [(1, "Start"), (2, "Holidays"), (3, "Holidays")]
        assert "found nothing left" in await one.type("/memory forget everything yes")
        assert await everywhere(urls.owner, "Ottoline") == []


@pytest.mark.parametrize("days", ["from 2026-11-30 to 2026-12-01"])
async def test_a_period_counts_a_document_once(desk: Opener, tmp_path: Path, days: str) -> None:
    async with desk(reply("Hello."), reply("Read.")) as one:
        await one.talk.hear("Hello")
        await one.type(f"/documents add {handbook(tmp_path)}")
        await told(one)
        asked = await one.press(f"/memory forget {days}")
        assert "1 document" in asked.text
        assert "passage" not in asked.text
        done = await one.press(asked.buttons[0].line)
        assert "1 document" in done.text
        assert await one.talk.rows("SELECT FROM documents UNION ALL SELECT FROM passages") == []


async def test_a_shared_document_is_used_elsewhere_until_it_is_no_longer_shared(desk: Opener, tmp_path: Path) -> None:
    async with desk(reply("Hello."), reply("Read."), reply("Hi all.")) as one:
        await one.talk.hear("Hello")
        await one.type(f"/documents add {handbook(tmp_path)}")
        await told(one)
        pier = one.talk.elsewhere("pier", "public")
        await pier.hear("Hi")
        assert await one.type("/documents share handbook.pdf") == "Handbook.pdf may be used in your other places now."
        assert "Handbook.pdf" in await one.type("/documents", pier)
        assert "thirty days" in await one.type("/documents read handbook.pdf 2", pier)
        assert "direct message" in await one.type("/documents unshare handbook.pdf", pier)
        assert await one.type("/documents unshare handbook.pdf") == "Handbook.pdf is used only where it came from again."
        assert "no documents" in await one.type("/documents", pier)
