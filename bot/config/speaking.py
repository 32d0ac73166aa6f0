"""The sections of the configuration about speaking first: openers, care, schedules, welcomes."""

import re
from datetime import time
from typing import Annotated

from pydantic import AfterValidator, BeforeValidator, Field

from bot.config.cron import trigger_of
from bot.config.sections import ConfigSection


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


def _only_the_rules(text: str) -> str:
    if set(re.findall(r"\{(\w*)\}", text)) - {"quiet_from", "quiet_to", "times"}:
        raise ValueError("may hold {quiet_from}, {quiet_to} and {times} between braces and nothing else")
    return text


def _only_the_name(text: str) -> str:
    if set(re.findall(r"\{(\w*)\}", text)) - {"name"}:
        raise ValueError("may hold {name} between braces and nothing else")
    return text


Clock = Annotated[time, BeforeValidator(_clock)]


class OpenersSection(ConfigSection):
    """Whether and when the bot may write first to people who agreed to it."""

    enabled: bool = False
    """Whether the bot may ever write first. People are asked once whether they want it; without their yes nothing is sent. Reminders
    that people ask for are sent either way. Nobody but the person can turn a no into a yes."""
    ask: Annotated[str, Field(max_length=1000), AfterValidator(_only_the_rules)] = ""
    """What a person is asked, once, in their direct messages with the bot. Empty: the bot's own question, in their language. The quiet
    hours and the daily cap that hold stand for `{quiet_from}`, `{quiet_to}` and `{times}`; loosening those later asks again, and until
    then nothing is sent."""
    ask_after: Annotated[int, Field(ge=1, le=1000)] = 2
    """After how many of their messages there they are asked."""
    quiet_from: Clock = time(21)
    """When quiet hours begin on the person's clock, unless they chose their own. No opener goes to people whose time zone is
    unknown."""
    quiet_to: Clock = time(9)
    """When quiet hours end."""
    daily_cap: Annotated[int, Field(ge=0, le=20)] = 1
    """The maximum number of openers per person and day, unless the person chose another number."""
    min_gap_hours: Annotated[float, Field(ge=0, le=720, allow_inf_nan=False)] = 20
    """The minimum time between two openers, in hours. It doubles with each one that is not answered."""
    stop_after: Annotated[int, Field(ge=1, le=20)] = 4
    """After this many unanswered openers, none are sent until the person writes."""
    active_minutes: Annotated[float, Field(ge=0, le=10_080, allow_inf_nan=False)] = 90
    """For how many minutes after a person's last message no opener is sent."""
    every_days: Annotated[float, Field(ge=0.1, le=365, allow_inf_nan=False)] = 2
    """About how often the bot looks for something to open with, in days. A look costs a model call or two, and only happens when an
    opener is allowed."""


class CareSection(ConfigSection):
    """What follows when somebody speaks of harming themselves or of another emergency: the persona's line for it is given at once, and
    openers pause."""

    pause_hours: Annotated[float, Field(ge=0, le=8760, allow_inf_nan=False)] = 72
    """How long no opener goes to the person, in hours. They must also have written again."""
    repeat_hours: Annotated[float, Field(ge=0, le=8760, allow_inf_nan=False)] = 1
    """How long before the same person is given the same emergency line again, in hours."""
    second_voice: bool = True
    """Ask the filter model about messages that may or may not speak of an emergency. Plain cases are never left to a model."""


class CheckInSection(ConfigSection):
    """One check-in."""

    cron: Annotated[str, AfterValidator(_cron)]
    """Five cron fields on the person's own clock; days of the week by name."""
    purpose: Annotated[str, Field(min_length=1, max_length=500)]
    """What the agent is to do then."""
    grace_hours: Annotated[float, Field(ge=0, le=168, allow_inf_nan=False)] = 6
    """How late it may still be sent, in hours."""


class SchedulesSection(ConfigSection):
    """Check-ins that the operator schedules with people who gave leave."""

    entries: dict[Annotated[str, AfterValidator(_schedule_name)], CheckInSection] = Field(default_factory=dict)
    """The check-ins by name. The rules of openers apply. Example: `entries: {sunday: {cron: "0 17 * * sun", purpose: "Ask how the
    week was.", grace_hours: 6}}`."""


class WelcomeSection(ConfigSection):
    """What newcomers read in the channels of `discord.join_channels`."""

    text: Annotated[str, Field(max_length=1500), AfterValidator(_only_the_name)] = ""
    """The text; `{name}` is replaced by the newcomer's name. Empty: no welcome. Nothing about newcomers is stored."""
