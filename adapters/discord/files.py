"""Attachments on Discord: had by their address. What becomes of them is `adapters.files`'s matter."""

from __future__ import annotations

import logging
from collections.abc import Sequence

import aiohttp

from adapters import files, images
from adapters.base import Image
from adapters.files import File

log = logging.getLogger(__name__)

SECONDS = 20.0


async def told(attached: Sequence[File], cap: int) -> list[str]:
    """Every file as text for the message; `cap` is the most bytes read of one."""
    if not attached:
        return []
    async with aiohttp.ClientSession(timeout=aiohttp.ClientTimeout(total=SECONDS)) as session:
        return await files.told(attached, cap, lambda file, most: _beginning(session, file, most))


async def seen(attached: Sequence[File], cap: int) -> tuple[Image, ...]:
    """The pictures of a message for a model that sees, of at most `cap` bytes each; 0: none."""
    chosen = images.wanted(attached, cap)
    if not chosen:
        return ()
    async with aiohttp.ClientSession(timeout=aiohttp.ClientTimeout(total=SECONDS)) as session:
        found = [(file.name, await _beginning(session, file, cap)) for file in chosen]
    shown = [images.image(name, content) for name, content in found if content]
    return tuple(one for one in shown if one is not None)


async def _beginning(session: aiohttp.ClientSession, file: File, cap: int) -> bytes | None:
    """The first bytes of a file, None when it cannot be had."""
    content = b""
    try:
        async with session.get(file.url) as response:
            if response.status != 200:
                log.warning("an attachment could not be read: status %d", response.status)
                return None
            while len(content) < cap and (chunk := await response.content.read(cap - len(content))):
                content += chunk
    except (aiohttp.ClientError, TimeoutError, ValueError) as error:
        log.warning("an attachment could not be read: %s", type(error).__name__)
        return None
    return content
