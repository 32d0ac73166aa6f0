"""Seeded random lives, after each of which one random thing is forgotten: nothing of it stands where it must not. `--lives 200` runs more."""

from __future__ import annotations

import random
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import replace
from datetime import timedelta
from pathlib import Path

import pytest
from redis.asyncio import Redis

from adapters.base import Incoming
from bot.commands.context import Parts
from bot.embedded import Servers
from bot.health import Health
from bot.keeping import erasures
from memory import erasure, retention
from memory.cache import Cache
from memory.db import Database, value
from tests.bot.commands.conftest import KEY, Desk
from tests.bot.dialogue import SETTINGS, dialogue
from tests.conftest import Urls
from tests.memory.lives import PEOPLE, Life, Model, plain

SMALL = replace(SETTINGS, budget=4_200, reply_reserve=400)
SAMPLE = (0, 1, 3, 4, 5, 6, 7, 45, 62, 102, 135, 165, 172)
"""A life for each way of forgetting, and some that once found something left."""
Forgotten = tuple[set[str], set[str]]
"""Tokens that must stand nowhere, and tables where they may all the same (the history of an edit)."""


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    if "seed" in metafunc.fixturenames:
        lives = metafunc.config.getoption("--lives")
        metafunc.parametrize("seed", range(lives) if lives else SAMPLE)


@asynccontextmanager
async def begun(db: Database, urls: Urls, cluster: Servers, folder: Path, seed: int) -> AsyncIterator[Life]:
    chance, cache = random.Random(seed), Cache(cluster.redis_url)
    async with dialogue(db, policy=Model(chance), settings=SMALL) as talk, Redis.from_url(cluster.redis_url) as redis:
        await redis.flushall()
        talk.cache = cache

        async def accept(_: Incoming) -> bool:
            raise NotImplementedError

        async def replay(_: int | None) -> int:
            raise NotImplementedError

        desk = Desk(talk, Parts(db, cache, accept, talk.meaning.of, replay, Health(), folder, KEY, now=lambda: talk.at))
        try:
            yield Life(desk, urls, chance)
        finally:
            await redis.flushall()
            await cache.close()


async def by_number(life: Life) -> Forgotten:
    said = life.chance.choice(life.said)
    assert "Forgotten" in await life.desk.type(f"/memory forget m{said.id}", life.talk(said.user, "direct"))
    return {said.token}, set()


async def by_deletion(life: Life) -> Forgotten:
    said = life.chance.choice(life.said)
    await life.change(said, None)
    return {said.token}, set()


async def by_edit(life: Life) -> Forgotten:
    old = await life.edit()
    assert old is not None
    return {old}, {"memory_log_content"}


async def by_place(life: Life) -> Forgotten:
    said = life.chance.choice([each for each in life.said if each.place not in ("direct", "other")])
    talk = life.talk(said.user, said.place)
    shown = await life.desk.press("/memory forget here", talk)
    await life.desk.follow(shown, "Forget", talk=talk)
    return {each.token for each in life.said if (each.user, each.place) == (said.user, said.place)}, set()


async def by_period(life: Life) -> Forgotten:
    said = life.chance.choice(life.said)
    talk = life.talk(said.user, "direct")
    shown = await life.desk.press("/memory forget from 2026-11-01 to 2027-01-31", talk)
    await life.desk.follow(shown, "Forget", talk=talk)
    return {each.token for each in life.said if each.user == said.user}, set()


async def by_person(life: Life) -> Forgotten:
    said = life.chance.choice(life.said)
    talk, exports = life.talk(said.user, "direct"), life.desk.parts.data / "exports"
    async with talk.db.bare() as connection:
        agent = await value(connection, "SELECT known_agent('console', '', %s)", (said.user,))
    found = await erasures.erase(talk.db, talk.cache, life.desk.parts.data, agent, actor="person", key=KEY, now=talk.at)
    assert found.complete, found
    tokens = {each.token for each in life.said if each.user == said.user}
    named = {str(path) for path in exports.glob("*") if any(token in path.read_text("utf-8") for token in tokens)}
    assert named <= set(found.files), "files of other people are named, the own ones are gone"
    assert not list(exports.glob(f"{said.user}-*"))
    return tokens, set()


async def by_pause(life: Life) -> Forgotten:
    user = life.chance.choice(life.said).user
    return {each.token for each in await life.pause(user)}, set()


async def by_retention(life: Life) -> Forgotten:
    talk = life.desk.talk
    talk.clock[0] += timedelta(days=100)
    days = timedelta(days=50)
    kinds: tuple[retention.Kind, ...] = (
        "messages",
        "quotes",
        "quotes_derived",
        "quotes_stored",
        "archival",
        "timers",
        "deliveries",
        "log",
    )
    await retention.apply(talk.db, talk.cache, dict.fromkeys(kinds, days), talk.at)
    # Entries of the working context have no time of their own, and a timer that is set waits for its hour.
    return {each.token for each in life.said}, {"working_context", "timers"}


async def by_absent_author(life: Life) -> Forgotten:
    """Somebody who only ever stood beside: their words came as quotes."""
    from adapters.base import Quote

    token = life.token()
    life.texts.setdefault("pier", []).append(Quote("console::zoe", "Zoe", f"I once had {token} for lunch.", "context", "pier/z1"))
    for user in (*PEOPLE, *PEOPLE):
        await life.say(user, "pier", kept=False)
    talk = life.desk.talk
    found = await erasure.erase_author(
        talk.db, talk.cache, "console::zoe", actor="person", key=KEY, now=talk.at, exports=life.desk.parts.data / "exports"
    )
    assert found.complete, found
    return {token}, set()


WAYS: tuple[Callable[[Life], Awaitable[Forgotten]], ...] = (
    by_number,
    by_deletion,
    by_edit,
    by_place,
    by_period,
    by_person,
    by_pause,
    by_retention,
    by_absent_author,
    by_number,
)


async def test_nothing_of_what_was_forgotten_stands_anywhere(
    db: Database, urls: Urls, cluster: Servers, tmp_path: Path, seed: int
) -> None:
    async with begun(db, urls, cluster, tmp_path, seed) as life:
        for user in PEOPLE:
            await life.say(user, "pier")
        await life.live(24)
        gone, may = await WAYS[seed % len(WAYS)](life)
        left = {table: tokens for table, tokens in (await life.standing(gone)).items() if table not in may}
        assert plain(left) == {}
        if "working_context" not in may:  # what was not forgotten is still there
            kept = {each.token for each in life.said} - gone
            assert kept <= (await life.standing(kept)).get("messages", set())
