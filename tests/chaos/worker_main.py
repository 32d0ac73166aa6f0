"""One worker process of the fault test: `python -m tests.chaos.worker_main URL FOLDER SEED`.

Its turns take a little while, and of ten one breaks off before or between its steps. Its platform is a folder: a message is a line in
`shown`, written at most once per outbox id, as Discord does with a nonce.
"""

from __future__ import annotations

import asyncio
import os
import random
import signal
import sys
from contextlib import AbstractAsyncContextManager, nullcontext, suppress
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path

from adapters.base import Bot, Outgoing
from bot.app.runtime import engine_settings
from bot.config.sections import EngineSection
from bot.engine import turns
from bot.engine.events import Claim
from bot.engine.outbox import OutboxSender
from bot.engine.queue import Queue
from bot.engine.signals import Senders
from bot.engine.upkeep import Upkeep
from bot.engine.worker import Worker
from memory import messages
from memory.db import Database
from memory.messages import Draft

SETTINGS = replace(
    engine_settings(EngineSection(debounce=0, attempts=30, shutdown_grace=5)),
    retry_first=0.05,
    retry_cap=0.5,
    poll=0.1,
    heartbeat=0.3,
    stalled=2.0,
    hand_back=5.0,
    reap_every=0.3,
    sweep_every=1.0,
    outbox_poll=0.3,
    doubtful_after=1.5,
    restart_first=0.1,
    restart_cap=0.5,
)


@dataclass
class Folder:
    """A platform with one channel per file name."""

    path: Path
    platform: str = "folder"
    channels: None = None
    limit: int = 2000

    async def run(self, bot: Bot) -> None:
        raise NotImplementedError

    async def send(self, outgoing: Outgoing) -> str:
        with suppress(FileExistsError):
            os.close(os.open(self.path / f"nonce-{outgoing.outbox_id}", os.O_CREAT | os.O_EXCL))
            log = os.open(self.path / "shown", os.O_WRONLY | os.O_APPEND | os.O_CREAT)
            os.write(log, f"{outgoing.channel}\t{outgoing.text}\n".encode())
            os.close(log)
        return f"id-{outgoing.outbox_id}"

    async def find(self, outgoing: Outgoing) -> str | None:
        return f"id-{outgoing.outbox_id}" if (self.path / f"nonce-{outgoing.outbox_id}").exists() else None

    def working(self, channel: str) -> AbstractAsyncContextManager[None]:
        return nullcontext()


@dataclass
class Turns:
    """The turn callable: notes what was said in a first step, thinks, answers in a last one."""

    db: Database
    chance: random.Random
    outbound: Senders

    async def __call__(self, claim: Claim) -> None:
        if claim.fence.step == 0:
            self._perhaps_fail()
            async with turns.step(self.db, claim, now=datetime.now(UTC), outbound=self.outbound) as step:
                said = [Draft("user", "message", event.payload["text"], event_id=event.id) for event in claim.events]
                await messages.append(
                    step.connection, claim.conversation, said, visibility="direct", at=step.now, turn=claim.turn
                )
        await asyncio.sleep(self.chance.uniform(0.1, 0.3))
        self._perhaps_fail()
        async with turns.step(self.db, claim, now=datetime.now(UTC), outbound=self.outbound, finish="done") as step:
            answer = " ".join(event.payload["text"] for event in claim.events)
            await step.reply(answer)
            await messages.append(
                step.connection,
                claim.conversation,
                [Draft("assistant", "message", answer)],
                visibility="direct",
                at=step.now,
                turn=claim.turn,
            )

    def _perhaps_fail(self) -> None:
        if self.chance.random() < 0.05:
            raise RuntimeError


async def main(url: str, folder: Path, seed: int) -> None:
    """Run everything of one process until SIGTERM."""
    running = asyncio.current_task()
    assert running is not None
    asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, running.cancel)
    outbound = Senders()
    async with Database(url, size=8) as db, Queue(url, SETTINGS) as queue:
        with suppress(asyncio.CancelledError):
            async with asyncio.TaskGroup() as group:
                group.create_task(Worker(db, queue, Turns(db, random.Random(seed), outbound), outbound=outbound).run())
                group.create_task(OutboxSender(db, Folder(folder), SETTINGS, outbound=outbound).run())
                group.create_task(Upkeep(db, queue).run())


if __name__ == "__main__":
    asyncio.run(main(sys.argv[1], Path(sys.argv[2]), int(sys.argv[3])))
