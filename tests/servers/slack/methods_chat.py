"""chat.*, reactions.*: posting, changing, deleting, and streams."""

from __future__ import annotations

import time
from typing import Literal

from tests.servers.slack import blocks as kit
from tests.servers.slack import payloads
from tests.servers.slack.actions import Actions, Draft
from tests.servers.slack.api import Api, Call
from tests.servers.slack.errors import SlackError, invalid_arguments
from tests.servers.slack.world import Channel, Json, Message, User


class ChatMethods:
    """`stream_life` is how long a stream takes text, in seconds; `stream_limit` how many characters it takes in all."""

    def __init__(self, api: Api, actions: Actions, sessions: dict[tuple[str, str | None], str]) -> None:
        self._sessions = sessions
        self.stream_life = 300.0
        self.stream_limit = 40_000
        self._actions = actions
        api.add("chat.postMessage", self.post, "chat:write")
        api.add("chat.postEphemeral", self.post_ephemeral, "chat:write")
        api.add("chat.update", self.update, "chat:write")
        api.add("chat.delete", self.delete, "chat:write")
        api.add("chat.getPermalink", self.permalink)
        api.add("chat.startStream", self.start_stream, "chat:write")
        api.add("chat.appendStream", self.append_stream, "chat:write")
        api.add("chat.stopStream", self.stop_stream, "chat:write")
        api.add("reactions.add", self.react, "reactions:write")
        api.add("reactions.remove", self.unreact, "reactions:write")

    def post(self, call: Call) -> Json:
        channel = self._target(call)
        bot = call.bot_in(channel)
        draft = _content(call)
        draft.metadata = _metadata(call)
        draft.thread_ts = _root(channel, call.text("thread_ts"))
        draft.broadcast, draft.bot_id = call.flag("reply_broadcast"), bot.bot_id
        draft.username = call.text("username")
        message = self._actions.create(channel, bot, draft)
        return {"channel": channel.id, "ts": message.ts, "message": self._shown(message)}

    def post_ephemeral(self, call: Call) -> Json:
        channel = self._target(call)
        reader = channel.members.get(call.need("user"))
        if reader is None:
            raise SlackError("user_not_in_channel")
        bot = call.bot_in(channel)
        draft = _content(call)
        draft.thread_ts = call.text("thread_ts")
        return {"message_ts": self._actions.ephemeral(channel, bot, reader, draft).ts}

    def update(self, call: Call) -> Json:
        channel = call.channel()
        message = _own(call, channel, "cant_update_message")
        if self._actions.running(message):
            raise SlackError("streaming_state_conflict")
        draft = _content(call)
        kit.check_text(call.text("text") or "", kit.UPDATED)
        given = call.log.args
        changes: Json = {"raw": given}
        # Blocks stay only where neither they nor a text are given.
        if any(given.get(name) is not None for name in ("blocks", "text", "markdown_text")):
            changes["blocks"] = draft.blocks
        if given.get("metadata") is not None:
            changes["metadata"] = _metadata(call)
        self._actions.edit(message, draft.text or message.text, **changes)
        return {"channel": channel.id, "ts": message.ts, "text": message.text, "message": self._shown(message)}

    def delete(self, call: Call) -> Json:
        channel = call.channel()
        message = _own(call, channel, "cant_delete_message")
        if self._actions.running(message):
            raise SlackError("cant_delete_message")
        self._actions.delete(message)
        return {"channel": channel.id, "ts": message.ts}

    def permalink(self, call: Call) -> Json:
        channel = call.channel()
        message = _message(channel, call.need("message_ts"))
        return {"channel": channel.id, "permalink": f"{self._actions.base}/archives/{channel.id}/p{message.ts.replace('.', '')}"}

    # Streams.

    def start_stream(self, call: Call) -> Json:
        channel = self._target(call)
        if channel.kind != "im":
            for name in ("recipient_user_id", "recipient_team_id"):
                if not call.text(name):
                    raise SlackError(f"missing_{name}")
            if call.need("recipient_user_id") not in channel.members:
                raise SlackError("user_not_found")
        elif not call.text("thread_ts"):
            raise invalid_arguments("missing required field: thread_ts")
        piece, blocks = _pieces(call)
        bot = call.bot_in(channel)
        draft = Draft(piece, blocks, thread_ts=_root(channel, call.text("thread_ts")), bot_id=bot.bot_id)
        message = self._actions.create(channel, bot, draft)
        message.streaming, message.stream_ends = True, time.monotonic() + self.stream_life
        message.pieces.append(piece)
        _same_mode(call, message)
        if message.thread_ts:
            self._sessions[channel.id, message.thread_ts] = "processing"
        return {"channel": channel.id, "ts": message.ts}

    def append_stream(self, call: Call) -> Json:
        message = self._stream(call, stopped="stopped_by_user")
        piece, blocks = _pieces(call)
        if call.text("markdown_text") is None and call.parsed("chunks") is None:
            raise SlackError("markdown_text_or_chunks_required")
        _same_mode(call, message)
        self._grow(message, piece, blocks)
        return {"channel": message.channel.id, "ts": message.ts}

    def stop_stream(self, call: Call) -> Json:
        message = self._stream(call)
        piece, more = _pieces(call)
        blocks = call.parsed("blocks", "invalid_blocks_format") or []
        kit.check_message(blocks)
        _same_mode(call, message)
        self._grow(message, piece, [*more, *blocks])
        message.metadata = _metadata(call) or message.metadata
        self._actions.end_stream(message)
        if message.thread_ts:
            self._sessions[message.channel.id, message.thread_ts] = call.text("session_status") or "active"
        return {"channel": message.channel.id, "ts": message.ts, "message": self._shown(message)}

    def _stream(self, call: Call, stopped: str = "message_not_in_streaming_state") -> Message:
        message = _message(call.channel(), call.need("ts"))
        if message.author not in message.channel.bots or message.author.app_id != call.caller.app.id:
            raise SlackError("message_not_owned_by_app")
        if not self._actions.running(message):
            raise SlackError(stopped if message.stopped else "message_not_in_streaming_state")
        return message

    def _grow(self, message: Message, piece: str, blocks: list[Json]) -> None:
        if len(message.text) + len(piece) > self.stream_limit:
            raise SlackError("msg_too_long")
        message.text += piece
        message.blocks = [*message.blocks, *blocks]
        if piece:
            message.pieces.append(piece)
        self._actions.signal.notify(message.channel)

    # Reactions.

    def react(self, call: Call) -> None:
        message = _message(call.channel(inside=True), call.need("timestamp"))
        people = message.reactions.setdefault(call.need("name").strip(":"), [])
        if call.bot.id in people:
            raise SlackError("already_reacted")
        people.append(call.bot.id)

    def unreact(self, call: Call) -> None:
        message = _message(call.channel(inside=True), call.need("timestamp"))
        people = message.reactions.get(call.need("name").strip(":"), [])
        if call.bot.id not in people:
            raise SlackError("no_reaction")
        people.remove(call.bot.id)

    def _target(self, call: Call) -> Channel:
        """Where to post: a channel the bot is in, or a person, whose direct messages are meant."""
        named = call.need("channel")
        user = call.world.user(named) if named[0] in "UW" else None
        if user is not None:
            if not any(user.team is team for team in call.caller.teams):
                raise SlackError("channel_not_found")
            channel = call.world.direct(user)
        else:
            channel = call.channel(inside=True)
        if channel.archived or (channel.kind == "im" and channel.user.deleted):
            raise SlackError("is_archived")
        return channel

    def _shown(self, message: Message) -> Json:
        return payloads.message_json(message, self._actions.world, self._actions.base, metadata=True)


def _content(call: Call) -> Draft:
    """Text and blocks, checked."""
    text, markdown = call.text("text") or "", call.text("markdown_text")
    blocks = call.parsed("blocks", "invalid_blocks_format") or []
    attachments = call.parsed("attachments") or []
    if markdown is not None:
        if text or blocks:
            raise SlackError("markdown_text_conflict")
        kit.check_markdown(markdown)
        text, blocks = markdown, [{"type": "markdown", "text": markdown}] if markdown else []
    if not text.strip() and not blocks and not attachments:
        raise SlackError("no_text")
    kit.check_text(text)
    kit.check_message(blocks)
    blocks = [{"block_id": f"b{number}", **block} for number, block in enumerate(blocks)]
    return Draft(text, blocks, attachments, raw=dict(call.log.args))


def _metadata(call: Call) -> Json | None:
    metadata: Json | None = call.parsed("metadata", "invalid_metadata_format")
    if metadata is not None:
        kit.check_metadata(metadata)
    return metadata


def _pieces(call: Call) -> tuple[str, list[Json]]:
    """The text of a stream call, and blocks from its chunks."""
    markdown, chunks = call.text("markdown_text"), call.parsed("chunks", "invalid_chunks") or []
    if markdown is not None and chunks:
        raise SlackError("cannot_provide_both_markdown_text_and_chunks")
    if not isinstance(chunks, list) or not all(isinstance(chunk, dict) for chunk in chunks):
        raise SlackError("invalid_chunks")
    blocks: list[Json] = []
    texts = [markdown or ""]
    for chunk in chunks:
        match chunk.get("type"):
            case "markdown_text":
                texts.append(chunk["text"])
            case "blocks":
                blocks += chunk["blocks"]
            case "task_update" | "plan_update":
                pass
            case _:
                raise SlackError("invalid_chunks")
    kit.check_markdown("".join(texts))
    kit.check_message(blocks)
    return "".join(texts), blocks


def _same_mode(call: Call, message: Message) -> None:
    """A stream takes text either as markdown_text or in chunks, whichever came first."""
    mode: Literal["text", "chunks"] | None = "chunks" if call.parsed("chunks") else "text" if call.text("markdown_text") else None
    if mode and message.stream_mode not in (None, mode):
        raise SlackError("streaming_mode_mismatch")
    message.stream_mode = message.stream_mode or mode


def _root(channel: Channel, ts: str | None) -> str | None:
    """The thread to post in; a reply's ts means its thread."""
    if ts is None:
        return None
    message = channel.messages.get(ts)
    if message is None:
        raise SlackError("thread_not_found")
    return message.thread_ts or message.ts


def _message(channel: Channel, ts: str) -> Message:
    message = channel.messages.get(ts)
    if message is None:
        raise SlackError("message_not_found")
    return message


def _own(call: Call, channel: Channel, refusal: str) -> Message:
    message = _message(channel, call.need("ts"))
    owner: User = message.author
    if owner.app_id != call.caller.app.id or message.subtype == "tombstone":
        raise SlackError(refusal)
    if channel.archived:
        raise SlackError("is_archived")
    return message
