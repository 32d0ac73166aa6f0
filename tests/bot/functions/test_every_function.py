"""What holds for storing holds for every function of the registry and for everything that it takes, tags, purposes and reasons included."""

from __future__ import annotations

from collections.abc import Mapping

import pytest

from bot.functions import BY_NAME
from memory.db import Database
from tests.bot.commands.test_forgetting import everywhere
from tests.bot.commands.test_pausing import pause
from tests.bot.dialogue import Dialogue, dialogue
from tests.bot.functions.test_requests import ASKING
from tests.conftest import Urls
from tests.servers.model import Step, call, reply

SAID = {"messages", "outbox"}
"""Where what was said stands, and the call as the model made it."""
PARROT = "The parrot is called Columbo."
CARD = "The card is 4111 1111 1111 1111."
EPILEPSY = "Has epilepsy."


def with_words(text: str) -> Mapping[str, Mapping[str, object]]:
    """Arguments of every function, with these words in whatever takes some."""
    return {
        "send_message": {"text": text},
        "stay_silent": {},
        "archival_storage_read": {"document": text, "page": 1},
        "forget": {"query": text},
        "recall_storage_search": {"query": text},
        "archival_storage_search": {"query": text, "tags": [text]},
        "list_timers": {},
        "working_context_append": {"section": "profile", "content": text},
        "working_context_replace": {"old": "tea", "new": text},
        "working_context_remove": {"content": "tea"},
        "archival_storage_insert": {"content": "Likes tea.", "tags": [text]},
        "set_timer": {"purpose": text, "asked": "Remind me of it in five minutes", "in_minutes": 5},
        "cancel_timer": {"timer": 1},
        "set_time_zone": {"zone": "Europe/Berlin"},
        "set_speaking_leave": {"allowed": False},
        "answer_memory_request": {"request": 1, "agreed": True},
    }


def tried(function: str, text: str) -> Step:
    """The call of a function with these words in whatever it takes; every one takes a reason."""
    return reply("I see.", call(function, **with_words(text)[function], reason=text))


async def hear(d: Dialogue, text: str) -> None:
    """The person says it, and wants to be reminded of it."""
    await d.hear(f"{text} Remind me of it in five minutes.")


STORE = reply("ok", call("working_context_append", section="preferences", content="Likes tea."))


@pytest.mark.parametrize("function", sorted(BY_NAME))
async def test_nothing_said_in_a_pause_is_kept(db: Database, urls: Urls, function: str) -> None:
    async with dialogue(db, STORE, tried(function, PARROT), policy=lambda _: reply("Good.")) as d:
        await d.hear("I like tea")
        await pause(d, True)
        await hear(d, PARROT)
        assert set(await everywhere(urls.owner, "Columbo")) <= SAID, "for the running conversation alone"
        assert await d.rows("SELECT zone_guess FROM speaking WHERE zone_guess IS NOT NULL") == []
        await pause(d, False)
        assert await d.rows("SELECT 1 FROM messages WHERE strpos(content || coalesce(calls::text, ''), 'Columbo') > 0") == []


@pytest.mark.parametrize("function", sorted(BY_NAME))
@pytest.mark.parametrize(("text", "word"), [(CARD, "4111"), (EPILEPSY, "epilepsy")], ids=["secret", "sensitive"])
async def test_no_secret_is_kept_and_nothing_sensitive_without_a_yes(
    db: Database, urls: Urls, function: str, text: str, word: str
) -> None:
    async with dialogue(db, STORE, tried(function, text), policy=lambda _: reply("Good."), settings=ASKING) as d:
        await d.hear("I like tea")
        await hear(d, text)
        waiting = {"memory_requests"} if text == EPILEPSY else set()
        assert set(await everywhere(urls.owner, word)) <= SAID | waiting
