"""Long answers come in pages that any platform holds; buttons turn them for the asker alone."""

from adapters.base import Answer, Button, PlaceOf
from bot.commands.paging import PAGE, paged, pages, spelled
from tests.bot.commands.conftest import Opener
from tests.servers.model import call, reply


def test_pages_hold_what_was_given_and_repeat_a_heading() -> None:
    lines = ["Facts", *(f"  w{number} " + "x" * 90 for number in range(60)), "Totals"]
    made = pages(lines)
    assert len(made) > 2
    assert all(sum(len(line) + 1 for line in page) <= PAGE + 230 for page in made)
    assert [line for page in made for line in page if not line.endswith(" …")] == lines
    assert made[1][0] == "Facts …"


def test_a_page_is_asked_for_at_the_end() -> None:
    assert paged("") == ("", 1)
    assert paged("page 3") == ("", 3)
    assert paged("two words page 2") == ("two words", 2)
    assert paged("w3") == ("w3", 1)
    assert paged("page") == ("page", 1)


def test_without_buttons_the_lines_are_spelled_out() -> None:
    said = spelled(
        Answer("Text.", (Button("More", "/memory view page 2"), Button("Correct", "/memory correct w3", ask="new text")))
    )
    assert said.text == "Text.\nMore: /memory view page 2\nCorrect: /memory correct w3 NEW TEXT"


async def test_a_long_memory_turns_page_by_page_for_its_person(desk: Opener) -> None:
    steps = [
        reply(
            "Noted.", *(call("archival_storage_insert", content=f"Fact {turn}-{number}: " + "word " * 45) for number in range(4))
        )
        for turn in range(4)
    ]
    async with desk(*steps) as one:
        one.talk.place = PlaceOf("discord", "", "", "dm", "direct")
        for _ in steps:
            await one.talk.hear("Keep this fact.")
        first = await one.press("/memory view")
        assert len(first.text) < 2000
        assert "Page 1 of 2." in first.text or "Page 1 of 3." in first.text
        more = await one.follow(first, "More")
        assert "Archival storage" in more.text
        assert "Page 2 of" in more.text
        assert (await one.follow(more, "Back")).text == first.text
        stolen = await one.press("/memory view page 2", made_for="discord::somebody")
        assert stolen.text == "This button was made for somebody else."
