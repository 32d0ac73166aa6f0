"""What the model may call in a turn: what can be of use in it."""

from __future__ import annotations

import pytest

from memory.db import Database
from tests.bot.dialogue import dialogue
from tests.servers.model import reply


@pytest.mark.parametrize(
    ("said", "offered"),
    [
        ("Please forget what I said about my horse.", True),
        ("Don’t tell anyone, and delete it.", True),
        ("Vergiss bitte, was ich über mein Pferd gesagt habe.", True),
        ("I'll never forget that day.", False),
        ("Don’t forget your umbrella!", False),
        ("Vergiss bitte nicht, dass ich komme.", False),
        ("Das werde ich nie vergessen.", False),
        ("My horse is called Zephyrine.", False),
    ],
)
async def test_forget_is_offered_to_who_wants_something_forgotten(db: Database, said: str, offered: bool) -> None:
    """Each turn that offers one function more has the endpoint read the whole prompt again."""
    async with dialogue(db, reply("Well.")) as d:
        await d.hear(said)
        assert ("forget" in d.model.requests[0].functions) is offered
