"""Citations in a reply: which there are, and the reply without those that were never fetched."""

from __future__ import annotations

import pytest

from bot.words.citations import cited, without

NAMES = ("handbook.pdf", "my notes 2026.md")
ENDINGS = (".pdf", ".md", ".docx")


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("Thirty days (handbook.pdf, p. 12).", {("handbook.pdf", 12)}),
        ("Laut **Handbook.pdf**, S. 3, sind es 30.", {("handbook.pdf", 3)}),
        ("See “handbook.pdf”, page 4 and my notes 2026.md p. 2", {("handbook.pdf", 4), ("my notes 2026.md", 2)}),
        ("[handbook.pdf (p. 9)]", {("handbook.pdf", 9)}),
        ("As (manual.docx, p. 1) says", {("manual.docx", 1)}),
        ("I read handbook.pdf, which has 12 pages.", set()),
        ("Turn to p. 12.", set()),
    ],
)
def test_finds_what_is_cited(text: str, found: set[tuple[str, int]]) -> None:
    assert cited(text, NAMES, ENDINGS) == found


@pytest.mark.parametrize(
    ("text", "left"),
    [
        ("Thirty days (handbook.pdf, p. 99).", "Thirty days."),
        ("Thirty days (handbook.pdf, p. 12; handbook.pdf, p. 99).", "Thirty days (handbook.pdf, p. 12)."),
        ("Thirty days (handbook.pdf, p. 99; handbook.pdf, p. 12).", "Thirty days (handbook.pdf, p. 12)."),
        ("Thirty days [handbook.pdf, p. 99, handbook.pdf, p. 98].", "Thirty days."),
        ("It is thirty, handbook.pdf, p. 99", "It is thirty,"),
        ("No source here (p. 99).", "No source here (p. 99)."),
    ],
)
def test_takes_out_what_was_never_fetched(text: str, left: str) -> None:
    assert without(text, {("handbook.pdf", 99), ("handbook.pdf", 98)}, NAMES, ENDINGS) == left
