"""The real `bot run` process on Slack: a local server that speaks its protocols, a scripted model, servers in a folder of its own."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field

import aiohttp

from adapters.slack.manifest import manifest
from tests.folders import make, remove
from tests.scenarios.running_bot import RunningBot
from tests.servers.model import ScriptedModel, unused_port
from tests.servers.slack import Channel, Message, SlackServer, Team

POST = "chat.postMessage"


def slack_server(*, url: str = "", **options: object) -> SlackServer:
    """A server on which the app is made from our own manifest."""
    return SlackServer(manifest=manifest("Keepsake", public_url=url), **options)  # type: ignore[arg-type]


@dataclass(slots=True)
class Bot(RunningBot):
    """A bot process on Slack, by default in Socket Mode. `teams`: whose tokens it gets; `address`: where it listens in HTTP mode."""

    server: SlackServer = field(kw_only=True)
    teams: tuple[Team, ...] = ()
    address: str = ""

    def chosen(self) -> dict[str, str]:
        """What the environment says of Slack."""
        chosen = {
            "KEEPSAKE__SLACK__API_BASE": self.server.api_base,
            "KEEPSAKE__SLACK__RESTART_CAP": "1",
            "KEEPSAKE__SLACK__SILENCE": "6",
            "SLACK_APP_TOKEN": self.server.app_token,
            "SLACK_SIGNING_SECRET": self.server.signing_secret,
        }
        more = []
        for number, team in enumerate(self.teams):
            names = {
                kind: f"SLACK_{kind}{f'_{number}' if number else ''}" for kind in ("BOT_TOKEN", "APP_TOKEN", "SIGNING_SECRET")
            }
            chosen[names["BOT_TOKEN"]] = team.bot_token or (team.enterprise.bot_token if team.enterprise else "")
            chosen[names["APP_TOKEN"]], chosen[names["SIGNING_SECRET"]] = team.app.app_token, team.app.signing_secret
            if number:
                more.append({f"{kind.lower()}_env": name for kind, name in names.items()})
        if more:
            chosen["KEEPSAKE__SLACK__WORKSPACES"] = json.dumps(more)
        if self.address:
            chosen["KEEPSAKE__SLACK__BIND"] = self.address
        return chosen

    async def listens(self) -> None:
        """Until it takes events."""
        if self.address:
            await self.until_ready()
        else:
            apps = len({team.app.app_token for team in self.teams})
            await self.server.wait_connected(len(self.server.connections) + apps, timeout=50)

    async def exchange(
        self, channel: Channel, say: Callable[[], Message], answer: str, *, thread: bool | None = None, timeout: float = 20
    ) -> Message:
        """Somebody says something, and the bot's next message there is this; `thread`: whether it stands in a thread."""
        said = say()
        found = await self.server.wait_for_message(channel, after=said, timeout=timeout)
        assert found.shown == answer, f"{found.shown!r} instead of {answer!r}"
        if thread is not None:
            assert bool(found.thread_ts) is thread, found.thread_ts
        return found


@asynccontextmanager
async def bot_on(
    server: SlackServer, model: ScriptedModel, *teams: Team, start: bool = True, http: bool = False, **settings: str
) -> AsyncIterator[Bot]:
    """A bot on a server, with a fresh data folder; at the end it has to stop cleanly."""
    top = make("slack")
    named = {f"KEEPSAKE__{name}": value for name, value in settings.items() if not name.startswith("SLACK_")}
    named |= {
        name: value for name, value in settings.items() if name.startswith("SLACK_") and name.endswith(("TOKEN", "SECRET", "ID"))
    }
    named |= {
        f"KEEPSAKE__SLACK__{name.removeprefix('SLACK_')}": value
        for name, value in settings.items()
        if name.startswith("SLACK_") and name not in named
    }
    address = f"127.0.0.1:{unused_port()}" if http else ""
    bot = Bot(model, top / "data", named, server=server, teams=teams, address=address)
    if http:
        server.http_mode(f"http://{address}/slack/events")
    try:
        if start:
            await bot.start()
        yield bot
        assert await bot.stop() in (0, 2), bot.lines
    finally:
        await bot.leave()
        remove(top)


async def status_of(url: str) -> int:
    """What an address answers."""
    async with aiohttp.ClientSession() as session, session.get(url) as response:
        return response.status
