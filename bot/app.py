"""The composition root: opens everything the bot stands on, puts the parts together, runs them, and closes them again.

    bot.services   servers inside, database, Redis, embedder, model client
    bot.runtime    the running parts: worker, adapters, scheduler
    here           what the command line asks for: chat, serve, examine, measure, operating
"""

import asyncio
import getpass
import importlib
import os
import signal
import sys
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import asynccontextmanager, contextmanager
from pathlib import Path

import tzlocal

from adapters.base import Person
from adapters.console import ConsoleAdapter, Lines
from bot import doctor
from bot.bench_entry import entry
from bot.commands.context import Parts
from bot.config import Loaded
from bot.findings import Finding, StartError
from bot.runtime import PARTS, Runtime, settled, slot
from bot.services import Progress, opened

__all__ = ["PARTS", "chat", "examine", "measure", "operating", "serve"]
