"""The rules for what the bot posts and edits: what Discord refuses, this refuses with the same codes."""

from __future__ import annotations

import mimetypes

from tests.servers.discord import errors, intents
from tests.servers.discord.actions import Actions, Draft
from tests.servers.discord.api import Call
from tests.servers.discord.errors import ApiError, invalid_form
from tests.servers.discord.mentions import allowed_mentions
from tests.servers.discord.permissions import ATTACH_FILES, MANAGE_THREADS, READ_MESSAGE_HISTORY, VIEW_CHANNEL, may, may_speak
from tests.servers.discord.world import COMPONENTS_V2, DM, EPHEMERAL, FORUM, ORDINARY, Attachment, Channel, Json, Message, World

LONGEST = 2000
MOST_BYTES = 10 * 2**20
# What a request may set among a message's flags: no embeds, no notification, voice, components v2.
SETTABLE = 1 << 2 | 1 << 12 | 1 << 13 | COMPONENTS_V2


def visible(world: World, channel_id: int) -> Channel:
    """The channel, if it is and the bot sees it."""
    channel = world.channels.get(channel_id)
    if channel is None:
        raise errors.unknown_channel()
    if not may(world.bot, channel, world.bot, VIEW_CHANNEL):
        raise errors.missing_access()
    return channel


def known(channel: Channel, message_id: int) -> Message:
    message = channel.messages.get(message_id)
    if message is None:
        raise errors.unknown_message()
    return message


def writable(world: World, channel: Channel) -> None:
    """Refuses where the bot may not write."""
    if channel.kind == DM:
        person = channel.recipients[0]
        if not person.dms_open:
            raise errors.cannot_message_user()
        if not person.installed and not any(world.guilds_of(person)):
            raise errors.no_mutual_guilds()
        return
    if channel.kind == FORUM:
        raise ApiError(400, 40058, "Cannot send a message in a forum channel")
    if channel.locked and not may(world.bot, channel, world.bot, MANAGE_THREADS):
        raise errors.thread_archived() if channel.archived else errors.thread_locked()
    if not may_speak(world.bot, channel, world.bot):
        raise errors.missing_permissions()


def read_content(body: Json) -> str:
    """The text as Discord keeps it: without what is no Unicode and without blanks around it."""
    content = body.get("content") or ""
    if not isinstance(content, str):
        raise invalid_form("content", "BASE_TYPE_STRING", "Must be a string.")
    if len(content) > LONGEST:
        raise invalid_form("content", "BASE_TYPE_MAX_LENGTH", "Must be 2000 or fewer in length.")
    return content.encode("utf-8", "ignore").decode().replace("\0", "").strip()


def read_draft(call: Call, actions: Actions, body: Json | None = None) -> Draft:
    """A new message's fields, checked; `body` where they are nested in the request's."""
    body = call.body if body is None else body
    embeds, components, flags = body.get("embeds") or [], body.get("components") or [], int(body.get("flags") or 0)
    draft = Draft(read_content(body), embeds=embeds, components=components, flags=flags & (SETTABLE | EPHEMERAL))
    draft.allowed = allowed_mentions(body)
    if len(embeds) > 10:
        raise invalid_form("embeds", "BASE_TYPE_MAX_LENGTH", "Must be 10 or fewer in length.")
    if flags & COMPONENTS_V2 and (draft.content or embeds):
        raise invalid_form(
            "content", "MESSAGE_CANNOT_USE_LEGACY_FIELDS_WITH_COMPONENTS_V2", "Cannot be used with IS_COMPONENTS_V2."
        )
    if len(components) > (40 if flags & COMPONENTS_V2 else 5):
        raise invalid_form("components", "BASE_TYPE_BAD_LENGTH", "Must be between 1 and 5 in length.")
    draft.nonce = read_nonce(body)
    draft.attachments = read_attachments(call, actions)
    return draft


def read_nonce(body: Json) -> str | int | None:
    nonce: str | int | None = body.get("nonce")
    if nonce is not None and len(str(nonce)) > 25:
        raise invalid_form("nonce", "NONCE_TYPE_TOO_LONG", "Must be 25 or fewer in length.")
    return nonce


def read_attachments(call: Call, actions: Actions) -> list[Attachment]:
    if sum(len(upload.content) for upload in call.uploads) > MOST_BYTES:
        raise ApiError(413, 40005, "Request entity too large")
    if len(call.uploads) > 10:
        raise invalid_form("files", "BASE_TYPE_MAX_LENGTH", "Must be 10 or fewer in length.")
    made = []
    for upload in call.uploads:
        guessed = mimetypes.guess_type(upload.filename)[0]
        kind = upload.content_type if upload.content_type not in (None, "application/octet-stream") else guessed
        made.append(actions.attach(upload.filename, upload.content, kind))
    return made


def refer(draft: Draft, body: Json, channel: Channel, world: World) -> None:
    """A reply's or forward's pointer. A reply to what is gone is refused, or with fail_if_not_exists false a plain message."""
    reference: Json | None = body.get("message_reference")
    if reference is None:
        return
    if reference.get("type", 0) == 1:
        draft.forward = _forwarded(reference, world)
        return
    if not may(world.bot, channel, world.bot, READ_MESSAGE_HISTORY):
        raise ApiError(403, 160002, "Cannot reply without permission to read message history")
    target = channel.messages.get(int(reference.get("message_id") or 0))
    if target is not None and target.kind not in ORDINARY:
        raise invalid_form("message_reference", "REPLIES_CANNOT_REPLY_TO_SYSTEM_MESSAGE", "Cannot reply to a system message")
    if target is None and reference.get("fail_if_not_exists", True):
        raise invalid_form("message_reference", "REPLIES_UNKNOWN_MESSAGE", "Unknown message")
    draft.reply_to = target


def refuse_empty(draft: Draft) -> None:
    if not (draft.content or draft.embeds or draft.attachments or draft.components or draft.forward):
        raise errors.empty_message()


def refuse_files(draft: Draft, channel: Channel, world: World) -> None:
    if draft.attachments and not may(world.bot, channel, world.bot, ATTACH_FILES):
        raise errors.missing_permissions()


def edit(message: Message, call: Call, actions: Actions) -> None:
    """An edit by the bot, of a message or of an interaction's response."""
    body = call.body
    content = read_content(body) if "content" in body else message.content
    changes: Json = {name: body[name] or [] for name in ("embeds", "components") if name in body}
    if "attachments" in body or call.uploads:
        kept = {int(one["id"]) for one in body.get("attachments") or [] if str(one.get("id", "")).isdigit()}
        old = [one for one in message.attachments if one.id in kept]
        changes["attachments"] = [*old, *read_attachments(call, actions)]
    if not (
        content
        or changes.get("embeds", message.embeds)
        or changes.get("attachments", message.attachments)
        or changes.get("components", message.components)
    ):
        raise errors.empty_message()
    actions.edit(message, content, **changes)


def _forwarded(reference: Json, world: World) -> Message:
    if "channel_id" not in reference:
        raise invalid_form("message_reference.channel_id", "BASE_TYPE_REQUIRED", "This field is required")
    source = known(visible(world, int(reference["channel_id"])), int(reference["message_id"]))
    if not intents.readable(source, world.application.privileged, world.bot):
        raise ApiError(400, 160014, "You cannot forward a message whose content you cannot read")
    return source
