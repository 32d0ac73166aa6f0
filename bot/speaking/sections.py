"""The sections of the configuration about speaking first: openers, care, schedules, welcomes. `config.yaml` explains every key."""

import re
from datetime import time
from typing import Annotated

from pydantic import AfterValidator, BeforeValidator, Field

from bot.sections import Section
from bot.speaking.schedules import trigger_of


def _cron(fields: str) -> str:
    trigger_of(fields)
    return fields


def _schedule_name(name: str) -> str:
    if not re.fullmatch(r"[a-z0-9_-]{1,40}", name):
        raise ValueError("must be named by small letters, digits, _ and -, forty at most")
    return name


def _clock(value: object) -> object:
    # YAML reads an unquoted 21:00 as a number of minutes, of at least 60 (0:30 is a text); what is less was written as a bare hour.
    if not isinstance(value, int) or isinstance(value, bool):
        return value
    if 0 <= value < 24:
        return f"{value:02}:00"
    if 60 <= value < 1440:
        return f"{value // 60:02}:{value % 60:02}"
    raise ValueError('must be a time of day in quotes, such as "21:00"')


def _only_the_name(text: str) -> str:
    if set(re.findall(r"\{(\w*)\}", text)) - {"name"}:
        raise ValueError("may hold {name} between braces and nothing else")
    return text


Clock = Annotated[time, BeforeValidator(_clock)]


class Openers(Section):
    """Whether and when the bot may speak first to people who gave it leave."""

    enabled: bool = False
    ask: Annotated[str, Field(min_length=1, max_length=1000)] = (
        "One question, which I ask only once. May I write to you first now and then, when I remember something that matters to you? "
        "Never at night, and at most once a day. Please say yes or no; without a yes I stay quiet, and /settings changes it at any time."
    )
    ask_after: Annotated[int, Field(ge=1, le=1000)] = 2
    quiet_from: Clock = time(21)
    quiet_to: Clock = time(9)
    daily_cap: Annotated[int, Field(ge=0, le=20)] = 1
    min_gap_hours: Annotated[float, Field(ge=0, le=720, allow_inf_nan=False)] = 20
    stop_after: Annotated[int, Field(ge=1, le=20)] = 4
    active_minutes: Annotated[float, Field(ge=0, le=10_080, allow_inf_nan=False)] = 90
    every_days: Annotated[float, Field(ge=0.1, le=365, allow_inf_nan=False)] = 2


class Care(Section):
    """What follows when somebody speaks of harming themselves."""

    pause_hours: Annotated[float, Field(ge=0, le=8760, allow_inf_nan=False)] = 72
    repeat_hours: Annotated[float, Field(ge=0, le=8760, allow_inf_nan=False)] = 1
    second_voice: bool = True


class CheckIn(Section):
    """One schedule: five cron fields in each person's local time, and what the agent is to do then."""

    cron: Annotated[str, AfterValidator(_cron)]
    purpose: Annotated[str, Field(min_length=1, max_length=500)]
    grace_hours: Annotated[float, Field(ge=0, le=168, allow_inf_nan=False)] = 6


class Schedules(Section):
    """Check-ins by the operator, by name."""

    entries: dict[Annotated[str, AfterValidator(_schedule_name)], CheckIn] = Field(default_factory=dict)


class Welcome(Section):
    """What newcomers of the places in discord.join_channels read there; empty: nothing."""

    text: Annotated[str, Field(max_length=1500), AfterValidator(_only_the_name)] = ""
