"""The configured model, tried with the bot's own requests; and how large it is, found out once for each endpoint and model."""

from __future__ import annotations

import asyncio
import json
import logging
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path

from bot.app.agents import agent_settings, prompts_of
from bot.app.services import Names
from bot.config.loading import Loaded
from bot.model.calls import FunctionSchema
from bot.model.client import ModelClient
from bot.model.errors import ModelError
from bot.model.replies import Reply
from bot.model.stream import Watch
from bot.operations.endpoint import address
from bot.turn.specimen import Ask, Specimen, Task, attempt
from memory import tokens
from memory.main_context import MainContext

log = logging.getLogger(__name__)

SIZES = "models.json"
"""In the data folder: how large each model was found to be, by endpoint and name. Removing the file has it found out again."""
LOOK = 90.0
"""Seconds that the look at a model's size may take. Who needs longer for three short answers is better off with short prompts."""
PROBES = (
    Task("My sister Mia moved to Porto.", call="working_context_append|archival_storage_insert", arguments="Porto"),
    Task("Remind me in 20 minutes to take the bread out.", call="set_timer", arguments=r"in_minutes\W+20\b|10:20"),
    Task(
        "Which number did I give you for the garden gate?",
        call="recall_storage_search",
        answer="4711",
        found=("The number for the garden gate is 4711.",),
    ),
    Task("Good morning!"),
)
ENOUGH = 3
"""So many probes done rightly make a large model; so few wrong ones that this cannot be reached any more, a small one."""


def specimen_for(loaded: Loaded, names: Names, *, small: bool) -> Specimen:
    """The bot's requests for the configured model."""
    count = partial(tokens.count, encoding=tokens.encoding_of(names.chat))
    settings = agent_settings(loaded, names, small=small)
    return Specimen(settings, prompts_of(loaded, names, small=small), loaded.persona, count)


def asker(client: ModelClient, model: str, specimen: Specimen, loaded: Loaded, watch: Watch | None = None) -> Ask:
    """Asks as a turn does, but for the budgets. `watch` is told of what is streamed."""

    async def ask(context: MainContext, functions: Sequence[FunctionSchema]) -> Reply:
        return await client.complete(
            model,
            context.messages,
            functions,
            max_tokens=specimen.settings.reply_reserve,
            temperature=loaded.config.model.temperature,
            watch=watch,
        )

    return ask


async def small(loaded: Loaded, client: ModelClient, names: Names, say: Callable[[str], None]) -> bool:
    """Whether the chat model gets the prompts for small models: as configured, as found before, else found out now and kept.

    An endpoint that does not answer is not judged; its model counts as large until the next start.
    """
    chosen = loaded.config.model.size
    if chosen != "auto" or loaded.rehearsal:
        return chosen == "small"
    file, key = loaded.data / SIZES, f"{address(loaded.model_url)} {names.chat}"
    known = await asyncio.to_thread(_read, file)
    if key not in known:
        say(f"Trying {names.chat} with three or four small tasks, once (model.size) ...")
        found = await measured(loaded, client, names)
        if found is None:
            return False
        say(f"{names.chat} gets the prompts for {found} models; model.size overrides that.")
        known = {**known, key: found}
        await asyncio.to_thread(_write, file, known)
    return known[key] == "small"


async def measured(loaded: Loaded, client: ModelClient, names: Names) -> str | None:
    """`large` where the model does most of the probes with the prompts for large models, else `small`; None: it did not answer."""
    specimen = specimen_for(loaded, names, small=False)
    ask = asker(client, names.chat, specimen, loaded)
    done = failed = 0
    try:
        async with asyncio.timeout(LOOK):
            for probe in PROBES:
                tried = await attempt(specimen, ask, probe)
                right = tried.called and tried.answered
                done, failed = done + right, failed + (not right)
                if done >= ENOUGH or failed > len(PROBES) - ENOUGH:
                    break
    except ModelError as error:
        log.warning("the size of %s was not found out: %s", names.chat, type(error).__name__)
        return None
    except TimeoutError:
        log.warning("%s needs longer than %g s for a few short answers", names.chat, LOOK)
        return "small" if done + failed else None
    return "large" if done >= ENOUGH else "small"


def _read(file: Path) -> dict[str, str]:
    try:
        found = json.loads(file.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return {}
    return {str(key): str(value) for key, value in found.items()} if isinstance(found, dict) else {}


def _write(file: Path, known: dict[str, str]) -> None:
    fresh = file.with_suffix(".new")
    fresh.write_text(json.dumps(known, indent=1), encoding="utf-8")
    fresh.replace(file)
