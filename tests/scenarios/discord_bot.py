"""The real `bot run` process on Discord: a local server that speaks its protocols, a scripted model, servers in a folder of its own."""

from __future__ import annotations

import asyncio
import json
import os
import re
import signal
import sys
import tempfile
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path

import aiohttp

from tests.folders import remove
from tests.servers.discord import Channel, DiscordServer, Message
from tests.servers.model import Request, ScriptedModel, Step, call, reply, unused_port
from tests.waiting import until

POST = "POST /channels/{channel_id}/messages"


def said(request: Request) -> list[str]:
    """The texts that people said themselves, oldest first."""
    return [str(part["message"]) for part in parts(request, "user_message")]


def quoted(request: Request) -> list[tuple[str, str]]:
    """Who is quoted with what, oldest first."""
    return [(str(part["said_by"]), str(part.get("text"))) for part in parts(request, "quote")]


def parts(request: Request, kind: str) -> list[dict[str, object]]:
    """The packaged messages of a kind."""
    found = []
    for content in request.contents("user"):
        if content.startswith("{"):
            part = json.loads(content)
            if part["type"] == kind:
                found.append(part)
    return found


def echo(request: Request) -> Step:
    """The usual model: answers `re: ` and what was said since it last spoke, and does a few things when told to."""
    since: list[str] = []
    for message in request.messages:
        content = str(message.get("content"))
        if message.get("role") == "assistant":
            since = []
        elif message.get("role") == "user" and content.startswith("{") and json.loads(content)["type"] == "user_message":
            since.append(json.loads(content)["message"])
    last = since[-1] if since else ""
    if last.startswith("remember "):
        return reply("Noted.", call("working_context_append", section="key_facts", content=last.removeprefix("remember ")))
    if last.startswith("what is kept"):
        return reply("kept: " + ", ".join(word for word in ("Biscuit", "Clara") if word in str(request.messages[0]["content"])))
    if last.startswith("at length"):
        return reply("\n\n".join(f"Paragraph {number}. " + "word " * 150 for number in range(8)))
    if last.startswith("ping everyone"):
        return reply("@everyone @here hello <@&1> <@2>")
    if last.startswith("nothing to me"):
        return reply(None, call("stay_silent"))
    return reply("re: " + " | ".join(since))


@dataclass(slots=True)
class Bot:
    """A bot process that can be ended and started again on the same data."""

    server: DiscordServer
    model: ScriptedModel
    data: Path
    settings: dict[str, str]
    port: int = field(default_factory=unused_port)
    process: asyncio.subprocess.Process | None = None
    lines: list[str] = field(default_factory=list)
    _reading: asyncio.Task[None] | None = None

    def environment(self) -> dict[str, str]:
        kept = {name: value for name, value in os.environ.items() if not name.startswith(("KEEPSAKE", "DISCORD"))}
        chosen = {
            "DISCORD_TOKEN": self.server.token, "KEEPSAKE_DATA": str(self.data), "KEEPSAKE__DISCORD__API_BASE": self.server.api_base,
            "KEEPSAKE__DISCORD__GATEWAY": self.server.gateway, "KEEPSAKE__DISCORD__MESSAGE_CONTENT": "true",
            "KEEPSAKE__DISCORD__RESTART_CAP": "1", "KEEPSAKE__MODEL__BASE_URL": self.model.base_url, "KEEPSAKE__MODEL__CHAT": "scripted",
            "KEEPSAKE__CONSENT__NOTICE": "{}", "KEEPSAKE__ENGINE__DEBOUNCE": "0.4", "KEEPSAKE__ENGINE__DEBOUNCE_CAP": "3",
            "KEEPSAKE__HEALTH__BIND": f"127.0.0.1:{self.port}", "PYTHONUNBUFFERED": "1",
        }  # fmt: skip
        return {**kept, **chosen, **self.settings}

    async def start(self, *, connected: bool = True) -> None:
        """Start it, and wait until it takes events."""
        before = len(self.server.connections)
        self.process = await asyncio.create_subprocess_exec(
            sys.executable, "-m", "bot", "run", cwd=self.data.parent, env=self.environment(), stdin=asyncio.subprocess.DEVNULL,
            stdout=asyncio.subprocess.DEVNULL, stderr=asyncio.subprocess.PIPE, limit=2**22,
        )  # fmt: skip
        self._reading = asyncio.create_task(self._read(self.process))
        if connected:
            await self.server.wait_connected(before + 1, timeout=40)

    async def _read(self, process: asyncio.subprocess.Process) -> None:
        assert process.stderr is not None
        while line := (await process.stderr.readline()).decode().rstrip():
            self.lines.append(line)

    async def ended(self) -> int:
        """Its exit code, once it has ended by itself."""
        assert self.process is not None
        async with asyncio.timeout(40):
            code = await self.process.wait()
            assert self._reading is not None
            await self._reading
        return code

    async def stop(self) -> int:
        """SIGTERM."""
        if self.process is None:
            return 0
        if self.process.returncode is None:
            self.process.terminate()
        return await self.ended()

    async def kill(self) -> None:
        """kill -9."""
        assert self.process is not None
        self.process.send_signal(signal.SIGKILL)
        await self.ended()

    async def counted(self, reason: str, *, above: int = -1) -> int:
        """How often a reason code came up; 0 when that is not more than `above`."""
        async with aiohttp.ClientSession() as session, session.get(f"http://127.0.0.1:{self.port}/metrics") as response:
            found = re.search(rf'^keepsake_reasons_total{{reason="{reason}"}} (\d+)', await response.text(), re.MULTILINE)
        count = int(found[1]) if found else 0
        return count if count > above else 0

    async def heard(self, part: str) -> str:
        """A line of its log with something in it."""
        return str(await until(lambda: next((line for line in self.lines if part in line), None), timeout=20))

    async def exchange(self, channel: Channel, say: Callable[[], Message], answer: str) -> Message:
        """Somebody says something, and the bot's next message there is this."""
        after = say()
        found = await self.server.wait_for_message(channel, after=after, timeout=20)
        assert found.content == answer, f"{found.content!r} instead of {answer!r}"
        return found


@asynccontextmanager
async def bot_on(server: DiscordServer, model: ScriptedModel, *, start: bool = True, **settings: str) -> AsyncIterator[Bot]:
    """A bot on a server, with a fresh data folder; at the end it has to stop cleanly."""
    top = tempfile.mkdtemp(prefix="ks-discord-")
    os.chmod(top, 0o711)  # the servers inside may run under an account of their own
    bot = Bot(server, model, Path(top) / "data", {f"KEEPSAKE__{name}": value for name, value in settings.items()})
    try:
        if start:
            await bot.start()
        yield bot
        assert await bot.stop() in (0, 2), bot.lines
    finally:
        if bot.process is not None and bot.process.returncode is None:
            bot.process.kill()
            await bot.process.wait()
        if bot._reading is not None:
            await bot._reading
        remove(top)
