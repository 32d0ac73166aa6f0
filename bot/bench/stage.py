"""What the benchmarks stand on: servers of their own in a folder that goes, the bot's real services on them, agents driven by hand.

Nothing here reads the operator's configuration, data folder or environment, so a benchmark can neither reach a paid model nor touch
what the bot remembers.
"""

from __future__ import annotations

import itertools
import re
import tempfile
from collections.abc import AsyncIterator, Iterator, Mapping, Sequence
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from functools import partial
from pathlib import Path
from typing import Any

import psycopg
from psycopg.rows import dict_row
from pydantic_settings import BaseSettings, PydanticBaseSettingsSource

from adapters.base import Incoming, Person, PlaceOf
from bot.app.agents import agent_settings
from bot.app.runtime import engine_settings
from bot.app.services import Services, opened
from bot.bench.model import ModelServer
from bot.config.loading import Config, Loaded
from bot.config.sections import EngineSection
from bot.embedded import Servers, servers
from bot.engine import inbox, turns
from bot.engine.events import Claim
from bot.engine.queue import Queue
from bot.engine.settings import EngineSettings
from bot.keeping.decision import KeepingRules
from bot.prompts import load
from bot.speaking.initiative import Initiative
from bot.turn.agent import Agent
from bot.turn.pressure import Pressure
from bot.turn.state import AgentSettings, RunningTurn
from memory import messages, tokens
from memory.db import Connection
from memory.main_context import MainContext
from memory.migrations import migrate
from memory.queue_manager import drafts_of

PLATFORM = "bench"
CHAT_MODEL = "gpt-4o"
"""Known to the tokenizer, so that the bot counts as it does for a model of today."""
START = datetime(2026, 1, 5, 9, 0, tzinfo=UTC)


@contextmanager
def ground(*, lasting: bool = False) -> Iterator[Servers]:
    """Servers in a folder of their own, migrated. `lasting`: commits reach the disk, as in service; only times need that."""
    with tempfile.TemporaryDirectory(prefix="keepsake-bench-") as folder, servers(Path(folder)) as running:
        migrate(running.owner_url)
        if not lasting:
            with psycopg.connect(running.admin_url, autocommit=True) as admin:
                admin.execute("ALTER SYSTEM SET fsync = off")
                admin.execute("SELECT pg_reload_conf()")
        yield running


class _OwnConfig(Config):
    """The configuration without the environment."""

    @classmethod
    def settings_customise_sources(
        cls,
        settings_cls: type[BaseSettings],  # noqa: ARG003 - the library's signature
        init_settings: PydanticBaseSettingsSource,
        env_settings: PydanticBaseSettingsSource,  # noqa: ARG003
        dotenv_settings: PydanticBaseSettingsSource,  # noqa: ARG003
        file_secret_settings: PydanticBaseSettingsSource,  # noqa: ARG003
    ) -> tuple[PydanticBaseSettingsSource, ...]:
        return (init_settings,)


@asynccontextmanager
async def services_on(running: Servers, model_url: str, **sections: Mapping[str, Any]) -> AsyncIterator[Services]:
    """The bot's services on given servers and model, as the composition root opens them."""
    chosen: dict[str, Any] = {
        "database": {"url": running.bot_url},
        "redis": {"url": running.redis_url},
        "model": {"base_url": model_url, "chat": CHAT_MODEL, "size": "large"},
    }
    chosen |= {name: {**chosen.get(name, {}), **values} for name, values in sections.items()}
    with tempfile.TemporaryDirectory(prefix="keepsake-bench-") as folder:
        loaded = Loaded(_OwnConfig(**chosen), Path(folder), {})
        loaded.data = Path(folder)  # not what KEEPSAKE_DATA names
        async with opened(loaded, lambda _: None) as services:
            yield services


@asynccontextmanager
async def owning(running: Servers) -> AsyncIterator[psycopg.AsyncConnection[dict[str, Any]]]:
    """An administrator's connection to the bot's database: it sees every row and may copy rows in."""
    [database] = re.findall("@/([^?]*)", running.owner_url)
    async with await psycopg.AsyncConnection.connect(
        re.sub("@/[^?]*", f"@/{database}", running.admin_url),
        autocommit=True,
        row_factory=dict_row,
        options="-c search_path=keepsake,procrastinate,public",
    ) as connection:
        yield connection


def settings_of(services: Services) -> AgentSettings:
    """What the composition root gives every agent."""
    # The clock is that of the conversation told, so nobody runs out of patience.
    settings = agent_settings(services.loaded, services.names, small=False)
    return replace(settings, patience=timedelta(days=1), rules=KeepingRules())


class WatchedPressure(Pressure):
    """Notes what the queue manager does."""

    def __init__(self, *arguments: Any, **options: Any) -> None:
        super().__init__(*arguments, **options)
        self.flushes = 0
        self.unwarned = 0

    async def flush(self, turn: RunningTurn, context: MainContext, *, force: bool = False) -> bool:
        """As the product's; counts."""
        warned = turn.state.warned
        done = await super().flush(turn, context, force=force)
        self.flushes += done
        self.unwarned += done and not warned
        return done


class Freely(Initiative):
    """Lets the model speak whenever an event wakes it: what is measured is what it says, not whether it may."""

    async def refused(self, claim: Claim, now: datetime) -> list[int]:  # noqa: ARG002 - as the product's
        """Nothing is."""
        return []

    async def may_send(self, connection: Connection, claim: Claim, now: datetime) -> bool:  # noqa: ARG002
        """Always."""
        return True


async def keep_words(step: turns.Step) -> None:
    """Append what a turn was woken by, for turns that do nothing else: none can be done whose words do not stand in recall storage."""
    claim = step.claim
    said = [draft for event in claim.events for draft in drafts_of(event)]
    visibility = claim.events[0].visibility
    await messages.append(step.connection, claim.conversation, said, visibility=visibility, at=step.now, turn=claim.turn)


_NUMBERS = itertools.count(1)


@dataclass
class Talk:
    """One person's direct message, event by event and turn by turn, with a clock of its own."""

    services: Services
    queue: Queue
    user: str
    name: str = "Ada"
    bot: str = "Mika"
    at: datetime = START
    agent: int = 0
    claimed: Claim | None = None
    pressure: WatchedPressure = field(init=False)
    _agent: Agent = field(init=False)
    _engine: EngineSettings = field(init=False)

    def __post_init__(self) -> None:
        services, settings = self.services, replace(settings_of(self.services), name=self.bot)
        count = partial(tokens.count, encoding=services.encoding)
        texts, persona = load(services.names.chat), services.loaded.persona
        self.pressure = WatchedPressure(
            services.db, services.processor, settings, texts, persona, count=count, clock=lambda: self.at
        )
        self._agent = Agent(
            services.db,
            services.cache,
            services.processor,
            services.meaning,
            settings,
            self.pressure,
            clock=lambda: self.at,
            limits={PLATFORM: 100_000},
            initiative=Freely(services.db),
        )
        self._engine = engine_settings(EngineSection(debounce=0))

    async def hear(self, text: str, kind: str = "message") -> None:
        """Take an event in: a message, or a login, upon which the bot may speak first."""
        person, place = Person(PLATFORM, "", self.user, self.name), PlaceOf(PLATFORM, "", "", self.user, "direct", self.name)
        key = f"{self.user}-{next(_NUMBERS)}"
        event = Incoming(kind, person, place, key, self.at, text, message_id=key)  # type: ignore[arg-type]
        accepted = await inbox.accept(self.services.db, event, burst=timedelta(), now=self.at)
        self.agent = accepted.agent

    async def turn(self) -> list[str]:
        """Run one turn over what was heard; returns what the bot said."""
        claim = await turns.claim(self.services.db, self.agent, self.at, self._engine)
        assert isinstance(claim, Claim)
        self.claimed = claim
        await self._agent.turn(claim)
        return [str(row["body"]) for row in await self.rows("SELECT body FROM outbox WHERE turn_id = %s ORDER BY id", claim.turn)]

    async def rows(self, statement: str, *parameters: object) -> list[dict[str, Any]]:
        """Rows of this person's agent."""
        async with self.services.db.agent(self.agent, everything=True) as connection:
            return await (await connection.execute(statement.encode(), parameters)).fetchall()


@asynccontextmanager
async def hand_driven(
    running: Servers, model: ModelServer, **sections: Mapping[str, Any]
) -> AsyncIterator[tuple[Services, Queue]]:
    """Services and a queue whose wake-ups nobody runs: the turns are taken by hand."""
    async with (
        services_on(running, model.base_url, **sections) as services,
        Queue(services.at.database, engine_settings(EngineSection())) as queue,
    ):
        yield services, queue


def percentile(values: Sequence[float], share: float) -> float:
    """The value that `share` of the values do not exceed."""
    ordered = sorted(values)
    return ordered[min(len(ordered) - 1, int(len(ordered) * share))]


def table(head: Sequence[str], rows: Sequence[Sequence[object]]) -> str:
    """Lines of text, the first column to the left and the others to the right."""
    cells = [[str(cell) for cell in row] for row in (head, *rows)]
    widths = [max(len(row[column]) for row in cells) for column in range(len(head))]
    return "\n".join(
        "  ".join(
            cell.ljust(width) if column == 0 else cell.rjust(width)
            for column, (cell, width) in enumerate(zip(row, widths, strict=True))
        )
        for row in cells
    )
