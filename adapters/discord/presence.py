"""Who has just come online. Pure: Discord says it once for each guild in common, and at every change of an activity."""

from __future__ import annotations

import json
from collections.abc import Collection
from typing import Any

FLAP = 600.0
"""Seconds in which somebody who goes and comes is not seen again."""
SETTLING = 60.0
"""Seconds after a connection in which an unknown state is learnt and no login."""
ONLINE = frozenset(("online", "idle", "dnd"))


def online_in(dispatch: str) -> tuple[int, frozenset[int]] | None:
    """The guild of a GUILD_CREATE as it came over the gateway, and who is online there; None for anything else.

    The library keeps no presence of people whom it does not keep as members, which takes another intent.
    """
    if '"GUILD_CREATE"' not in dispatch:
        return None
    said: dict[str, Any] = json.loads(dispatch)
    if said.get("t") != "GUILD_CREATE":
        return None
    data = said["d"]
    presences = [one for one in data.get("presences") or () if one.get("status") in ONLINE]
    return int(data["id"]), frozenset(int(one["user"]["id"]) for one in presences)


class Presences:
    """In which guilds each person was last seen online."""

    def __init__(self) -> None:
        self._online: dict[int, set[int]] = {}
        self._in: dict[int, set[int]] = {}
        self._seen: dict[int, float] = {}
        self._connected = 0.0

    def connected(self, now: float) -> None:
        """A new session: changes may have been missed, until its guilds are known."""
        self._connected = now

    def guild(self, guild: int, online: Collection[int]) -> None:
        """Who is online in a guild at the beginning of a session. That is how things stand, nobody has come."""
        for user in self._in.pop(guild, ()):
            self._online[user].discard(guild)
        self._in[guild] = set(online)
        for user in online:
            self._online.setdefault(user, set()).add(guild)

    def login(self, user: int, guild: int, status: str, now: float) -> bool:
        """Whether this update, told for a guild, means that the person has come online."""
        known = user in self._online
        places = self._online.setdefault(user, set())
        before = bool(places)
        if status not in ONLINE:
            places.discard(guild)
            self._in.setdefault(guild, set()).discard(user)
            return False
        places.add(guild)
        self._in.setdefault(guild, set()).add(user)
        if before or (not known and now < self._connected + SETTLING):
            return False
        last = self._seen.get(user)
        if last is not None and now < last + FLAP:
            return False
        self._seen[user] = now
        return True
