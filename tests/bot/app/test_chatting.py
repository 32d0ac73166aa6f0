"""What the terminal chat takes from the machine."""

from __future__ import annotations

import pytest

from bot.app.chatting import locale_of


@pytest.mark.parametrize(
    ("environment", "locale"),
    [
        ({"LANG": "de_DE.UTF-8"}, "de-DE"),
        ({"LANG": "de_DE.UTF-8", "LC_MESSAGES": "pt_BR.UTF-8"}, "pt-BR"),
        ({"LANG": "de_DE.UTF-8", "LC_ALL": "C.UTF-8"}, None),
        ({"LANG": "fr", "LC_ALL": ""}, "fr"),
        ({}, None),
    ],
)
def test_a_terminal_speaks_the_language_of_its_environment(environment: dict[str, str], locale: str | None) -> None:
    assert locale_of(environment) == locale
