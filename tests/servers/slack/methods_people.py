"""auth.*, apps.*, oauth.*, users.*, dnd.*, team.*, bots.*"""

from __future__ import annotations

import time

from tests.servers.slack import payloads
from tests.servers.slack.api import Api, Call
from tests.servers.slack.errors import SlackError
from tests.servers.slack.methods_conversations import _page
from tests.servers.slack.places import Places
from tests.servers.slack.socket_mode import Hub
from tests.servers.slack.world import Json, Team, User


class PeopleMethods:
    """`codes` are the OAuth codes that may be exchanged, each for the workspace it was made for."""

    def __init__(self, api: Api, hub: Hub, places: Places) -> None:
        self.codes: dict[str, Team] = {}
        self._hub = hub
        self._places = places
        api.add("api.test", lambda call: {"args": call.log.args}, kind="none")
        api.add("auth.test", self.auth_test, kind="any")
        api.add("auth.revoke", self.auth_revoke)
        api.add("apps.connections.open", self.open_connection, "connections:write", kind="app")
        api.add("oauth.v2.access", self.oauth, kind="none")
        api.add("users.info", self.user_info, "users:read")
        api.add("users.list", self.user_list, "users:read")
        api.add("users.getPresence", self.presence, "users:read")
        api.add("dnd.info", self.dnd, "dnd:read")
        api.add("team.info", self.team_info, "team:read")
        api.add("bots.info", self.bot_info, "users:read")

    def auth_test(self, call: Call) -> Json:
        if call.caller.kind == "app":
            return {"app_name": call.caller.app.name, "app_id": call.caller.app.id}
        bot, enterprise = call.bot, call.caller.enterprise
        org_wide = enterprise is not None and enterprise.bot_token == call.caller.value
        body: Json = {
            "url": f"https://{bot.team.domain}.slack.com/",
            "team": bot.team.name,
            "user": bot.name.lower(),
            "team_id": bot.team.id,
            "user_id": bot.id,
            "bot_id": bot.bot_id,
            "is_enterprise_install": org_wide,
        }
        if enterprise is not None:
            body["enterprise_id"] = enterprise.id
            if org_wide:
                body |= {"team": enterprise.name, "team_id": enterprise.id}
        return body

    def auth_revoke(self, call: Call) -> Json:
        call.caller.refused = "token_revoked"
        return {"revoked": True}

    def open_connection(self, call: Call) -> Json:
        return {"url": self._hub.ticket(call.caller.app)}

    def oauth(self, call: Call) -> Json:
        app = next((one for one in call.world.apps if one.client_id == call.text("client_id")), None)
        if app is None:
            raise SlackError("invalid_client_id")
        if call.text("client_secret") != app.client_secret:
            raise SlackError("bad_client_secret")
        team = self.codes.pop(call.text("code") or "", None)
        if team is None:
            raise SlackError("invalid_code")
        if team.bot is None:
            self._places.install(team)
        assert team.bot is not None
        token = call.world.tokens[team.bot_token or (team.enterprise.bot_token if team.enterprise else "")]
        token.refused = None
        installer = next((user for user in team.users.values() if not user.is_bot), team.bot)
        return {
            "app_id": app.id,
            "authed_user": {"id": installer.id},
            "scope": ",".join(sorted(token.scopes)),
            "token_type": "bot",
            "access_token": token.value,
            "bot_user_id": team.bot.id,
            "team": None if team.org_wide else {"id": team.id, "name": team.name},
            "enterprise": {"id": team.enterprise.id, "name": team.enterprise.name} if team.enterprise else None,
            "is_enterprise_install": team.org_wide,
        }

    def user_info(self, call: Call) -> Json:
        user = _user(call)
        body = payloads.user_json(user, next(iter(call.caller.teams), None))
        if call.flag("include_locale"):
            body["locale"] = user.locale
        return {"user": body}

    def user_list(self, call: Call) -> Json:
        team = call.team
        page, _, cursor = _page(call, list(team.users.values()), 1000, 1000)
        return {"members": [payloads.user_json(user, team) for user in page], "cache_ts": int(time.time()), **cursor}

    def presence(self, call: Call) -> Json:
        _user(call)
        return {"presence": "active"}

    def dnd(self, call: Call) -> Json:
        user = _user(call) if call.text("user") else call.bot
        enabled, start, end = user.dnd
        body: Json = {"dnd_enabled": enabled, "next_dnd_start_ts": start, "next_dnd_end_ts": end, "snooze_enabled": False}
        if user.snooze_until and user.snooze_until > time.time():
            left = int(user.snooze_until - time.time())
            body |= {"snooze_enabled": True, "snooze_endtime": user.snooze_until, "snooze_remaining": left}
        return body

    def team_info(self, call: Call) -> Json:
        named = call.text("team")
        team = next((one for one in call.caller.teams if one.id == named), None) if named else call.team
        if team is None:
            raise SlackError("team_not_found")
        body: Json = {
            "id": team.id,
            "name": team.name,
            "domain": team.domain,
            "email_domain": "",
            "icon": {"image_default": True},
        }
        if team.enterprise:
            body |= {"enterprise_id": team.enterprise.id, "enterprise_name": team.enterprise.name}
        return {"team": body}

    def bot_info(self, call: Call) -> Json:
        named = call.need("bot")
        for team in call.caller.teams:
            found = next((user for user in team.users.values() if user.bot_id == named), None)
            if found is not None:
                return {"bot": payloads.bot_json(found, call.world)}
        raise SlackError("bot_not_found")


def _user(call: Call) -> User:
    """A user of the workspace, or somebody met in a shared channel."""
    user = call.world.user(call.need("user"))
    if user is None:
        raise SlackError("user_not_found")
    known = user.team in call.caller.teams or any(
        user.id in channel.members and call.bot_in(channel).id in channel.members
        for channel in call.world.channels()
        if channel.shared
    )
    if not known:
        raise SlackError("user_not_visible" if user.team.enterprise else "user_not_found")
    return user
