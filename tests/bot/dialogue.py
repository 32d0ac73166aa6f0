"""Dialogues with an agent: real Postgres, real HTTP model endpoint, real steps; only the queue is stood in for, by claiming at once."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from functools import partial
from uuid import uuid4

from adapters.base import Incoming, Person, PlaceOf, Quote
from bot.app.runtime import engine_settings
from bot.config.persona import Persona
from bot.config.sections import EngineSection
from bot.engine import inbox, turns
from bot.engine.events import Claim, TryAgainLater
from bot.engine.queue import Queue
from bot.engine.settings import EngineSettings
from bot.keeping.keeper import Keeper
from bot.keeping.notice import Notice
from bot.model.client import ModelClient
from bot.model.processor import Endpoint, Processor
from bot.model.shape import NOTICE
from bot.prompts import load
from bot.speaking.initiative import Initiative
from bot.speaking.listening import Listener
from bot.turn.agent import Agent
from bot.turn.executor import Bounds
from bot.turn.pressure import Pressure
from bot.turn.state import AgentSettings
from memory.cache import Cache
from memory.db import Database
from memory.embedding import Meaning
from memory.spending import Budgets, Limits
from memory.tokens import count, encoding_of
from tests.servers.model import Request, ScriptedModel

START = datetime(2026, 11, 30, 8, 0, tzinfo=UTC)
SETTINGS = AgentSettings(
    chat_model="gpt-4o",
    summary_model="gpt-4o",
    budget=16_000,
    warning=0.7,
    flush=1.0,
    evict=0.5,
    reply_reserve=1500,
    bounds=Bounds(passes=24, memory_calls=16, memory_writes=8, seconds=300, tokens=1_000_000),
    page_size=10,
    patience=timedelta(seconds=30),
    name="Mika",
)


@dataclass
class Dialogue:
    """One person talking to the bot at one place; `at` moves on by a minute a message."""

    db: Database
    model: ScriptedModel
    client: ModelClient
    queue: Queue
    settings: AgentSettings = SETTINGS
    person: Person = field(default_factory=lambda: Person("console", "", "ada", "Ada"))
    place: PlaceOf = field(default_factory=lambda: PlaceOf("console", "", "", "ada", "direct"))
    # Shared by the places of one test, so that time goes on and keys differ everywhere.
    clock: list[datetime] = field(default_factory=lambda: [START])
    cache: Cache = field(default_factory=lambda: Cache(None))
    budgets: Budgets | None = None
    fallbacks: tuple[Endpoint, ...] = ()
    made: tuple[object, Processor] | None = None
    meaning: Meaning = field(default_factory=lambda: Meaning(None))
    notice: Notice = Notice()
    keeper: Keeper | None = None
    engine: EngineSettings = field(default_factory=lambda: engine_settings(EngineSection(debounce=0)))
    initiative: Initiative | None = None
    listening: Listener | None = None
    persona: Persona = Persona(name="Kee", character="Friendly.")

    @property
    def at(self) -> datetime:
        return self.clock[0]

    @property
    def processor(self) -> Processor:
        """One for the whole test, as it remembers which endpoint rests; made anew when the test sets others."""
        asked = (self.fallbacks, self.budgets)
        if self.made is None or self.made[0] != asked:
            endpoints = [Endpoint(self.client, self.settings.chat_model), *self.fallbacks]
            budgets = self.budgets or Budgets(self.db, Limits(), {})
            self.made = (
                asked,
                Processor({"chat": endpoints, "summary": endpoints, "filter": endpoints}, budgets, clock=lambda: self.at),
            )
        return self.made[1]

    @property
    def agent(self) -> Agent:
        pressure = Pressure(
            self.db,
            self.processor,
            self.settings,
            load(self.settings.chat_model),
            self.persona,
            count=partial(count, encoding=encoding_of(self.settings.chat_model)),
            clock=lambda: self.at,
        )
        return Agent(
            self.db,
            self.cache,
            self.processor,
            self.meaning,
            self.settings,
            pressure,
            clock=lambda: self.at,
            limits={"console": 4000},
            initiative=self.initiative,
            listening=self.listening,
            notice=self.notice,
            keeper=self.keeper,
        )

    def elsewhere(self, external_id: str, kind: str, *, workspace: str = "w", person: Person | None = None) -> Dialogue:
        """The same person (or another) at another place of the console platform."""
        place = PlaceOf("console", "", workspace, external_id, kind, name=external_id)  # type: ignore[arg-type]
        return replace(self, place=place, person=person or self.person)

    async def accept(self, text: str, *, addressed: bool = True, quotes: tuple[Quote, ...] = (), kind: str = "message") -> int:
        """Take a message in; returns the agent."""
        self.clock[0] += timedelta(minutes=1)
        key = f"{self.place.external_id}-{self.person.user_id}-{self.at.isoformat()}-{uuid4()}"
        incoming = Incoming(
            kind,
            self.person,
            self.place,
            key,
            self.at,
            text,
            message_id=key,
            addressed=addressed,
            quotes=quotes,  # type: ignore[arg-type]
        )
        accepted = await inbox.accept(self.db, incoming, burst=timedelta(), now=self.at)
        return accepted.agent

    async def claim(self, agent: int) -> Claim:
        claim = await turns.claim(self.db, agent, self.at, self.engine)
        assert isinstance(claim, Claim)
        return claim

    async def hear(self, text: str, **kwargs: object) -> list[str]:
        """Say something and return what the bot says to it, in order."""
        agent = await self.accept(text, **kwargs)  # type: ignore[arg-type]
        claim = await self.claim(agent)
        await self.agent.turn(claim)
        return await self.outbox(claim)

    async def run(self, claim: Claim) -> None:
        """Run a turn; one that is put off is handed back uncounted, as the worker does."""
        try:
            await self.agent.turn(claim)
        except TryAgainLater as later:
            await turns.release(self.db, claim, later.reason)
            raise

    async def outbox(self, claim: Claim) -> list[str]:
        async with self.db.agent(claim.agent, claim.place) as connection:
            cursor = await connection.execute("SELECT body FROM outbox WHERE turn_id = %s ORDER BY id", (claim.turn,))
            return [row["body"] for row in await cursor.fetchall()]

    async def rows(self, statement: str, parameters: Sequence[object] = ()) -> list[dict[str, object]]:
        """Rows of this person's agent, seen from everywhere."""
        async with self.db.bare() as connection:
            cursor = await connection.execute(
                "SELECT agent_of(%s, %s, %s, %s, NULL, NULL) AS id",
                (self.person.platform, self.person.realm, self.person.user_id, self.person.name),
            )
            row = await cursor.fetchone()
        assert row is not None
        async with self.db.agent(row["id"], everything=True) as connection:
            cursor = await connection.execute(statement.encode(), tuple(parameters))
            return await cursor.fetchall()

    async def entries(self) -> list[tuple[object, object]]:
        return [
            (row["section"], row["content"])
            for row in await self.rows("SELECT section, content FROM working_context ORDER BY id")
        ]


@asynccontextmanager
async def dialogue(
    db: Database, *script: object, settings: AgentSettings = SETTINGS, **options: object
) -> AsyncIterator[Dialogue]:
    """A dialogue whose model plays `script` and fails on anything unexpected or left over."""
    async with (
        ScriptedModel(script, **options) as model,  # type: ignore[arg-type]
        ModelClient(model.base_url, "key", attempts=1) as client,
        Queue(db.url, engine_settings(EngineSection())) as queue,
    ):
        yield Dialogue(db, model, client, queue, settings)


def results(request: Request) -> list[str]:
    """The results of calls that a request shows the model, in order; without what the system says after them."""
    return [content.partition(f"\n\n{NOTICE}")[0] for content in request.contents("tool")]


def packages(request: Request) -> list[dict[str, object]]:
    """What a request tells the model in the person's messages, in order: the status, events, and where calls go by schema results."""
    return [json.loads(line) for content in request.contents("user") for line in content.split("\n")]


def seen(request: Request) -> str:
    """Everything a request shows the model, as one text."""
    return json.dumps(request.messages, ensure_ascii=False)
