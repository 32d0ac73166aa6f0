"""A `bot run` process that can be ended and started again on the same data."""

from __future__ import annotations

import asyncio
import os
import re
import signal
import sys
from dataclasses import dataclass, field
from pathlib import Path

import aiohttp

from tests.servers.model import ScriptedModel, unused_port
from tests.waiting import stretched, until


@dataclass(slots=True)
class RunningBot:
    """One process; `chosen` and `listens` are its platform's. `program` is the module that is run, `arguments` follow its `run`."""

    model: ScriptedModel
    data: Path
    settings: dict[str, str]
    arguments: tuple[str, ...] = ()
    port: int = field(default_factory=unused_port)
    program: str = "bot"
    process: asyncio.subprocess.Process | None = None
    lines: list[str] = field(default_factory=list)
    _reading: asyncio.Task[None] | None = None

    def chosen(self) -> dict[str, str]:
        """What the environment says of the platform."""
        return {}

    async def listens(self) -> None:
        """Until it takes events."""

    def environment(self) -> dict[str, str]:
        hidden = (
            "KEEPSAKE",
            "DISCORD",
            "SLACK",
            "HTTP_PROXY",
            "HTTPS_PROXY",
            "http_proxy",
            "https_proxy",
            "ALL_PROXY",
            "all_proxy",
        )
        kept = {name: value for name, value in os.environ.items() if not name.startswith(hidden)}
        common = {
            "KEEPSAKE_DATA": str(self.data),
            "KEEPSAKE__MODEL__BASE_URL": self.model.base_url,
            "KEEPSAKE__MODEL__CHAT": "scripted",
            "KEEPSAKE__MODEL__SIZE": "large",  # not to be tried: the script has no steps for that
            "KEEPSAKE__ENGINE__DEBOUNCE": "0.4",
            "KEEPSAKE__ENGINE__DEBOUNCE_CAP": "3",
            "KEEPSAKE__CONSENT__NOTICE": "{}",
            "KEEPSAKE__HEALTH__BIND": f"127.0.0.1:{self.port}",
            "PYTHONUNBUFFERED": "1",
        }
        return {**kept, **common, **self.chosen(), **self.settings}

    async def start(self, *, listening: bool = True) -> None:
        """Start it, and wait until it takes events."""
        self.process = await asyncio.create_subprocess_exec(
            sys.executable,
            "-m",
            self.program,
            "run",
            *self.arguments,
            cwd=self.data.parent,
            env=self.environment(),
            stdin=asyncio.subprocess.DEVNULL,
            stdout=asyncio.subprocess.DEVNULL,
            stderr=asyncio.subprocess.PIPE,
            limit=2**22,
        )
        self._reading = asyncio.create_task(self._read(self.process))
        if listening:
            async with asyncio.timeout(stretched(60)):
                await self.listens()

    async def _read(self, process: asyncio.subprocess.Process) -> None:
        assert process.stderr is not None
        while line := (await process.stderr.readline()).decode().rstrip():
            self.lines.append(line)

    async def ended(self) -> int:
        """Its exit code, once it has ended by itself."""
        assert self.process is not None
        async with asyncio.timeout(stretched(40)):
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

    async def leave(self) -> None:
        """Whatever state it is in."""
        if self.process is not None and self.process.returncode is None:
            self.process.kill()
            await self.process.wait()
        if self._reading is not None:
            await self._reading

    async def ready(self) -> bool:
        """Whether it says that it serves."""
        try:
            async with aiohttp.ClientSession() as session, session.get(f"http://127.0.0.1:{self.port}/ready") as response:
                return response.status == 200
        except aiohttp.ClientError:
            return False

    async def until_ready(self) -> None:
        await until(self.ready, timeout=40)

    async def down(self) -> list[str]:
        """The services that it says it does not reach; that it gives no answer, if so."""
        try:
            async with aiohttp.ClientSession() as session, session.get(f"http://127.0.0.1:{self.port}/metrics") as response:
                return re.findall(r'^keepsake_up{service="(\w+)"} 0', await response.text(), re.MULTILINE)
        except aiohttp.ClientError as error:
            return [type(error).__name__]

    async def counted(self, reason: str, *, above: int = -1) -> int:
        """How often a reason code came up; 0 when that is not more than `above`."""
        async with aiohttp.ClientSession() as session, session.get(f"http://127.0.0.1:{self.port}/metrics") as response:
            found = re.search(rf'^keepsake_reasons_total{{reason="{reason}"}} (\d+)', await response.text(), re.MULTILINE)
        count = int(found[1]) if found else 0
        return count if count > above else 0

    async def heard(self, part: str) -> str:
        """A line of its log with something in it."""
        return str(await until(lambda: next((line for line in self.lines if part in line), None), timeout=20))
