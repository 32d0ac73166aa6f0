"""The README's picture and transcript are what the bot says today."""

from __future__ import annotations

import re

from tests.scenarios import picture

DRAWN = picture.ROOT / "docs" / "pictures" / "chat.svg"


def without_numbers(text: str) -> str:
    """A text without what differs from run to run: dates, times and counts; late in the evening, in three hours is tomorrow."""
    return re.sub(r"\d+ \w{3} \d{4}|\d+|\b(today|tomorrow)\b", "#", text)


async def test_the_readme_shows_what_the_bot_says() -> None:
    pictured, written = await picture.chats()
    drawn, readme = DRAWN.read_text(encoding="utf-8"), picture.README.read_text(encoding="utf-8")
    assert without_numbers(picture.svg(pictured)) == without_numbers(drawn), "make docs draws it again"
    assert without_numbers(picture.with_transcript(readme, written)) == without_numbers(readme), "make docs writes it again"


def test_the_picture_loads_nothing_from_elsewhere() -> None:
    links = set(re.findall(r"https?://[^\s\"<>]+", DRAWN.read_text(encoding="utf-8")))
    assert links <= {"http://www.w3.org/2000/svg", "https://www.textualize.io"}
