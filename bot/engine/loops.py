"""Loops and acts that outlive the errors of what they repeat, and how an error is named in a log."""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Awaitable, Callable, Collection
from typing import TypeVar

import psycopg

log = logging.getLogger(__name__)
T = TypeVar("T")


def named(error: BaseException) -> str:
    """An error as it may stand in logs and tables: class and SQLSTATE, never its text, which can quote a person."""
    code = error.sqlstate if isinstance(error, psycopg.Error) else None
    return f"{type(error).__name__} {code}" if code else type(error).__name__


async def forever(name: str, body: Callable[[], Awaitable[None]], *, every: float, first: float = 0.5, cap: float = 3.0) -> None:
    """Run `body` again `every` seconds after it ended, until cancelled. After an error wait `first`, doubled each time up to `cap`.

    An error after a good while is the first one of a new trouble: what never returns would else wait longer from crash to crash.
    """
    wait = first
    while True:
        began = time.monotonic()
        try:
            await body()
        except Exception as error:  # noqa: BLE001 - whatever it was, the loop must go on; nothing else would start it again
            if time.monotonic() - began > cap:
                wait = first
            log.warning("%s failed: %s; again in %.1f s", name, named(error), wait)
            await asyncio.sleep(wait)
            wait = min(wait * 2, cap)
        else:
            wait = first
            await asyncio.sleep(every)


async def insist(
    name: str,
    act: Callable[[], Awaitable[T]],
    *,
    on: type[Exception] = psycopg.OperationalError,
    within: float = float("inf"),
    first: float = 0.1,
    cap: float = 2.0,
) -> T:
    """Do again what the database did not take, until it has: for what is known already and would be forgotten. Returns what `act` gives.

    Only errors of the class `on` are outlived (the database is away), for `within` seconds. Waits as `forever` does. An act whose answer was
    lost may have been done: it must be one that changes nothing the second time.
    """
    until, wait = time.monotonic() + within, first
    while True:
        try:
            return await act()
        except on as error:
            if time.monotonic() + wait > until:
                raise
            log.info("%s: %s; again in %.1f s", name, named(error), wait)
        await asyncio.sleep(wait)
        wait = min(wait * 2, cap)


async def ended(tasks: Collection[asyncio.Task[None]], *, patience: float) -> None:
    """Wait until all tasks have ended, at most `patience` seconds for them to do so by themselves; then cancel them, and again every second.

    Once is not enough: up to Python 3.11 `asyncio.wait_for` loses a cancellation that comes as what it waits for is ready.
    """
    pending = {task for task in tasks if not task.done()}
    timeout = patience
    while pending:
        _, pending = await asyncio.wait(pending, timeout=timeout)
        for task in pending:
            task.cancel()
        timeout = 1.0
