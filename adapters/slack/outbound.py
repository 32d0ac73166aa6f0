"""What goes out: sending, looking up what was perhaps sent, streaming, and what a refusal means."""

from __future__ import annotations

import logging
import zlib
from collections import OrderedDict
from collections.abc import Callable, Mapping
from typing import Any

from slack_sdk.errors import SlackApiError

from adapters.base import Outgoing, TryLater, Undeliverable, Unreachable
from adapters.slack import blocks
from adapters.slack.names import Json, parted
from adapters.slack.texts import plain
from adapters.slack.workspaces import DEAD_TOKEN, Workspace, Workspaces, error_of

log = logging.getLogger(__name__)

MARK, TOLD = "keepsake_reply", "keepsake_answer"
"""The type of the metadata by which our messages are found again, and of answers to commands."""
LOOK_BACK = 100
"""Messages of a channel or thread that are looked at for one that was perhaps sent."""
AWAY = 2.0
"""Seconds to wait while a workspace is not signed in, or Slack does not say how long."""
KEPT = 300.0
"""Seconds until a reply to a workspace that threw the app out is looked at again."""
REMEMBERED = 5_000

GONE_FOR_GOOD = frozenset(
    (
        "channel_not_found",
        "is_archived",
        "not_in_channel",
        "no_text",
        "msg_too_long",
        "msg_blocks_too_long",
        "invalid_arguments",
        "invalid_blocks",
        "invalid_blocks_format",
        "restricted_action",
        "restricted_action_read_only_channel",
        "restricted_action_thread_only_channel",
        "restricted_action_non_threadable_channel",
        "restricted_action_thread_locked",
        "messages_tab_disabled",
        "cannot_reply_to_message",
        "thread_not_found",
        "message_not_found",
        "team_access_not_granted",
        "team_not_found",
        "ekm_access_denied",
        "missing_scope",
        "not_allowed_token_type",
        "channel_type_not_supported",
    )
)
"""Errors that no repetition mends for this message."""
PERSON_GONE = frozenset(("user_not_found", "user_disabled", "user_is_bot", "cannot_dm_bot"))
"""Errors that mean the person: nothing more is tried with them until they write again."""
TELL = {
    "missing_scope": "the app lacks a scope; make the manifest anew (`bot slack manifest`) and reinstall the app",
    "messages_tab_disabled": "the app's Messages tab is switched off; make the manifest anew (`bot slack manifest`)",
}
"""Those of them that the operator can mend, with what to do."""
SLOW_DOWN = {"ratelimited": 30.0, "rate_limited": 30.0, "message_limit_exceeded": 60.0}
BLOCKS_REFUSED = frozenset(("invalid_blocks", "invalid_blocks_format", "unsupported_block_type"))


def mark_of(outgoing: Outgoing) -> Json:
    """The message's own mark. It has a checksum of what it answers (else of its text, while that stays the same), because a database
    that begins anew begins with the same numbers."""
    about = outgoing.reply_to or ("" if outgoing.streamed else outgoing.text)
    check = f"{zlib.crc32(about.encode('utf-8', 'replace')):08x}"
    return {"event_type": MARK, "event_payload": {"outbox_id": outgoing.outbox_id, "check": check}}


def meaning(error: SlackApiError) -> Exception | None:
    """What a refusal means for the outbox; None: nobody knows whether it was done."""
    code, response = error_of(error), error.response
    status = getattr(response, "status_code", 0)
    if status == 429 or code in SLOW_DOWN:
        return TryLater(_asked(response) or SLOW_DOWN.get(code, 30.0))
    if code in DEAD_TOKEN:
        return TryLater(KEPT)
    if code in PERSON_GONE:
        return Unreachable(f"Slack refuses it ({code})")
    if code in GONE_FOR_GOOD:
        return Undeliverable(f"Slack refuses it ({code})")
    return None


def _asked(response: Any) -> float | None:
    headers = getattr(response, "headers", None) or {}
    try:
        return float(headers.get("Retry-After") or headers.get("retry-after") or "")
    except ValueError:
        return None


class Outbound:
    """Sends with the workspace's own client."""

    def __init__(self, workspaces: Workspaces, say: Callable[[str], None], posted: Callable[[str, str], None]) -> None:
        self._workspaces, self._say, self.posted = workspaces, say, posted
        self._sent: OrderedDict[tuple[str, int, str], str] = OrderedDict()
        self._closed: set[str] = set()
        self._told: set[str] = set()

    async def send(self, outgoing: Outgoing) -> str:
        """Send one message and return its id, as the contract says."""
        if outgoing.channel in self._closed or parted(outgoing.channel)[0] in self._closed:
            raise Unreachable("this person's account was closed")
        workspace = await self.workspace(outgoing)
        try:
            ts = await self._post(workspace, outgoing)
        except SlackApiError as error:
            raise await self.judged(workspace, error) or error from error
        self.remember(outgoing, ts)
        self.posted(outgoing.channel, workspace.key)
        return ts

    async def _post(self, workspace: Workspace, outgoing: Outgoing) -> str:
        shown = blocks.outgoing(outgoing)
        try:
            return await self._call(workspace, outgoing, shown)
        except SlackApiError as error:
            if error_of(error) not in BLOCKS_REFUSED:
                raise
        # Whatever the block did not like, the words get through.
        return await self._call(workspace, outgoing, {"text": blocks.notifying(outgoing, plain(outgoing.text))})

    async def _call(self, workspace: Workspace, outgoing: Outgoing, shown: Json) -> str:
        channel, thread = parted(outgoing.channel)
        answer = await workspace.client.chat_postMessage(
            channel=channel, thread_ts=thread, metadata=mark_of(outgoing), unfurl_links=False, unfurl_media=False, **shown
        )
        return str(answer["ts"])

    async def workspace(self, outgoing: Outgoing) -> Workspace:
        """Who may speak there. Raises TryLater while nobody may."""
        found = await self._workspaces.for_channel(parted(outgoing.channel)[0], outgoing.workspace)
        if found is None:
            raise TryLater(KEPT if self._workspaces.all else AWAY)
        return found

    async def judged(self, workspace: Workspace, error: SlackApiError) -> Exception | None:
        """What a refusal means; a token that is dead ends its workspace, what the operator can mend is told once."""
        code = error_of(error)
        if code in DEAD_TOKEN:
            await self._workspaces.gone(workspace, code)
        if code in TELL and code not in self._told:
            self._told.add(code)
            self._say(f"Slack: {TELL[code]}.")
        return meaning(error)

    async def find(self, outgoing: Outgoing) -> str | None:
        """A message that was perhaps sent: remembered, else by its mark in the channel or thread."""
        if (known := self.known(outgoing)) is not None:
            return known
        workspace = await self.workspace(outgoing)
        channel, thread = parted(outgoing.channel)
        try:
            if thread:
                found = await self._thread(workspace, channel, thread)
            else:
                answer = await workspace.client.conversations_history(channel=channel, limit=LOOK_BACK, include_all_metadata=True)
                found = answer["messages"]
        except SlackApiError as error:
            if (what := await self.judged(workspace, error)) is not None:
                raise what from error
            raise
        mark = mark_of(outgoing)
        for one in found:
            if _marked(one, mark):
                return str(one["ts"])
        # A stream has no mark until its end: it is ours that has none, after what it answers.
        unmarked = [
            one
            for one in found
            if outgoing.streamed and outgoing.reply_to and self._unfinished(one, workspace, outgoing.reply_to)
        ]
        return str(unmarked[-1]["ts"]) if unmarked else None

    def _unfinished(self, one: Mapping[str, Any], workspace: Workspace, after: str) -> bool:
        ts = str(one.get("ts"))
        return one.get("bot_id") == workspace.bot_id and ts > after and not one.get("metadata") and ts not in self._sent.values()

    async def _thread(self, workspace: Workspace, channel: str, thread: str) -> list[Json]:
        """All of a thread, as Slack tells the oldest first; the newest are what matters."""
        found: list[Json] = []
        cursor = ""
        for _ in range(10):
            answer = await workspace.client.conversations_replies(
                channel=channel, ts=thread, limit=200, cursor=cursor or None, include_all_metadata=True
            )
            found += answer["messages"]
            cursor = str((answer.get("response_metadata") or {}).get("next_cursor") or "")
            if not cursor:
                break
        return found[::-1]

    def known(self, outgoing: Outgoing) -> str | None:
        """The id of a message that this process knows to stand there."""
        return self._sent.get(_key(outgoing))

    def forget(self, outgoing: Outgoing) -> None:
        """It stands there no longer, or not whole."""
        self._sent.pop(_key(outgoing), None)

    def remember(self, outgoing: Outgoing, ts: str) -> None:
        """A message of ours stands there now."""
        self._sent[_key(outgoing)] = ts
        while len(self._sent) > REMEMBERED:
            self._sent.popitem(last=False)

    def close(self, channel: str) -> None:
        """Whose direct messages these are is no longer there."""
        self._closed.add(channel)

    def heard(self, channel: str) -> None:
        """Somebody wrote here, so they can be written to again."""
        self._closed.discard(channel)


def _key(outgoing: Outgoing) -> tuple[str, int, str]:
    return outgoing.channel, outgoing.outbox_id, mark_of(outgoing)["event_payload"]["check"]


def _marked(one: Mapping[str, Any], mark: Json) -> bool:
    metadata = one.get("metadata") or {}
    payload = metadata.get("event_payload") or {}
    wanted = mark["event_payload"]
    return (
        metadata.get("event_type") == MARK
        and str(payload.get("outbox_id")) == str(wanted["outbox_id"])
        and payload.get("check") == wanted["check"]
    )
