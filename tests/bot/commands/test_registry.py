"""Which line is a command, and what /help says."""

import pytest

from bot import commands
from bot.commands import COMMANDS, find, help_text
from tests.bot.commands.conftest import Opener


@pytest.mark.parametrize(
    ("line", "name", "rest"),
    [
        ("/help", "/help", ""),
        ("/memory", "/memory view", ""),
        ("/Memory  View", "/memory view", ""),
        ("/memory search two  words", "/memory search", "two  words"),
        ("/memory forget everything yes", "/memory forget", "everything yes"),
        ("/stop now", "/stop", "now"),
        ("/admin memory view @ada page 2", "/admin memory view", "@ada page 2"),
        ("/Admin Who", "/admin who", ""),
        ("/settings quiet 22-8", "/settings", "quiet 22-8"),
    ],
)
def test_names_and_arguments(line: str, name: str, rest: str) -> None:
    command, argument = find(line)
    assert command is not None
    assert (command.name, argument) == (name, rest)


def test_every_command_is_in_the_help_with_its_example() -> None:
    text = help_text("discord")
    for command in COMMANDS:
        assert command.name in text
        assert command.does("") in text
        assert command.example in text
        assert find(command.example)[0] is command
    assert "/quit" in help_text("console")
    assert "/quit" not in text


def test_the_help_fits_a_terminal_and_shows_examples_of_what_is_asked_about() -> None:
    text = help_text("console")
    assert all(command.name in text and command.does("") in text for command in COMMANDS if command.name != "/help")
    assert max(map(len, text.splitlines())) <= 80
    assert "/memory correct w3 Has a cat called Miso." in help_text("console", about="memory")
    assert help_text("console", about="/memory forget").splitlines()[1:] == ["    /memory forget m12"]
    assert help_text("console", about="nothing of the kind") == text
    assert "/admin block" not in help_text("discord", about="block", admins=False)


def test_the_help_is_in_groups_and_hides_what_is_not_for_everybody() -> None:
    everybody, admins = help_text("discord", admins=False), help_text("discord")
    assert everybody.startswith("Your memory\n  /memory view")
    assert "Your reminders\n  /reminders " in everybody
    assert "Our conversation\n  /stop" in everybody
    assert "/admin who" in everybody
    assert "/admin memory" not in everybody
    assert "For operators and admins\n  /admin memory view" in admins


async def test_what_is_no_command_is_a_message(desk: Opener) -> None:
    async with desk() as one:
        for line in ("hello", "/usr/bin is full", "/o\\", "/", "no /help"):
            assert await commands.run(one.parts, one.talk.person, one.talk.place, line) is None
        assert "There is no command /halp" in await one.type("/halp")
        assert "/memory export" in await one.type("/memory rules")
        assert "command" not in one.parts.health.counts
        await one.type("/help")
        assert one.parts.health.counts["command"] == 1


async def test_asking_makes_no_agent(desk: Opener) -> None:
    async with desk() as one:
        for line in ("/memory view", "/memory search x", "/memory export", "/memory forget m1", "/memory forget everything yes"):
            assert "know nothing about you" in await one.type(line)
        assert await one.type("/stop") == "Nothing is running."
        assert "database: well" in await one.type("/status")
        async with one.parts.db.bare() as connection:
            assert await (await connection.execute("SELECT * FROM people()")).fetchall() == []
