"""Who people are by Slack's word: names, time zones, roles, whether they are strangers; asked once in a while."""

from __future__ import annotations

import asyncio
import logging
import time
from collections import OrderedDict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any
from zoneinfo import available_timezones

import aiohttp
from slack_sdk.errors import SlackApiError

from adapters.base import Person
from adapters.slack.names import NAME_LENGTH, PLATFORM, Scope
from adapters.slack.workspaces import Workspace

log = logging.getLogger(__name__)

FRESH = 900.0
"""Seconds for which an answer of Slack is believed; `user_change` corrects it sooner."""
REMEMBERED = 20_000
ZONES = available_timezones()
FAILURES = (SlackApiError, aiohttp.ClientError, TimeoutError, OSError)
"""What a call may end with that says nothing about whom it asked for."""


@dataclass(frozen=True, slots=True)
class Profile:
    """One person as users.info tells. `grid_id` and `grid` are their id in their organisation and its own; `team` is their home."""

    user_id: str
    name: str
    timezone: str | None = None
    locale: str | None = None
    team: str = ""
    grid_id: str = ""
    grid: str = ""
    bot: bool = False
    deleted: bool = False
    roles: tuple[str, ...] = ()


def profile_of(user: Mapping[str, Any]) -> Profile:
    """Slack's description of a user as a value."""
    shown = user.get("profile") or {}
    name = shown.get("display_name") or shown.get("real_name") or user.get("real_name") or user.get("name") or "somebody"
    grid = user.get("enterprise_user") or {}
    zone = user.get("tz")
    roles = [role for role in ("admin", "owner") if user.get(f"is_{role}") is True]
    return Profile(
        str(user.get("id") or ""),
        str(name)[:NAME_LENGTH],
        zone if zone in ZONES else None,
        user.get("locale") or None,
        str(user.get("team_id") or ""),
        str(grid.get("id") or ""),
        str(grid.get("enterprise_id") or ""),
        bool(user.get("is_bot")),
        bool(user.get("deleted")),
        tuple(roles),
    )


def person_of(scope: Scope, user_id: str, profile: Profile | None, home: str = "", roles: tuple[str, ...] = ()) -> Person:
    """Who acted. `home`: the workspace of a stranger, whose ids are unique there; on Enterprise Grid the organisation's ids count."""
    realm, known_as = home or scope.realm, user_id
    if not home and profile and profile.grid_id:
        realm, known_as = profile.grid or scope.realm, profile.grid_id
    if profile is None:
        return Person(PLATFORM, realm, known_as, "somebody", roles=roles)
    return Person(PLATFORM, realm, known_as, profile.name, profile.locale, profile.timezone, roles)


def author_id(scope: Scope, user_id: str, profile: Profile | None) -> str:
    """The key under which quoted words of a user are found again."""
    return person_of(scope, user_id, profile).author_id


class People:
    """Asks users.info, everybody at most once at a time."""

    def __init__(self) -> None:
        self._known: OrderedDict[tuple[str, str], tuple[float, Profile]] = OrderedDict()
        self._asking: dict[tuple[str, str], asyncio.Task[Profile | None]] = {}

    async def of(self, workspace: Workspace, user_id: str, *, age: float = FRESH) -> Profile | None:
        """A person, at most `age` seconds old; None when Slack does not tell. An older answer is better than none."""
        if not user_id:
            return None
        key = workspace.key, user_id
        at, found = self._known.get(key, (float("-inf"), None))
        if found is not None and time.monotonic() - at < age:
            return found
        task = self._asking.get(key)
        if task is None:
            task = self._asking[key] = asyncio.create_task(self._ask(workspace, user_id))
            task.add_done_callback(lambda _: self._asking.pop(key, None))
        return await asyncio.shield(task) or found

    async def _ask(self, workspace: Workspace, user_id: str) -> Profile | None:
        try:
            answer = await workspace.client.users_info(user=user_id, include_locale=True)
        except FAILURES as error:
            log.info("users.info failed: %s", type(error).__name__)
            return None
        return self.learn(workspace, answer["user"])

    def learn(self, workspace: Workspace, user: Mapping[str, Any]) -> Profile:
        """What Slack just told of a user."""
        profile = profile_of(user)
        key = workspace.key, profile.user_id
        self._known[key] = time.monotonic(), profile
        self._known.move_to_end(key)
        while len(self._known) > REMEMBERED:
            self._known.popitem(last=False)
        return profile

    async def names(self, workspace: Workspace, user_ids: Iterable[str]) -> dict[str, str]:
        """What several people are called; who is not known is left out."""
        ids = list(dict.fromkeys(user_ids))
        found = await asyncio.gather(*(self.of(workspace, user_id) for user_id in ids))
        return {user_id: profile.name for user_id, profile in zip(ids, found, strict=True) if profile}


def undisturbed_until(answer: Mapping[str, Any], now: datetime) -> datetime | None:
    """Until when somebody does not want to be disturbed by what dnd.info says; None: they may be."""
    at = now.timestamp()
    ends = []
    if answer.get("snooze_enabled") and float(answer.get("snooze_endtime") or 0) > at:
        ends.append(float(answer["snooze_endtime"]))
    start, end = float(answer.get("next_dnd_start_ts") or 0), float(answer.get("next_dnd_end_ts") or 0)
    if answer.get("dnd_enabled") and start <= at < end:
        ends.append(end)
    return datetime.fromtimestamp(max(ends), UTC) if ends else None
