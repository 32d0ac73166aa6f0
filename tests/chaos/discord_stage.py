"""A chaos run on Discord."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from pathlib import Path

from tests.chaos.auditor import APOLOGY
from tests.chaos.snapshots import Said, Shown, tokens
from tests.chaos.stage import BACK, NEVER, ON_ITS_WAY, Where, group_of, losing
from tests.scenarios.discord_bot import POST, Bot
from tests.servers.discord import Channel, DiscordServer, Guild, Message, Person
from tests.servers.discord.faults import Hold, Request
from tests.servers.model import ScriptedModel
from tests.waiting import until


class DiscordStage:
    """See `Stage`. Only one process may face Discord with one token; the others are workers."""

    everywhere = False

    def __init__(self, server: DiscordServer) -> None:
        self.server = server
        self._home: Guild = server.guild("Home", channels=("general",))
        self._people: dict[str, Person] = {}
        self._places: dict[tuple[int, Where], Channel] = {}
        self._sent: dict[str, tuple[Said, Message]] = {}

    def bot(self, model: ScriptedModel, data: Path, settings: dict[str, str]) -> Bot:
        return Bot(model, data, settings, server=self.server)

    def join(self, name: str) -> None:
        self._people[name] = self.server.person(name, self._home)
        group = group_of(name)
        if (group, "channel") not in self._places:
            self._places[group, "channel"] = channel = self.server.channel(self._home, f"channel-{group}")
            self._places[group, "thread"] = self._people[name].thread(channel, f"thread-{group}")

    def say(self, name: str, where: Where, token: str, text: str) -> Said:
        person = self._people[name]
        words = f"{token} {text}"
        message = person.say(text=words) if where == "direct" else person.ask(self._places[group_of(name), where], words)
        said = Said(token, str(message.channel.id), str(message.id), message.made_at)
        self._sent[token] = said, message
        return said

    async def command(self, name: str, line: str) -> str:
        words = line.split()
        interaction = self._people[name].command(" ".join(words[:2]), text=" ".join(words[2:]))
        return (await self.server.wait_for_answer(interaction, timeout=30)).text

    async def answered(self, said: Said, timeout: float) -> bool:
        message = self._sent[said.token][1]
        try:
            await self.server.wait_for_message(message.channel, _answers(said.token), timeout, after=message)
        except TimeoutError:
            return False
        return True

    def said(self) -> Sequence[Said]:
        return [said for said, _ in self._sent.values()]

    def shown(self) -> Sequence[Shown]:
        return [
            Shown(str(message.id), str(channel.id), message.content, message.made_at)
            for channel in self._channels()
            for message in self.server.messages(channel, self.server.bot)
            if message.interaction is None
        ]

    def typing(self, killed_at: float) -> Sequence[str]:
        last = {shown.where: shown.at for shown in sorted(self.shown(), key=lambda shown: shown.at)}
        left = {
            str(typed.channel.id)
            for typed in self.server.typed
            if typed.at > last.get(str(typed.channel.id), typed.at) + ON_ITS_WAY
        }
        return sorted(left)

    def late(self) -> Sequence[str]:
        return [f"{one} was refused: {one.refused}" for one in self.server.interactions.all.values() if 10062 in one.refused]

    async def cut_sessions(self) -> int:
        return await self._cut(resumed=True)

    async def lose_sessions(self) -> int:
        self.server.hub.forget_sessions()
        return await self._cut(resumed=False)

    async def _cut(self, *, resumed: bool) -> int:
        hub = self.server.hub
        cut = list(hub.live())
        before = len(hub.connections)
        hub.cut()

        def back() -> bool:
            again = [one for one in hub.connections[before:] if one.session is not None]
            return sum(one.resumed is resumed for one in again) >= len(cut)

        await until(back, timeout=BACK)
        return len(cut)

    async def lose_answers(self, times: int) -> int:
        return await losing(lambda where: self.server.faults.lose_answer(POST, times, where), times)

    def hold_post(self, token: str) -> Hold:
        return self.server.faults.hold(POST, where=_posts(token))

    def hold_answer(self, token: str) -> None:
        self.server.faults.add(POST, NEVER, where=_posts(token))

    def _channels(self) -> list[Channel]:
        return [*(person.dm for person in self._people.values()), *self._places.values()]


def _answers(token: str):  # type: ignore[no-untyped-def]
    return lambda message: token in tokens(message.content) or message.content == APOLOGY


def _posts(token: str):  # type: ignore[no-untyped-def]
    def posts(request: Request) -> bool:
        return token in tokens(str(request.body.get("content")))

    return posts


@asynccontextmanager
async def discord_stage() -> AsyncIterator[DiscordStage]:
    """Discord on this machine."""
    async with DiscordServer() as server:
        yield DiscordStage(server)
