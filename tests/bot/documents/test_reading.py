"""Every kind of file is read with its headings and pages, and whatever is wrong with one ends in one clear line and touches nothing."""

from __future__ import annotations

import asyncio
import os
import sys
from dataclasses import replace
from pathlib import Path

import psutil
import pytest

from bot.documents.blocks import Block, Limits, Unreadable
from bot.documents.reading import Contents, read
from tests.bot.documents import files
from tests.waiting import until

LIMITS = Limits(seconds=20)


async def texts(name: str, data: bytes) -> list[str]:
    return [block.text for block in (await read(name, data, LIMITS)).blocks]


@pytest.mark.parametrize("kind", files.HOSTILE)
async def test_what_cannot_be_read_ends_in_one_clear_line(kind: str) -> None:
    name, made, fault = files.HOSTILE[kind]
    with pytest.raises(Unreadable) as refused:
        await read(name, made(), LIMITS)
    assert refused.value.fault == fault
    line = refused.value.told(name, "en")
    assert line.startswith(f"{name}: ")
    assert "\n" not in line


def test_at_least_forty_files_are_hostile_or_broken() -> None:
    assert len(files.HOSTILE) >= 40


async def test_what_costs_too_much_time_or_memory_is_ended() -> None:
    with pytest.raises(Unreadable) as slow:
        await read("slow.pdf", files.pdf(["x"] * 2_900), replace(LIMITS, seconds=1))
    with pytest.raises(Unreadable) as heavy:
        await read("heavy.txt", b"word. " * 2_000_000, replace(LIMITS, memory=60_000_000))
    assert (slow.value.fault, heavy.value.fault) == ("too_slow", "too_heavy")


async def test_a_bomb_in_a_page_stays_within_the_memory_of_the_reading_process() -> None:
    with pytest.raises(Unreadable) as refused:
        await read("bomb.pdf", files.pdf_bomb(), LIMITS)
    assert refused.value.fault in ("broken", "too_heavy", "no_text")


async def test_no_process_is_left_when_the_reader_is_no_longer_waited_for() -> None:
    reading = asyncio.create_task(read("slow.pdf", files.pdf(["x"] * 2_900), LIMITS))
    await until(children)
    reading.cancel()
    with pytest.raises(asyncio.CancelledError):
        await reading
    assert not children()


def children() -> set[int]:
    """The reading processes that this one has running."""
    running = (child for child in psutil.Process().children() if child.status() != psutil.STATUS_ZOMBIE)
    return {child.pid for child in running if "bot.documents.parsing" in child.cmdline()}


async def test_pages_that_ask_for_files_and_addresses_get_nothing() -> None:
    asking = f"""<!DOCTYPE html [<!ENTITY x SYSTEM "{files.SECRET}">]>
      <html><head><link rel="stylesheet" href="{files.SECRET}"></head>
      <body><p>Before &x; after</p><iframe src="{files.SECRET}"></iframe><img src="{files.SECRET}"></body></html>"""
    said = " ".join(await texts("asks.html", asking.encode()))
    assert "Before" in said
    assert "root:" not in said
    inside = files.epub([f'<p>A chapter</p><object data="{files.SECRET}">x</object>'])
    assert await texts("asks.epub", inside) == ["A chapter"]


@pytest.mark.parametrize(
    "act",
    [
        "open(folder + '/written', 'w')",
        "__import__('os').open(folder + '/written', 65)",
        "__import__('socket').create_connection(('127.0.0.1', 9))",
        "__import__('socket').getaddrinfo('localhost', 9)",
        "__import__('subprocess').run(['touch', folder + '/written'])",
        "__import__('os').system('touch ' + folder + '/written')",
    ],
)
async def test_the_reading_process_can_neither_write_nor_call_nor_start_anything(act: str, tmp_path: Path) -> None:
    program = f"import sys; from bot.documents import parsing; folder = sys.argv[1]; sys.addaudithook(parsing._forbid); {act}"
    tried = await asyncio.create_subprocess_exec(
        *(sys.executable, "-I", "-B", "-c", program, str(tmp_path)), stderr=asyncio.subprocess.PIPE
    )
    _, said = await tried.communicate()
    assert said.decode().splitlines()[-1].startswith("PermissionError: ")
    assert os.listdir(tmp_path) == []


async def test_deep_nesting_costs_nothing() -> None:
    assert await texts("deep.html", b"<p>top</p>" + b"<div>" * 50_000 + b"<p>deep</p>") in (["top"], ["top", "deep"])
    assert "deep" in " ".join(await texts("deep.md", b"> " * 5_000 + b"deep"))


async def test_a_pdf_has_pages_and_the_headings_of_its_contents() -> None:
    progress: list[tuple[int, int]] = []
    made = files.pdf(["Welcome aboard.", "Thirty days a year.", "Nobody knows."], [("Start", 1), ("Holidays", 2)])
    contents = await read("handbook.pdf", made, LIMITS, lambda done, of: progress.append((done, of)))
    assert contents == Contents(
        (
            Block("Start", 1, level=1),
            Block("Welcome aboard.", 1),
            Block("Holidays", 2, level=1),
            Block("Thirty days a year.", 2),
            Block("Nobody knows.", 3),
        ),
        3,
    )
    assert progress == [(1, 3), (2, 3), (3, 3)]


async def test_word_has_headings_by_style_and_tables_by_row() -> None:
    cell = "<w:tc>{}</w:tc>"
    table = f"<w:tbl><w:tr>{cell.format(files.said('Tea'))}{cell.format(files.said('3 &#8364;'))}</w:tr></w:tbl>"
    contents = await read("menu.docx", files.docx(files.said("Menu", "Ueberschrift1") + files.said("All day.") + table), LIMITS)
    assert contents.blocks == (Block("Menu", level=1), Block("All day."), Block("Tea | 3 €", row=True))


async def test_slides_are_pages_in_their_order() -> None:
    contents = await read("talk.pptx", files.pptx([(f"Title {n}", f"Text {n}") for n in range(1, 12)]), LIMITS)
    assert contents.pages == 11
    assert contents.blocks[-2:] == (Block("Title 11", 11, level=1), Block("Text 11", 11))


async def test_sheets_are_tables_under_their_names() -> None:
    assert await texts("prices.xlsx", files.xlsx([["Item", "Price"], ["Tea", 3.5], [None, None]])) == [
        "Prices",
        "Item | Price",
        "Tea | 3.5",
    ]
    assert (await texts("corner.xlsx", files.sheet_bomb()))[-1].endswith("corner")


async def test_what_is_text_already() -> None:
    assert await texts("a.txt", "Grüße\r\n\r\nzweiter Absatz".encode("cp1252")) == ["Grüße", "zweiter Absatz"]
    assert await texts("a.txt", "Καλημέρα".encode("utf-16")) == ["Καλημέρα"]
    assert await texts("a.csv", b"Item;Price\nTea;3,50\n") == ["Item | Price", "Tea | 3,50"]
    written = "# Start\n\nHello\nworld\n\n```\n# no heading\n```\n\n| a | b |\n|---|---|\n| 1 | 2 |\n"
    contents = await read("a.md", written.encode(), LIMITS)
    assert contents.blocks == (
        Block("Start", level=1),
        Block("Hello\nworld"),
        Block("```\n# no heading\n```"),
        Block("| a | b |\n|---|---|\n| 1 | 2 |", row=True),
    )


async def test_html_is_headings_paragraphs_and_tables() -> None:
    written = "<h2>Menu</h2><p>All <b>day</b> long.</p><ul><li>Tea<li>Coffee</ul><table><tr><th>Item<td>Price</table><script>no()</script>"
    contents = await read("a.html", written.encode(), LIMITS)
    assert contents.blocks == (
        Block("Menu", level=2),
        Block("All day long."),
        Block("Tea"),
        Block("Coffee"),
        Block("Item | Price", row=True),
    )


async def test_a_book_has_its_chapters_in_its_order() -> None:
    assert await texts("a.epub", files.epub(["<h1>One</h1><p>First.</p>", "<h1>Two</h1><p>Second.</p>"])) == [
        "One",
        "First.",
        "Two",
        "Second.",
    ]


async def test_mail_has_its_head_its_words_and_the_names_of_its_attachments() -> None:
    written = (
        "Subject: Lunch\nFrom: Ada <a@b.org>\nTo: Ben <b@b.org>\nMIME-Version: 1.0\nContent-Type: multipart/mixed; boundary=X\n\n"
        "--X\nContent-Type: text/html; charset=utf-8\n\n<p>At <i>noon</i>?</p>\n"
        "--X\nContent-Type: application/pdf\nContent-Disposition: attachment; filename=menu.pdf\n\nxx\n--X--\n"
    )
    assert await texts("a.eml", written.encode()) == [
        "Lunch",
        "From: Ada <a@b.org>\nTo: Ben <b@b.org>",
        "At noon?",
        "Attachment: menu.pdf",
    ]
