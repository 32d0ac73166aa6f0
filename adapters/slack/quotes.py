"""The words of others that come along with a message: each under its author, never as the person's own."""

from __future__ import annotations

import logging
from collections import OrderedDict
from collections.abc import Iterable, Mapping, Sequence
from datetime import UTC, datetime
from typing import Any, Literal

from adapters.base import Quote
from adapters.files import described
from adapters.slack.files import file_of
from adapters.slack.names import PLATFORM, Json, Scope, origin_of, stamp
from adapters.slack.people import FAILURES, People, person_of
from adapters.slack.texts import mentioned, names_from, readable
from adapters.slack.triggers import WRITTEN, is_stranger
from adapters.slack.workspaces import Workspace

log = logging.getLogger(__name__)

LONG, SHORT = 2000, 500
"""Characters of a message that is pointed at, and of one that only stood around."""
REMEMBERED = 20_000
PAGE, PAGES = 200, 5
"""Of a thread Slack tells the oldest first."""


class Quotes:
    """Gathers them, and remembers how far each person's agent has seen a conversation, so that nothing comes along twice."""

    def __init__(self, around: int, people: People) -> None:
        self._around, self._people = around, people
        self._seen: OrderedDict[tuple[str, str], str] = OrderedDict()

    async def of(
        self, workspace: Workspace, scope: Scope, event: Mapping[str, Any], *, me: str, direct: bool, place: str
    ) -> tuple[Quote, ...]:
        """A thread's first message, the messages before, what was forwarded; oldest first within each."""
        user, channel, ts = str(event.get("user") or ""), str(event.get("channel")), stamp(event)
        thread = str(event.get("thread_ts") or "")
        key = place, user
        seen = self._seen.get(key, "")
        found: list[Json] = []
        try:
            if thread and thread != ts:
                found = await self._thread(workspace, channel, thread, ts)
            elif not direct and self._around:
                answer = await workspace.client.conversations_history(
                    channel=channel, latest=ts, limit=self._around, inclusive=False
                )
                found = list(reversed(answer["messages"]))
        except FAILURES as error:
            log.info("no context: %s", type(error).__name__)
        starter = [one for one in found if one.get("ts") == thread and not seen]
        around = [] if direct else [one for one in found if one.get("ts") != thread]
        around = (
            [one for one in _not_known(around, user, me, seen) if one.get("subtype") in WRITTEN][-self._around :]
            if self._around
            else []
        )
        quotes = [
            *await self._quoted(workspace, scope, channel, starter, "starter", LONG, me),
            *await self._quoted(workspace, scope, channel, around, "context", SHORT, me),
            *await self._forwarded(workspace, scope, event, me),
        ]
        return tuple(quotes)

    def taken(self, place: str, user: str, ts: str) -> None:
        """A person's message was taken in: what stood before it came along."""
        self._seen[place, user] = max(ts, self._seen.get((place, user), ""))
        self._seen.move_to_end((place, user))
        while len(self._seen) > REMEMBERED:
            self._seen.popitem(last=False)

    async def _thread(self, workspace: Workspace, channel: str, thread: str, before: str) -> list[Json]:
        found: list[Json] = []
        cursor = ""
        for _ in range(PAGES):
            answer = await workspace.client.conversations_replies(
                channel=channel, ts=thread, latest=before, limit=PAGE, cursor=cursor or None
            )
            found += [one for one in answer["messages"] if str(one.get("ts")) < before]
            cursor = str((answer.get("response_metadata") or {}).get("next_cursor") or "")
            if not cursor:
                break
        return found

    async def _quoted(
        self,
        workspace: Workspace,
        scope: Scope,
        channel: str,
        found: Iterable[Json],
        kind: Literal["context", "starter"],
        longest: int,
        me: str,
    ) -> list[Quote]:
        quotes = []
        for one in found:
            if text := (await self.seen_text(workspace, one, me))[:longest]:
                quotes.append(await self._by(workspace, scope, one, text, kind, origin_of(channel, one), me))
        return quotes

    async def _by(
        self,
        workspace: Workspace,
        scope: Scope,
        one: Mapping[str, Any],
        text: str,
        kind: Literal["context", "starter", "forward"],
        origin: str,
        me: str,
    ) -> Quote:
        user = str(one.get("user") or "")
        if not user or one.get("bot_id"):
            name = str(one.get("username") or (one.get("bot_profile") or {}).get("name") or "a bot")
            author = f"{PLATFORM}:{scope.realm}:{user or one.get('bot_id', '')}"
            return Quote(author, name, text, kind, origin, _said(one), own=bool(me) and user == me)
        profile = await self._people.of(workspace, user)
        person = person_of(
            scope, user, profile, home=is_stranger(one, scope) if profile is None or profile.grid != scope.enterprise else ""
        )
        return Quote(person.author_id, person.name, text, kind, origin, _said(one), own=bool(me) and user == me)

    async def seen_text(self, workspace: Workspace, one: Mapping[str, Any], me: str) -> str:
        """A message of somebody else as text: its words, and its files in a line each."""
        text = str(one.get("text") or "")
        names = await self._people.names(workspace, mentioned(text))
        lines = [readable(text, names_from(names), me=me), *(described(file_of(file)) for file in one.get("files") or [])]
        return "\n".join(line for line in lines if line)

    async def _forwarded(self, workspace: Workspace, scope: Scope, event: Mapping[str, Any], me: str) -> list[Quote]:
        """What was shared from elsewhere; a link's preview is none."""
        quotes = []
        for one in event.get("attachments") or []:
            if not (one.get("is_share") or one.get("is_msg_unfurl")):
                continue
            text = str(one.get("text") or one.get("fallback") or "")
            names = await self._people.names(workspace, mentioned(text))
            said = readable(text, names_from(names), me="")[:LONG]
            if said:
                author = {"user": one.get("author_id"), "username": one.get("author_name") or "somebody elsewhere"}
                origin = f"{one['channel_id']}/{one['ts']}" if one.get("channel_id") and one.get("ts") else ""
                quotes.append(await self._by(workspace, scope, author, said, "forward", origin, me))
        return quotes


def _not_known(found: Sequence[Json], user: str, me: str, seen: str) -> list[Json]:
    """Without what the person's agent has already: what they said up to their last message here, and what the bot answered them."""
    kept = []
    answered = ""
    for one in found:
        mine = bool(me) and one.get("user") == me
        if not mine:
            answered = str(one.get("user") or "")
        if str(one.get("ts")) <= seen or (mine and answered == user and seen):
            continue
        kept.append(one)
    return kept


def _said(one: Mapping[str, Any]) -> datetime | None:
    """When a message was posted, by its `ts` (seconds since 1970)."""
    try:
        return datetime.fromtimestamp(float(one["ts"]), UTC)
    except (KeyError, TypeError, ValueError, OverflowError):
        return None
