"""Puts together what concerns speaking first, from opened services: the rules, the schedules, what is listened for."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import timedelta
from functools import partial

from adapters.base import Adapter, Quiets
from adapters.catalogue import say
from bot.app.services import Services
from bot.config.loading import Config
from bot.config.speaking import OpenersSection
from bot.speaking.decision import SpeakingRules
from bot.speaking.initiative import Initiative
from bot.speaking.listening import Listener
from bot.speaking.schedules import Schedule


def rules_of(config: Config) -> SpeakingRules:
    """The operator's rules, from `openers` and `care`."""
    chosen = config.openers
    return SpeakingRules(
        chosen.enabled,
        chosen.quiet_from,
        chosen.quiet_to,
        chosen.daily_cap,
        timedelta(hours=chosen.min_gap_hours),
        timedelta(minutes=chosen.active_minutes),
        chosen.stop_after,
        timedelta(hours=config.care.pause_hours),
        timedelta(days=chosen.every_days),
    )


def question_of(chosen: OpenersSection, locale: str) -> str:
    """The question for leave, made from the rules that hold."""
    times = say("every.count", locale, n=chosen.daily_cap)
    filled = {"quiet_from": f"{chosen.quiet_from:%H:%M}", "quiet_to": f"{chosen.quiet_to:%H:%M}", "times": times}
    if not chosen.ask:
        return say("leave.ask", locale, **filled)
    # Not str.format: what else stands between braces in an operator's text stays.
    text = chosen.ask
    for name, value in filled.items():
        text = text.replace(f"{{{name}}}", value)
    return text


def initiative_for(services: Services, adapters: Sequence[Adapter]) -> Initiative:
    """What decides whether and when the bot speaks first."""
    config = services.loaded.config
    schedules = {
        name: Schedule(one.cron, one.purpose, timedelta(hours=one.grace_hours)) for name, one in config.schedules.entries.items()
    }
    quiet = {adapter.platform: adapter.quiet for adapter in adapters if isinstance(adapter, Quiets)}
    return Initiative(services.db, rules_of(config), schedules, services.health.count, quiet)


def listening_for(services: Services, count_tokens: Callable[[str], int]) -> Listener:
    """What the bot itself does with what people write."""
    config = services.loaded.config
    return Listener(
        services.loaded.persona.emergency,
        timedelta(hours=config.care.repeat_hours),
        partial(question_of, config.openers) if config.openers.enabled else None,
        config.openers.ask_after,
        services.processor if config.care.second_voice else None,
        count_tokens,
        services.health.count,
        services.loaded.persona.name,
    )
