"""Forgetting a message that a summary covers: the summary is made anew, from the last one without it and what recall storage still has."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path

from adapters.base import Incoming
from bot.commands.context import Parts
from bot.health import Health
from memory.db import Database
from tests.bot.commands.conftest import KEY, Desk
from tests.bot.commands.test_forgetting import everywhere
from tests.bot.dialogue import SETTINGS, dialogue, seen
from tests.conftest import Urls
from tests.servers.model import Request, Status, Step, reply

SMALL = replace(SETTINGS, budget=5_200, reply_reserve=500)
FILLER = "The tide came in and went out, and the boats rose and sank with it. " * 12


class Model:
    """Answers, and sums up by repeating the words that it was given in capitals."""

    def __init__(self) -> None:
        self.summaries: list[str] = []
        self.away = False

    def __call__(self, request: Request) -> Step:
        if request.functions:
            return reply("I see.")
        if self.away:
            return Status(503, "away")
        text = seen(request)
        self.summaries.append(text)
        words = [word for word in ("SWIMMING", "COLUMBO", "CHESS", "PIANO") if word in text]
        return reply("They spoke of " + ", ".join(words) + ".")


@asynccontextmanager
async def talking(db: Database, model: Model, folder: Path) -> AsyncIterator[Desk]:
    """A dialogue with a small window, and the commands beside it."""
    async with dialogue(db, policy=model, settings=SMALL) as talk:

        async def accept(_: Incoming) -> bool:
            raise NotImplementedError

        async def replay(_: int | None) -> int:
            raise NotImplementedError

        yield Desk(talk, Parts(db, talk.cache, accept, talk.meaning.of, replay, Health(), folder, KEY, now=lambda: talk.at))


async def test_the_next_turn_makes_it_anew_from_recall_storage(db: Database, urls: Urls, tmp_path: Path) -> None:
    model = Model()
    async with talking(db, model, tmp_path) as one:
        talk = one.talk
        for word in ("SWIMMING", "COLUMBO", "CHESS"):
            await talk.hear(f"Let us speak of {word}. {FILLER}")
        while not (await talk.rows("SELECT 1 FROM conversations WHERE summary LIKE '%%CHESS%%'")):
            await talk.hear(FILLER)
        made = len(model.summaries)
        [message] = await talk.rows("SELECT id FROM messages WHERE content LIKE '%%COLUMBO%%' AND role = 'user'")
        await one.type(f"/memory forget m{message['id']}")
        assert await everywhere(urls.owner, "COLUMBO") == [], "the summary is gone at once, with every earlier one that had it"
        await talk.hear("And now?")
        assert len(model.summaries) == made + 1
        assert "COLUMBO" not in model.summaries[-1]
        [row] = await talk.rows("SELECT summary, pending_from FROM conversations")
        assert "CHESS" in str(row["summary"])
        assert "COLUMBO" not in str(row["summary"])
        assert row["pending_from"] is None
        assert "CHESS" in seen(talk.model.requests[-1])
        await talk.hear("Still?")
        assert len(model.summaries) == made + 1, "once"


async def test_an_earlier_summary_without_it_is_the_base(db: Database, tmp_path: Path) -> None:
    model = Model()
    async with talking(db, model, tmp_path) as one:
        talk = one.talk
        await talk.hear(f"Let us speak of SWIMMING. {FILLER}")
        while not (await talk.rows("SELECT 1 FROM conversations WHERE summary LIKE '%%SWIMMING%%'")):
            await talk.hear(FILLER)
        await talk.hear(f"Let us speak of COLUMBO. {FILLER}")
        await talk.hear(f"Let us speak of PIANO. {FILLER}")
        while not (await talk.rows("SELECT 1 FROM conversations WHERE summary LIKE '%%PIANO%%'")):
            await talk.hear(FILLER)
        [message] = await talk.rows("SELECT id FROM messages WHERE content LIKE '%%COLUMBO%%' AND role = 'user'")
        await one.type(f"/memory forget m{message['id']}")
        [row] = await talk.rows("SELECT summary FROM conversations")
        assert "SWIMMING" in str(row["summary"])
        assert "COLUMBO" not in str(row["summary"])
        await talk.hear("And now?")
        assert "They spoke of SWIMMING" in model.summaries[-1], "the old one is handed on"
        assert "Let us speak of SWIMMING" not in model.summaries[-1], "what it covers is not read again"
        [row] = await talk.rows("SELECT summary FROM conversations")
        assert row["summary"] == "They spoke of SWIMMING, PIANO."


async def test_a_summary_model_that_is_away_leaves_it_for_later(db: Database, urls: Urls, tmp_path: Path) -> None:
    model = Model()
    async with talking(db, model, tmp_path) as one:
        talk = one.talk
        for word in ("SWIMMING", "COLUMBO"):
            await talk.hear(f"Let us speak of {word}. {FILLER}")
        while not (await talk.rows("SELECT 1 FROM conversations WHERE summary LIKE '%%COLUMBO%%'")):
            await talk.hear(FILLER)
        [message] = await talk.rows("SELECT id FROM messages WHERE content LIKE '%%COLUMBO%%' AND role = 'user'")
        await one.type(f"/memory forget m{message['id']}")
        model.away = True
        await talk.hear("And now?")
        assert "Not summarised yet" in seen(talk.model.requests[-1])
        assert await everywhere(urls.owner, "COLUMBO") == []
        model.away = False
        for _ in range(8):
            await talk.hear(FILLER)
        [row] = await talk.rows("SELECT summary, summary_tail FROM conversations")
        assert "SWIMMING" in str(row["summary"])
        assert row["summary_tail"] == ""


async def test_a_message_of_a_conversation_that_was_ended_goes_from_its_summaries_too(
    db: Database, urls: Urls, tmp_path: Path
) -> None:
    model = Model()
    async with talking(db, model, tmp_path) as one:
        talk = one.talk

        async def speak_of(word: str) -> None:
            await talk.hear(f"Let us speak of {word}. {FILLER}")
            while not (await talk.rows(f"SELECT 1 FROM conversations WHERE summary LIKE '%%{word}%%'")):
                await talk.hear(FILLER)

        await speak_of("COLUMBO")
        await one.type("/fresh")
        await speak_of("CHESS")
        [message] = await talk.rows("SELECT id FROM messages WHERE content LIKE '%%COLUMBO%%' AND role = 'user'")
        await one.type(f"/memory forget m{message['id']}")
        assert await everywhere(urls.owner, "COLUMBO") == []
        [row] = await talk.rows("SELECT summary FROM conversations")
        assert "CHESS" in str(row["summary"]), "what was said since has nothing to do with it"
        assert await talk.rows("SELECT 1 FROM memory_log_content WHERE after LIKE '%%CHESS%%'")


async def test_a_day_with_two_conversations_goes_from_the_summaries_of_both(db: Database, urls: Urls, tmp_path: Path) -> None:
    model = Model()
    async with talking(db, model, tmp_path) as one:
        talk = one.talk
        for words in ("the parrot COLUMBO", "COLUMBO again"):
            await one.type("/fresh")
            await talk.hear(f"Let us speak of {words}. {FILLER}")
            while not (await talk.rows("SELECT 1 FROM conversations WHERE summary LIKE '%%COLUMBO%%'")):
                await talk.hear(FILLER)
        await one.follow(await one.press("/memory forget from 2026-11-30 to 2026-11-30"), "Forget")
        assert await everywhere(urls.owner, "COLUMBO") == []
