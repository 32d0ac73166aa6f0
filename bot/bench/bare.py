"""The bare program that ours is measured against: it stores what it hears, asks the model, and stores the answer. No memory, no queue.

It has a table of its own in the same PostgreSQL, a pool of as many connections, and asks through the same library.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager
from typing import Any

import openai
from psycopg_pool import AsyncConnectionPool

from bot.bench.bulk import Owner
from bot.model.calls import FunctionSchema
from bot.model.client import ModelClient

_INSERT = "INSERT INTO bench.said (talk, role, content) VALUES (%s, %s, %s)"
Ask = Callable[[Mapping[str, Any]], Awaitable[str]]
"""Makes a model call with a request's body; returns what the model said."""


class Bare:
    """The program. `commits` are the transactions around one model call, half of them before it."""

    def __init__(self, pool: AsyncConnectionPool[Any], ask: Ask, *, commits: int = 2) -> None:
        self._pool, self._ask = pool, ask
        self._commits = commits

    async def turn(self, talk: int, text: str, request: Mapping[str, Any]) -> None:
        """One turn with a ready-made request."""
        for _ in range(self._commits - self._commits // 2):
            await self._store(talk, "user", text)
        answer = await self._ask(request)
        for _ in range(self._commits // 2):
            await self._store(talk, "assistant", answer)

    async def _store(self, talk: int, role: str, content: str) -> None:
        async with self._pool.connection() as connection:
            await connection.execute(_INSERT, (talk, role, content))  # a transaction of its own


@asynccontextmanager
async def by_library(url: str) -> AsyncIterator[Ask]:
    """A streamed model call as the library's documentation shows it."""
    http = openai.DefaultAsyncHttpxClient(trust_env=False)
    async with openai.AsyncOpenAI(base_url=url, api_key="none", max_retries=0, http_client=http) as client:

        async def ask(request: Mapping[str, Any]) -> str:
            answer: list[str] = []
            async for chunk in await client.chat.completions.create(**request):
                answer += [choice.delta.content or "" for choice in chunk.choices]
            return "".join(answer)

        yield ask


def by_ours(client: ModelClient) -> Ask:
    """A model call through the bot's own client, which spares the library its walk through every message."""

    async def ask(request: Mapping[str, Any]) -> str:
        told = (tool["function"] for tool in request["tools"])
        functions = [FunctionSchema(one["name"], one["description"], one["parameters"]) for one in told]
        reply = await client.complete(
            str(request["model"]), request["messages"], functions, max_tokens=int(request["max_tokens"])
        )
        return reply.text or ""

    return ask


@asynccontextmanager
async def bare_pool(owner: Owner, url: str, size: int) -> AsyncIterator[AsyncConnectionPool[Any]]:
    """The program's table and connections."""
    await owner.execute("CREATE SCHEMA IF NOT EXISTS bench")
    await owner.execute(
        """CREATE TABLE IF NOT EXISTS bench.said (id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY, talk bigint NOT NULL,
             role text NOT NULL, content text NOT NULL, created_at timestamptz NOT NULL DEFAULT now())"""
    )
    await owner.execute("GRANT USAGE ON SCHEMA bench TO keepsake_bot")
    await owner.execute("GRANT INSERT ON bench.said TO keepsake_bot")

    async def configure(connection: Any) -> None:
        await connection.set_autocommit(True)

    async with AsyncConnectionPool(url, min_size=2, max_size=size, configure=configure, open=False, timeout=600) as pool:
        await asyncio.wait_for(pool.wait(), 10)
        yield pool
