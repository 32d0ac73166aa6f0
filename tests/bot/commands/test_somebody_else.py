"""Every command with somebody else's numbers, names and codes: nothing is shown, nothing is changed."""

import random

from adapters.base import Person, PlaceOf
from bot.commands import COMMANDS
from tests.bot.commands.conftest import Opener
from tests.servers.model import call, reply

SECRETS = reply(
    "Noted.",
    call("working_context_append", section="profile", content="Has a dog called Biscuit."),
    call("archival_storage_insert", content="Biscuit likes the park."),
    call("set_timer", purpose="feed Biscuit", in_minutes=600, asked="Remind me to feed him"),
)
DONE = reply("Noted.")
KEPT = (
    "agents",
    "messages",
    "working_context",
    "passages",
    "timers",
    "memory_log",
    "memory_log_content",
    "sources",
    "outbox",
    "events",
)


async def test_no_line_of_somebody_else_reaches_a_memory(desk: Opener) -> None:
    """Two hundred seeded lines: each command, with numbers that are Ada's, from Bob's direct message, their common channel and its admin."""
    async with desk(SECRETS, DONE, DONE, DONE, operators=("console::boss",), admins={"x": ("bob",)}) as one:
        lounge = one.talk.elsewhere("lounge", "public")
        await one.talk.hear("My dog is called Biscuit. Remind me to feed him in ten hours.")
        await lounge.hear("Good morning.")
        person = Person("console", "", "bob", "Bob", roles=("captain",))
        bob = one.talk.elsewhere("bob", "direct", workspace="", person=person)
        bob.place = PlaceOf("console", "", "", "bob", "direct")
        there = one.talk.elsewhere("lounge", "public", person=person)
        await bob.hear("Hello.")
        await there.hear("Hello.")
        assert await one.talk.rows("SELECT purpose FROM timers") == [{"purpose": "feed Biscuit"}]
        before = {table: await one.talk.rows(f"SELECT * FROM {table} ORDER BY 1, 2") for table in KEPT}
        numbers = [f"{letter}{number}" for letter in "mwat" for number in range(1, 9)]
        tails = [
            "",
            "yes",
            "@ada",
            "console::ada",
            "<@ada>",
            "everything",
            "here",
            "#lounge",
            "#ada",
            "search Biscuit",
            "Biscuit",
            "page 2",
            "all",
            "from 2026-01-01 to 2027-01-01",
            "console::ada yes",
            "@ada yes",
            "1",
            "2",
            "3",
        ]
        rng = random.Random(6)
        for _ in range(200):
            command = rng.choice([each for each in COMMANDS if each.name not in ("/stop", "/retry")])
            words = rng.choice([rng.choice(tails), rng.choice(numbers), f"{rng.choice(numbers)} a new text"])
            talk = rng.choice((bob, there))
            said = await one.press(f"{command.name} {words}".strip(), talk)
            assert "Biscuit" not in said.text.replace(words, ""), (command.name, words)
            for button in said.buttons:
                pressed = await one.press(button.line, talk, made_for=one.talk.person.author_id)
                assert pressed.text == "This button was made for somebody else."
        assert {table: await one.talk.rows(f"SELECT * FROM {table} ORDER BY 1, 2") for table in KEPT} == before
