"""views.*, assistant.threads.*, agents.sessions.*"""

from __future__ import annotations

import time
from dataclasses import dataclass, field

from tests.servers.slack import blocks as kit
from tests.servers.slack import payloads
from tests.servers.slack.actions import Actions
from tests.servers.slack.api import Api, Call
from tests.servers.slack.errors import SlackError, invalid_arguments
from tests.servers.slack.interactions import Interactions
from tests.servers.slack.world import Channel, Json, View


@dataclass(frozen=True, slots=True)
class StatusCall:
    """A status line as it was set; "" takes it away."""

    channel: Channel
    thread_ts: str
    status: str
    loading: tuple[str, ...] = ()
    at: float = field(default_factory=time.monotonic)


@dataclass(frozen=True, slots=True)
class Prompts:
    """The suggested prompts of a thread, or of the whole messages tab (no thread)."""

    channel: Channel
    thread_ts: str | None
    title: str | None
    prompts: list[Json]


class ViewMethods:
    def __init__(self, api: Api, actions: Actions, interactions: Interactions, statuses: dict[tuple[str, str], str]) -> None:
        self.status_log: list[StatusCall] = []
        self.prompts: list[Prompts] = []
        self.titles: dict[tuple[str, str], str] = {}
        # Lifecycle of agent sessions, by channel and thread.
        self.sessions: dict[tuple[str, str | None], str] = {}
        self._statuses = statuses
        self._actions = actions
        self._interactions = interactions
        api.add("views.publish", self.publish)
        api.add("views.open", self.open)
        api.add("views.push", self.push)
        api.add("views.update", self.update)
        api.add("assistant.threads.setStatus", self.set_status, "chat:write", "assistant:write")
        api.add("assistant.threads.setSuggestedPrompts", self.set_prompts, "assistant:write")
        api.add("assistant.threads.setTitle", self.set_title, "assistant:write")
        api.add("agents.sessions.setStatus", self.set_session, "chat:write")
        api.add("agents.sessions.rename", self.rename_session, "chat:write")

    def publish(self, call: Call) -> Json:
        user = call.world.user(call.need("user_id"))
        if user is None or user.team not in call.caller.teams:
            raise SlackError("user_not_found")
        body = kit.check_view(call.parsed("view", "invalid_arguments"))
        if body["type"] != "home":
            raise invalid_arguments("only home views can be published")
        if not call.caller.app.home_tab:
            raise SlackError("not_enabled")
        shown = call.world.homes.get(user.id)
        _same_hash(call, shown)
        if shown is None:
            shown = call.world.homes[user.id] = self._interactions.make_view(user, user.team, body)
        else:
            self._interactions.update_view(shown, body)
        self._actions.signal.notify()
        return {"view": payloads.view_json(shown, call.world)}

    def open(self, call: Call) -> Json:
        body = kit.check_view(call.parsed("view", "invalid_arguments"))
        if body["type"] != "modal":
            raise invalid_arguments("only modals can be opened")
        interaction = self._interactions.trigger(call.need("trigger_id"))
        return {"view": payloads.view_json(self._interactions.open_view(interaction, body), call.world)}

    def push(self, call: Call) -> Json:
        body = kit.check_view(call.parsed("view", "invalid_arguments"))
        interaction = self._interactions.trigger(call.need("trigger_id"))
        if interaction.view is None:
            raise SlackError("not_found")
        if interaction.view.previous is not None and interaction.view.previous.previous is not None:
            raise SlackError("push_limit_reached")
        return {"view": payloads.view_json(self._interactions.open_view(interaction, body, interaction.view), call.world)}

    def update(self, call: Call) -> Json:
        body = kit.check_view(call.parsed("view", "invalid_arguments"))
        named, external = call.text("view_id"), call.text("external_id")
        found = [
            one for one in call.world.views.values() if one.id == named or (external and one.body.get("external_id") == external)
        ]
        if not found or not found[0].open:
            raise SlackError("not_found")
        _same_hash(call, found[0])
        self._interactions.update_view(found[0], body)
        return {"view": payloads.view_json(found[0], call.world)}

    # Agents.

    def set_status(self, call: Call) -> None:
        channel, ts = self._thread(call)
        status, loading = call.text("status"), call.parsed("loading_messages") or []
        if status is None:
            raise invalid_arguments("missing required field: status")
        if len(loading) > 10:
            raise invalid_arguments("no more than 10 loading messages")
        self.status_log.append(StatusCall(channel, ts, status, tuple(loading)))
        if status:
            self._statuses[channel.id, ts] = status
        else:
            self._statuses.pop((channel.id, ts), None)
        self._actions.signal.notify()

    def set_prompts(self, call: Call) -> None:
        channel = call.channel("channel_id", inside=True)
        prompts = call.parsed("prompts")
        if not isinstance(prompts, list) or not 1 <= len(prompts) <= 4:
            raise invalid_arguments("1 to 4 prompts are allowed")
        if not all(isinstance(one, dict) and one.get("title") and one.get("message") for one in prompts):
            raise invalid_arguments("a prompt has a title and a message")
        ts = call.text("thread_ts")
        if ts is None and not call.caller.app.agent:
            raise invalid_arguments("missing required field: thread_ts")
        if ts is not None and ts not in channel.messages:
            raise SlackError("invalid_thread_ts")
        self.prompts.append(Prompts(channel, ts, call.text("title"), prompts))
        self._actions.signal.notify()

    def set_title(self, call: Call) -> None:
        channel, ts = self._thread(call)
        self.titles[channel.id, ts] = call.need("title")

    def set_session(self, call: Call) -> Json:
        channel = call.channel("channel_id", inside=True)
        status, ts = call.need("status"), call.text("thread_ts")
        if status not in ("active", "processing", "suspended", "closed"):
            raise SlackError("invalid_status")
        if ts is None or ts not in channel.messages:
            raise SlackError("invalid_thread_ts")
        if not call.caller.app.agent:
            raise SlackError("not_an_agent")
        self.sessions[channel.id, ts] = status
        self._actions.signal.notify()
        return {"status": status, "agent_status": status, "title": call.text("title") or ""}

    def rename_session(self, call: Call) -> Json:
        channel, ts = call.channel("channel_id", inside=True), call.text("thread_ts")
        if (channel.id, ts) not in self.sessions:
            raise SlackError("session_not_found")
        return {"title": call.need("title")}

    def _thread(self, call: Call) -> tuple[Channel, str]:
        channel, ts = call.channel("channel_id", inside=True), call.need("thread_ts")
        if ts not in channel.messages:
            raise SlackError("invalid_thread_ts")
        return channel, ts


def _same_hash(call: Call, view: View | None) -> None:
    """A hash that is given has to be the shown view's."""
    given = call.text("hash")
    if given and view is not None and given != view.hash:
        raise SlackError("hash_conflict")
