"""Chunks end where headings, pages and tables do, and are never larger than a search shows."""

from __future__ import annotations

from bot.documents.blocks import Block
from bot.documents.chunks import LARGEST, PAGE, Chunk, chunks, headings


def test_a_chunk_has_one_page_and_the_headings_above_it() -> None:
    blocks = [
        Block("Handbook", 1, level=1),
        Block("Welcome.", 1),
        Block("Leave", 2, level=1),
        Block("Holidays", 2, level=2),
        Block("Thirty days.", 2),
        Block("And Christmas.", 3),
        Block("Money", 3, level=1),
        Block("Monthly.", 3),
    ]
    assert chunks(blocks) == [
        Chunk(1, "Handbook", "Handbook\nWelcome."),
        Chunk(2, "Leave", "Leave"),
        Chunk(2, "Leave › Holidays", "Holidays\nThirty days."),
        Chunk(3, "Leave › Holidays", "And Christmas."),
        Chunk(3, "Money", "Money\nMonthly."),
    ]


def test_paragraphs_are_packed_and_long_ones_cut_at_sentences() -> None:
    sentence = "This sentence has exactly fifty characters in it. "
    made = chunks([Block(sentence * 100), Block("Short one."), Block("Short two.")])
    assert all(len(chunk.text) <= LARGEST for chunk in made)
    assert all(chunk.text.endswith("it.") for chunk in made[:-1])
    assert made[-1].text == "Short one.\nShort two."
    assert "".join(chunk.text for chunk in made).count("fifty") == 100


def test_a_long_table_repeats_its_first_row() -> None:
    rows = [Block("Item | Price", row=True), *(Block(f"Thing {n} with a long name | {n} €", row=True) for n in range(100))]
    made = chunks([*rows, Block("After the table.")])
    assert len(made) > 4
    assert all(chunk.text.startswith("Item | Price\n") for chunk in made[:-1])
    assert made[-1].text == "After the table."


def test_a_format_without_pages_has_some_by_its_length() -> None:
    made = chunks([Block("x" * 500) for _ in range(14)])
    assert [chunk.page for chunk in made] == sorted(chunk.page for chunk in made)
    assert {chunk.page for chunk in made} == set(range(1, 14 * 500 // PAGE + 2))


def test_the_headings_told_of_are_the_highest_that_fit() -> None:
    blocks = [Block("Part", level=1), Block("A", level=2), Block("B", level=2), Block("C", level=3), Block("text")]
    assert headings(blocks, 9) == ["Part", "A", "B", "C"]
    assert headings(blocks, 3) == ["Part", "A", "B"]
    assert headings(blocks, 1) == ["Part"]
    assert headings([Block("text")], 3) == []
