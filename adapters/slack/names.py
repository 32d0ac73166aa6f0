"""Places, people and events of Slack as values. Pure.

A place is a channel, or a thread of it as `channel:thread`. Whose event it is says the envelope: a workspace (team), on Enterprise Grid
also the organisation; with an installation for a whole organisation the team may be missing.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from adapters.base import PlaceKind, PlaceOf

PLATFORM = "slack"
NAME_LENGTH = 80
KINDS: Mapping[str, PlaceKind] = {"im": "direct", "channel": "public", "group": "private", "mpim": "private"}

Json = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Scope:
    """Whose event it is. `team` may be empty with an installation for a whole organisation, `enterprise` outside Enterprise Grid."""

    team: str
    enterprise: str = ""
    org_wide: bool = False

    @property
    def workspace(self) -> str:
        """Under which keys, limits and places go."""
        return self.team or self.enterprise

    @property
    def realm(self) -> str:
        """Where user ids are unique."""
        return self.enterprise or self.team


def scope_of(body: Mapping[str, Any]) -> Scope:
    """Whose event, command or press a body is. In a shared channel the first authorization is ours, `team_id` perhaps not."""
    authorizations = body.get("authorizations")
    first = authorizations[0] if isinstance(authorizations, list) and authorizations else None
    source = first if isinstance(first, dict) else body
    org_wide = source.get("is_enterprise_install") in (True, "true")
    team = _id(source.get("team_id")) or ("" if first else _id(body.get("team")))
    enterprise = _id(source.get("enterprise_id")) or _id(body.get("enterprise"))
    if not enterprise and isinstance(body.get("team"), dict):
        enterprise = _id(body["team"].get("enterprise_id"))
    if not team and not first and isinstance(body.get("user"), dict):
        team = _id(body["user"].get("team_id"))
    return Scope(team, enterprise, org_wide)


def _id(found: object) -> str:
    if isinstance(found, dict):
        found = found.get("id")
    return found if isinstance(found, str) else ""


def spot(channel: str, thread: str | None) -> str:
    """A place's id of a channel and, within it, a thread."""
    return f"{channel}:{thread}" if thread else channel


def parted(external_id: str) -> tuple[str, str | None]:
    """Channel and thread of a place's id."""
    channel, _, thread = external_id.partition(":")
    return channel, thread or None


def stamp(event: Mapping[str, Any]) -> str:
    """The message's id within its channel."""
    return str(event.get("ts") or event.get("event_ts") or "")


def moment(ts: str) -> datetime:
    """When a message was written; an id that is no time counts as now."""
    try:
        return datetime.fromtimestamp(float(ts), UTC)
    except (ValueError, OverflowError, OSError):
        return datetime.now(UTC)


def thread_of(event: Mapping[str, Any], *, direct: bool, answer_in_thread: bool) -> str | None:
    """The thread that a message is answered in: its own; in a channel, where it is in none, the one that begins with it."""
    own = event.get("thread_ts")
    if own:
        return str(own)
    return stamp(event) if answer_in_thread and not direct else None


def spots_of(event: Mapping[str, Any]) -> tuple[str, ...]:
    """The places in which a message may have been taken in. One that is in no thread, or begins one, may stand for either."""
    channel, ts, thread = str(event.get("channel") or ""), stamp(event), str(event.get("thread_ts") or "")
    return (channel, spot(channel, ts)) if thread in ("", ts) else (spot(channel, thread),)


def origin_of(channel: str, event: Mapping[str, Any]) -> str:
    """Where quoted words are found again."""
    return f"{spots_of({**event, 'channel': channel})[0]}/{stamp(event)}"


def key_of(scope: Scope, channel: str, ts: str) -> str:
    """What makes a message one, however often and in whatever form it comes."""
    return f"{scope.workspace}:{channel}:{ts}"


def place_of(scope: Scope, channel: str, thread: str | None, kind: PlaceKind | None, name: str, workspace: str = "") -> PlaceOf:
    """Where something happened; `workspace` where an organisation-wide installation found out which."""
    where = workspace or scope.workspace
    # Which workspace's members read it is not known: then nothing is.
    kind = None if kind == "public" and not (workspace or scope.team) else kind
    return PlaceOf(PLATFORM, scope.realm, where, spot(channel, thread), kind, name[:NAME_LENGTH], channel if thread else None)
