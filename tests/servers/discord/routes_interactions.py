"""Responses to interactions: the callback, the original response and follow-ups."""

from __future__ import annotations

import time

from tests.servers.discord import errors, payloads
from tests.servers.discord.actions import Draft
from tests.servers.discord.api import Api, Call, Parts
from tests.servers.discord.errors import ApiError, invalid_form
from tests.servers.discord.interactions import (
    AUTOCOMPLETE,
    CHOICES,
    COMMAND,
    COMPONENT,
    DEFER,
    DEFER_UPDATE,
    MODAL,
    MODAL_SUBMIT,
    SAY,
    UPDATE,
    Interaction,
    Interactions,
)
from tests.servers.discord.posting import edit, read_draft, refuse_empty
from tests.servers.discord.world import DEFAULT, EPHEMERAL, LOADING, SLASH, Json, Message

TOKEN_FOR = 15 * 60.0


class InteractionRoutes:
    """What the bot may do with an interaction; the paths carry the interaction's token, so no other is asked for."""

    def __init__(self, api: Api, parts: Parts, interactions: Interactions) -> None:
        self._world, self._actions, self._interactions = parts.world, parts.actions, interactions
        api.add("POST", "/interactions/{interaction_id}/{token}/callback", self.callback, open_to_all=True)
        api.add("POST", "/webhooks/{application_id}/{token}", self.follow_up, open_to_all=True)
        one = "/webhooks/{application_id}/{token}/messages/{message_id}"
        api.add("GET", one, lambda call: self._json(self._message(call)), open_to_all=True)
        api.add("PATCH", one, self.edit, open_to_all=True)
        api.add("DELETE", one, self.delete, open_to_all=True)

    def callback(self, call: Call) -> Json | None:
        one = self._interactions.all.get(call.id("interaction_id"))
        if one is None or one.token != call.log.params["token"]:
            raise errors.unknown_interaction()
        if one.response is not None:
            one.refused.append(40060)
            raise errors.already_acknowledged()
        if time.monotonic() - one.created_at > self._interactions.deadline:
            one.refused.append(10062)
            raise errors.unknown_interaction()
        kind, data = int(call.body.get("type", 0)), call.body.get("data") or {}
        _check_kind(one, kind)
        self._respond(one, kind, data, call)
        one.response, one.acknowledged_at = kind, time.monotonic()
        return self._answer(one) if call.log.query.get("with_response") in ("1", "true", "True") else None

    def follow_up(self, call: Call) -> Json:
        one = self._acknowledged(call)
        if one.original is not None and one.original.loading and one.response == DEFER:
            # Documented: right after a deferral this edits the original, whatever its flags say.
            return self._edit_original(one, call)
        if set(self._interactions.owners(one)) == {"1"} and len(one.followups) >= 5:
            raise ApiError(400, 40094, "This interaction has hit the maximum number of follow up messages")
        draft = read_draft(call, self._actions)
        refuse_empty(draft)
        message = self._create(one, draft)
        one.followups.append(message)
        return self._json(message)

    def edit(self, call: Call) -> Json:
        one = self._acknowledged(call)
        if call.log.params["message_id"] == "@original":
            return self._edit_original(one, call)
        message = self._message(call)
        edit(message, call, self._actions)
        return self._json(message)

    def delete(self, call: Call) -> None:
        self._actions.delete(self._message(call))

    def _respond(self, one: Interaction, kind: int, data: Json, call: Call) -> None:
        if kind == SAY:
            draft = read_draft(call, self._actions, data)
            refuse_empty(draft)
            one.ephemeral = bool(draft.flags & EPHEMERAL)
            one.original = self._create(one, draft)
        elif kind == DEFER:
            one.ephemeral = bool(int(data.get("flags") or 0) & EPHEMERAL)
            one.original = self._create(one, Draft(flags=LOADING | (EPHEMERAL if one.ephemeral else 0)))
        elif kind in (UPDATE, DEFER_UPDATE):
            one.original = one.message
            if kind == UPDATE and one.message is not None:
                edit(one.message, Call(call.log, data, [], call.uploads), self._actions)
        elif kind == CHOICES:
            one.choices = data.get("choices") or []
            if len(one.choices) > 25:
                raise invalid_form("data.choices", "BASE_TYPE_MAX_LENGTH", "Must be 25 or fewer in length.")
        elif kind == MODAL:
            _check_modal(data)
            one.modal = data

    def _create(self, one: Interaction, draft: Draft) -> Message:
        first = one.original is None
        draft.kind = SLASH if first and one.kind == COMMAND else DEFAULT
        draft.webhook_id = draft.application_id = self._world.application.id
        draft.interaction = {
            "id": str(one.id),
            "type": one.kind,
            "user": payloads.user_json(one.user),
            "authorizing_integration_owners": self._interactions.owners(one),
        }
        if first and one.kind == COMMAND:
            draft.interaction["name"] = one.data["name"]
        return self._actions.create(one.channel, self._world.bot, draft)

    def _edit_original(self, one: Interaction, call: Call) -> Json:
        message = one.original
        if message is None or message.deleted:
            raise errors.unknown_message()
        message.flags &= ~LOADING
        try:
            edit(message, call, self._actions)
        except ApiError:
            message.flags |= LOADING if not message.content else 0
            raise
        one.edits.append(message.content)
        return self._json(message)

    def _acknowledged(self, call: Call) -> Interaction:
        one = self._interactions.of_token(call.log.params["token"])
        if one is None or one.response is None or call.id("application_id") != self._world.application.id:
            raise errors.unknown_webhook()
        if time.monotonic() - one.created_at > TOKEN_FOR:
            raise ApiError(401, 50027, "Invalid Webhook Token")
        return one

    def _message(self, call: Call) -> Message:
        one = self._acknowledged(call)
        name = call.log.params["message_id"]
        found = [one.original] if name == "@original" else [one.original, *one.followups]
        for message in found:
            if message is not None and not message.deleted and name in ("@original", str(message.id)):
                return message
        raise errors.unknown_message()

    def _answer(self, one: Interaction) -> Json:
        body: Json = {"interaction": {"id": str(one.id), "type": one.kind}}
        if one.original is not None:
            body["interaction"] |= {
                "response_message_id": str(one.original.id),
                "response_message_loading": one.original.loading,
                "response_message_ephemeral": one.ephemeral,
            }
        if one.original is not None and one.response in (SAY, UPDATE):
            body["resource"] = {"type": one.response, "message": self._json(one.original)}
        return body

    def _json(self, message: Message) -> Json:
        return payloads.message_json(message, self._world, self._world.application.privileged, gateway=False)


def _check_kind(one: Interaction, kind: int) -> None:
    """Which responses an interaction takes."""
    allowed = {
        COMMAND: {SAY, DEFER, MODAL},
        COMPONENT: {SAY, DEFER, DEFER_UPDATE, UPDATE, MODAL},
        AUTOCOMPLETE: {CHOICES},
        MODAL_SUBMIT: {SAY, DEFER} | ({DEFER_UPDATE, UPDATE} if one.message else set()),
    }[one.kind]
    if kind not in allowed:
        raise invalid_form("type", "INTERACTION_CALLBACK_TYPE_INVALID", f"Value must be one of {sorted(allowed)}.")


def _check_modal(data: Json) -> None:
    if not 1 <= len(str(data.get("title") or "")) <= 45:
        raise invalid_form("data.title", "BASE_TYPE_BAD_LENGTH", "Must be between 1 and 45 in length.")
    if not 1 <= len(str(data.get("custom_id") or "")) <= 100:
        raise invalid_form("data.custom_id", "BASE_TYPE_BAD_LENGTH", "Must be between 1 and 100 in length.")
    if not 1 <= len(data.get("components") or []) <= 5:
        raise invalid_form("data.components", "BASE_TYPE_BAD_LENGTH", "Must be between 1 and 5 in length.")
