"""Workspaces, channels, members and installations, and what the app is told of their changes."""

from __future__ import annotations

import time
from collections.abc import Iterable, Sequence

from tests.servers.slack import payloads
from tests.servers.slack.actions import Actions, Draft
from tests.servers.slack.app import App
from tests.servers.slack.world import Channel, Enterprise, Json, Kind, Team, Token, User, World


class Places:
    def __init__(self, world: World, actions: Actions) -> None:
        self._world = world
        self._actions = actions

    def enterprise(self, name: str, *, org_wide: bool) -> Enterprise:
        world, app = self._world, self._world.apps[0]
        made = Enterprise(world.id("E"), name)
        world.enterprises[made.id] = made
        if org_wide:
            made.bot_token = f"xoxb-org-{made.id}-local"
            world.tokens[made.bot_token] = Token(made.bot_token, "bot", app, made.teams, None, set(app.scopes), made)
        return made

    def team(self, name: str, *, enterprise: Enterprise | None, installed: bool, app: App | None) -> Team:
        world = self._world
        team = Team(world.id("T"), name, name.lower(), app or world.apps[0], enterprise)
        world.teams[team.id] = team
        if enterprise is not None:
            enterprise.teams.append(team)
        if installed:
            self.install(team)
        return team

    def install(self, team: Team) -> None:
        """The app comes to a workspace: its bot and, unless the organisation has one, a token."""
        world, app = self._world, team.app
        bot = User(world.id("U"), app.name, team, is_bot=True, bot_id=world.id("B"), app_id=app.id, tz="America/Los_Angeles")
        world.keep(bot)
        team.bot = bot
        if team.org_wide and team.enterprise is not None:
            team.enterprise.bot = team.enterprise.bot or bot
            world.tokens[team.enterprise.bot_token].bot = team.enterprise.bot
            return
        team.bot_token = f"xoxb-{team.id}-{bot.id}-{len(world.tokens)}-local"
        world.tokens[team.bot_token] = Token(team.bot_token, "bot", app, [team], bot, set(app.scopes), team.enterprise)

    def channel(self, team: Team, name: str, members: Iterable[User], *, kind: Kind, bot: bool, general: bool) -> Channel:
        people = {user.id: user for user in members}
        creator = next(iter(people.values()), None)
        if bot and team.bot is not None:
            people[team.bot.id] = team.bot
        channel = Channel(self._world.id("G" if kind == "mpim" else "C"), kind, team, name, creator, people, general=general)
        self._world.keep(channel)
        return channel

    # Changes.

    def join(self, channel: Channel, user: User) -> None:
        channel.members[user.id] = user
        body = {"type": "member_joined_channel", "user": user.id, "channel": channel.id, "channel_type": channel.id[0]}
        self._tell("member_joined_channel", channel, {**body, "team": channel.team.id})

    def leave(self, channel: Channel, user: User) -> None:
        body = {"type": "member_left_channel", "user": user.id, "channel": channel.id, "channel_type": channel.id[0]}
        self._tell("member_left_channel", channel, {**body, "team": channel.team.id})
        channel.members.pop(user.id, None)

    def invite_bot(self, channel: Channel) -> None:
        assert channel.team.bot is not None
        self.join(channel, channel.team.bot)

    def remove_bot(self, channel: Channel) -> None:
        """The bot is taken out: channel_left or group_left."""
        bot = channel.team.bot
        assert bot is not None
        name = "channel_left" if channel.kind == "channel" else "group_left"
        self._tell(
            name, channel, {"type": name, "channel": channel.id, "actor_id": channel.creator.id if channel.creator else ""}
        )
        channel.members.pop(bot.id, None)

    def archive(self, channel: Channel, by: User | None = None) -> None:
        channel.archived = True
        self._simple("archive", channel, by)

    def unarchive(self, channel: Channel, by: User | None = None) -> None:
        channel.archived = False
        self._simple("unarchive", channel, by)

    def delete(self, channel: Channel) -> None:
        self._simple("deleted", channel, None)
        self._world.forget(channel)

    def rename(self, channel: Channel, name: str) -> None:
        channel.name = name
        event = f"{'channel' if channel.kind == 'channel' else 'group'}_rename"
        body = {"id": channel.id, "name": name, "name_normalized": name, "created": channel.created}
        self._tell(event, channel, {"type": event, "channel": body})

    def make_private(self, channel: Channel, by: User | None = None) -> None:
        """A public channel becomes private; its id stays, and a message says so."""
        channel.kind = "group"
        who = by or channel.creator or channel.user
        text = "made this channel private. Now, it can only be viewed or joined by invitation."
        self._actions.create(channel, who, Draft(text, subtype="channel_convert_to_private"))

    def make_public(self, channel: Channel, by: User | None = None) -> None:
        """A private channel becomes public."""
        channel.kind = "channel"
        who = by or channel.creator or channel.user
        text = "made this channel public. Any member of the workspace can see and join it."
        self._actions.create(channel, who, Draft(text, subtype="channel_convert_to_public"))

    def change_id(self, channel: Channel) -> str:
        """The channel gets another id, as when it is shared; the old one is returned."""
        old = channel.id
        self._world.forget(channel)
        channel.id = self._world.id("C")
        self._world.keep(channel)
        body = {"type": "channel_id_changed", "old_channel_id": old, "new_channel_id": channel.id, "event_ts": self._world.ts()}
        self._tell("channel_id_changed", channel, body)
        return old

    def share(self, channel: Channel, team: Team, users: Sequence[User] = ()) -> None:
        """Slack Connect: another workspace's people come into a channel."""
        channel.shared.append(team)
        for user in users:
            channel.members[user.id] = user
        body = {"type": "channel_shared", "connected_team_id": team.id, "channel": channel.id, "event_ts": self._world.ts()}
        self._tell("channel_shared", channel, body)

    def unshare(self, channel: Channel, team: Team) -> None:
        """Another workspace goes out of a channel, with its people."""
        channel.shared.remove(team)
        for user in [one for one in channel.members.values() if one.team is team]:
            del channel.members[user.id]
        body = {"type": "channel_unshared", "previously_connected_team_id": team.id, "channel": channel.id}
        self._tell("channel_unshared", channel, {**body, "is_ext_shared": bool(channel.shared), "event_ts": self._world.ts()})

    def user_changed(self, user: User) -> None:
        user.updated = int(time.time())
        body = payloads.user_json(user)
        event = {"type": "user_change", "user": body, "cache_ts": user.updated, "event_ts": self._world.ts()}
        self._actions.emit("user_change", event, user.team)

    def team_join(self, user: User) -> None:
        event = {"type": "team_join", "user": payloads.user_json(user), "cache_ts": user.updated, "event_ts": self._world.ts()}
        self._actions.emit("team_join", event, user.team)

    def uninstall(self, team: Team) -> None:
        """The app is removed: tokens_revoked and app_uninstalled, and every call answers account_inactive."""
        self._revoked(team, "account_inactive", uninstalled=True)

    def revoke(self, team: Team) -> None:
        """The bot's token is revoked: tokens_revoked, and every call answers token_revoked."""
        self._revoked(team, "token_revoked", uninstalled=False)

    def _revoked(self, team: Team, refused: str, *, uninstalled: bool) -> None:
        token = self._world.tokens[team.bot_token or (team.enterprise.bot_token if team.enterprise else "")]
        bot = team.bot.id if team.bot else ""
        self._actions.emit("tokens_revoked", {"type": "tokens_revoked", "tokens": {"oauth": [], "bot": [bot]}}, team)
        if uninstalled:
            self._actions.emit("app_uninstalled", {"type": "app_uninstalled"}, team)
        token.refused = refused

    def _simple(self, what: str, channel: Channel, by: User | None) -> None:
        name = f"{'channel' if channel.kind == 'channel' else 'group'}_{what}"
        body: Json = {"type": name, "channel": channel.id, "event_ts": self._world.ts()}
        self._tell(name, channel, body | ({"user": by.id} if by else {}))

    def _tell(self, name: str, channel: Channel, body: Json) -> None:
        self._actions.in_channel(name, {"event_ts": self._world.ts(), **body}, channel)
