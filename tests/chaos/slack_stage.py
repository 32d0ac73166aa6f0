"""A chaos run on Slack, in Socket Mode: every process has a connection, and Slack deals the events out to them."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path

from tests.chaos.auditor import APOLOGY
from tests.chaos.snapshots import Said, Shown, tokens
from tests.chaos.stage import BACK, NEVER, Where, group_of, losing
from tests.scenarios.slack_bot import POST, Bot, slack_server
from tests.servers.discord.faults import Hold
from tests.servers.model import ScriptedModel
from tests.servers.slack import ApiCall, Channel, Delivery, Message, Person, SlackServer
from tests.waiting import until

RETRIES = (0.0, 5.0, 25.0, 60.0)
"""Slack's own are at once, after 1 and after 5 minutes; the outages of a run are as much shorter."""


class SlackStage:
    """See `Stage`."""

    everywhere = True

    def __init__(self, server: SlackServer) -> None:
        self.server = server
        self._team = server.team("Acme")
        self._people: dict[str, Person] = {}
        self._channels: dict[int, Channel] = {}
        self._roots: dict[int, Message] = {}
        self._sent: dict[str, tuple[Said, Message]] = {}

    def bot(self, model: ScriptedModel, data: Path, settings: dict[str, str]) -> Bot:
        return Bot(model, data, settings, server=self.server, teams=(self._team,))

    def join(self, name: str) -> None:
        person = self._people[name] = self.server.person(name, self._team)
        group = group_of(name)
        if group not in self._channels:
            self._channels[group] = self.server.channel(self._team, f"channel-{group}", person)
            self._roots[group] = person.say(self._channels[group], "about the garden")
        else:
            self.server.places.join(self._channels[group], person.user)

    def say(self, name: str, where: Where, token: str, text: str) -> Said:
        person, words, group = self._people[name], f"{token} {text}", group_of(name)
        if where == "direct":
            message = person.say(None, words)
            place = message.channel.id
        else:
            root = self._roots[group] if where == "thread" else None
            message = person.ask(self._channels[group], words, thread=root)
            place = f"{message.channel.id}:{(root or message).ts}"
        said = Said(token, place, message.ts, message.made_at)
        self._sent[token] = said, message
        return said

    async def command(self, name: str, line: str) -> str:
        interaction = self._people[name].command(f"/keepsake {line}")
        await self.server.wait_for_answer(interaction, timeout=30)
        return "\n".join(answer.shown for answer in interaction.answers)

    async def answered(self, said: Said, timeout: float) -> bool:
        message = self._sent[said.token][1]

        def answers(shown: Message) -> bool:
            return said.token in tokens(shown.shown) or shown.shown == APOLOGY

        try:
            await self.server.wait_for_message(message.channel, answers, timeout, after=message)
        except TimeoutError:
            return False
        return True

    def said(self) -> Sequence[Said]:
        told: defaultdict[str, list[Delivery]] = defaultdict(list)
        for delivery in self.server.deliveries:
            told[str(delivery.event.get("ts"))].append(delivery)
        return [
            replace(
                said, accepted=not all(map(_given_up, told[said.id])), handed=max(map(_taken_at, told[said.id]), default=math.inf)
            )
            for said, _ in self._sent.values()
        ]

    def shown(self) -> Sequence[Shown]:
        return [
            Shown(
                message.ts,
                f"{channel.id}:{message.thread_ts}" if message.thread_ts else channel.id,
                message.shown,
                message.made_at,
            )
            for channel in [*(person.dm for person in self._people.values()), *self._channels.values()]
            for message in self.server.messages(channel, bot=True)
        ]

    def typing(self, killed_at: float) -> Sequence[str]:
        """Slack takes away what a killed process left, after two minutes."""
        at = {(call.channel.id, call.thread_ts): call.at for call in self.server.status_log}
        return [f"{channel}:{thread}" for channel, thread in self.server.statuses if at[channel, thread] > killed_at]

    def late(self) -> Sequence[str]:
        limit = self.server.ack_timeout
        return [repr(one) for one in self.server.deliveries if one.attempts and (one.attempts[0].latency or limit + 1) > limit]

    async def cut_sessions(self) -> int:
        return await self._again(self.server.hub.cut)

    async def lose_sessions(self) -> int:
        return await self._again(self.server.hub.silence)

    async def _again(self, lose: Callable[[], None]) -> int:
        """Whether what is not acknowledged comes again over another connection is Slack's business: there are no sessions to resume."""
        hub = self.server.hub
        lost = list(hub.live)
        lose()
        await until(lambda: len([one for one in hub.live if one not in lost]) >= len(lost), timeout=BACK)
        return len(lost)

    async def lose_answers(self, times: int) -> int:
        return await losing(lambda where: self.server.faults.lose_answer(POST, times, where), times)

    def hold_post(self, token: str) -> Hold:
        return self.server.faults.hold(POST, where=_posts(token))

    def hold_answer(self, token: str) -> None:
        self.server.faults.add(POST, NEVER, where=_posts(token))


def _given_up(delivery: Delivery) -> bool:
    return delivery.given_up and not delivery.acknowledged.is_set()


def _taken_at(delivery: Delivery) -> float:
    """When it was acknowledged first; a mention comes as two events, and either may be the one that is taken."""
    return min((attempt.acknowledged_at for attempt in delivery.attempts if attempt.acknowledged_at), default=math.inf)


def _posts(token: str):  # type: ignore[no-untyped-def]
    def posts(call: ApiCall) -> bool:
        return token in tokens(str(call.args))

    return posts


@asynccontextmanager
async def slack_stage() -> AsyncIterator[SlackStage]:
    """Slack on this machine."""
    async with slack_server(retries=RETRIES) as server:
        yield SlackStage(server)
