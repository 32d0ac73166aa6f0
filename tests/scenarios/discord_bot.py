"""The real `bot run` process on Discord: a local server that speaks its protocols, a scripted model, servers in a folder of its own."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field

from tests.folders import make, remove
from tests.scenarios.running_bot import RunningBot
from tests.servers.discord import Channel, DiscordServer, Message
from tests.servers.model import Request, ScriptedModel, Step, call, reply

POST = "POST /channels/{channel_id}/messages"
SEARCHES = ("recall_storage_search", "archival_storage_search")
PASSES = 8
"""Prompts of a turn that is asked to search, where nothing was called before."""


def said(request: Request) -> list[str]:
    """The texts that people said themselves, oldest first."""
    return [str(part["message"]) for part in parts(request, None)]


def quoted(request: Request) -> list[tuple[str, str]]:
    """Who is quoted with what, oldest first."""
    return [(str(part["said_by"]), str(part.get("text"))) for part in parts(request, "quote")]


def holding(prompts: list[Request], word: str = "Biscuit") -> int:
    """How many of these hold a word, whatever the model itself wrote."""
    return sum(word in str([one for one in prompt.messages if one["role"] != "assistant"]) for prompt in prompts)


def searches(model: ScriptedModel, before: int) -> list[Request]:
    """The prompts of turns that were asked to search, of all but the first ones."""
    return [one for one in model.requests[before:] if said(one)[-1:] == ["search"]]


def parts(request: Request, kind: str | None) -> list[dict[str, object]]:
    """The packaged messages of a kind; None: those of the person."""
    found = [each for message in request.messages if message.get("role") == "user" for each in packages_in(message)]
    return [each for each in found if each.get("type") == kind and (kind is not None or "message" in each)]


def packages_in(message: Mapping[str, object]) -> list[dict[str, object]]:
    """What one message of the user's side tells the model, a package a line."""
    content = message.get("content")
    texts = (
        [str(part.get("text")) for part in content if part.get("type") == "text"] if isinstance(content, list) else [str(content)]
    )
    return [json.loads(line) for text in texts for line in text.split("\n") if line.startswith("{")]


def echo(request: Request) -> Step:
    """The usual model: answers `re: ` and what was said since it last spoke, and does a few things when told to."""
    since: list[str] = []
    for message in request.messages:
        if message.get("role") == "assistant":
            since = []
        elif message.get("role") == "user":
            since += [str(each["message"]) for each in packages_in(message) if "type" not in each and "message" in each]
    last = since[-1] if since else ""
    if last.startswith("remember "):
        return reply("Noted.", call("working_context_append", section="key_facts", content=last.removeprefix("remember ")))
    done = len(request.contents("tool"))
    if said(request)[-1:] == ["search"]:
        if done >= PASSES - 1:
            return reply("done")
        return reply(None, call(SEARCHES[done % 2], f"call_{done}", query="Biscuit dog", request_heartbeat=True))
    if last.startswith("what is kept"):
        kept = str(request.messages[0]["content"]) + str([each.get("working_context") for each in parts(request, "status")])
        return reply("kept: " + ", ".join(word for word in ("Biscuit", "Clara") if word in kept))
    if last.startswith("at length"):
        return reply("\n\n".join(f"Paragraph {number}. " + "word " * 150 for number in range(8)))
    if last.startswith("ping everyone"):
        return reply("@everyone @here hello <@&1> <@2>")
    if last.startswith("nothing to me"):
        return reply(None, call("stay_silent"))
    return reply("re: " + " | ".join(since))


@dataclass(slots=True)
class Bot(RunningBot):
    """The bot on a Discord server."""

    server: DiscordServer = field(kw_only=True)

    def chosen(self) -> dict[str, str]:
        """What the environment says of Discord."""
        return {
            "DISCORD_TOKEN": self.server.token,
            "KEEPSAKE__DISCORD__API_BASE": self.server.api_base,
            "KEEPSAKE__DISCORD__GATEWAY": self.server.gateway,
            "KEEPSAKE__DISCORD__MESSAGE_CONTENT": "true",
            "KEEPSAKE__DISCORD__RESTART_CAP": "1",
        }

    async def listens(self) -> None:
        """Until it is connected."""
        await self.server.wait_connected(len(self.server.connections) + 1, timeout=40)

    async def exchange(self, channel: Channel, say: Callable[[], Message], answer: str) -> Message:
        """Somebody says something, and the bot's next message there is this."""
        after = say()
        found = await self.server.wait_for_message(channel, after=after, timeout=20)
        assert found.content == answer, f"{found.content!r} instead of {answer!r}"
        return found


@asynccontextmanager
async def bot_on(server: DiscordServer, model: ScriptedModel, *, start: bool = True, **settings: str) -> AsyncIterator[Bot]:
    """A bot on a server, with a fresh data folder; at the end it has to stop cleanly."""
    top = make("discord")
    bot = Bot(model, top / "data", {f"KEEPSAKE__{name}": value for name, value in settings.items()}, server=server)
    try:
        if start:
            await bot.start()
        yield bot
        assert await bot.stop() in (0, 2), bot.lines
    finally:
        await bot.leave()
        remove(top)
