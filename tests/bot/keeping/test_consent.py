"""A plain yes or no, and nothing read into what is neither."""

from __future__ import annotations

import pytest

from bot.keeping.consent import yes_or_no


@pytest.mark.parametrize(
    "text",
    [
        "Yes", "yes!", "sure", "YES please", "Ja, gerne!", "ja bitte", "Oui", "sí", "Sim", "ja graag", "Evet", "Tak", "Да", "так", "نعم",
        "好的", "はい", "네", "हाँ", "ok 👍",
    ],
)  # fmt: skip
def test_yes(text: str) -> None:
    assert yes_or_no(text) is True


@pytest.mark.parametrize(
    "text",
    [
        "No",
        "no, thanks",
        "Nein danke!",
        "non merci",
        "No gracias",
        "não",
        "nee",
        "Hayır",
        "nie",
        "Нет, спасибо",
        "لا",
        "不用了",
        "いいえ",
        "아니요",
    ],
)
def test_no(text: str) -> None:
    assert yes_or_no(text) is False


@pytest.mark.parametrize(
    "text",
    [
        "",
        "?",
        "Yes but only on weekends and never about work",
        "no idea what you mean, sorry",
        "yes no",
        "I had a good day",
        "not sure",
        "yesterday",
    ],
)
def test_neither(text: str) -> None:
    assert yes_or_no(text) is None
