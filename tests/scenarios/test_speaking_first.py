"""The running bot speaks first: asked for leave, given it, and heard from by itself; and gives the emergency lines by itself."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import psycopg
from psycopg.rows import dict_row

from bot.embedded import Servers
from tests.conftest import Urls
from tests.scenarios.terminal import Terminal, terminal
from tests.servers.model import ScriptedModel, call, reply
from tests.waiting import until

ALWAYS = {
    "KEEPSAKE__OPENERS__ENABLED": "true",
    "KEEPSAKE__OPENERS__ASK": "May I write first?",
    "KEEPSAKE__OPENERS__ASK_AFTER": "1",
    "KEEPSAKE__OPENERS__QUIET_FROM": "00:00",
    "KEEPSAKE__OPENERS__QUIET_TO": "00:00",
    "KEEPSAKE__OPENERS__ACTIVE_MINUTES": "0",
    "KEEPSAKE__ENGINE__DEBOUNCE": "0",
    "TZ": "Europe/Berlin",
}


@asynccontextmanager
async def bot_with(model: ScriptedModel, urls: Urls, cluster: Servers, folder: Path) -> AsyncIterator[tuple[Terminal, Any]]:
    """The terminal, and the owner's view of the database."""
    settings = {
        **ALWAYS,
        "KEEPSAKE__DATABASE__URL": urls.bot,
        "KEEPSAKE__REDIS__URL": cluster.redis_url,
        "KEEPSAKE__MODEL__BASE_URL": model.base_url,
        "KEEPSAKE__MODEL__CHAT": "scripted",
        "KEEPSAKE__MODEL__SIZE": "large",
    }
    async with (
        await psycopg.AsyncConnection.connect(
            urls.owner, autocommit=True, row_factory=dict_row, options="-c search_path=keepsake"
        ) as owner,
        terminal(folder / "data", "ada", **settings) as chat,
    ):
        yield chat, owner


async def test_leave_is_asked_given_and_used(urls: Urls, cluster: Servers, tmp_path: Path) -> None:
    script = [reply("Hi Ada."), reply("Thank you."), reply(None, call("send_message", text="How is your dog?"))]
    async with ScriptedModel(script) as model, bot_with(model, urls, cluster, tmp_path) as (chat, owner):
        await chat.say("Hello, I have a dog")
        await chat.hear_until("May I write first?")
        await chat.say("Yes please")
        await chat.hear_until("Thank you.")

        async def planned() -> bool:
            cursor = await owner.execute(
                "UPDATE timers SET due_at = now(), wall_time = now() AT TIME ZONE zone WHERE kind = 'opener'"
            )
            return bool(cursor.rowcount)

        await until(planned, timeout=20)
        await chat.hear_until("How is your dog?")
        row = await (await owner.execute("SELECT kind, said FROM openers")).fetchone()
        assert row == {"kind": "opener", "said": True}
        await chat.leave()


async def test_the_emergency_lines_do_not_wait_for_the_model(urls: Urls, cluster: Servers, tmp_path: Path) -> None:
    async with ScriptedModel([reply("I am with you.")]) as model, bot_with(model, urls, cluster, tmp_path) as (chat, owner):
        await chat.say("I want to kill myself")
        await chat.hear_until("findahelpline.com")
        await chat.hear_until("I am with you.")
        row = await (await owner.execute("SELECT openers, crisis_at IS NOT NULL AS crisis FROM speaking")).fetchone()
        assert row == {"openers": "unasked", "crisis": True}, "no question after that"
        await chat.leave()
