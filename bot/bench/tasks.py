"""`bot bench tasks`: what a model does with single turns, whatever else is good or bad about it.

Sixty things said to the bot, in English and German, 39 of which need a call: to keep, correct, remove, forget, look up (also on a second page),
remind. The requests are the bot's own: its instructions, persona, functions and shape, in the way of asking that `model.calls` sets. The
endpoint is the configured one (`bot --config FILE bench tasks`, or KEEPSAKE__MODEL__...); without one the rehearsal model does them.

SIZE=small or SIZE=large in the environment chooses the prompts; without it the configuration does, and `auto` counts as large.
"""

from __future__ import annotations

import asyncio
import os
import statistics
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

import yaml
from pydantic import TypeAdapter

from bot.app.services import model_client
from bot.app.trials import asker, specimen_for
from bot.bench.stage import table
from bot.config.findings import StartError
from bot.config.loading import Loaded
from bot.health import Health
from bot.model.errors import ModelError
from bot.turn.specimen import Attempt, Task, attempt

FILE = Path(__file__).with_name("tasks.yaml")


def tasks() -> list[Task]:
    """The sixty tasks."""
    return TypeAdapter(list[Task]).validate_python(yaml.safe_load(FILE.read_text(encoding="utf-8")))


@dataclass(frozen=True, slots=True)
class Result:
    """What one model did with all tasks."""

    name: str
    attempts: Sequence[Attempt]

    @property
    def row(self) -> tuple[str, ...]:
        """The columns: right calls where one was needed, right answers, both, and the mean prompt in tokens."""
        needed = [one for one in self.attempts if one.task.call]
        return (
            self.name,
            f"{sum(one.called for one in needed)} of {len(needed)}",
            f"{sum(one.answered for one in self.attempts)} of {len(self.attempts)}",
            f"{sum(one.called and one.answered for one in self.attempts)} of {len(self.attempts)}",
            f"{statistics.fmean(one.prompt for one in self.attempts):,.0f}",
        )


async def run(loaded: Loaded, *, small: bool, say: Callable[[str], None] = print) -> Result:
    """Do all tasks with the configured model. Raises StartError where it does not answer."""
    async with model_client(loaded, Health()) as (client, names):
        specimen = specimen_for(loaded, names, small=small)
        ask = asker(client, names.chat, specimen, loaded)
        attempts = []
        for task in tasks():
            try:
                done = await attempt(specimen, ask, task)
            except ModelError as error:
                raise StartError(f"bench tasks: the model does not answer ({error}). `bot doctor` tells more.") from error
            attempts.append(done)
            if not (done.called and done.answered):
                wrong = " and ".join(
                    what for what, right in (("the call", done.called), ("the answer", done.answered)) if not right
                )
                say(f"{wrong} to {task.said[:60]!r}: {[call.name for call in done.calls]} {done.text[:80]!r}")
        return Result(f"{names.chat}, {loaded.config.model.calls}, {'small' if small else 'large'}", attempts)


def report(results: Sequence[Result]) -> str:
    """The table."""
    head = ("model, calls, prompts", "needed call right", "answer right", "both right", "prompt tokens")
    return table(head, [result.row for result in results])


def main(loaded: Loaded) -> int:
    """Run with the configured model. Returns the exit code."""
    size = os.environ.get("SIZE", loaded.config.model.size)
    print(report([asyncio.run(run(loaded, small=size == "small"))]))
    return 0
