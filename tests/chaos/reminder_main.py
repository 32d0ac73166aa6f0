"""One whole process of the reminder test: `python -m tests.chaos.reminder_main URL MODEL REDIS FOLDER`. Ticks, runs turns and sends, until killed.

Its platform is a folder, as that of the worker test; a line of `shown` ends with the time at which it was sent.
"""

from __future__ import annotations

import asyncio
import os
import sys
import time
from contextlib import suppress
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from functools import partial
from pathlib import Path

from adapters.base import Outgoing
from bot.config.persona import Persona
from bot.engine.outbox import OutboxSender
from bot.engine.queue import Queue
from bot.engine.signals import Senders
from bot.engine.timers import Ticker
from bot.engine.upkeep import Upkeep
from bot.engine.worker import Worker
from bot.model.client import ModelClient
from bot.model.processor import Endpoint, Processor
from bot.prompts import load
from bot.speaking.decision import SpeakingRules
from bot.speaking.initiative import Initiative
from bot.speaking.reminders import say_dead
from bot.turn.agent import Agent
from bot.turn.pressure import Pressure
from memory.cache import Cache
from memory.db import Database
from memory.embedding import Meaning
from memory.spending import Budgets, Limits
from memory.tokens import count, encoding_of
from tests.bot.dialogue import SETTINGS
from tests.chaos.worker_main import SETTINGS as ENGINE
from tests.chaos.worker_main import Folder


@dataclass
class Timed(Folder):
    """The folder with the time at which each message was sent."""

    async def send(self, outgoing: Outgoing) -> str:
        with suppress(FileExistsError):
            os.close(os.open(self.path / f"nonce-{outgoing.outbox_id}", os.O_CREAT | os.O_EXCL))
            text = outgoing.text.replace("\n", "\t")
            log = os.open(self.path / "shown", os.O_WRONLY | os.O_APPEND | os.O_CREAT)
            os.write(log, f"{outgoing.channel}\t{text}\t{time.time()}\n".encode())
            os.close(log)
        return f"id-{outgoing.outbox_id}"


async def main(url: str, model: str, redis: str, folder: Path) -> None:
    """Run everything of one process until it is killed."""
    outbound = Senders()

    def now() -> datetime:
        return datetime.now(UTC)

    settings = replace(SETTINGS, patience=timedelta(seconds=3))
    # An outage of the model is waited for, as the engine does it; nothing here may be given up.
    async with Database(url, size=12) as db, Queue(url, ENGINE) as queue, ModelClient(model, "key", attempts=1) as client:
        endpoints = [Endpoint(client, settings.chat_model)]
        processor = Processor(
            {"chat": endpoints, "summary": endpoints, "filter": endpoints}, Budgets(db, Limits(), {}), clock=now
        )
        counting = partial(count, encoding=encoding_of(settings.chat_model))
        prompts, persona = load(settings.chat_model), Persona(name="Kee", character="Friendly.")
        pressure = Pressure(db, processor, settings, prompts, persona, count=counting, clock=now)
        initiative = Initiative(db, SpeakingRules())
        agent = Agent(
            db,
            Cache(redis),
            processor,
            Meaning(None),
            settings,
            pressure,
            clock=now,
            limits={"folder": 2000},
            outbound=outbound,
            initiative=initiative,
        )
        ticker = Ticker(db, every=0.3, decide=initiative.on_due, also=(partial(say_dead, initiative),))
        async with asyncio.TaskGroup() as group:
            group.create_task(ticker.run())
            group.create_task(Worker(db, queue, agent.turn, ENGINE, outbound=outbound).run())
            group.create_task(OutboxSender(db, Timed(folder), ENGINE, outbound=outbound).run())
            group.create_task(Upkeep(db, queue, ENGINE).run())
            (folder / f"ready-{os.getpid()}").touch()


if __name__ == "__main__":
    asyncio.run(main(sys.argv[1], sys.argv[2], sys.argv[3], Path(sys.argv[4])))
