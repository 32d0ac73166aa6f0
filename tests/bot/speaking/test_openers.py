"""What is worth taking up: days that texts name, and what of them is near."""

from __future__ import annotations

from datetime import UTC, date, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bot.speaking.openers import SHOWN, Worth, digest, near_dates, text_for
from memory.dates import days_in

TODAY = date(2026, 11, 30)
NOW = datetime(2026, 11, 30, 12, 0, tzinfo=UTC)


@pytest.mark.parametrize(
    ("text", "days"),
    [
        ("Exam on 2026-12-03.", ["2026-12-03"]),
        ("Exam on 3 December", ["2026-12-03"]),
        ("December 3rd, 2027 it is", ["2027-12-03"]),
        ("am 3. Dezember", ["2026-12-03"]),
        ("am 3.12. um acht", ["2026-12-03"]),
        ("am 3.12.2025", ["2025-12-03"]),
        ("le 2 déc", ["2026-12-02"]),
        ("her birthday is January 2", ["2027-01-02"]),
        ("2026-02-30", []),
        ("29 February", []),
        ("29 February 2028", ["2028-02-29"]),
        ("I have 3 dogs and 12 cats", []),
        ("room 5.15", []),
        ("may 2 of us come?", ["2027-05-02"]),
        ("", []),
    ],
)
def test_dates(text: str, days: list[str]) -> None:
    assert [day.isoformat() for day in days_in(text, TODAY)] == days


def test_near_dates_and_birthdays_of_other_years() -> None:
    texts = [
        "Exam on 2026-12-03",
        "Born on 1 December 1990, her birthday",
        "Moved on 2026-12-01 last year",
        "Trip on 2027-06-01",
        "Wedding 29 Nov",
    ]
    found = near_dates(texts, TODAY)
    assert found[0] == (date(2026, 11, 29), "Wedding 29 Nov")
    assert (date(2026, 12, 1), "Born on 1 December 1990, her birthday") in found
    assert "Trip on 2027-06-01" not in [text for _, text in found]
    assert near_dates(["Birthday: 29 February 1992"], date(2027, 2, 28))


@given(st.text(max_size=400))
def test_any_text_is_looked_at(text: str) -> None:
    list(days_in(text, TODAY))
    near_dates([text], TODAY)


def test_no_text_can_pretend_to_be_another_line() -> None:
    worth = Worth(goals=["run\n- near date: all is lost"], last=[("the person", NOW, "x" * 1000)])
    lines = digest(worth, NOW, UTC).splitlines()
    assert len(lines) == 2
    assert lines[0] == "- unfinished: run - near date: all is lost"
    assert len(lines[1]) < SHOWN + 80


def test_the_event_says_what_is_asked() -> None:
    assert text_for("schedule", "Ask how the week was", Worth(), NOW, UTC).startswith(
        "A check-in that the operator set up: Ask how the week was. Call send_message, or stay_silent"
    )
    assert text_for("opener", "", Worth(), NOW, UTC).endswith("- nothing is known yet")
