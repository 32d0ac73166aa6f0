"""What the configuration comes to for every agent: its settings and its prompts."""

from __future__ import annotations

from datetime import timedelta

from bot import prompts
from bot.app.services import Names
from bot.config.loading import Loaded
from bot.keeping.decision import KeepingRules
from bot.prompts import Prompts
from bot.turn.executor import Bounds
from bot.turn.state import AgentSettings

PAGE_SIZE = 10
PATIENCE = timedelta(seconds=30)


def agent_settings(loaded: Loaded, names: Names, *, small: bool) -> AgentSettings:
    """What the operator set for every agent. `small`: the chat model is small."""
    config, bounds = loaded.config, loaded.config.turn
    return AgentSettings(
        chat_model=names.chat,
        summary_model=names.summary,
        budget=config.context.budget,
        warning=config.context.warning,
        flush=config.context.flush,
        evict=config.context.evict,
        reply_reserve=config.context.reply_reserve,
        page_size=PAGE_SIZE,
        patience=PATIENCE,
        bounds=Bounds(bounds.passes, bounds.memory_calls, bounds.memory_writes, bounds.seconds, bounds.tokens),
        image_tokens=config.model.image_tokens,
        name=loaded.persona.name,
        rules=KeepingRules(config.keeping.sensitive, config.keeping.answer_hours * 3600),
        small=small,
    )


def prompts_of(loaded: Loaded, names: Names, *, growing: bool = False, small: bool) -> Prompts:
    """The texts for the chat model, the operator's own before the built-in ones."""
    return prompts.load(names.chat, loaded.home / "prompts", growing=growing, small=small)
