"""Fixtures of the engine's tests."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest

from bot.embedded import Servers
from tests.bot.engine.outage import Outage
from tests.bot.engine.world import World, world
from tests.conftest import Urls


@pytest.fixture
async def engine(urls: Urls) -> AsyncIterator[World]:
    """A fresh database with a queue on it."""
    async with world(urls.bot, urls.owner) as made:
        yield made


@pytest.fixture
def outage(cluster: Servers, urls: Urls) -> Outage:
    """What takes the test's database away from the bot."""
    return Outage.of(cluster, urls)
